// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>

#include "bench/costs.h"
#include "bench/fill.h"
#include "util.h"

#define ROUNDS	    15
#define ROUND_NS    12000000.0
#define LEAST	    16
#define SLOPE_LEAST 0.5 /* of the kernel's list to ours */
#define SLOPE_MOST  3.0

/* What every measurement needs. */
struct rig {
	struct xspd_tune_costs *costs;
	struct xspd_flow *flows;
	struct xspd_lab *empty;
	double base;
	const char **what;
};

/* Fewer flows where each takes long. */
static uint32_t flows_fit(double ns, uint32_t count)
{
	double fit = ROUND_NS / ns;

	return fit >= count ? count : fit < LEAST ? (count < LEAST ? count : LEAST) : (uint32_t)fit;
}

int xspd_bench_lookup_ns(struct xspd_lab *lab, struct xspd_lab *empty, enum xspd_lab_way way,
			 const struct xspd_flow *flows, uint32_t count, double *ret)
{
	double least = 0, least_loop = 0, ns, loop;
	int err = xspd_lab_time(lab, way, flows, count < LEAST ? count : LEAST, &ns);

	if (!err) /* the first opened the sockets */
		err = xspd_lab_time(lab, way, flows, count < LEAST ? count : LEAST, &ns);
	if (err < 0)
		return err;
	count = flows_fit(ns, count);
	for (int i = 0; i < ROUNDS && !err; i++) {
		err = xspd_lab_time(lab, way, flows, count, &ns);
		if (!err)
			err = xspd_lab_time(empty, way, flows, count, &loop);
		least = !i || ns < least ? ns : least;
		least_loop = !i || loop < least_loop ? loop : least_loop;
	}
	*ret = least - least_loop;
	return err;
}

/* One shape of @count policies: a lookup that finds one, one that does not, and what each took. */
static int shape_time(struct rig *rig, const char *name, uint32_t count, bool hit, double *ret_ns,
		      double *ret_insert)
{
	struct xspd_bench_set set = {};
	struct xspd_lab *lab = NULL;
	uint32_t oif, refused;
	int err;

	*rig->what = "fill a network namespace";
	err = xspd_bench_set_open(&set, name, count, &refused);
	if (!err)
		err = xspd_lab_new(&lab, &oif);
	if (!err)
		err = xspd_bench_insert(&set, ret_insert, &refused);
	if (!err && refused)
		err = -EEXIST;
	*rig->what = "time the kernel";
	if (!err && hit)
		xspd_bench_hits(&set, oif, rig->flows, XSPD_BENCH_FLOWS);
	else if (!err)
		xspd_bench_misses(&set, oif, rig->flows, XSPD_BENCH_FLOWS);
	if (!err)
		err = xspd_bench_lookup_ns(lab, rig->empty, XSPD_LAB_SEND, rig->flows,
					   XSPD_BENCH_FLOWS, ret_ns);
	xspd_lab_free(lab);
	xspd_bench_set_close(&set);
	return err;
}

static double positive(double ns)
{
	return ns > 1 ? ns : 1;
}

/* A list of marks; a lookup that finds nothing walks all of it. */
static int list_time(struct rig *rig, uint32_t count, double *ret_walk, double *ret_insert)
{
	double ns, insert;
	int err = shape_time(rig, "vti", count, false, &ns, &insert);

	if (err < 0)
		return err;
	*ret_walk = positive(ns - rig->base) / count;
	/* the mean insertion passed half of what was there in the end */
	*ret_insert = positive(insert) * 2 / count;
	return 0;
}

/* A lookup that finds one of @count policies of a shape that has no lists. */
static int found_time(struct rig *rig, const char *shape, uint32_t count, double *ret)
{
	double ns, insert;
	int err = shape_time(rig, shape, count, true, &ns, &insert);

	*ret = positive(ns - rig->base);
	return err;
}

