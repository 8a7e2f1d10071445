// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tables behind the classifier, pushed to their limits: the program must still say what
 * the linear reference says.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/casefile.h"
#include "lib/gen.h"
#include "lib/judge.h"
#include "lib/mirror.h"
#include "reason.h"
#include "util.h"

#define FLOWS 1000

static struct mirror *mirror;
static struct gen gen;
static struct judge judge;

static void begin(const char *name, const struct xspd_plane_opts *opts)
{
	struct xspd_plane_opts with = *opts;

	with.bench = true;
	with.lease_ms = 60000;
	gen_init(&gen, name, 7);
	gen.devs[0] = gen.devs[1] = 1;
	gen.devs[2] = 2;
	cr_assert_eq(mirror_new(&mirror, 0, &with), 0, "needs root");
	judge = (struct judge){.mirror = mirror};
}

static void end(const char *name)
{
	judge_report(&judge, name);
	cr_expect_eq(judge.wrong, 0);
	mirror_free(mirror);
}

/* Flows made from policies of the mirror. */
static void ask_random(void)
{
	static struct xspd_answer answers[FLOWS];
	static struct xspd_flow flows[FLOWS];
	static struct xspd_pol *live[1 << 16];
	struct xspd_pol *pol, *next;
	uint32_t count = 0;

	HASH_ITER (hh, mirror->spd->by_index, pol, next)
		if (count < XSPD_ARRAY_SIZE(live))
			live[count++] = pol;
	for (size_t i = 0; i < FLOWS; i++)
		gen_flow(&gen, count ? live[gen_below(&gen, count)] : NULL,
			 count ? live[gen_below(&gen, count)] : NULL, &flows[i]);
	cr_assert_eq(judge_program(&judge, flows, FLOWS, answers), 0);
}

static struct xspd_plane_usage usage(void)
{
	struct xspd_plane_usage ret;

	xspd_plane_usage(mirror->plane, &ret);
	return ret;
}

/* --- sub and main ----------------------------------------------------------------- */

static void expect_pair(const char *words, uint32_t index, uint32_t index2, enum xspd_reason reason)
{
	struct xspd_flow flow = case_flow(words);
	struct xspd_answer answer = {};

	cr_assert_eq(xspd_plane_query(mirror->plane, &flow, &answer), 0);
	cr_expect(answer.index == index && answer.index2 == index2 && answer.reason == reason,
		  "%s: %u and %u, %s", words, answer.index, answer.index2,
		  xspd_reason_name(answer.reason));
}

static uint32_t put(const char *words)
{
	struct xspd_pol pol = case_pol(words);

	return mirror_add(mirror, pol);
}

Test(tables, sub_before_main)
{
	uint32_t sub_out, main_out, main_in, sub_fwd, sub_block;

	begin("sub", &(struct xspd_plane_opts){.capacity = 64});
#define NET  "src 10.1.0.0/16 dst 10.2.0.0/16 "
#define FLOW "src 10.1.0.1 dst 10.2.0.1 proto udp sport 1 dport 2"
	sub_out = put("dir out " NET "ptype sub priority 900 action allow");
	expect_pair("dir out " FLOW, sub_out, 0, XSPD_R_BYPASS);
	main_out = put("dir out " NET "priority 1 action allow tmpl reqid 1");
	expect_pair("dir out " FLOW, sub_out, main_out, XSPD_R_PROTECT);
	cr_assert_eq(xspd_spd_remove(mirror->spd, sub_out), 0);
	expect_pair("dir out " FLOW, main_out, 0, XSPD_R_PROTECT);
	/* on the way out a sub block is the end of it */
	sub_block = put("dir out " NET "ptype sub priority 900 action block");
	expect_pair("dir out " FLOW, sub_block, 0, XSPD_R_BLOCK);
	/* forwarded packets with a sub policy are asked about in direction in */
	put("dir fwd " NET "priority 1 action allow");
	main_in = put("dir in " NET "priority 1 action block");
	sub_fwd = put("dir fwd " NET "ptype sub priority 5 action allow");
	expect_pair("dir fwd " FLOW, sub_fwd, main_in, XSPD_R_BLOCK);
	expect_pair("dir in " FLOW, main_in, 0, XSPD_R_BLOCK);
	mirror_free(mirror);
}

/* --- sizes ---------------------------------------------------------------------------- */

/* One selector, told apart by what is no part of any key: a single chain. */
Test(tables, one_key)
{
	struct xspd_pol pol = case_pol("dir out src 10.1.0.0/16 dst 10.2.0.0/16 action block");

	begin("one key", &(struct xspd_plane_opts){.capacity = 64});
	for (uint32_t i = 0; i < 400; i++) {
		pol.sel.user = i;
		pol.priority = 100 + i * 7919 % 400;
		mirror_add(mirror, pol);
	}
	ask_random();
	/* the best of them is the last to be found by whoever looks in the wrong order */
	expect_pair("dir out src 10.1.0.1 dst 10.2.0.1 proto tcp", 1 << 3 | XSPD_OUT, 0,
		    XSPD_R_BLOCK);
	for (uint32_t i = 1; i <= 400; i += 2)
		cr_assert_eq(xspd_spd_remove(mirror->spd, i << 3 | XSPD_OUT), 0);
	ask_random();
	end("one key");
}

/* A mark each, and a port each, on one pair. */
Test(tables, many_identities)
{
	struct xspd_pol pol =
		case_pol("dir out src 10.1.0.0/16 dst 10.2.0.0/16 mark 0x0 action block");

	begin("many identities", &(struct xspd_plane_opts){.capacity = 64});
	gen.flow_marks = true;
	for (uint32_t i = 0; i < 3000; i++) {
		pol.mark = i;
		pol.priority = i % 5;
		mirror_add(mirror, pol);
	}
	for (int i = 0; i < 5; i++)
		ask_random();
	end("many identities");
}

