// SPDX-License-Identifier: GPL-2.0-only
/* The reference answer: every policy is looked at, by the rules of the kernel. */
#include <errno.h>
#include <stdlib.h>

#include "spd/spd.h"

/* Matching policies of one kind in one partition: the best, and those it shares its priority with.
 */
struct best {
	const struct xspd_pol *pol;
	uint32_t count; /* of its priority */
	uint32_t unknown;
	bool tie; /* of any of them the order is not certain */
};

/* What a scan of one partition found. */
struct scan {
	struct best sure;  /* match for certain */
	struct best maybe; /* match, unless a field that is not known says otherwise */
	bool unmodelled;
};

static bool same_lengths(const struct xspd_pol *a, const struct xspd_pol *b)
{
	return a->sel.prefixlen_s == b->sel.prefixlen_s && a->sel.prefixlen_d == b->sel.prefixlen_d;
}

static void best_take(struct best *best, const struct xspd_pol *pol, uint32_t unknown)
{
	if (!best->pol || pol->priority < best->pol->priority) {
		*best = (struct best){pol, 1, unknown, pol->tie};
		return;
	}
	if (pol->priority != best->pol->priority)
		return;
	best->count++;
	best->tie |= pol->tie || (pol->apart && !same_lengths(pol, best->pol));
	if (pol->pos < best->pol->pos) {
		best->pol = pol;
		best->unknown = unknown;
	}
}

static struct scan partition_scan(const struct xspd_spd *spd, const struct xspd_flow *flow,
				  uint8_t dir, uint8_t type)
{
	const struct xspd_pol *pol;
	struct scan scan = {};
	uint32_t unknown;

	for (pol = spd->by_index; pol; pol = pol->hh.next) {
		if (xspd_pol_match(pol, flow, dir, type, &unknown))
			continue;
		if (pol->unmodelled)
			scan.unmodelled = true;
		best_take(unknown ? &scan.maybe : &scan.sure, pol, unknown);
	}
	return scan;
}

static enum xspd_reason unknown_reason(uint32_t unknown)
{
	if (unknown & XSPD_UNKNOWN_MARK)
		return XSPD_R_UNKNOWN_MARK;
	if (unknown & XSPD_UNKNOWN_OIF)
		return XSPD_R_UNKNOWN_OIF;
	return XSPD_R_UNKNOWN_PORTS;
}

/* Would the winner be another, or be open, if @scan->maybe matched? */
static bool hangs_on_unknown(const struct scan *scan)
{
	const struct xspd_pol *sure = scan->sure.pol, *maybe = scan->maybe.pol;

	if (!maybe)
		return false;
	if (!sure || xspd_pol_before(maybe, sure))
		return true;
	return maybe->priority == sure->priority && (scan->sure.tie || scan->maybe.tie);
}

/* XSPD_R_NONE with the winner (or NULL) in *ret, or why there is no telling. */
static enum xspd_reason partition_ask(const struct xspd_spd *spd, const struct xspd_flow *flow,
				      uint8_t dir, uint8_t type, const struct xspd_pol **ret)
{
	struct scan scan = partition_scan(spd, flow, dir, type);

	if (scan.unmodelled)
		return XSPD_R_UNMODELLED;
	if (hangs_on_unknown(&scan))
		return unknown_reason(scan.maybe.unknown);
	if (scan.sure.count > 1 && scan.sure.tie)
		return XSPD_R_TIE;
	*ret = scan.sure.pol;
	return XSPD_R_NONE;
}

static enum xspd_reason pol_reason(const struct xspd_pol *pol)
{
	if (pol->action == XSPD_BLOCK)
		return XSPD_R_BLOCK;
	/* on the way out an optional template is applied all the same */
	if (pol->dir == XSPD_OUT ? pol->tmpl.count : pol->tmpl.required)
		return XSPD_R_PROTECT;
	return XSPD_R_BYPASS;
}

static enum xspd_verdict reason_verdict(enum xspd_reason reason)
{
	switch (reason) {
	case XSPD_R_BYPASS:
	case XSPD_R_NO_POLICY:
		return XSPD_PLAIN;
	case XSPD_R_PROTECT:
		return XSPD_PROTECT;
	case XSPD_R_BLOCK:
	case XSPD_R_DEFAULT_BLOCK:
		return XSPD_DENY;
	default:
		return XSPD_DEFER;
	}
}

static enum xspd_reason found_reason(const struct xspd_spd *spd, uint8_t dir,
				     const struct xspd_pol *pol, const struct xspd_pol *pol2)
{
	enum xspd_reason one, two;

	if (!pol)
		return spd->defaults & 1u << dir ? XSPD_R_DEFAULT_BLOCK : XSPD_R_NO_POLICY;
	one = pol_reason(pol);
	two = pol2 ? pol_reason(pol2) : one;
	return reason_verdict(two) > reason_verdict(one) ? two : one;
}

void xspd_spd_answer(const struct xspd_spd *spd, uint8_t dir, const struct xspd_pol *pol,
		     struct xspd_ref *ret)
{
	*ret = (struct xspd_ref){.reason = XSPD_R_UNMODELLED};
	if (pol && pol->unmodelled)
		return;
	ret->pol = pol;
	ret->reason = found_reason(spd, dir, pol, NULL);
	ret->verdict = reason_verdict(ret->reason);
}