/*
 * Long lists take the kernel many seconds to fill: beyond what is measured, they are
 * reckoned to grow dearer as a list in memory of our own does.
 */
static int lists_time(struct rig *rig)
{
	struct xspd_tune_costs *costs = rig->costs;
	double chase[XSPD_TUNE_SIZES], insert = 0, slope;
	int err = list_time(rig, (uint32_t)xspd_tune_sizes[1], &costs->walk[1], &insert);

	costs->walk[0] = costs->walk[1];
	if (!err)
		err = list_time(rig, (uint32_t)xspd_tune_sizes[2], &costs->walk[2], &insert);
	if (err < 0)
		return err;
	for (int i = 0; i < XSPD_TUNE_SIZES; i++)
		chase[i] = xspd_bench_chase((uint32_t)xspd_tune_sizes[i]);
	slope = (costs->walk[2] - costs->walk[1]) / positive(chase[2] - chase[1]);
	slope = slope < SLOPE_LEAST ? SLOPE_LEAST : slope > SLOPE_MOST ? SLOPE_MOST : slope;
	for (int i = 3; i < XSPD_TUNE_SIZES; i++)
		costs->walk[i] = costs->walk[2] + slope * (chase[i] - chase[2]);
	for (int i = 0; i < XSPD_TUNE_SIZES; i++)
		costs->insert[i] = costs->walk[i] * insert / costs->walk[2];
	return 0;
}

/* What finding a policy costs in any case is taken off; the last size is reckoned from two. */
static void table_finish(double table[XSPD_TUNE_SIZES], double hit)
{
	int last = XSPD_TUNE_SIZES - 1;

	for (int i = 0; i < last; i++)
		table[i] = positive(table[i] - hit);
	table[last] = 2 * table[last - 1] - table[last - 2];
	if (table[last] < table[last - 1])
		table[last] = table[last - 1];
}

static int hosts_time(struct rig *rig)
{
	struct xspd_tune_costs *costs = rig->costs;
	int err = 0;

	for (int i = 0; i < XSPD_TUNE_SIZES - 1 && !err; i++) {
		err = found_time(rig, "mesh", (uint32_t)xspd_tune_sizes[i], &costs->host[i]);
		if (!err)
			err = found_time(rig, "roadwarrior", (uint32_t)xspd_tune_sizes[i],
					 &costs->tree[i]);
	}
	if (!err)
		err = found_time(rig, "mesh6", 1, &costs->hit6);
	costs->hit = costs->host[0] < costs->tree[0] ? costs->host[0] : costs->tree[0];
	table_finish(costs->host, costs->hit);
	table_finish(costs->tree, costs->hit);
	return err;
}

static int base_time(struct rig *rig)
{
	double insert, ns;
	/* one policy of other hosts: what every lookup does, and no more */
	int err = shape_time(rig, "mesh", 1, false, &ns, &insert);

	rig->base = rig->costs->base = positive(ns);
	return err;
}

int xspd_bench_costs(struct xspd_tune_costs *ret, const char **ret_what)
{
	xspd_autoclose int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	xspd_autofree struct xspd_flow *flows = calloc(XSPD_BENCH_FLOWS, sizeof(*flows));
	struct xspd_tune_costs costs = *ret;
	struct rig rig = {.costs = &costs, .flows = flows, .what = ret_what};
	uint32_t oif;
	int err;

	*ret_what = "make a network namespace";
	if (home < 0 || !flows)
		return home < 0 ? -errno : -ENOMEM;
	err = xspd_lab_new(&rig.empty, &oif);
	if (!err)
		err = base_time(&rig);
	if (!err)
		err = hosts_time(&rig);
	if (!err)
		err = lists_time(&rig);
	xspd_lab_free(rig.empty);
	if (setns(home, CLONE_NEWNET) < 0 && !err)
		err = -errno;
	if (!err)
		*ret = costs;
	return err;
}
