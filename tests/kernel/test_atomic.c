// SPDX-License-Identifier: GPL-2.0-only
/*
 * A lookup sees each change whole: while one thread changes other policies as fast as it can,
 * flows governed by policies that never change never miss them, and never
 * get another.
 */
#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <errno.h>
#include <linux/xfrm.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/arena.h"
#include "util.h"

#define STABLE ARENA_FLOWS /* policies that never change */
#define CHURN  ARENA_CHURN

/* --- policies -------------------------------------------------------------------- */

static void stable_make(struct arena *arena, size_t at)
{
	struct xspd_pol *pol = &arena->stable[at];
	struct gen *gen = &arena->gen;

	do {
		gen_policy(gen, pol);
		gen_flow(gen, pol, pol, &arena->flow[at]);
	} while (pol->sel.ifindex ||
		 xspd_pol_match(pol, &arena->flow[at], arena->flow[at].dir, XSPD_MAIN, NULL));
	pol->index = (uint32_t)(1 + at) << 3 | pol->dir;
	pol->priority = 50;
	pol->action = XSPD_BLOCK;
	/* two of them may match one flow: then the first one made is its */
}

/* May this policy come and go without any of the flows noticing? */
static bool harmless(const struct arena *arena, const struct xspd_pol *pol)
{
	if (pol->priority > 50)
		return true;
	for (size_t i = 0; i < STABLE; i++)
		if (xspd_pol_match(pol, &arena->flow[i], arena->flow[i].dir, XSPD_MAIN, NULL) ==
		    XSPD_MISS_NOT)
			return false;
	return true;
}

/* Half of them share everything but the priority with a stable one, chain and all. */
static void churn_make(struct arena *arena, size_t at)
{
	const struct xspd_pol *like = &arena->stable[at % STABLE];
	struct xspd_pol *pol = &arena->churn[at];
	struct gen *gen = &arena->gen;

	do {
		gen_policy(gen, pol);
		if (gen_chance(gen, 50)) {
			pol->sel = like->sel;
			pol->dir = like->dir;
			pol->if_id = like->if_id;
		}
		/* the same key, another answer */
		if (gen_chance(gen, 30)) {
			pol->mark = like->mark;
			pol->mark_mask = like->mark_mask;
		}
		pol->priority = gen_chance(gen, 50) ? gen_below(gen, 50) : 100 + gen_below(gen, 5);
	} while (!harmless(arena, pol));
	pol->action = XSPD_ALLOW;
	pol->tmpl.required = 1;
	pol->index = (uint32_t)(1 + STABLE + at) << 3 | pol->dir;
}

static struct arena *arena_open(const char *name, const struct xspd_plane_opts *opts)
{
	struct arena *arena = arena_new(name, opts);

	arena->gen.mark = 30;
	arena->gen.flow_marks = true;
	arena->gen.if_id = 20;
	arena->gen.devs[0] = arena->gen.devs[1] = arena->gen.devs[2] = 1;
	for (size_t i = 0; i < STABLE; i++)
		stable_make(arena, i);
	for (size_t i = 0; i < CHURN; i++)
		churn_make(arena, i);
	return arena;
}

/*
 * Everything once, and a set built for it: from then on changes need no larger one.  The
 * policy of a flow is the first stable one that matches it.
 */
static void arena_fill(struct arena *arena)
{
	struct mirror *mirror = arena->mirror;
	xspd_spd_listener listener = mirror->spd->listener;
	struct xspd_ref ref;

	mirror->spd->listener = NULL;
	for (size_t i = 0; i < STABLE; i++)
		cr_assert_eq(xspd_spd_upsert(mirror->spd, &arena->stable[i]), 0);
	for (size_t i = 0; i < CHURN; i++)
		cr_assert_eq(xspd_spd_upsert(mirror->spd, &arena->churn[i]), 0);
	mirror->spd->listener = listener;
	cr_assert_eq(xspd_plane_build(mirror->plane, mirror->spd), 0);
	for (size_t i = 0; i < STABLE; i++) {
		xspd_spd_lookup(mirror->spd, &arena->flow[i], &ref);
		cr_assert_not_null(ref.pol);
		cr_assert_eq(ref.pol->action, XSPD_BLOCK);
		arena->stable[i].slot = ref.pol->slot;
	}
	memset(arena->present, true, sizeof(arena->present));
}

