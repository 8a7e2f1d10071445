// SPDX-License-Identifier: GPL-2.0-only
/* From policies and thresholds to lists. */
#include <string.h>

#include "tune/layout.h"

void xspd_tune_thresholds(const struct xspd_tune_bits *bits, uint8_t side, uint8_t *ret_d,
			  uint8_t *ret_s)
{
	uint8_t local = side & 1 ? bits->lbits6 : bits->lbits4;
	uint8_t remote = side & 1 ? bits->rbits6 : bits->rbits4;
	bool out = side / 2 == XSPD_OUT;

	*ret_d = out ? remote : local;
	*ret_s = out ? local : remote;
}

/* --- the hash ---------------------------------------------------------------- */
static uint32_t key_hash(uint8_t side, xspd_u128 d, xspd_u128 s)
{
	uint64_t h = side;

	h = (h ^ (uint64_t)(d >> 64)) * 0x9e3779b97f4a7c15ull;
	h = (h ^ h >> 29 ^ (uint64_t)d) * 0xbf58476d1ce4e5b9ull;
	h = (h ^ h >> 29 ^ (uint64_t)(s >> 64)) * 0x94d049bb133111ebull;
	h = (h ^ h >> 29 ^ (uint64_t)s) * 0x9e3779b97f4a7c15ull;
	return (uint32_t)(h >> 32);
}

static struct xspd_tune_bucket *bucket_find(const struct xspd_tune *tune, uint8_t side, xspd_u128 d,
					    xspd_u128 s)
{
	uint32_t i = key_hash(side, d, s);

	for (;; i++) {
		struct xspd_tune_bucket *bucket = &tune->bucket[i & tune->mask];

		if (!bucket->list || (bucket->side == side && bucket->d == d && bucket->s == s))
			return bucket;
	}
}

uint32_t xspd_tune_hash_find(const struct xspd_tune *tune, uint8_t side, xspd_u128 d, xspd_u128 s)
{
	uint8_t dlen, slen;

	xspd_tune_thresholds(&tune->bits, side, &dlen, &slen);
	/* an empty one has list 0: none */
	return bucket_find(tune, side, xspd_tune_cut(d, dlen), xspd_tune_cut(s, slen))->list - 1;
}

double xspd_tune_collisions(const struct xspd_tune *tune, unsigned int dir)
{
	uint32_t size = 8;

	while (size <= tune->directed[dir])
		size *= 2;
	return (double)tune->hashed[dir] / size;
}

/* --- lists and nodes ----------------------------------------------------------- */
static uint32_t list_new(struct xspd_tune *tune, enum xspd_tune_place place, uint8_t side,
			 uint32_t node, uint32_t node2)
{
	tune->list[tune->lists] = (struct xspd_tune_list){
		.place = place,
		.side = side,
		.node = node,
		.node2 = node2,
	};
	return tune->lists++;
}

static void list_add(struct xspd_tune *tune, uint32_t *list, struct xspd_tune_item *item,
		     enum xspd_tune_place place, uint32_t node, uint32_t node2)
{
	if (*list == XSPD_TUNE_NONE)
		*list = list_new(tune, place, item->side, node, node2);
	item->list = *list;
	tune->list[*list].length++;
}

static void hash_all(struct xspd_tune *tune)
{
	memset(tune->bucket, 0, (tune->mask + 1ul) * sizeof(*tune->bucket));
	for (uint32_t i = 0; i < tune->count; i++) {
		struct xspd_tune_item *item = &tune->item[i];
		struct xspd_tune_bucket *bucket;
		uint8_t d, s;
		uint32_t list;

		item->list = item->node = XSPD_TUNE_NONE;
		xspd_tune_thresholds(&tune->bits, item->side, &d, &s);
		if (item->dlen < d || item->slen < s)
			continue;
		bucket = bucket_find(tune, item->side, xspd_tune_cut(item->d, d),
				     xspd_tune_cut(item->s, s));
		bucket->side = item->side;
		bucket->d = xspd_tune_cut(item->d, d);
		bucket->s = xspd_tune_cut(item->s, s);
		list = bucket->list - 1;
		list_add(tune, &list, item, XSPD_TUNE_HASH, XSPD_TUNE_NONE, XSPD_TUNE_NONE);
		bucket->list = list + 1;
		tune->hashed[item->side / 2]++;
	}
}

/* The node for a prefix that comes behind all shorter ones over it: the last, or a new one. */
static uint32_t node_for(struct xspd_tune *tune, uint32_t first, uint32_t item, xspd_u128 addr,
			 uint8_t len)
{
	struct xspd_tune_node *last = tune->nodes > first ? &tune->node[tune->nodes - 1] : NULL;

	if (last && xspd_tune_cut(addr, last->len) == last->addr) {
		last->covers += last->len == len;
		return tune->nodes - 1;
	}
	tune->node[tune->nodes] = (struct xspd_tune_node){
		.addr = addr,
		.len = len,
		.list = XSPD_TUNE_NONE,
		.cover = item,
		.covers = 1,
	};
	return tune->nodes++;
}

/*
 * A rebuild leaves the nodes that are there: what was in a tree until now
 * shapes it, too, also if it moves to the hash.
 */
static bool in_trees(const struct xspd_tune_item *item)
{
	return item->list == XSPD_TUNE_NONE || !item->was_hashed;
}

