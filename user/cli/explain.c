// SPDX-License-Identifier: GPL-2.0-only
/* The reference's view of a flow: who matches, and who nearly does. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/explain.h"
#include "util.h"

/* Take the field that failed out of the policy, so that the next one shows. */
static void relax(struct xspd_pol *pol, const struct xspd_flow *flow, enum xspd_miss miss)
{
	switch (miss) {
	case XSPD_MISS_IF_ID:
		pol->if_id = flow->if_id;
		break;
	case XSPD_MISS_MARK:
		pol->mark = pol->mark_mask = 0;
		break;
	case XSPD_MISS_DADDR:
		pol->sel.prefixlen_d = 0;
		break;
	case XSPD_MISS_SADDR:
		pol->sel.prefixlen_s = 0;
		break;
	case XSPD_MISS_DPORT:
		pol->sel.dport_mask = 0;
		break;
	case XSPD_MISS_SPORT:
		pol->sel.sport_mask = 0;
		break;
	case XSPD_MISS_PROTO:
		pol->sel.proto = 0;
		break;
	default:
		pol->sel.ifindex = 0;
		break;
	}
}

/* How much of a prefix does not fit. */
static uint32_t bits_amiss(const __be32 *prefix, uint32_t len, const __be32 *addr)
{
	uint32_t same = 0;

	while (same < len &&
	       !((ntohl(prefix[same / 32] ^ addr[same / 32]) >> (31 - same % 32)) & 1))
		same++;
	return len - same;
}

static uint32_t all_bits_amiss(const struct xspd_pol *pol, const struct xspd_flow *flow)
{
	return bits_amiss(pol->sel.daddr.a6, pol->sel.prefixlen_d, flow->daddr) +
	       bits_amiss(pol->sel.saddr.a6, pol->sel.prefixlen_s, flow->saddr);
}

static void measure(const struct xspd_pol *pol, const struct xspd_flow *flow, struct cli_near *ret)
{
	struct xspd_pol relaxed = *pol;
	enum xspd_miss miss;

	*ret = (struct cli_near){.pol = pol, .bits = all_bits_amiss(pol, flow)};
	while ((miss = xspd_pol_match(&relaxed, flow, pol->dir, pol->type, NULL)) !=
		       XSPD_MISS_NOT &&
	       !(ret->fields & 1u << miss)) {
		if (!ret->count)
			ret->first = miss;
		ret->fields |= 1u << miss;
		ret->count++;
		relax(&relaxed, flow, miss);
	}
}

/* Fewer fields failing, then failing later, then by less, then the better policy. */
static bool nearer(const struct cli_near *a, const struct cli_near *b)
{
	if (a->count != b->count)
		return a->count < b->count;
	if (a->first != b->first)
		return a->first > b->first;
	if (a->bits != b->bits)
		return a->bits < b->bits;
	return xspd_pol_before(a->pol, b->pol);
}

static void consider(struct cli_explain *explain, const struct cli_near *near)
{
	size_t i = explain->near_count;

	if (i == EXPLAIN_NEAREST) {
		if (!nearer(near, &explain->near[i - 1]))
			return;
		i--;
	} else {
		explain->near_count++;
	}
	for (; i > 0 && nearer(near, &explain->near[i - 1]); i--)
		explain->near[i] = explain->near[i - 1];
	explain->near[i] = *near;
}

/* Policies of another family or direction are no near misses. */
static void find_nearest(struct cli_explain *explain, const struct xspd_flow *flow)
{
	const struct xspd_pol *pol;
	struct cli_near near;

	for (pol = explain->spd->by_index; pol; pol = pol->hh.next) {
		if (pol->sel.family != flow->family || pol->dir != flow->dir)
			continue;
		measure(pol, flow, &near);
		if (near.count)
			consider(explain, &near);
	}
}

int cli_explain_new(struct cli_explain *ret, const struct xspd_spd *spd,
		    const struct xspd_flow *flow)
{
	struct cli_explain explain = {.spd = spd};
	int err = xspd_spd_matches(spd, flow, &explain.match, &explain.match_count);

	if (err)
		return err;
	xspd_spd_lookup(spd, flow, &explain.ref);
	find_nearest(&explain, flow);
	*ret = explain;
	return 0;
}

void cli_explain_free(struct cli_explain *explain)
{
	free(explain->match);
	explain->match = NULL;
	explain->spd = NULL;
}

bool cli_explain_agrees(const struct cli_explain *explain, const struct xspd_answer *answer)
{
	const struct xspd_ref *ref = &explain->ref;

	if (answer->verdict == XSPD_DEFER)
		return true;
	return answer->verdict == ref->verdict && answer->reason == ref->reason &&
	       answer->index == (ref->pol ? ref->pol->index : 0) &&
	       answer->index2 == (ref->pol2 ? ref->pol2->index : 0);
}
