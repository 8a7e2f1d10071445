// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random SPDs and random flows: the kernel, the BPF program and the linear
 * reference must name the same policy.  XSPD_SEED=N runs another course.
 */
#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <errno.h>
#include <linux/xfrm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/churn.h"
#include "lib/judge.h"
#include "lib/netns.h"
#include "lib/packet.h"
#include "lib/scale.h"
#include "util.h"

#define PERIOD 20 /* rounds between SPDs of one size and another */
/* MIGRATE events are about nothing that a mirror must see here: only the questions make them */
#define GROUPS (XSPD_NL_GROUPS & ~(1u << (XFRMNLGRP_MIGRATE - 1)))

struct course {
	const char *name;
	uint64_t seed;
	uint32_t rounds;
	uint32_t flows; /* asked in each */
	uint32_t most;	/* policies */
	bool in_place;	/* updates that keep the priority: ties */
	bool old_order; /* by the rules of Linux before 6.12 */
	uint32_t prune_at, coarsen_at;
};

struct run {
	struct gen gen;
	struct churn churn;
	struct judge judge;
	struct mirror *mirror;
	struct oracle *oracle;
};

static void run_open(struct run *run, const struct course *course)
{
	struct xspd_plane_opts opts = {.capacity = 64,
				       .lease_ms = 60000,
				       .bench = true,
				       .prune_at = course->prune_at,
				       .coarsen_at = course->coarsen_at};

	cr_assert_eq(netns_enter(), 0, "needs root");
	cr_assert_eq(netns_routes(), 0);
	cr_assert_eq(oracle_new(&run->oracle), 0);
	cr_assert_eq(mirror_new(&run->mirror, GROUPS, &opts), 0);
	run->mirror->spd->old_order |= course->old_order;
	gen_init(&run->gen, course->name, course->seed);
	run->gen.devs[0] = 1;
	run->gen.devs[1] = netns_device("away0");
	run->gen.devs[2] = netns_device("wan0");
	run->churn = (struct churn){.gen = &run->gen,
				    .oracle = run->oracle,
				    .mirror = run->mirror,
				    .in_place = course->in_place,
				    .most = course->most};
	run->judge = (struct judge){.mirror = run->mirror, .oracle = run->oracle};
}

static void run_close(struct run *run)
{
	const struct churn *churn = &run->churn;

	printf("  %lu adds, %lu updates (%lu in place), %lu deletes, %lu flushes, %lu rebuilds, "
	       "%lu "
	       "refused\n",
	       churn->adds, churn->updates, churn->in_places, churn->deletes, churn->flushes,
	       churn->rebuilds, churn->refused);
	fflush(stdout);
	mirror_free(run->mirror);
	oracle_free(run->oracle);
	free(run->churn.live);
}

static void flows_make(struct run *run, struct xspd_flow *flows, size_t count)
{
	const struct xspd_pol *src, *dst;

	for (size_t i = 0; i < count; i++) {
		dst = gen_chance(&run->gen, 95) ? churn_pick(&run->churn) : NULL;
		src = gen_chance(&run->gen, 80) ? dst : churn_pick(&run->churn);
		gen_flow(&run->gen, src, dst, &flows[i]);
	}
}

/* Small and large sets by turns: ties and misses are then of another kind. */
static void round_changes(struct run *run, const struct course *course, uint32_t round)
{
	static const uint32_t per_mille[] = {20, 1000, 100, 500, 250};
	uint32_t changes = 1 + gen_below(&run->gen, 20);

	if (round % PERIOD == 0) {
		run->churn.most = course->most * per_mille[round / PERIOD % 5] / 1000;
		changes = 3 * course->most;
	}
	for (uint32_t i = 0; i < changes; i++)
		cr_assert_eq(churn_step(&run->churn), 0, "round %u", round);
}

static void flows_sendable(struct run *run, struct xspd_flow *flows, size_t count);

