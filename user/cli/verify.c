// SPDX-License-Identifier: GPL-2.0-only
/*
 * xspd verify: for some seconds, what xspd answered against what the kernel then did. What cannot
 * be known (packets that no hook saw, deferred answers) makes a bound wider, never wrong.
 */
#include <sys/socket.h>

#include "cli/cli.h"
#include "cli/selector.h"
#include "cli/verify.h"
#include "cli/verify_tell.h"
#include "util.h"

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* What came between the samples for sure, and at most. */
static struct verify_range range_of(uint64_t start_before, uint64_t start_after,
				    uint64_t end_before, uint64_t end_after)
{
	return (struct verify_range){minus(end_before, start_after),
				     minus(end_after, start_before)};
}

static struct verify_range stat_range(const struct verify *v, int hook, int reason)
{
	return range_of(v->start.before.stat[hook][reason], v->start.after.stat[hook][reason],
			v->end.before.stat[hook][reason], v->end.after.stat[hook][reason]);
}

static struct verify_range act_range(const struct verify *v, int act)
{
	struct verify_range sum = {};

	for (int hook = 0; hook < XSPD_HOOK_MAX_; hook++) {
		struct verify_range one =
			range_of(v->start.before.act[hook][act], v->start.after.act[hook][act],
				 v->end.before.act[hook][act], v->end.after.act[hook][act]);

		sum.lo += one.lo;
		sum.hi += one.hi;
	}
	return sum;
}

/* Packets on arrival answered for @reason. */
static struct verify_range arrived(const struct verify *v, int reason)
{
	struct verify_range xdp = stat_range(v, XSPD_HOOK_XDP, reason);
	struct verify_range ingress = stat_range(v, XSPD_HOOK_INGRESS, reason);

	return (struct verify_range){xdp.lo + ingress.lo, xdp.hi + ingress.hi};
}

/* Without those that xspd kept from the kernel. */
static struct verify_range left(const struct verify *v, struct verify_range all,
				struct verify_range acted)
{
	return (struct verify_range){minus(all.lo, acted.hi),
				     v->cover.inexact ? all.hi : minus(all.hi, acted.lo)};
}

/* Packets of a policy that the kernel was to judge. */
static struct verify_range row_range(const struct verify *v, uint32_t index)
{
	static const struct verify_row none;
	const struct verify_row *row[4] = {
		verify_row_find(&v->start.before, index), verify_row_find(&v->start.after, index),
		verify_row_find(&v->end.before, index), verify_row_find(&v->end.after, index)};
	struct verify_range all, acted;

	/* it came or went meanwhile: nothing is certain, but what was counted */
	for (int i = 0; i < 4; i++)
		row[i] = row[i] ?: &none;
	all = range_of(row[0]->packets, row[1]->packets, row[2]->packets, row[3]->packets);
	acted = range_of(row[0]->acted, row[1]->acted, row[2]->acted, row[3]->acted);
	return left(v, all, acted);
}

/* Sum over policies of some kind; @block: these, else those with a required template. */
static struct verify_range rows_range(const struct verify *v, bool out, bool block)
{
	const struct verify_side *side = &v->end.after;
	struct verify_range sum = {};

	for (size_t i = 0; i < side->rows; i++) {
		const struct xspd_info *info = &side->row[i].info;
		struct verify_range one;

		if ((info->dir == XSPD_OUT) != out || (info->action == XSPD_BLOCK) != block ||
		    (!block && !info->tmpl_required))
			continue;
		one = row_range(v, info->index);
		sum.lo += one.lo;
		sum.hi += one.hi;
	}
	return sum;
}

/* --- the checks ---------------------------------------------------------------- */

static uint64_t kernel_delta(const struct verify *v, enum verify_stat which)
{
	return minus(v->end.stat[which], v->start.stat[which]);
}

static struct verify_range expected(const struct verify *v, enum verify_stat which)
{
	uint32_t defaults = v->start.defaults | v->end.defaults;
	struct verify_range r = {};

	switch (which) {
	case VERIFY_IN_BLOCK:
		return rows_range(v, false, true);
	case VERIFY_IN_NO_POLS:
		r = left(v, arrived(v, XSPD_R_DEFAULT_BLOCK), act_range(v, XSPD_A_DROP_DEFAULT));
		/* on the way out the kernel drops without counting */
		if (defaults & 1u << XSPD_OUT)
			r.lo = 0;
		return r;
	case VERIFY_IN_MISMATCH:
		r = rows_range(v, false, false);
		r.lo = 0; /* what came out of IPsec is as it should be */
		return r;
	default:
		r = rows_range(v, true, true);
		/* dropped before it came to that */
		r.lo = minus(r.lo, kernel_delta(v, VERIFY_IN_MISMATCH) + v->deferred.hi);
		return r;
	}
}

static void check_stat(struct verify *v, enum verify_stat which)
{
	uint64_t kernel = kernel_delta(v, which);
	struct verify_range want = expected(v, which);
	/* local packets that are blocked going out never reach a hook */
	bool upper = which != VERIFY_OUT_BLOCK && v->cover.all;
	enum verify_result result = VERIFY_AGREE;

	want.hi += v->deferred.hi;
	if (v->cover.doubled)
		result = VERIFY_SKIPPED;
	else if (kernel < want.lo || (upper && kernel > want.hi))
		result = VERIFY_DISAGREE;
	else if (!kernel && !want.hi)
		result = VERIFY_NOTHING;
	verify_tell_stat(v, which, want, upper, kernel, result);
}

