// SPDX-License-Identifier: GPL-2.0-only
/* Which lists are long, and why. */
#include <arpa/inet.h>

#include "tune/layout.h"

/* Shorter or cheaper ones are nobody's problem. */
#define LENGTH_LEAST 32
#define NS_LEAST     1000

/* What the members of a list have in common. */
struct traits {
	uint32_t nested_d; /* below the destination's node */
	uint32_t nested_s;
	uint32_t same; /* addresses as the one in the middle */
	uint32_t marked;
};

static const struct xspd_tune_item *member(const struct xspd_tune *tune,
					   const struct xspd_tune_list *list, uint32_t i)
{
	return &tune->item[tune->member[list->at + i]];
}

static bool same_addresses(const struct xspd_tune_item *a, const struct xspd_tune_item *b)
{
	return a->d == b->d && a->dlen == b->dlen && a->s == b->s && a->slen == b->slen;
}

static struct traits traits_of(const struct xspd_tune *tune, const struct xspd_tune_list *list)
{
	const struct xspd_tune_item *middle = member(tune, list, list->length / 2), *item;
	bool dst = list->place == XSPD_TUNE_DST || list->place == XSPD_TUNE_BOTH;
	uint32_t src = list->place == XSPD_TUNE_SRC ? list->node : list->node2;
	struct traits traits = {};

	for (uint32_t i = 0; i < list->length; i++) {
		item = member(tune, list, i);
		traits.nested_d += dst && item->dlen > tune->node[list->node].len;
		traits.nested_s += src != XSPD_TUNE_NONE && item->slen > tune->node[src].len;
		traits.same += same_addresses(item, middle);
		traits.marked += item->pol->mark_mask != 0;
	}
	return traits;
}

static void cliff_name(struct xspd_tune_cliff *cliff, const struct xspd_pol *pol)
{
	if (cliff->named < XSPD_TUNE_NAMED)
		cliff->name[cliff->named] = pol;
	cliff->named++;
}

/* The policies with the very prefix of the node that takes in the others. */
static void name_covers(const struct xspd_tune *tune, struct xspd_tune_cliff *cliff, uint32_t node,
			bool src)
{
	const struct xspd_tune_node *n = &tune->node[node];
	const struct xspd_tune_item *cover = &tune->item[n->cover];

	for (uint32_t i = 0; i < tune->count; i++) {
		const struct xspd_tune_item *item = &tune->item[i];

		if (item->bin != cover->bin || (src ? item->s != n->addr || item->slen != n->len
						    : item->d != n->addr || item->dlen != n->len))
			continue;
		if (item == cover || !item->was_hashed || item->list == cliff->list)
			cliff_name(cliff, item->pol);
	}
}

static void name_members(const struct xspd_tune *tune, struct xspd_tune_cliff *cliff)
{
	const struct xspd_tune_list *list = &tune->list[cliff->list];

	for (uint32_t i = 0; i < list->length; i++)
		cliff_name(cliff, member(tune, list, i)->pol);
}

static void cliff_explain(const struct xspd_tune *tune, struct xspd_tune_cliff *cliff)
{
	const struct xspd_tune_list *list = &tune->list[cliff->list];
	struct traits traits = traits_of(tune, list);
	uint32_t half = list->length / 2;

	if (traits.same > half) {
		cliff->cause = traits.marked > half ? XSPD_TUNE_MARKS : XSPD_TUNE_PORTS;
		name_members(tune, cliff);
	} else if (list->place == XSPD_TUNE_HASH || list->place == XSPD_TUNE_ANY) {
		cliff->cause = list->place == XSPD_TUNE_HASH ? XSPD_TUNE_COARSE : XSPD_TUNE_SHORT;
		name_members(tune, cliff);
	} else {
		bool src = list->place == XSPD_TUNE_SRC || traits.nested_s > traits.nested_d;

		cliff->cause = XSPD_TUNE_COVER;
		cliff->src = src;
		name_covers(tune, cliff,
			    src && list->place == XSPD_TUNE_BOTH ? list->node2 : list->node, src);
	}
}

/* Into its place by cost; the cheapest of too many falls out. */
static void cliff_keep(struct xspd_tune_result *ret, const struct xspd_tune_cliff *cliff)
{
	uint32_t i = ret->cliffs < XSPD_TUNE_CLIFFS ? ret->cliffs++ : XSPD_TUNE_CLIFFS;

	ret->cliffs_all++;
	if (i == XSPD_TUNE_CLIFFS && ret->cliff[--i].ns >= cliff->ns)
		return;
	for (; i > 0 && ret->cliff[i - 1].ns < cliff->ns; i--)
		ret->cliff[i] = ret->cliff[i - 1];
	ret->cliff[i] = *cliff;
}

void xspd_tune_cliffs(const struct xspd_tune *tune, struct xspd_tune_result *ret)
{
	for (uint32_t i = 0; i < tune->lists; i++) {
		const struct xspd_tune_list *list = &tune->list[i];
		struct xspd_tune_cliff cliff = {
			.place = list->place,
			.dir = list->side / 2,
			.family = list->side & 1 ? AF_INET6 : AF_INET,
			.length = list->length,
			.list = i,
		};

		if (list->length < LENGTH_LEAST)
			continue;
		cliff.ns =
			xspd_tune_walk(tune, list, ret->side[cliff.dir][list->side & 1].policies);
		if (cliff.ns >= NS_LEAST)
			cliff_keep(ret, &cliff);
	}
	for (uint32_t i = 0; i < ret->cliffs; i++)
		cliff_explain(tune, &ret->cliff[i]);
}