/* --- writer ------------------------------------------------------------------------ */

/* One change of one of the others. */
static int change(struct arena *arena, size_t at)
{
	struct xspd_pol *pol = &arena->churn[at];
	struct xspd_spd *spd = arena->mirror->spd;
	struct gen *gen = &arena->gen;

	if (arena->present[at] && gen_chance(gen, 40)) {
		arena->present[at] = false;
		return xspd_spd_remove(spd, pol->index);
	}
	/* an update in place, or to another priority */
	if (arena->present[at] && gen_chance(gen, 50))
		pol->priority = pol->priority > 50 ? 100 + gen_below(gen, 5) : gen_below(gen, 50);
	arena->present[at] = true;
	return xspd_spd_upsert(spd, pol);
}

static uint64_t write_changes(struct arena *arena, size_t within)
{
	uint64_t end = xspd_now(CLOCK_MONOTONIC) + ARENA_SECONDS * 1000000000ull, changes = 0;
	int err = 0;

	while (!err && !arena->failed && xspd_now(CLOCK_MONOTONIC) < end) {
		for (int i = 0; i < 64 && !err; i++, changes++) {
			arena_lock(arena);
			err = change(arena, gen_below(&arena->gen, (uint32_t)within));
			arena_unlock(arena);
		}
	}
	cr_expect_eq(err, 0, "%s", strerror(-err));
	return changes;
}

/* What governs flow @i changes hands: the new one is there before the old one goes. */
static uint64_t write_pairs(struct arena *arena)
{
	uint64_t end = xspd_now(CLOCK_MONOTONIC) + ARENA_SECONDS * 1000000000ull, changes = 0;
	struct xspd_spd *spd = arena->mirror->spd;
	bool second[STABLE] = {};
	int err = 0;

	while (!err && !arena->failed && xspd_now(CLOCK_MONOTONIC) < end) {
		for (size_t i = 0; i < STABLE && !err; i++, changes += 2) {
			struct xspd_pol *from = second[i] ? &arena->churn[i] : &arena->stable[i];
			struct xspd_pol *to = second[i] ? &arena->stable[i] : &arena->churn[i];

			to->priority = 50 + gen_below(&arena->gen, 3);
			err = xspd_spd_upsert(spd, to);
			if (!err && gen_chance(&arena->gen, 30)) {
				/* another one: an update in place would be a tie */
				to->priority = 60 + gen_below(&arena->gen, 3);
				err = xspd_spd_upsert(spd, to);
			}
			if (!err)
				err = xspd_spd_remove(spd, from->index);
			/* now it is alone, and changes its place in the order */
			for (uint32_t k = 0; k < 4 && !err; k++, changes++) {
				to->priority = 70 + k;
				err = xspd_spd_upsert(spd, to);
			}
			second[i] = !second[i];
		}
	}
	cr_expect_eq(err, 0, "%s", strerror(-err));
	return changes;
}

static uint64_t write_all(struct arena *arena)
{
	return write_changes(arena, CHURN);
}

static void others_change(const char *name, uint32_t prune_at, uint32_t coarsen_at)
{
	struct xspd_plane_opts opts = {.capacity = 16384,
				       .lease_ms = 60000,
				       .bench = true,
				       .prune_at = prune_at,
				       .coarsen_at = coarsen_at};
	struct arena *arena = arena_open(name, &opts);

	arena_fill(arena);
	arena_race(arena, write_all);
}

Test(atomic, others_change)
{
	others_change("others change", 0, 0);
}

Test(atomic, others_change_walked)
{
	others_change("others change, no tries", 250, 250);
}

Test(atomic, others_change_pruned)
{
	others_change("others change, tries", 1, 250);
}