/* Where MIGRATE is no oracle, the kernel is asked of what can be sent, the program of all. */
static void flows_judge(struct run *run, struct xspd_flow *flows, size_t count)
{
	xspd_autofree struct xspd_answer *answers = calloc(count, sizeof(*answers));

	cr_assert(answers);
	flows_make(run, flows, count);
	if (oracle_migrates()) {
		cr_assert_eq(judge_flows(&run->judge, flows, count), 0);
		return;
	}
	if (!run->judge.no_program)
		cr_assert_eq(judge_program(&run->judge, flows, count, answers), 0);
	flows_sendable(run, flows, count / 2);
	cr_assert_eq(judge_sent(&run->judge, flows, count / 2), 0);
}

static void walk(const struct course *course)
{
	static struct xspd_flow flows[JUDGE_FLOWS];
	struct run run;

	run_open(&run, course);
	run.gen.sub = oracle_migrates() ? 5 : 0;
	run.gen.dir = oracle_migrates() ? -1 : XSPD_OUT;
	run.gen.mark = 20;
	run.gen.dev = 10;
	run.gen.if_id = 15;
	run.gen.block = 25;
	run.gen.user = 3;
	for (uint32_t round = 0; round < scaled(course->rounds); round++) {
		round_changes(&run, course, round);
		flows_judge(&run, flows, course->flows);
		if (round % 50 == 49)
			cr_expect_eq(churn_audit(&run.churn), 0, "the mirror is not the SPD");
	}
	judge_report(&run.judge, course->name);
	cr_expect_eq(run.judge.wrong, 0);
	cr_expect_gt(run.judge.named, run.judge.probes / 4, "most flows should hit something");
	if (course->in_place)
		cr_expect_gt(run.churn.in_places, 0);
	else if (!run.mirror->spd->old_order)
		cr_expect_eq(run.judge.deferred, 0, "no tie here is uncertain");
	run_close(&run);
}

Test(differential, created_only)
{
	walk(&(struct course){.name = "no updates in place",
			      .seed = 1,
			      .rounds = 500,
			      .flows = 1000,
			      .most = 300});
}

Test(differential, updated_in_place)
{
	walk(&(struct course){.name = "updates in place",
			      .seed = 2,
			      .rounds = 500,
			      .flows = 1000,
			      .most = 300,
			      .in_place = true});
}

/* Every lookup goes through the tries. Sets are built more often then: fewer changes, more flows.
 */
Test(differential, pruned)
{
	walk(&(struct course){.name = "tries",
			      .seed = 3,
			      .rounds = 100,
			      .flows = 3000,
			      .most = 300,
			      .prune_at = 1});
}

/* Mask classes merged into few, so that chains are long. */
Test(differential, coarsened)
{
	walk(&(struct course){.name = "coarsened",
			      .seed = 4,
			      .rounds = 100,
			      .flows = 3000,
			      .most = 300,
			      .in_place = true,
			      .coarsen_at = 4});
}

/* The older kernel's rules are the stricter ones: what they make certain holds for every kernel. */
Test(differential, old_order)
{
	walk(&(struct course){.name = "old order",
			      .seed = 9,
			      .rounds = 100,
			      .flows = 1000,
			      .most = 300,
			      .in_place = true,
			      .old_order = true});
}

/* --- a dump only -------------------------------------------------------------------- */

static int dump_entry(void *ctx, const struct xspd_event *event)
{
	return event->kind == XSPD_EVENT_POLICY ? xspd_spd_dump_entry(ctx, &event->pol) : 0;
}

static struct xspd_spd *dump_read(const struct run *run)
{
	struct xspd_spd *spd = xspd_spd_new();
	struct xspd_spd_diff diff;

	cr_assert(spd);
	spd->old_order = run->mirror->spd->old_order;
	spd->defaults = run->mirror->spd->defaults;
	cr_assert_eq(xspd_spd_dump_begin(spd), 0);
	cr_assert_eq(xspd_nl_dump(run->mirror->requests, dump_entry, spd), 0);
	cr_assert_eq(xspd_spd_dump_end(spd, &diff), 0);
	return spd;
}

/*
 * Who saw no event knows less: it must defer more, but not be wrong.  (A change of
 * priority and back, or an index of the user's choice, leaves no trace in a dump.)
 */
