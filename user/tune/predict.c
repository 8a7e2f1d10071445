// SPDX-License-Identifier: GPL-2.0-only
/* From lists to nanoseconds: the kernel's lookup, step by step. */
#include <math.h>

#include "tune/layout.h"

#define SAMPLES 1024 /* lookups per direction and family */

const double xspd_tune_sizes[XSPD_TUNE_SIZES] = {1, 300, 3000, 16000, 100000};

double xspd_tune_cost(const double table[XSPD_TUNE_SIZES], double n)
{
	double from, to;
	int i = 1;

	if (n <= xspd_tune_sizes[0])
		return table[0];
	while (i < XSPD_TUNE_SIZES - 1 && n > xspd_tune_sizes[i])
		i++;
	from = log(xspd_tune_sizes[i - 1]);
	to = log(xspd_tune_sizes[i]);
	/* beyond the last it goes on growing, as caches go on missing */
	return table[i - 1] + (table[i] - table[i - 1]) * (log(n) - from) / (to - from);
}

/* What is to be found, if anything, and what the walk has come to. */
struct walk {
	const struct xspd_tune *tune;
	const struct xspd_tune_item *target;
	uint32_t policies; /* of the side: the working set */
	bool found;
	double ns;
};

/* Members whose priority is not worse than the target's: behind them a walk ends. */
static uint32_t better(const struct walk *w, const struct xspd_tune_list *list)
{
	const struct xspd_tune *tune = w->tune;
	uint32_t low = 0, high = list->length, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (tune->item[tune->member[list->at + mid]].pol->priority <=
		    w->target->pol->priority)
			low = mid + 1;
		else
			high = mid;
	}
	return low < list->length ? low + 1 : low;
}

static uint32_t list_walk(struct walk *w, uint32_t list)
{
	const struct xspd_tune_list *l = &w->tune->list[list];

	if (list == XSPD_TUNE_NONE)
		return 0;
	if (w->target && w->target->list == list) {
		w->found = true;
		return w->target->rank + 1;
	}
	return w->found ? better(w, l) : l->length;
}

/*
 * A chain's first two policies are not in the cache, unless the same chain has just been
 * walked for another type; from there on it is fetched ahead. Where there is none,
 * another may be met by chance.
 */
static void hash_walk(struct walk *w, uint8_t side, xspd_u128 d, xspd_u128 s, bool again)
{
	const struct xspd_tune_costs *costs = &w->tune->costs;
	uint32_t entries = list_walk(w, xspd_tune_hash_find(w->tune, side, d, s));
	double host = again ? 0 : xspd_tune_cost(costs->host, w->policies);

	if (entries)
		w->ns += (entries > 1 ? 2 : 1) * host +
			 (entries - 1) * xspd_tune_cost(costs->walk, w->policies);
	else
		w->ns += host * xspd_tune_collisions(w->tune, side / 2) / 2;
}

/* A descent, and the walk of the list at its end: what comes first there was not in the cache. */
static void tree_walk(struct walk *w, uint32_t list, uint32_t nodes)
{
	const struct xspd_tune_costs *costs = &w->tune->costs;
	uint32_t entries = list_walk(w, list);
	double tree = nodes ? xspd_tune_cost(costs->tree, nodes) : 0;

	w->ns += entries ? tree + (entries - 1) * xspd_tune_cost(costs->walk, w->policies)
			 : tree / 2;
}

static void bin_walk(struct walk *w, const struct xspd_tune_bin *bin, xspd_u128 d, xspd_u128 s)
{
	const struct xspd_tune *tune = w->tune;
	uint32_t dst = xspd_tune_node_find(tune, bin->d, bin->dsts, d), node;
	uint32_t any;

	if (dst != XSPD_TUNE_NONE && tune->node[dst].subs) {
		/* each destination has a tree of its own, whose root is in no cache */
		w->ns += xspd_tune_cost(tune->costs.host, bin->dsts) / 2;
		node = xspd_tune_node_find(tune, tune->node[dst].sub, tune->node[dst].subs, s);
		tree_walk(w, node == XSPD_TUNE_NONE ? node : tune->node[node].list,
			  tune->node[dst].subs);
	}
	node = xspd_tune_node_find(tune, bin->s, bin->srcs, s);
	tree_walk(w, node == XSPD_TUNE_NONE ? node : tune->node[node].list, bin->srcs);
	tree_walk(w, dst == XSPD_TUNE_NONE ? dst : tune->node[dst].list, bin->dsts);
	any = list_walk(w, bin->any);
	w->ns += any * xspd_tune_cost(tune->costs.walk, w->policies);
}