Test(atomic, others_change_coarsened)
{
	others_change("others change, long chains", 250, 2);
}

/* Two policies for each flow, of different mask classes: one is always there. */
static void pairs_make(struct arena *arena)
{
	for (size_t i = 0; i < STABLE; i++) {
		struct xspd_pol *pol = &arena->churn[i];
		const struct xspd_flow *flow = &arena->flow[i];

		*pol = arena->stable[i];
		pol->dir = flow->dir;
		pol->index = (uint32_t)(1 + STABLE + i) << 3 | pol->dir;
		memcpy(&pol->sel.daddr, flow->daddr, sizeof(pol->sel.daddr));
		memcpy(&pol->sel.saddr, flow->saddr, sizeof(pol->sel.saddr));
		pol->sel.prefixlen_d =
			(uint8_t)(flow->family == XSPD_INET ? 32 - i % 3 : 128 - i % 3);
		pol->sel.prefixlen_s = (uint8_t)(flow->family == XSPD_INET ? 32 : 128);
		pol->sel.dport_mask = 0;
	}
}

Test(atomic, pairs)
{
	struct xspd_plane_opts opts = {.capacity = 16384, .lease_ms = 60000, .bench = true};
	struct arena *arena = arena_open("pairs", &opts);

	pairs_make(arena);
	arena_fill(arena);
	for (size_t i = 0; i < CHURN; i++)
		cr_assert_eq(xspd_spd_remove(arena->mirror->spd, arena->churn[i].index), 0);
	arena->pairs = true;
	arena_race(arena, write_pairs);
}

/*
 * One flow, two policies far apart in the walk through forty mask classes, of which one is
 * always there: who looked at the first class before it came, and at the last after
 * it went, would find none.  No list changes, so both steps take less than a walk.
 */
#define RELAY_CLASSES 40

static void relay_policy(struct xspd_pol *pol, uint32_t nr, uint8_t dlen, uint8_t slen,
			 uint32_t priority)
{
	*pol = (struct xspd_pol){
		.index = nr << 3 | XSPD_OUT,
		.dir = XSPD_OUT,
		.priority = priority,
		.action = XSPD_BLOCK,
		.sel = {.family = AF_INET, .prefixlen_d = dlen, .prefixlen_s = slen}};
	pol->sel.daddr.a4 = htonl(0x0a020202);
	pol->sel.saddr.a4 = htonl(0x0a010101);
}

static void relay_fill(struct arena *arena)
{
	struct xspd_spd *spd = arena->mirror->spd;
	struct xspd_pol pol;

	relay_policy(&arena->stable[0], 1, 32, 32, 60);
	relay_policy(&arena->churn[0], 2, 31, 31, 60);
	for (uint32_t i = 0; i <= RELAY_CLASSES; i++) {
		/* of other addresses; keeps the place of its class in the order */
		relay_policy(&pol, 10 + i, 32 - i % 8, 32 - i / 8, 2 + i);
		if (i == RELAY_CLASSES)
			relay_policy(&pol, 10 + i, 31, 31, 50);
		else if (pol.sel.prefixlen_d == 31 && pol.sel.prefixlen_s == 31)
			continue;
		pol.sel.daddr.a4 = htonl(0xac100202);
		cr_assert_eq(xspd_spd_upsert(spd, &pol), 0);
	}
	cr_assert_eq(xspd_spd_upsert(spd, &arena->stable[0]), 0);
	cr_assert_eq(xspd_plane_build(arena->mirror->plane, spd), 0);
	for (size_t i = 0; i < STABLE; i++)
		arena->flow[i] = flow_make(XSPD_OUT, "10.1.1.1", "10.2.2.2", IPPROTO_UDP, 1, 2);
}

