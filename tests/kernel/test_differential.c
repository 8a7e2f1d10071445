// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random SPDs and random flows: the kernel, the BPF program and the linear
 * reference must name the same policy.  XSPD_SEED=N runs another course.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/xfrm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/churn.h"
#include "lib/judge.h"
#include "lib/netns.h"
#include "util.h"

#define FLOWS  1000 /* asked at a time */
#define PERIOD 20   /* rounds between SPDs of one size and another */
/* MIGRATE events are about nothing that a mirror must see here: only the questions make them */
#define GROUPS (XSPD_NL_GROUPS & ~(1u << (XFRMNLGRP_MIGRATE - 1)))

struct course {
	const char *name;
	uint64_t seed;
	uint32_t rounds;
	uint32_t most; /* policies */
	bool in_place; /* updates that keep the priority: ties */
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

static void walk(const struct course *course)
{
	static struct xspd_flow flows[FLOWS];
	struct run run;

	run_open(&run, course);
	run.gen.sub = 5;
	run.gen.mark = 20;
	run.gen.dev = 10;
	run.gen.if_id = 15;
	run.gen.block = 25;
	run.gen.user = 3;
	for (uint32_t round = 0; round < course->rounds; round++) {
		round_changes(&run, course, round);
		flows_make(&run, flows, FLOWS);
		cr_assert_eq(judge_flows(&run.judge, flows, FLOWS), 0);
		if (round % 100 == 99)
			cr_expect_eq(churn_audit(&run.churn), 0, "the mirror is not the SPD");
	}
	judge_report(&run.judge, course->name);
	cr_expect_eq(run.judge.wrong, 0);
	cr_expect_gt(run.judge.named, run.judge.probes / 4, "most flows should hit something");
	if (course->in_place)
		cr_expect_gt(run.churn.in_places, 0);
	else
		cr_expect_eq(run.judge.deferred, 0, "no tie here is uncertain");
	run_close(&run);
}

Test(differential, created_only)
{
	walk(&(struct course){
		.name = "no updates in place", .seed = 1, .rounds = 500, .most = 300});
}

Test(differential, updated_in_place)
{
	walk(&(struct course){.name = "updates in place",
			      .seed = 2,
			      .rounds = 500,
			      .most = 300,
			      .in_place = true});
}

/* Every lookup goes through the tries. */
Test(differential, pruned)
{
	walk(&(struct course){
		.name = "tries", .seed = 3, .rounds = 300, .most = 300, .prune_at = 1});
}

/* Mask classes merged into few, so that chains are long. */
Test(differential, coarsened)
{
	walk(&(struct course){.name = "coarsened",
			      .seed = 4,
			      .rounds = 300,
			      .most = 300,
			      .in_place = true,
			      .coarsen_at = 4});
}
