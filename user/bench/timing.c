// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <sys/socket.h>

#include "bench/bench.h"
#include "bench/fill.h"
#include "bench/median.h"

#define KERNEL_NS    100000000.0 /* a round of asking the kernel should not take longer */
#define KERNEL_LEAST 64

/*
 * What is measured minus the empty loop beside it.  Round by round, since other work slows both:
 * the median of the differences, and the difference of the minimums.
 */
static void subtract(double *ns, double *loop, double *ret_median, double *ret_min)
{
	double diff[XSPD_BENCH_ROUNDS];

	for (int i = 0; i < XSPD_BENCH_ROUNDS; i++)
		diff[i] = ns[i] - loop[i];
	xspd_sort(diff, XSPD_BENCH_ROUNDS);
	xspd_sort(ns, XSPD_BENCH_ROUNDS);
	xspd_sort(loop, XSPD_BENCH_ROUNDS);
	*ret_median = diff[XSPD_BENCH_ROUNDS / 2];
	*ret_min = ns[0] - loop[0];
}

static int add_policy(uint16_t family, uint8_t len, __be32 addr)
{
	struct xspd_pol pol = {.dir = XSPD_OUT, .priority = 1};

	pol.sel.family = family;
	pol.sel.saddr.a4 = pol.sel.daddr.a4 = addr;
	pol.sel.prefixlen_s = pol.sel.prefixlen_d = len;
	return xspd_bench_insert_one(&pol);
}

int xspd_bench_labs_new(struct xspd_bench_labs *ret)
{
	struct xspd_bench_labs labs = {};
	uint32_t oif;
	int err;

	err = xspd_lab_new(&labs.hit, &oif);
	if (!err)
		err = add_policy(AF_INET, 0, 0);
	if (!err)
		err = add_policy(AF_INET6, 0, 0);
	if (!err)
		err = xspd_lab_new(&labs.miss, &oif);
	if (!err)
		err = add_policy(AF_INET, 32, 0x010200c0);
	if (err < 0) {
		xspd_bench_labs_free(&labs);
		return err;
	}
	*ret = labs;
	return 0;
}

void xspd_bench_labs_free(struct xspd_bench_labs *labs)
{
	xspd_lab_free(labs->hit);
	xspd_lab_free(labs->miss);
	*labs = (struct xspd_bench_labs){};
}

int xspd_bench_time_plane(struct xspd_bench *b, double *ret_median, double *ret_min)
{
	double ns[XSPD_BENCH_ROUNDS], loop[XSPD_BENCH_ROUNDS];
	int err;

	b->what = "time the programs";
	for (int i = 0; i < XSPD_BENCH_ROUNDS; i++) {
		err = xspd_plane_bench(b->plane, b->count, 1, &ns[i], &loop[i]);
		if (err < 0)
			return err;
	}
	subtract(ns, loop, ret_median, ret_min);
	return 0;
}

/* What the nearly empty SPD is asked: its one policy has no if_id, and no mark to compare. */
static void make_null_flows(struct xspd_bench *b)
{
	for (uint32_t i = 0; i < b->count; i++) {
		b->null_flows[i] = b->flows[i];
		b->null_flows[i].if_id = 0;
	}
}

/* Fewer flows where the kernel walks lists. */
static int kernel_count(struct xspd_bench *b, enum xspd_lab_way way, uint32_t *ret)
{
	uint32_t least = b->count < KERNEL_LEAST ? b->count : KERNEL_LEAST;
	double ns, fit;
	int err;

	err = xspd_lab_time(b->lab, way, b->flows, least, &ns); /* opens the sockets */
	if (!err)
		err = xspd_lab_time(b->lab, way, b->flows, least, &ns);
	if (err < 0)
		return err;
	fit = KERNEL_NS / ns;
	*ret = fit > b->count ? b->count : fit < least ? least : (uint32_t)fit;
	return 0;
}

int xspd_bench_time_kernel(struct xspd_bench *b, bool hit, double *ret_median, double *ret_min)
{
	enum xspd_lab_way way = b->set->migrate ? XSPD_LAB_MIGRATE : XSPD_LAB_SEND;
	double ns[XSPD_BENCH_ROUNDS], loop[XSPD_BENCH_ROUNDS];
	uint32_t count;
	int err;

	if (!b->lab)
		return 0;
	b->what = "time the kernel";
	make_null_flows(b);
	err = kernel_count(b, way, &count);
	for (int i = 0; i < XSPD_BENCH_ROUNDS && !err; i++) {
		err = xspd_lab_time(b->lab, way, b->flows, count, &ns[i]);
		if (!err)
			err = xspd_lab_time(hit ? b->labs->hit : b->labs->miss, way, b->null_flows,
					    count, &loop[i]);
	}
	if (!err)
		err = xspd_lab_enter(b->lab);
	if (err < 0)
		return err;
	subtract(ns, loop, ret_median, ret_min);
	return 0;
}