static void dsts_all(struct xspd_tune *tune)
{
	uint32_t bin = XSPD_TUNE_NONE;

	for (uint32_t i = 0; i < tune->count; i++) {
		struct xspd_tune_item *item = &tune->item[tune->by_d[i]];

		if (item->bin != bin)
			tune->bin[item->bin].d = tune->nodes;
		bin = item->bin;
		if (item->any_d || !in_trees(item))
			continue;
		item->node = node_for(tune, tune->bin[bin].d, tune->by_d[i], item->d, item->dlen);
		tune->bin[bin].dsts = tune->nodes - tune->bin[bin].d;
		if (item->list == XSPD_TUNE_NONE && item->any_s)
			list_add(tune, &tune->node[item->node].list, item, XSPD_TUNE_DST,
				 item->node, XSPD_TUNE_NONE);
	}
}

static void srcs_all(struct xspd_tune *tune)
{
	uint32_t bin = XSPD_TUNE_NONE, node;

	for (uint32_t i = 0; i < tune->count; i++) {
		struct xspd_tune_item *item = &tune->item[tune->by_s[i]];

		if (item->bin != bin)
			tune->bin[item->bin].s = tune->nodes;
		bin = item->bin;
		if (!item->any_d || item->any_s || !in_trees(item))
			continue;
		node = node_for(tune, tune->bin[bin].s, tune->by_s[i], item->s, item->slen);
		tune->bin[bin].srcs = tune->nodes - tune->bin[bin].s;
		if (item->list == XSPD_TUNE_NONE)
			list_add(tune, &tune->node[node].list, item, XSPD_TUNE_SRC, node,
				 XSPD_TUNE_NONE);
	}
}

static bool has_both(const struct xspd_tune_item *item)
{
	return item->node != XSPD_TUNE_NONE && !item->any_s;
}

/* The policies with both addresses, by node of the destination, and there by source. */
static uint32_t both_sort(struct xspd_tune *tune, uint32_t dsts)
{
	uint32_t sum = 0, n;

	for (uint32_t i = 0; i < dsts; i++)
		tune->node[i].sub = 0;
	for (uint32_t i = 0; i < tune->count; i++)
		if (has_both(&tune->item[i]))
			tune->node[tune->item[i].node].sub++;
	for (uint32_t i = 0; i < dsts; i++) {
		n = tune->node[i].sub;
		tune->node[i].sub = sum;
		sum += n;
	}
	for (uint32_t i = 0; i < tune->count; i++) {
		struct xspd_tune_item *item = &tune->item[tune->by_s[i]];

		if (has_both(item))
			tune->sorted[tune->node[item->node].sub++] = tune->by_s[i];
	}
	return sum;
}

static void both_all(struct xspd_tune *tune, uint32_t dsts)
{
	uint32_t sum = both_sort(tune, dsts), dst = XSPD_TUNE_NONE, node;

	for (uint32_t i = 0; i < sum; i++) {
		struct xspd_tune_item *item = &tune->item[tune->sorted[i]];

		if (item->node != dst)
			tune->node[item->node].sub = tune->nodes;
		dst = item->node;
		node = node_for(tune, tune->node[dst].sub, tune->sorted[i], item->s, item->slen);
		tune->node[dst].subs = tune->nodes - tune->node[dst].sub;
		if (item->list == XSPD_TUNE_NONE)
			list_add(tune, &tune->node[node].list, item, XSPD_TUNE_BOTH, dst, node);
	}
}

static void any_all(struct xspd_tune *tune)
{
	for (uint32_t i = 0; i < tune->count; i++) {
		struct xspd_tune_item *item = &tune->item[i];

		if (item->list == XSPD_TUNE_NONE)
			list_add(tune, &tune->bin[item->bin].any, item, XSPD_TUNE_ANY,
				 XSPD_TUNE_NONE, XSPD_TUNE_NONE);
	}
}

static void members_all(struct xspd_tune *tune)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < tune->lists; i++) {
		tune->list[i].at = sum;
		sum += tune->list[i].length;
		tune->list[i].length = 0;
	}
	for (uint32_t i = 0; i < tune->count; i++) {
		struct xspd_tune_list *list = &tune->list[tune->item[i].list];

		tune->item[i].rank = list->length;
		tune->member[list->at + list->length++] = i;
	}
}

void xspd_tune_layout(struct xspd_tune *tune, const struct xspd_tune_bits *bits)
{
	uint32_t dsts;

	tune->bits = *bits;
	tune->nodes = tune->lists = 0;
	memset(tune->hashed, 0, sizeof(tune->hashed));
	for (uint32_t i = 0; i < tune->bins; i++) {
		struct xspd_tune_bin *bin = &tune->bin[i];

		*bin = (struct xspd_tune_bin){
			.side = bin->side,
			.type = bin->type,
			.if_id = bin->if_id,
			.any = XSPD_TUNE_NONE,
		};
	}
	hash_all(tune);
	dsts_all(tune);
	dsts = tune->nodes;
	srcs_all(tune);
	both_all(tune, dsts);
	any_all(tune);
	members_all(tune);
}

uint32_t xspd_tune_node_find(const struct xspd_tune *tune, uint32_t first, uint32_t count,
			     xspd_u128 addr)
{
	uint32_t low = first, high = first + count;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (tune->node[mid].addr <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == first ||
	    xspd_tune_cut(addr, tune->node[low - 1].len) != tune->node[low - 1].addr)
		return XSPD_TUNE_NONE;
	return low - 1;
}