/* The bin of the other type with the target's if_id, or NULL. */
static const struct xspd_tune_bin *other_bin(const struct xspd_tune *tune,
					     const struct xspd_tune_item *target)
{
	uint32_t side = target->side, type = !target->pol->type;

	/* few have policies of both types: then each type's if_ids are in the same order */
	for (uint32_t i = 0; i < tune->bins; i++)
		if (tune->bin[i].side == side && tune->bin[i].type == type &&
		    tune->bin[i].if_id == target->pol->if_id)
			return &tune->bin[i];
	return NULL;
}

static double lookup(const struct xspd_tune *tune, const struct xspd_tune_item *target,
		     uint32_t policies, xspd_u128 d, xspd_u128 s, bool both)
{
	double hit = target->side & 1 ? tune->costs.hit6 : tune->costs.hit;
	struct walk w = {tune, target, policies, false, tune->costs.base + hit};
	const struct xspd_tune_bin *other;

	if (tune->costs.sub_policy) { /* asked for both types, whatever there is */
		struct walk o = {tune, NULL, policies, false, 0};

		hash_walk(&o, target->side, d, s, false);
		other = both ? other_bin(tune, target) : NULL;
		if (other)
			bin_walk(&o, other, d, s);
		w.ns += o.ns;
	}
	hash_walk(&w, target->side, d, s, tune->costs.sub_policy);
	bin_walk(&w, &tune->bin[target->bin], d, s);
	return w.ns;
}

static uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	return z ^ (z >> 29);
}

/* An address below a prefix. */
static xspd_u128 draw(uint64_t *state, xspd_u128 addr, uint8_t len, bool v6)
{
	xspd_u128 host = (xspd_u128)random_next(state) << 64 | random_next(state);

	if (!v6)
		host = xspd_tune_cut(host, 32);
	return addr | (host ^ xspd_tune_cut(host, len));
}

struct sides {
	uint32_t policies[XSPD_DIR_MAX_ * 2];
	uint32_t seen[XSPD_DIR_MAX_ * 2];
	uint32_t asked[XSPD_DIR_MAX_ * 2];
	double ns[XSPD_DIR_MAX_ * 2];
	bool sub[XSPD_DIR_MAX_ * 2], main[XSPD_DIR_MAX_ * 2];
};

static void expect(const struct xspd_tune *tune, struct sides *sides)
{
	uint64_t state = 1;

	for (uint32_t i = 0; i < tune->bins; i++) {
		sides->sub[tune->bin[i].side] |= tune->bin[i].type == XSPD_SUB;
		sides->main[tune->bin[i].side] |= tune->bin[i].type == XSPD_MAIN;
	}
	for (uint32_t i = 0; i < tune->count; i++)
		sides->policies[tune->item[i].side]++;
	for (uint32_t i = 0; i < tune->count; i++) {
		const struct xspd_tune_item *item = &tune->item[i];
		uint32_t side = item->side, step = sides->policies[side] / SAMPLES + 1;
		xspd_u128 d, s;

		/* from the middle of each step, so that neither end of a list is preferred */
		if (sides->seen[side]++ % step != step / 2)
			continue;
		d = draw(&state, item->d, item->dlen, side & 1);
		s = draw(&state, item->s, item->slen, side & 1);
		sides->ns[side] += lookup(tune, item, sides->policies[side], d, s,
					  sides->sub[side] && sides->main[side]);
		sides->asked[side]++;
	}
}