/* The direction in which main is asked after the sub policy @sub was found, -1: it is not. */
static int second_dir(const struct xspd_flow *flow, const struct xspd_pol *sub)
{
	if (flow->dir == XSPD_OUT)
		return sub->action == XSPD_BLOCK ? -1 : XSPD_OUT;
	return XSPD_IN;
}

void xspd_spd_lookup(const struct xspd_spd *spd, const struct xspd_flow *flow, struct xspd_ref *ret)
{
	const struct xspd_pol *pol = NULL, *pol2 = NULL;
	enum xspd_reason reason;
	int dir;

	reason = partition_ask(spd, flow, flow->dir, XSPD_SUB, &pol);
	if (!reason && !pol) {
		reason = partition_ask(spd, flow, flow->dir, XSPD_MAIN, &pol);
	} else if (!reason) {
		dir = second_dir(flow, pol);
		if (dir >= 0)
			reason = partition_ask(spd, flow, dir, XSPD_MAIN, &pol2);
	}

	*ret = (struct xspd_ref){.reason = reason};
	if (reason)
		return;
	ret->pol = pol;
	ret->pol2 = pol2;
	ret->reason = found_reason(spd, flow->dir, pol, pol2);
	ret->verdict = reason_verdict(ret->reason);
}

/* true: the answer is in *ret; false: no policy of this type matches. */
static bool steer_type(const struct xspd_spd *spd, const struct xspd_flow *flow, uint8_t type,
		       struct xspd_steer_ref *ret)
{
	struct xspd_flow ask = *flow;
	bool many = false, unmodelled = false;
	const struct xspd_pol *pol;
	struct best best = {};

	ask.oif = 0;
	ask.unknown = 0;
	for (pol = spd->by_index; pol; pol = pol->hh.next) {
		ask.if_id = pol->if_id;
		if (!pol->if_id || xspd_pol_match(pol, &ask, XSPD_OUT, type, NULL))
			continue;
		unmodelled |= pol->unmodelled != 0;
		if (!best.pol || pol->priority < best.pol->priority)
			many = false;
		else if (pol->priority == best.pol->priority)
			many |= pol->if_id != best.pol->if_id;
		best_take(&best, pol, 0);
	}
	if (!best.pol)
		return false;
	ret->best = best.count;
	ret->reason = unmodelled ? XSPD_R_UNMODELLED : XSPD_R_TIE;
	if (unmodelled || many)
		return true;
	ret->if_id = best.pol->if_id;
	if (best.count > 1 && best.tie)
		return true;
	ret->pol = best.pol;
	ret->reason = pol_reason(best.pol);
	return true;
}

void xspd_spd_steer(const struct xspd_spd *spd, const struct xspd_flow *flow,
		    struct xspd_steer_ref *ret)
{
	*ret = (struct xspd_steer_ref){.reason = XSPD_R_NO_POLICY};
	if (!steer_type(spd, flow, XSPD_SUB, ret))
		steer_type(spd, flow, XSPD_MAIN, ret);
}

struct matches {
	const struct xspd_pol **pols;
	size_t count, room;
};

static int matches_add(struct matches *matches, const struct xspd_spd *spd,
		       const struct xspd_flow *flow, uint8_t dir, uint8_t type)
{
	size_t room = matches->room;
	const struct xspd_pol *pol, **pols;

	for (pol = spd->by_index; pol; pol = pol->hh.next) {
		if (xspd_pol_match(pol, flow, dir, type, NULL))
			continue;
		if (matches->count == matches->room) {
			room = room ? 2 * room : 16;
			pols = realloc(matches->pols, room * sizeof(*pols));
			if (!pols)
				return -ENOMEM;
			matches->pols = pols;
			matches->room = room;
		}
		matches->pols[matches->count++] = pol;
	}
	return 0;
}

/* Sub before main, the flow's own direction before the other, then as the kernel looks at them. */
static int matches_compare(const void *a, const void *b)
{
	const struct xspd_pol *x = *(const struct xspd_pol *const *)a;
	const struct xspd_pol *y = *(const struct xspd_pol *const *)b;

	if (x->type != y->type)
		return x->type == XSPD_SUB ? -1 : 1;
	if (x->dir != y->dir)
		return x->dir == XSPD_IN ? 1 : -1;
	return xspd_pol_before(x, y) ? -1 : xspd_pol_before(y, x);
}

int xspd_spd_matches(const struct xspd_spd *spd, const struct xspd_flow *flow,
		     const struct xspd_pol ***ret, size_t *ret_count)
{
	struct scan sub = partition_scan(spd, flow, flow->dir, XSPD_SUB);
	int dir = sub.sure.pol ? second_dir(flow, sub.sure.pol) : flow->dir;
	struct matches matches = {};
	int err;

	err = matches_add(&matches, spd, flow, flow->dir, XSPD_SUB);
	if (!err && dir >= 0)
		err = matches_add(&matches, spd, flow, dir, XSPD_MAIN);
	/* a sub policy that may match sends forwarded packets on to either direction */
	if (!err && !sub.sure.pol && sub.maybe.pol && flow->dir == XSPD_FWD)
		err = matches_add(&matches, spd, flow, XSPD_IN, XSPD_MAIN);
	if (err < 0) {
		free(matches.pols);
		return err;
	}
	if (matches.count)
		qsort(matches.pols, matches.count, sizeof(*matches.pols), matches_compare);
	*ret = matches.pols;
	*ret_count = matches.count;
	return 0;
}