Test(differential, dumped)
{
	static struct xspd_flow flows[JUDGE_FLOWS];
	struct course course = {.name = "dumped", .seed = 8, .most = 200, .in_place = true};
	struct mirror dumped = {};
	struct run run;

	run_open(&run, &course);
	run.churn.tellable = true;
	run.gen.if_id = 5;
	run.gen.sub = oracle_migrates() ? 3 : 0;
	run.gen.dir = oracle_migrates() ? -1 : XSPD_OUT;
	run.gen.block = 25;
	run.judge.mirror = &dumped;
	run.judge.no_program = true;
	for (uint32_t round = 0; round < scaled(200); round++) {
		round_changes(&run, &course, round);
		dumped.spd = dump_read(&run);
		flows_judge(&run, flows, 1000);
		xspd_spd_free(dumped.spd);
	}
	judge_report(&run.judge, course.name);
	cr_expect_eq(run.judge.wrong, 0);
	if (scaled(100) == 100)
		cr_expect_gt(run.judge.deferred, 0);
	run_close(&run);
}

/* --- marks ----------------------------------------------------------------------- */

/* 0.0.0.0, ::, ::1 and the like: no packet comes from there, or leaves for it. */
static bool address_odd(const __be32 *addr)
{
	return !addr[0];
}

/* What a socket can send: UDP, from a real port, out by the device that everything leaves by. */
static void flows_sendable(struct run *run, struct xspd_flow *flows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		do
			flows_make(run, &flows[i], 1);
		while (address_odd(flows[i].saddr) || address_odd(flows[i].daddr) ||
		       flows[i].if_id);
		if (flows[i].proto != IPPROTO_UDP || !flows[i].sport)
			flows[i].sport = htons(500);
		if (!flows[i].dport)
			flows[i].dport = htons(53);
		flows[i].proto = IPPROTO_UDP;
		/* an IPv6 socket that is not bound is looked up without a device */
		flows[i].oif = flows[i].family == XSPD_INET ? run->gen.devs[1] : 0;
	}
}

Test(differential, marks_sent)
{
	static struct xspd_flow flows[JUDGE_FLOWS];
	struct course course = {.name = "marks, sent", .seed = 5, .most = 150, .in_place = true};
	struct run run;

	run_open(&run, &course);
	run.gen.dir = XSPD_OUT;
	run.gen.mark = 60;
	run.gen.flow_marks = true;
	run.gen.dev = 10;
	run.gen.block = 15;
	for (uint32_t round = 0; round < scaled(100); round++) {
		round_changes(&run, &course, round);
		flows_sendable(&run, flows, 500);
		cr_assert_eq(judge_sent(&run.judge, flows, 500), 0);
	}
	judge_report(&run.judge, course.name);
	cr_expect_eq(run.judge.wrong, 0);
	cr_expect_gt(run.judge.named, run.judge.probes / 8);
	run_close(&run);
}

/* The policies in the order in which they were made; it is all that counts. */
struct deck {
	struct xspd_pol pol[30];
	size_t count;
};

static void deck_make(struct run *run, struct deck *deck)
{
	struct xspd_pol *pol;

	cr_assert_eq(xspd_spd_flush(run->mirror->spd, XSPD_MAIN), 0);
	deck->count = 0;
	while (deck->count < XSPD_ARRAY_SIZE(deck->pol)) {
		pol = &deck->pol[deck->count];
		gen_policy(&run->gen, pol);
		if (xspd_spd_find_identity(run->mirror->spd, pol))
			continue;
		pol->index = pol->tmpl.reqid << 3 | pol->dir;
		cr_assert_eq(xspd_spd_upsert(run->mirror->spd, pol), 0);
		deck->count++;
	}
}

static void deck_deal(struct run *run, const struct deck *deck)
{
	char buf[2048] = {};
	struct xspd_pol pol;

	cr_assert_eq(
		oracle_request(run->oracle, xspd_nl_put_flush(buf, XSPD_MAIN, NLM_F_REQUEST, 0)),
		0);
	for (size_t i = 0; i < deck->count; i++) {
		pol = deck->pol[i];
		pol.index = 0;
		memset(buf, 0, sizeof(buf));
		cr_assert_eq(oracle_request(run->oracle,
					    xspd_nl_put_policy(buf, &pol, XFRM_MSG_NEWPOLICY,
							       NLM_F_REQUEST, 0)),
			     0);
	}
}