/* Packets that xspd dropped or forwarded: perhaps after their fwd policy had been counted. */
static uint64_t taken(const struct verify *v)
{
	static const uint8_t acts[] = {XSPD_A_DROP_BLOCK, XSPD_A_DROP_DEFAULT, XSPD_A_DROP_PLAIN,
				       XSPD_A_FORWARDED};
	uint64_t sum = 0;

	for (size_t i = 0; i < XSPD_ARRAY_SIZE(acts); i++)
		sum += act_range(v, acts[i]).hi;
	return sum;
}

/* What is wrong about a policy, NULL: nothing; *ret_same: both say the same for certain. */
static const char *check_use(const struct verify *v, const struct verify_use *use, bool *ret_same)
{
	const struct verify_row *row = verify_row_find(&v->end.after, use->index);
	struct verify_range seen = row_range(v, use->index);
	bool used = use->time > v->start.after.real, idle = use->time < v->start.before.real;
	bool open = v->deferred.hi || act_range(v, XSPD_A_FORWARDED).hi;

	if (!row)
		return used ? "the kernel uses it, xspd does not have it"
			    : "the kernel has it, xspd does not";
	*ret_same = (used && seen.lo) || (idle && !seen.hi);
	/* a lookup that ends in want of an SA sets no time */
	if (seen.lo > (use->dir == XSPD_FWD ? taken(v) : 0) && idle && use->dir != XSPD_OUT)
		return "xspd counts packets for it, the kernel does not use it";
	/* by lo, IPv6 is checked too, and no hook sees that */
	if (used && !seen.hi && !open && v->cover.all &&
	    (use->dir == XSPD_FWD || (use->dir == XSPD_IN && use->family == AF_INET)))
		return "the kernel uses it, xspd counts no packet for it";
	return NULL;
}

static void check_uses(struct verify *v)
{
	unsigned int same = 0, wrong = 0;

	for (size_t i = 0; i < v->end.uses; i++) {
		const struct verify_use *use = &v->end.use[i];
		bool this = false;
		const char *what = check_use(v, use, &this);

		if (what)
			verify_tell_policy(v, use, what);
		wrong += what != NULL;
		same += this;
	}
	for (size_t i = 0; i < v->end.before.rows; i++) {
		uint32_t index = v->end.before.row[i].info.index;
		struct verify_use gone = {.index = index, .dir = v->end.before.row[i].info.dir};

		if (verify_use_find(&v->end, index) || !verify_row_find(&v->end.after, index))
			continue;
		verify_tell_policy(v, &gone, "xspd has it, the kernel does not");
		wrong++;
	}
	if (!wrong)
		verify_tell_uses(v, same, same ? VERIFY_AGREE : VERIFY_NOTHING);
}

static void check_all(struct verify *v)
{
	for (int reason = XSPD_R_SHORT; reason < XSPD_R_MAX_; reason++) {
		struct verify_range one = arrived(v, reason);

		if (reason == XSPD_R_NOT_IP)
			continue;
		v->deferred.lo += one.lo;
		v->deferred.hi += one.hi;
	}
	for (int i = 0; i < VERIFY_STAT_MAX_; i++)
		check_stat(v, i);
	check_uses(v);
}

/* --- the whole ----------------------------------------------------------------- */

static int verify(struct verify *v, const char *instance, bool json)
{
	struct timespec span = {.tv_sec = v->seconds};
	struct verify_trace *trace = NULL;
	int rc = verify_sample(&v->start, instance);

	if (!rc) {
		trace = verify_trace_start(instance, &v->fexit);
		nanosleep(&span, NULL);
		rc = verify_sample(&v->end, instance);
	}
	if (trace)
		verify_trace_stop(trace, &v->looked);
	if (!rc)
		rc = verify_cover(&v->cover, instance);
	if (rc)
		return rc;
	v->checks = json ? json_object_new_array() : NULL;
	check_all(v);
	if (trace)
		verify_tell_looked(v);
	if (json)
		verify_print_json(v);
	else
		verify_print_text(v);
	return v->disagreed ? cli_fail("verify: %u of %u checks disagree with the kernel",
				       v->disagreed, v->agreed + v->disagreed)
			    : XSPD_DONE;
}

int verify_main(int argc, char **argv)
{
	struct verify v = {.seconds = 10};
	const struct cli_option options[] = {{"seconds", CLI_NUMBER, &v.seconds, 2, 86400}, {}};
	struct cli_common common = {.reads = true};
	int rc = cli_parse(&common, options, &argc, &argv);

	if (rc || common.help)
		return rc;
	if (argc)
		return cli_usage("verify: '%s': it takes options only", argv[0]);
	rc = cli_enter_netns(common.netns);
	if (!rc)
		rc = verify(&v, common.instance, common.json);
	verify_sample_free(&v.start);
	verify_sample_free(&v.end);
	return rc;
}