/* Entries of the longest way through the lists of @bin. */
static uint32_t bin_longest(const struct xspd_tune *tune, const struct xspd_tune_bin *bin)
{
	uint32_t dst = 0, src = 0, sub, len, list;

	for (uint32_t i = bin->d; i < bin->d + bin->dsts; i++) {
		const struct xspd_tune_node *node = &tune->node[i];

		sub = 0;
		for (uint32_t j = node->sub; j < node->sub + node->subs; j++) {
			list = tune->node[j].list;
			len = list == XSPD_TUNE_NONE ? 0 : tune->list[list].length;
			sub = len > sub ? len : sub;
		}
		len = sub + (node->list == XSPD_TUNE_NONE ? 0 : tune->list[node->list].length);
		dst = len > dst ? len : dst;
	}
	for (uint32_t i = bin->s; i < bin->s + bin->srcs; i++) {
		list = tune->node[i].list;
		len = list == XSPD_TUNE_NONE ? 0 : tune->list[list].length;
		src = len > src ? len : src;
	}
	return dst + src + (bin->any == XSPD_TUNE_NONE ? 0 : tune->list[bin->any].length);
}

static double bin_trees(const struct xspd_tune *tune, const struct xspd_tune_bin *bin)
{
	return (bin->dsts ? xspd_tune_cost(tune->costs.tree, bin->dsts) : 0) +
	       (bin->srcs ? xspd_tune_cost(tune->costs.tree, bin->srcs) : 0);
}

/* Bins and buckets are met independently of each other: the longest of each is an upper bound. */
static double worst(const struct xspd_tune *tune, uint8_t side, uint32_t policies)
{
	const struct xspd_tune_costs *costs = &tune->costs;
	double walk = xspd_tune_cost(costs->walk, policies), ns[XSPD_TYPE_MAX_] = {}, bin;
	uint32_t hashed = 0;

	for (uint32_t i = 0; i < tune->lists; i++)
		if (tune->list[i].side == side && tune->list[i].place == XSPD_TUNE_HASH &&
		    tune->list[i].length > hashed)
			hashed = tune->list[i].length;
	for (uint32_t i = 0; i < tune->bins; i++) {
		if (tune->bin[i].side != side)
			continue;
		bin = bin_longest(tune, &tune->bin[i]) * walk + bin_trees(tune, &tune->bin[i]);
		if (bin > ns[tune->bin[i].type])
			ns[tune->bin[i].type] = bin;
	}
	return costs->base + ns[XSPD_SUB] + ns[XSPD_MAIN] +
	       (costs->sub_policy ? 2 : 1) *
		       (hashed ? hashed * walk + xspd_tune_cost(costs->host, policies) : 0);
}

double xspd_tune_walk(const struct xspd_tune *tune, const struct xspd_tune_list *list,
		      uint32_t policies)
{
	double ns = list->length * xspd_tune_cost(tune->costs.walk, policies);

	return list->place == XSPD_TUNE_HASH && tune->costs.sub_policy ? 2 * ns : ns;
}

static double stall(const struct xspd_tune *tune)
{
	double ns = tune->count * tune->costs.rebuild;

	for (uint32_t i = 0; i < tune->lists; i++) {
		double length = tune->list[i].length;

		ns += length * (length - 1) / 2 * xspd_tune_cost(tune->costs.insert, length);
	}
	return ns;
}

void xspd_tune_predict(struct xspd_tune *tune, const struct xspd_tune_bits *bits,
		       struct xspd_tune_result *ret)
{
	struct sides sides = {};
	double sum = 0;

	*ret = (struct xspd_tune_result){.bits = *bits};
	xspd_tune_layout(tune, bits);
	expect(tune, &sides);
	for (uint32_t i = 0; i < tune->lists; i++) {
		struct xspd_tune_side *side =
			&ret->side[tune->list[i].side / 2][tune->list[i].side & 1];

		side->lists++;
		if (tune->list[i].length > side->longest)
			side->longest = tune->list[i].length;
		if (tune->list[i].place == XSPD_TUNE_HASH)
			side->hashed += tune->list[i].length;
	}
	for (uint8_t i = 0; i < XSPD_DIR_MAX_ * 2; i++) {
		struct xspd_tune_side *side = &ret->side[i / 2][i & 1];

		side->policies = sides.policies[i];
		if (!side->policies)
			continue;
		side->expected = sides.ns[i] / sides.asked[i];
		side->worst = fmax(worst(tune, i, side->policies), side->expected);
		sum += side->expected * side->policies;
	}
	ret->expected = tune->count ? sum / tune->count : 0;
	ret->stall = stall(tune);
	xspd_tune_cliffs(tune, ret);
}