/* Any protocol; a few are fragments, on a forwarder that does not reassemble. */
static void packet_make(struct run *run, const struct packet_way *way, const struct deck *deck,
			struct xspd_flow *packet, struct xspd_flow *flow)
{
	const struct xspd_pol *pol;

	do {
		pol = &deck->pol[gen_below(&run->gen, (uint32_t)deck->count)];
		gen_flow(&run->gen, pol, pol, packet);
	} while (address_odd(packet->saddr) || address_odd(packet->daddr));
	packet->oif = packet_way_oif(way, packet->dir);
	if (packet->dir != XSPD_IN && gen_chance(&run->gen, 10))
		packet->frag = 1 + gen_below(&run->gen, 2);
	*flow = *packet;
	if (flow->frag)
		flow->sport = flow->dport = 0;
}

/* The reqid of the policy that a packet uses; 0: none, UINT32_MAX: more than one. */
static uint32_t packet_winner(struct run *run, struct packet_way *way, const struct deck *deck,
			      const struct xspd_flow *packet)
{
	struct packet_used used = {};
	size_t count = 0;

	run->judge.kernel++;
	deck_deal(run, deck);
	cr_assert_eq(packet_send(way, packet), 0);
	cr_assert_eq(packet_used(&used, 1, &count), 0);
	return count > 1 ? UINT32_MAX : used.reqid;
}

/* Is it one of those whose order is not certain? */
static bool packet_ties(struct run *run, const struct xspd_flow *flow, uint32_t winner)
{
	xspd_autofree const struct xspd_pol **match = NULL;
	size_t count = 0, best;
	bool tie, found = false;

	cr_assert_eq(xspd_spd_matches(run->mirror->spd, flow, &match, &count), 0);
	best = judge_tied(match, count, &tie);
	for (size_t i = 0; tie && i < best; i++)
		found |= match[i]->tmpl.reqid == winner;
	return found;
}

static void packet_judge(struct run *run, struct packet_way *way, const struct deck *deck)
{
	struct xspd_flow packet, flow;
	struct xspd_answer answer;
	struct xspd_ref ref = {};
	uint32_t due, winner = UINT32_MAX;
	bool right = false;

	packet_make(run, way, deck, &packet, &flow);
	cr_assert_eq(judge_program(&run->judge, &flow, 1, &answer), 0);
	xspd_spd_lookup(run->mirror->spd, &flow, &ref);
	due = ref.pol ? ref.pol->tmpl.reqid : 0;
	run->judge.deferred += ref.reason == XSPD_R_TIE;
	for (int tries = 0; tries < PACKET_TRIES && !right; tries++) {
		winner = packet_winner(run, way, deck, &packet);
		right = ref.reason == XSPD_R_TIE ? packet_ties(run, &flow, winner) : winner == due;
	}
	if (!right)
		judge_wrong(&run->judge, &flow, "not %u, says a packet (%u)", due, winner);
}

/* In, fwd and out with marks, and fragments: real packets, one for each load of the SPD. */
Test(differential, marks_in_packets)
{
	struct course course = {.name = "marks, in packets", .seed = 6, .most = 30};
	struct packet_way *way;
	struct deck deck;
	struct run run;

	run_open(&run, &course);
	mirror_free(run.mirror);
	cr_assert_eq(mirror_new(&run.mirror, 0, &(struct xspd_plane_opts){.bench = true}), 0);
	run.judge.mirror = run.mirror;
	cr_assert_eq(packet_way_new(&way), 0);
	run.gen.mark = 60;
	run.gen.flow_marks = true;
	run.gen.dev = 10;
	run.gen.block = 25;
	run.gen.optional = true;
	run.gen.devs[2] = run.gen.devs[1];
	for (uint32_t round = 0; round < scaled(60); round++) {
		run.gen.dir = round % 3;
		deck_make(&run, &deck);
		for (int i = 0; i < 100; i++)
			packet_judge(&run, way, &deck);
	}
	judge_report(&run.judge, course.name);
	cr_expect_eq(run.judge.wrong, 0);
	cr_expect_gt(run.judge.named, run.judge.probes / 4);
	packet_way_free(way);
	mirror_free(run.mirror);
	oracle_free(run.oracle);
}
