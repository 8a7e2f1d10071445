// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bottom-up merging.  Every class begins as a group of its own; the smallest
 * group is merged into the partner with which the expected cost of a lookup
 * falls most (or rises least, while there are too many groups).  The expectation
 * is over flows drawn from the policies themselves: the groups that hold a better
 * policy than theirs are probed, and what is chained under their masked key
 * is compared as far as it is better.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plane/pure/plan.h"
#include "util.h"

#define XSPD_PLAN_FLOWS	   512
#define XSPD_PLAN_TABLE	   65536 /* a power of two, over twice the sample */
#define XSPD_PLAN_PARTNERS 8	 /* the nearest, by bits given up, that are tried */

/* Measured: a probe costs about as much as comparing with one more policy and a third. */
#define XSPD_PLAN_PROBE 1.3

struct group {
	struct xspd_class exact; /* as it began */
	struct xspd_class cls;
	struct group *into; /* the group it was merged into */
	uint64_t best;	    /* lowest order of its members */
	uint32_t first;	    /* member, index + 1; 0 = dead group */
	uint32_t count;
	double cost;
	bool settled; /* no partner makes it cheaper */
};

struct plan {
	const struct xspd_plan_pol *pols;
	uint32_t *next;	      /* member lists, index + 1 */
	struct group **owner; /* group of each policy */
	size_t count;
	double scale;
	size_t flows, stride;
	struct group *group;
	size_t groups, alive;
	struct key_stat {
		uint64_t hash;
		uint64_t first, last; /* orders under this key */
		uint32_t count;
		uint32_t round;
	} table[XSPD_PLAN_TABLE];
	uint32_t round;
};

/* The bits that both classes compare. */
static struct xspd_class class_meet(const struct xspd_class *a, const struct xspd_class *b)
{
	return (struct xspd_class){
		.ports_mask = a->ports_mask & b->ports_mask,
		.mark_mask = a->mark_mask & b->mark_mask,
		.dlen = a->dlen < b->dlen ? a->dlen : b->dlen,
		.slen = a->slen < b->slen ? a->slen : b->slen,
		.proto_mask = a->proto_mask & b->proto_mask,
		.dev = a->dev & b->dev,
	};
}

static struct key_stat *table_at(struct plan *plan, uint64_t hash)
{
	size_t at = hash & (XSPD_PLAN_TABLE - 1);

	while (plan->table[at].round == plan->round && plan->table[at].hash != hash)
		at = (at + 1) & (XSPD_PLAN_TABLE - 1);
	if (plan->table[at].round != plan->round)
		plan->table[at] =
			(struct key_stat){.round = plan->round, .hash = hash, .first = UINT64_MAX};
	return &plan->table[at];
}

static void table_fill(struct plan *plan, const struct xspd_tuple *tuple, uint32_t member)
{
	for (; member; member = plan->next[member - 1]) {
		const struct xspd_plan_pol *pol = &plan->pols[member - 1];
		struct key_stat *stat = table_at(plan, xspd_key_hash(&pol->key, tuple));

		stat->count++;
		if (pol->order < stat->first)
			stat->first = pol->order;
		if (pol->order > stat->last)
			stat->last = pol->order;
	}
}

/* About how many of the policies under this key stand before @order. */
static double better_than(const struct key_stat *stat, uint64_t order)
{
	if (order <= stat->first)
		return 0;
	if (order > stat->last)
		return stat->count;
	return 1 + (stat->count - 2) * (double)(order - stat->first) /
			   (double)(stat->last - stat->first);
}

/* Expected cost of one lookup in a group of class @cls with the members of @a and @b. */
static double cost_of(struct plan *plan, const struct xspd_class *cls, const struct group *a,
		      const struct group *b)
{
	uint64_t best = b && b->best < a->best ? b->best : a->best;
	struct xspd_tuple tuple;
	double cost = 0;

	xspd_class_tuple(cls, plan->pols[0].key.v6, &tuple);
	plan->round++;
	table_fill(plan, &tuple, a->first);
	if (b)
		table_fill(plan, &tuple, b->first);
	for (size_t i = 0; i < plan->flows; i++) {
		size_t nr = i * plan->stride;
		const struct xspd_plan_pol *pol = &plan->pols[nr];
		bool own = plan->owner[nr] == a || plan->owner[nr] == b;

		if (best > pol->order)
			continue; /* found better before */
		/* the policy that the flow was drawn from is one, others stand for @scale each */
		cost += XSPD_PLAN_PROBE + own;
		cost += plan->scale *
			better_than(table_at(plan, xspd_key_hash(&pol->key, &tuple)), pol->order);
	}
	return cost / (double)plan->flows;
}

static size_t group_of(struct plan *plan, const struct xspd_class *cls)
{
	size_t i;

	for (i = 0; i < plan->groups; i++)
		if (xspd_class_equal(&plan->group[i].exact, cls))
			return i;
	plan->group[i].exact = *cls;
	plan->group[i].cls = *cls;
	plan->group[i].best = UINT64_MAX;
	plan->groups++;
	return i;
}