/* Every pair of prefix lengths, and more classes than a partition can have. */
static void all_classes(const char *name, const struct xspd_plane_opts *opts)
{
	struct xspd_pol pol;
	uint32_t tuples = 0;

	begin(name, opts);
	gen.mark = 20;
	gen.dev = 10;
	gen.dir = XSPD_OUT;
	for (uint32_t i = 0; i < 3000; i++) {
		gen_policy(&gen, &pol);
		pol.sel.prefixlen_d =
			(uint8_t)gen_below(&gen, pol.sel.family == AF_INET ? 33 : 129);
		pol.sel.prefixlen_s =
			(uint8_t)gen_below(&gen, pol.sel.family == AF_INET ? 33 : 129);
		mirror_add(mirror, pol);
		if (i % 300 == 299)
			ask_random();
	}
	tuples = usage().tuples;
	cr_expect_leq(tuples, 2 * XSPD_TUPLES);
	for (uint32_t i = 1; i < 3000; i += 3)
		cr_assert_eq(xspd_spd_remove(mirror->spd, i << 3 | XSPD_OUT), 0);
	ask_random();
	cr_assert_eq(xspd_plane_build(mirror->plane, mirror->spd), 0);
	for (int i = 0; i < 10; i++)
		ask_random();
	printf("  %u tuples, longest chain %u\n", usage().tuples, usage().longest_chain);
	end(name);
}

Test(tables, more_classes_than_tuples)
{
	all_classes("more classes than tuples",
		    &(struct xspd_plane_opts){
			    .capacity = 4096, .prune_at = XSPD_TUPLES, .coarsen_at = XSPD_TUPLES});
}

Test(tables, more_classes_coarsened)
{
	all_classes("coarsened", &(struct xspd_plane_opts){.capacity = 4096, .coarsen_at = 8});
}

Test(tables, more_classes_as_usual)
{
	all_classes("as usual", &(struct xspd_plane_opts){.capacity = 4096});
}

/* Nested prefixes under the tries: each flow must still see its short and its long ones. */
Test(tables, nested_prefixes_in_tries)
{
	struct xspd_pol pol;

	begin("nested",
	      &(struct xspd_plane_opts){.capacity = 2048, .prune_at = 1, .coarsen_at = 250});
	gen.dir = XSPD_OUT;
	for (uint32_t i = 0; i < 600; i++) {
		gen_policy(&gen, &pol);
		pol.sel.prefixlen_d = (uint8_t)(i % 33);
		pol.sel.prefixlen_s = (uint8_t)(i % 7 ? 0 : 32);
		pol.sel.proto = 0;
		pol.sel.sport_mask = pol.sel.dport_mask = 0;
		/* short ones after long ones, and the other way round */
		pol.priority = 1000 + (i & 1 ? i : 600 - i);
		mirror_add(mirror, pol);
		if (i % 60 == 59)
			ask_random();
	}
	cr_expect_gt(usage().match_bytes, 0);
	for (uint32_t i = 0; i < 600; i += 2)
		cr_assert_eq(xspd_spd_remove(mirror->spd, (i + 1) << 3 | XSPD_OUT), 0);
	for (int i = 0; i < 5; i++)
		ask_random();
	end("nested");
}

Test(tables, growth)
{
	struct xspd_plane_usage before, after;
	struct xspd_pol pol;

	begin("growth", &(struct xspd_plane_opts){.capacity = 64});
	gen.if_id = 5;
	before = usage();
	for (uint32_t i = 0; i < 10000; i++) {
		gen_policy(&gen, &pol);
		mirror_add(mirror, pol);
		if (i % 1000 == 999)
			ask_random();
	}
	after = usage();
	cr_expect_eq(after.policies, 10000);
	cr_expect_lt(before.slots, 1000);
	cr_expect_gt(after.slots, 10000);
	cr_expect_gt(xspd_plane_conf(mirror->plane)->swaps, 5);
	cr_assert_eq(xspd_spd_flush(mirror->spd, XSPD_MAIN), 0);
	cr_expect_eq(usage().policies, 0);
	ask_random();
	cr_expect_eq(judge.deferred, 0);
	end("growth");
}

/* Partitions come and go, with numbers used again. */
Test(tables, if_ids)
{
	struct xspd_pol pol;

	begin("if_ids", &(struct xspd_plane_opts){.capacity = 1024});
	for (uint32_t round = 0; round < 10; round++) {
		uint32_t first = mirror->next;

		for (uint32_t i = 0; i < 400; i++) {
			gen_policy(&gen, &pol);
			pol.if_id = 1 + gen_below(&gen, 300);
			pol.dir = XSPD_OUT;
			mirror_add(mirror, pol);
		}
		ask_random();
		for (uint32_t i = first; i < mirror->next; i++)
			if (!gen_chance(&gen, 5))
				cr_assert_eq(xspd_spd_remove(mirror->spd, i << 3 | XSPD_OUT), 0);
		ask_random();
	}
	end("if_ids");
}

/* Ages run out of numbers: all are numbered anew, and the order stays. */
Test(tables, renumber)
{
	struct xspd_pol pol;

	begin("renumber", &(struct xspd_plane_opts){.capacity = 1024});
	for (uint32_t i = 0; i < 300; i++) {
		gen_policy(&gen, &pol);
		pol.priority = 5; /* age decides everything */
		if (i == 200)
			mirror->spd->next_pos = UINT32_MAX - 50;
		mirror_add(mirror, pol);
		if (i % 50 == 49 || i == 250)
			ask_random();
	}
	cr_expect_lt(mirror->spd->next_pos, 1000);
	end("renumber");
}
