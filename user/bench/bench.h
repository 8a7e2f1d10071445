/* SPDX-License-Identifier: GPL-2.0-only */
/* What the steps of one row share; nobody else's business. */
#ifndef XSPD_BENCH_BENCH_H
#define XSPD_BENCH_BENCH_H

#include "bench/measure.h"
#include "plane/plane.h"

/* All that one row needs, so that every way out can free it. */
struct xspd_bench {
	const struct xspd_bench_set *set;
	const struct xspd_bench_labs *labs;
	struct xspd_lab *lab; /* NULL: without the kernel */
	struct xspd_spd *spd;
	struct xspd_plane *plane;
	struct xspd_flow *flows;
	struct xspd_flow *null_flows;
	struct xspd_answer *answers;
	uint32_t count; /* of flows */
	uint32_t oif;
	struct xspd_bench_row row;
	const char *what;
};

/* timing.c: medians and minimums over XSPD_BENCH_ROUNDS rounds, the empty loop taken off. */
int xspd_bench_time_plane(struct xspd_bench *b, double *ret_median, double *ret_min);
/* @hit: which nearly empty SPD to subtract. Nothing is done without a kernel. */
int xspd_bench_time_kernel(struct xspd_bench *b, bool hit, double *ret_median, double *ret_min);

/*
 * check.c: every answer is looked at, and a sample compared with the linear reference or,
 * if @winner is not NULL, all of them with the policies that a trace promises. @hit: no flow may
 * be left without a policy. Failures are counted in the row.
 */
int xspd_bench_check(struct xspd_bench *b, const uint32_t *winner, bool hit);
/* Leave only the flows that were answered with no policy; the answers are used up. */
int xspd_bench_keep_misses(struct xspd_bench *b);

/* publish.c: load, build and time that. */
int xspd_bench_build(struct xspd_bench *b);
/* Publish some more policies, one by one, and time that. */
int xspd_bench_change(struct xspd_bench *b);

#endif
