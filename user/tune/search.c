// SPDX-License-Identifier: GPL-2.0-only
/* Which thresholds are cheapest: all that make a difference are tried. */
#include <stdlib.h>
#include <string.h>

#include "tune/layout.h"

#define LENGTHS	    129
#define TRIES_MOST  400
#define TRIES_LEAST 25
#define WORK	    6000000 /* policies laid out, over all tries */
#define RARE	    0.02    /* how often traffic is reckoned to meet the longest lists in vain */
#define CLEARLY	    0.8
#define AS_GOOD	    1.05
#define NS_WORTH    50

/* How many policies have a prefix of each length, as local and as remote addresses. */
struct lengths {
	uint32_t local[LENGTHS], remote[LENGTHS];
};

static void lengths_count(const struct xspd_tune *tune, bool v6, struct lengths *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (uint32_t i = 0; i < tune->count; i++) {
		const struct xspd_tune_item *item = &tune->item[i];
		bool out = item->side / 2 == XSPD_OUT;

		if ((item->side & 1) != v6)
			continue;
		ret->local[out ? item->slen : item->dlen]++;
		ret->remote[out ? item->dlen : item->slen]++;
	}
}

/*
 * Thresholds between two lengths that occur do what the longer of the two does: only these
 * need a try, the most frequent @most of them, and the host length.
 */
static uint32_t lengths_pick(const uint32_t count[LENGTHS], bool v6, uint32_t most,
			     uint8_t ret[LENGTHS])
{
	uint8_t host = v6 ? 128 : 32;
	bool taken[LENGTHS] = {};
	uint32_t n;

	taken[host] = true;
	for (n = 1; n < most; n++) {
		int best = -1;

		for (int i = 0; i <= host; i++)
			if (!taken[i] && count[i] && (best < 0 || count[i] > count[best]))
				best = i;
		if (best < 0)
			break;
		taken[best] = true;
	}
	n = 0;
	for (int i = host; i >= 0; i--) /* the kernel's own default first */
		if (taken[i])
			ret[n++] = (uint8_t)i;
	return n;
}

/* What is to be small: the usual lookup, and a little of the worst. */
static double score(const struct xspd_tune_result *result, bool v6)
{
	double sum = 0, policies = 0;

	for (int dir = 0; dir < XSPD_DIR_MAX_; dir++) {
		const struct xspd_tune_side *side = &result->side[dir][v6];

		sum += side->policies * (side->expected + RARE * side->worst);
		policies += side->policies;
	}
	return policies ? sum / policies : 0;
}

static uint32_t tries_most(const struct xspd_tune *tune)
{
	uint32_t tries = WORK / (tune->count + 1);

	return tries < TRIES_LEAST ? TRIES_LEAST : tries > TRIES_MOST ? TRIES_MOST : tries;
}

static uint32_t root(uint32_t n)
{
	uint32_t r = 1;

	while ((r + 1) * (r + 1) <= n)
		r++;
	return r;
}

/* Is @a to be preferred? Among equals what disturbs the kernel least, then what comes first. */
static bool preferred(const struct xspd_tune_result *a, const struct xspd_tune_result *b, bool v6)
{
	double x = score(a, v6), y = score(b, v6);

	if (x * AS_GOOD < y)
		return true;
	return x < y * AS_GOOD && a->stall * 2 < b->stall;
}

static bool worth_it(const struct xspd_tune_result *best, const struct xspd_tune_result *now,
		     bool v6)
{
	double x = score(best, v6), y = score(now, v6);

	return x < CLEARLY * y && x + NS_WORTH < y;
}

static void family_search(struct xspd_tune *tune, bool v6, const struct xspd_tune_result *now,
			  struct xspd_tune_bits *ret)
{
	struct xspd_tune_result best = *now, result;
	uint8_t local[LENGTHS], remote[LENGTHS];
	uint32_t locals, remotes, most = root(tries_most(tune));
	struct xspd_tune_bits bits;
	struct lengths lengths;

	lengths_count(tune, v6, &lengths);
	locals = lengths_pick(lengths.local, v6, most, local);
	remotes = lengths_pick(lengths.remote, v6, most, remote);
	for (uint32_t i = 0; i < locals * remotes; i++) {
		bits = *ret;
		*(v6 ? &bits.lbits6 : &bits.lbits4) = local[i / remotes];
		*(v6 ? &bits.rbits6 : &bits.rbits4) = remote[i % remotes];
		xspd_tune_predict(tune, &bits, &result);
		if (preferred(&result, &best, v6))
			best = result;
	}
	if (worth_it(&best, now, v6))
		*ret = best.bits;
}

static bool has_family(const struct xspd_tune_result *result, bool v6)
{
	return result->side[XSPD_IN][v6].policies || result->side[XSPD_OUT][v6].policies ||
	       result->side[XSPD_FWD][v6].policies;
}

static void lists_remember(struct xspd_tune *tune)
{
	for (uint32_t i = 0; i < tune->count; i++)
		tune->before[i] = tune->item[i].list;
}

static void cliff_after(const struct xspd_tune *tune, struct xspd_tune_cliff *cliff,
			const struct xspd_tune_result *result)
{
	double sum = 0;

	for (uint32_t i = 0; i < tune->count; i++) {
		const struct xspd_tune_item *item = &tune->item[i];

		if (tune->before[i] == cliff->list)
			sum += xspd_tune_walk(tune, &tune->list[item->list],
					      result->side[cliff->dir][item->side & 1].policies);
	}
	cliff->ns_after = sum / cliff->length;
}

void xspd_tune_compare(struct xspd_tune *tune, struct xspd_tune_result *now,
		       const struct xspd_tune_bits *bits, struct xspd_tune_result *ret)
{
	xspd_tune_predict(tune, &now->bits, now);
	lists_remember(tune);
	xspd_tune_predict(tune, bits, ret);
	for (uint32_t i = 0; i < now->cliffs; i++)
		cliff_after(tune, &now->cliff[i], ret);
}

void xspd_tune_search(struct xspd_tune *tune, const struct xspd_tune_bits *now,
		      struct xspd_tune_bits *ret)
{
	struct xspd_tune_result result;
	struct xspd_tune_bits bits = *now;

	xspd_tune_predict(tune, now, &result);
	if (has_family(&result, false))
		family_search(tune, false, &result, &bits);
	if (has_family(&result, true))
		family_search(tune, true, &result, &bits);
	*ret = bits;
}