static struct group *smallest(struct plan *plan)
{
	struct group *best = NULL;

	for (size_t i = 0; i < plan->groups; i++) {
		struct group *group = &plan->group[i];

		if (group->first && !group->settled && (!best || group->count < best->count))
			best = group;
	}
	return best;
}

static void merge(struct plan *plan, struct group *into, struct group *from,
		  const struct xspd_class *cls, double cost)
{
	uint32_t last = from->first;

	for (;; last = plan->next[last - 1]) {
		plan->owner[last - 1] = into;
		if (!plan->next[last - 1])
			break;
	}
	plan->next[last - 1] = into->first;
	into->first = from->first;
	into->count += from->count;
	into->cls = *cls;
	into->cost = cost;
	if (from->best < into->best)
		into->best = from->best;
	into->settled = false;
	from->first = 0;
	from->into = into;
	plan->alive--;
}

struct partner {
	struct group *group;
	unsigned int lost;
};

/* The groups with which @group would give up the fewest bits. */
static size_t partners_find(struct plan *plan, const struct group *group,
			    struct partner ret[XSPD_PLAN_PARTNERS])
{
	size_t count = 0;

	for (size_t i = 0; i < plan->groups; i++) {
		struct group *other = &plan->group[i];
		struct xspd_class meet = class_meet(&group->cls, &other->cls);
		unsigned int lost = xspd_class_bits(&group->cls) + xspd_class_bits(&other->cls) -
				    2 * xspd_class_bits(&meet);
		size_t at = count;

		if (other == group || !other->first ||
		    (count == XSPD_PLAN_PARTNERS && ret[count - 1].lost <= lost))
			continue;
		if (count < XSPD_PLAN_PARTNERS)
			count++;
		else
			at--;
		for (; at && ret[at - 1].lost > lost; at--)
			ret[at] = ret[at - 1];
		ret[at] = (struct partner){.group = other, .lost = lost};
	}
	return count;
}

/* Merge @group with its best partner if that pays, or if it must. */
static void improve(struct plan *plan, struct group *group, bool must)
{
	struct partner partner[XSPD_PLAN_PARTNERS];
	size_t count = partners_find(plan, group, partner);
	struct group *best = NULL;
	struct xspd_class cls = {};
	double gain = 0, cost = 0;

	for (size_t i = 0; i < count; i++) {
		struct group *other = partner[i].group;
		struct xspd_class meet = class_meet(&group->cls, &other->cls);
		double joint = cost_of(plan, &meet, group, other);
		double won = group->cost + other->cost - joint;

		if (best ? won <= gain : won <= 0 && !must)
			continue;
		best = other;
		gain = won;
		cls = meet;
		cost = joint;
	}
	if (best)
		merge(plan, best, group, &cls, cost);
	else
		group->settled = true;
}

static int plan_run(struct plan *plan, struct xspd_plan_class *ret, size_t max)
{
	struct group *group;

	for (size_t i = 0; i < plan->count; i++) {
		group = &plan->group[group_of(plan, &plan->pols[i].cls)];
		plan->next[i] = group->first;
		group->first = (uint32_t)i + 1;
		group->count++;
		if (plan->pols[i].order < group->best)
			group->best = plan->pols[i].order;
		plan->owner[i] = group;
	}
	plan->alive = plan->groups;
	for (size_t i = 0; i < plan->groups; i++)
		plan->group[i].cost = cost_of(plan, &plan->group[i].cls, &plan->group[i], NULL);
	while ((group = smallest(plan)) && plan->alive > 1)
		improve(plan, group, plan->alive > max);
	for (size_t i = 0; i < plan->groups; i++) {
		for (group = &plan->group[i]; group->into;)
			group = group->into;
		ret[i].exact = plan->group[i].exact;
		ret[i].stored = group->cls;
	}
	return (int)plan->groups;
}

int xspd_plan(const struct xspd_plan_pol *pols, size_t count, double scale,
	      struct xspd_plan_class *ret, size_t max)
{
	struct plan *plan;
	int err = -ENOMEM;

	if (!count || count > XSPD_PLAN_SAMPLE || !max)
		return -EINVAL;
	plan = calloc(1, sizeof(*plan));
	if (!plan)
		return -ENOMEM;
	plan->pols = pols;
	plan->count = count;
	plan->scale = scale;
	plan->flows = count < XSPD_PLAN_FLOWS ? count : XSPD_PLAN_FLOWS;
	plan->stride = count / plan->flows;
	plan->next = calloc(count, sizeof(*plan->next));
	plan->group = calloc(count, sizeof(*plan->group));
	plan->owner = calloc(count, sizeof(struct group *));
	if (plan->next && plan->group && plan->owner)
		err = plan_run(plan, ret, max);
	free(plan->owner);
	free(plan->next);
	free(plan->group);
	free(plan);
	return err;
}
