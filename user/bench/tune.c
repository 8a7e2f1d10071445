// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/socket.h>

#include "bench/costs.h"
#include "bench/fill.h"
#include "bench/live.h"
#include "bench/tune.h"
#include "nl/nl.h"
#include "util.h"

/* All that one row needs, so that every way out can free it. */
struct job {
	const struct xspd_bench_set *set;
	struct xspd_tune_row *row;
	const char **what;
	struct xspd_lab *lab, *empty;
	bool added; /* empty has a policy, whose base is to be added again */
	struct xspd_spd *spd;
	struct xspd_flow *flows;
	const struct xspd_pol **pols;
	struct xspd_tune *tune;
	struct xspd_nl *nl;
	uint32_t oif;
	struct xspd_spdinfo info;
};

static int on_entry(void *ctx, const struct xspd_event *event)
{
	struct job *job = ctx;

	if (event->kind != XSPD_EVENT_POLICY)
		return 0;
	job->row->costs.sub_policy = event->typed;
	return xspd_spd_dump_entry(job->spd, &event->pol);
}

static int mirror(struct job *job)
{
	struct xspd_spd_diff diff;
	uint32_t i = 0;
	int err = xspd_spd_dump_begin(job->spd);

	*job->what = "dump the SPD";
	if (!err)
		err = xspd_nl_dump(job->nl, on_entry, job);
	if (!err)
		err = xspd_spd_dump_end(job->spd, &diff);
	if (!err)
		err = xspd_nl_spdinfo(job->nl, &job->info);
	job->row->policies = HASH_COUNT(job->spd->by_index);
	job->pols = calloc(job->row->policies + 1ul, sizeof(*job->pols));
	if (err || !job->pols)
		return err ? err : -ENOMEM;
	for (const struct xspd_pol *pol = job->spd->by_index; pol; pol = pol->hh.next)
		job->pols[i++] = pol;
	return 0;
}

static int fill(struct job *job)
{
	uint32_t refused, empty_oif;
	double insert;
	int err;

	*job->what = "make a network namespace";
	err = xspd_lab_new(&job->empty, &empty_oif);
	if (!err)
		err = xspd_lab_new(&job->lab, &job->oif);
	*job->what = "insert the policies";
	if (!err)
		err = xspd_bench_insert(job->set, &insert, &refused);
	if (!err && refused)
		err = -EEXIST;
	if (!err)
		err = xspd_nl_open(&job->nl, 0, 1 << 20);
	return err ? err : mirror(job);
}

static int measure(struct job *job, double *ret)
{
	enum xspd_lab_way way = job->set->migrate ? XSPD_LAB_MIGRATE : XSPD_LAB_SEND;
	int err;

	*job->what = "time the kernel";
	err = xspd_bench_lookup_ns(job->lab, job->empty, way, job->flows, XSPD_BENCH_FLOWS, ret);
	if (job->added)
		*ret += job->row->costs.base;
	return err ? err : xspd_lab_enter(job->lab);
}

static struct xspd_spdinfo info_of(const struct xspd_tune_bits *bits)
{
	return (struct xspd_spdinfo){
		.lbits4 = bits->lbits4,
		.rbits4 = bits->rbits4,
		.lbits6 = bits->lbits6,
		.rbits6 = bits->rbits6,
	};
}

/*
 * A blocked flow ends a batch of questions, which costs a system call more: that is
 * not the lookup's, so it is taken off together with what a policy costs that blocks all.
 */
static int compare_with(struct job *job)
{
	struct xspd_pol block = {.dir = XSPD_OUT, .action = XSPD_BLOCK, .sel.family = AF_INET};
	struct xspd_ref ref;
	int err;

	job->added = job->set->migrate;
	xspd_spd_lookup(job->spd, &job->flows[0], &ref);
	if (ref.verdict != XSPD_DENY)
		return 0;
	job->added = true;
	*job->what = "insert a policy";
	err = xspd_lab_enter(job->empty);
	if (!err)
		err = xspd_bench_insert_one(&block);
	return err ? err : xspd_lab_enter(job->lab);
}

/* There and back again. */
static int change(struct job *job, const struct xspd_tune_bits *now)
{
	struct xspd_tune_row *row = job->row;
	struct xspd_spdinfo best = info_of(&row->bits), old = info_of(now);
	int err;

	*job->what = "set the thresholds";
	err = xspd_live_rebuild(job->nl, &best, row->predicted_stall, &row->measured_stall);
	if (!err)
		err = measure(job, &row->measured_after);
	*job->what = "set the thresholds back";
	if (!err)
		err = xspd_live_rebuild(job->nl, &old, row->predicted_stall_back,
					&row->measured_stall_back);
	return err ? err : measure(job, &row->measured_back);
}

static int predict_and_measure(struct job *job)
{
	struct xspd_tune_bits now = {job->info.lbits4, job->info.rbits4, job->info.lbits6,
				     job->info.rbits6};
	struct xspd_tune_row *row = job->row;
	struct xspd_tune_result before = {.bits = now}, after;
	int err;

	err = xspd_tune_new(&job->tune, job->pols, row->policies, &now, &row->costs);
	if (err < 0)
		return err;
	xspd_tune_search(job->tune, &now, &row->bits);
	xspd_tune_compare(job->tune, &before, &row->bits, &after);
	row->predicted = before.expected;
	for (int i = 0; i < XSPD_DIR_MAX_ * 2; i++)
		if (before.side[i / 2][i & 1].longest > row->longest)
			row->longest = before.side[i / 2][i & 1].longest;
	xspd_bench_hits(job->set, job->oif, job->flows, XSPD_BENCH_FLOWS);
	err = compare_with(job);
	if (!err)
		err = measure(job, &row->measured);
	if (err || !memcmp(&now, &row->bits, sizeof(now)))
		return err;
	row->predicted_after = after.expected;
	row->predicted_stall = after.stall;
	row->predicted_stall_back = before.stall;
	return change(job, &now);
}

int xspd_bench_tune(const struct xspd_bench_set *set, struct xspd_tune_row *ret,
		    const char **ret_what)
{
	struct xspd_tune_row row = {
		.predicted_after = NAN,
		.measured_after = NAN,
		.predicted_stall = NAN,
		.measured_stall = NAN,
		.measured_back = NAN,
		.predicted_stall_back = NAN,
		.measured_stall_back = NAN,
		.costs = xspd_tune_costs_builtin,
	};
	struct job job = {.set = set, .row = &row, .what = ret_what};
	int err = 0;

	job.spd = xspd_spd_new();
	job.flows = calloc(XSPD_BENCH_FLOWS, sizeof(*job.flows));
	if (!job.spd || !job.flows)
		err = -ENOMEM;
	if (!err)
		err = fill(&job);
	/* last thing before: what else the machine does moves its memory's speed */
	if (!err)
		err = xspd_bench_costs(&row.costs, ret_what);
	if (!err)
		err = predict_and_measure(&job);
	xspd_tune_free(job.tune);
	xspd_nl_free(job.nl);
	xspd_lab_free(job.lab);
	xspd_lab_free(job.empty);
	xspd_spd_free(job.spd);
	free(job.pols);
	free(job.flows);
	if (!err)
		*ret = row;
	return err;
}
