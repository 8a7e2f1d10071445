// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <math.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/fill.h"
#include "util.h"

#define FLOWS XSPD_ASK_MAX

static int fill(struct xspd_bench *b)
{
	uint32_t refused;
	int err;

	b->what = "fill the mirror";
	if (!b->lab)
		return xspd_bench_fill(b->set, b->spd);
	b->what = "insert the policies";
	err = xspd_bench_insert(b->set, &b->row.insert, &refused);
	if (!err && refused)
		err = -EEXIST;
	if (err < 0)
		return err;
	b->what = "dump the SPD";
	return xspd_bench_mirror(b->spd);
}

static int ask(struct xspd_bench *b)
{
	double ns;

	b->what = "ask the programs";
	return xspd_plane_ask(b->plane, b->flows, b->count, b->answers, &ns);
}

static double mean_tuples(const struct xspd_bench *b)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < b->count; i++)
		sum += b->answers[i].tuples;
	return b->count ? (double)sum / b->count : NAN;
}

static void use_trace(struct xspd_bench *b, int which)
{
	b->count = b->set->traced[which] < FLOWS ? b->set->traced[which] : FLOWS;
	memcpy(b->flows, b->set->trace[which], b->count * sizeof(*b->flows));
}

static int measure_hits(struct xspd_bench *b)
{
	const uint32_t *winner = b->set->winner[0];
	int err;

	b->count = FLOWS;
	if (winner)
		use_trace(b, 0);
	else
		xspd_bench_hits(b->set, b->oif, b->flows, FLOWS);
	err = ask(b);
	if (!err)
		err = xspd_bench_check(b, winner, true);
	if (err < 0)
		return err;
	b->row.probes = mean_tuples(b);
	err = xspd_bench_time_plane(b, &b->row.hit, &b->row.hit_min);
	return err ? err : xspd_bench_time_kernel(b, true, &b->row.kernel, &b->row.kernel_min);
}

static int measure_rnd(struct xspd_bench *b)
{
	double least;
	int err;

	if (!b->set->winner[1])
		return 0;
	use_trace(b, 1);
	err = ask(b);
	if (!err)
		err = xspd_bench_check(b, b->set->winner[1], false);
	return err ? err : xspd_bench_time_plane(b, &b->row.rnd, &least);
}

/* Take the policy that matches everything out of the kernel, the mirror and the plane. */
static int drop_catch_all(struct xspd_bench *b)
{
	struct xspd_change change = {.kind = XSPD_CHANGE_REMOVE};
	struct xspd_pol pol;
	int err = 0;

	if (!b->set->catch_all)
		return 0;
	b->what = "remove the policy that matches everything";
	xspd_bench_pol(b->set, b->set->catch_all - 1, &pol);
	if (b->lab)
		err = xspd_bench_delete_one(&pol);
	if (err < 0)
		return err;
	pol = *xspd_spd_find(b->spd, pol.index);
	err = xspd_spd_remove(b->spd, pol.index);
	if (err < 0)
		return err;
	change.old = &pol;
	return xspd_plane_change(b->plane, b->spd, &change);
}

/* Of random flows those that match nothing any more. */
static void use_misses_of_trace(struct xspd_bench *b)
{
	uint32_t kept = 0;

	use_trace(b, 1);
	for (uint32_t i = 0; i < b->count; i++)
		if (b->set->winner[1][i] == b->set->catch_all)
			b->flows[kept++] = b->flows[i];
	b->count = kept;
}

static int measure_misses(struct xspd_bench *b)
{
	int err;

	err = drop_catch_all(b);
	if (err < 0)
		return err;
	b->count = FLOWS;
	if (b->set->shape)
		xspd_bench_misses(b->set, b->oif, b->flows, FLOWS);
	else if (b->set->winner[1] && b->set->catch_all)
		use_misses_of_trace(b);
	else
		b->count = 0;
	if (!b->count)
		return 0;
	err = ask(b);
	if (!err)
		err = xspd_bench_keep_misses(b);
	if (err < 0 || !b->count)
		return err;
	err = ask(b);
	if (!err)
		err = xspd_bench_check(b, NULL, false);
	if (err < 0)
		return err;
	b->row.probes_miss = mean_tuples(b);
	err = xspd_bench_time_plane(b, &b->row.miss, &b->row.miss_min);
	return err ? err
		   : xspd_bench_time_kernel(b, false, &b->row.kernel_miss, &b->row.kernel_miss_min);
}

static int measure(struct xspd_bench *b)
{
	struct xspd_plane_usage usage;
	int err;

	err = fill(b);
	if (!err)
		err = xspd_bench_build(b);
	if (err < 0)
		return err;
	xspd_plane_usage(b->plane, &usage);
	b->row.tuples = usage.tuples;
	b->row.bytes = (double)usage.match_bytes / b->row.policies;
	b->row.longest_chain = usage.longest_chain;
	err = measure_hits(b);
	if (!err)
		err = measure_rnd(b);
	if (!err)
		err = measure_misses(b);
	return err ? err : xspd_bench_change(b);
}

static int prepare(struct xspd_bench *b)
{
	b->what = "make a network namespace";
	b->flows = calloc(FLOWS, sizeof(*b->flows));
	b->null_flows = calloc(FLOWS, sizeof(*b->null_flows));
	b->answers = calloc(FLOWS, sizeof(*b->answers));
	b->spd = xspd_spd_new();
	if (!b->flows || !b->null_flows || !b->answers || !b->spd)
		return -ENOMEM;
	return b->labs ? xspd_lab_new(&b->lab, &b->oif) : 0;
}

int xspd_bench_measure(const struct xspd_bench_set *set, const struct xspd_bench_labs *labs,
		       struct xspd_bench_row *ret, const char **ret_what)
{
	struct xspd_bench b = {
		.set = set,
		.labs = labs,
		.row =
			{
				.shape = set->name,
				.policies = set->count,
				.hit = NAN,
				.hit_min = NAN,
				.miss = NAN,
				.miss_min = NAN,
				.rnd = NAN,
				.kernel = NAN,
				.kernel_min = NAN,
				.kernel_miss = NAN,
				.kernel_miss_min = NAN,
				.probes_miss = NAN,
				.insert = NAN,
				.publish = NAN,
			},
	};
	int err = prepare(&b);

	if (!err)
		err = measure(&b);
	xspd_plane_free(b.plane);
	xspd_spd_free(b.spd);
	xspd_lab_free(b.lab);
	free(b.flows);
	free(b.null_flows);
	free(b.answers);
	*ret_what = b.what;
	if (!err)
		*ret = b.row;
	return err;
}