static uint64_t write_relay(struct arena *arena)
{
	uint64_t end = xspd_now(CLOCK_MONOTONIC) + ARENA_SECONDS * 1000000000ull, changes = 0, next;
	const struct xspd_pol *from = &arena->stable[0], *to = &arena->churn[0], *swap;
	struct xspd_spd *spd = arena->mirror->spd;
	int err = 0;

	for (next = xspd_now(CLOCK_MONOTONIC); !err && !arena->failed && next < end; changes += 2) {
		err = xspd_spd_upsert(spd, to);
		if (!err)
			err = xspd_spd_remove(spd, from->index);
		swap = from;
		from = to;
		to = swap;
		/* a lookup that is begun anew must have its chance */
		next = xspd_now(CLOCK_MONOTONIC) + 20000;
		while (xspd_now(CLOCK_MONOTONIC) < next)
			;
	}
	cr_expect_eq(err, 0, "%s", strerror(-err));
	return changes;
}

Test(atomic, relay)
{
	struct xspd_plane_opts opts = {.capacity = 16384,
				       .lease_ms = 60000,
				       .bench = true,
				       .prune_at = 250,
				       .coarsen_at = 250};
	struct arena *arena = arena_new("relay", &opts);

	relay_fill(arena);
	arena->pairs = true;
	arena_race(arena, write_relay);
}

/* The policy of the only flow goes up and down the order, in a chain with one that is worse. */
static uint64_t write_priorities(struct arena *arena)
{
	uint64_t end = xspd_now(CLOCK_MONOTONIC) + ARENA_SECONDS * 1000000000ull, changes = 0;
	struct xspd_pol *pol = &arena->stable[0];
	int err = 0;

	while (!err && !arena->failed && xspd_now(CLOCK_MONOTONIC) < end) {
		for (int i = 0; i < 16 && !err; i++, changes++) {
			pol->priority = 60 + i % 4;
			err = xspd_spd_upsert(arena->mirror->spd, pol);
		}
		usleep(1);
	}
	cr_expect_eq(err, 0, "%s", strerror(-err));
	return changes;
}

Test(atomic, priorities)
{
	struct xspd_plane_opts opts = {.capacity = 16384, .lease_ms = 60000, .bench = true};
	struct arena *arena = arena_new("priorities", &opts);
	struct xspd_pol worse;

	relay_policy(&arena->stable[0], 1, 32, 32, 60);
	relay_policy(&worse, 2, 32, 32, 500);
	worse.sel.user = 1;
	worse.action = XSPD_ALLOW;
	worse.tmpl = (struct xspd_tmpl){.count = 1, .required = 1, .reqid = 1};
	cr_assert_eq(xspd_spd_upsert(arena->mirror->spd, &arena->stable[0]), 0);
	cr_assert_eq(xspd_spd_upsert(arena->mirror->spd, &worse), 0);
	for (size_t i = 0; i < STABLE; i++)
		arena->flow[i] = flow_make(XSPD_OUT, "10.1.1.1", "10.2.2.2", IPPROTO_UDP, 1, 2);
	arena->pairs = true;
	arena_race(arena, write_priorities);
}

/* From few policies to many: sets are built and swapped in meanwhile. */
static uint64_t write_growth(struct arena *arena)
{
	struct xspd_pol pol = arena->churn[0];
	uint64_t changes = 0;
	int err = 0;

	for (uint32_t i = 0; i < 4000 && !err && !arena->failed; i++, changes++) {
		pol.index = (uint32_t)(10000 + i) << 3 | pol.dir;
		pol.sel.user = i;	      /* told apart by what nobody compares */
		pol.sel.proto = IPPROTO_DCCP; /* of which there is no flow */
		pol.sel.daddr.a4 = htonl(0x0a000000 + i);
		pol.sel.prefixlen_d = 32;
		arena_lock(arena);
		err = xspd_spd_upsert(arena->mirror->spd, &pol);
		arena_unlock(arena);
		if (i % 64 == 0)
			usleep(30000); /* lookups go on between the builds */
	}
	cr_expect_eq(err, 0, "%s", strerror(-err));
	return changes;
}

Test(atomic, growth)
{
	struct xspd_plane_opts opts = {.capacity = 600, .lease_ms = 60000, .bench = true};
	struct arena *arena = arena_open("growth", &opts);

	arena_fill(arena);
	arena->swaps = true;
	arena_race(arena, write_growth);
}
