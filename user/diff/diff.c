// SPDX-License-Identifier: GPL-2.0-only
/*
 * Policies that are in both sets, say the same, and stand in the same order
 * are stable. A flow that only stable policies match has the same winner in both.
 * So every flow whose winner changes has one that is not stable, before or after:
 * for each of these, the winners on the other side of what it wins are looked for.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diff/diff.h"
#include "diff/side.h"

#define WINNERS_MAX 64 /* other winners told apart for one policy */

/* One comparison of two partitions, within flows that get past the sub policies. */
struct scene {
	struct xspd_diff_side *before, *after;
	xspd_region_cb cb;
	void *ctx;
	uint32_t regions;

	uint8_t dir, family;
	uint32_t if_id;
	struct xspd_box within;
	const struct xspd_box **outside; /* what is not of the scene, then room for all others */
	size_t outside_count;
	bool second; /* another policy than those compared is asked as well */
};

bool xspd_ref_same(const struct xspd_ref *a, const struct xspd_ref *b)
{
	const struct xspd_pol *x[] = {a->pol, a->pol2}, *y[] = {b->pol, b->pol2};

	if (a->verdict != b->verdict || a->reason != b->reason)
		return false;
	for (int i = 0; i < 2; i++) {
		if (!x[i] != !y[i])
			return false;
		if (x[i] && (x[i]->type != y[i]->type || x[i]->dir != y[i]->dir ||
			     x[i]->mark != y[i]->mark || x[i]->mark_mask != y[i]->mark_mask ||
			     x[i]->if_id != y[i]->if_id ||
			     memcmp(&x[i]->sel, &y[i]->sel, sizeof(x[i]->sel)) ||
			     !xspd_diff_says_same(x[i], y[i])))
			return false;
	}
	return true;
}

/* The answers of the example, which the linear reference must tell apart, too. */
static bool answers_differ(const struct scene *scene, struct xspd_region *region)
{
	xspd_spd_lookup(scene->before->spd, &region->example, &region->before);
	xspd_spd_lookup(scene->after->spd, &region->example, &region->after);
	return !xspd_ref_same(&region->before, &region->after);
}

static int tell(struct scene *scene, struct xspd_region *region, const struct xspd_pol *before,
		const struct xspd_pol *after)
{
	region->family = scene->family;
	region->dir = scene->dir;
	region->if_id = scene->if_id;
	if (region->proven && scene->second) {
		/* what is asked next may hide it from the example, but not from all of the region
		 */
		if (!answers_differ(scene, region))
			region->proven = false;
	} else {
		xspd_spd_answer(scene->before->spd, scene->dir, before, &region->before);
		xspd_spd_answer(scene->after->spd, scene->dir, after, &region->after);
		if (xspd_ref_same(&region->before, &region->after))
			return 0;
	}
	scene->regions++;
	return scene->cb(scene->ctx, region);
}

/*
 * Is there a flow in @box that none of the @count obstacles takes? 1: told, if
 * it changes; 0: there is none.
 */
static int try(struct scene *scene, const struct xspd_box *box, size_t count, bool mixed,
	       const struct xspd_pol *before, const struct xspd_pol *after, int *err)
{
	struct xspd_region region = {.box = *box, .mixed = mixed};
	enum xspd_point point;

	region.example = (struct xspd_flow){
		.family = scene->family, .dir = scene->dir, .if_id = scene->if_id};
	point = xspd_box_point(box, scene->outside, count, &region.example);
	if (point == XSPD_POINT_NONE)
		return 0;
	region.proven = point == XSPD_POINT_FOUND;
	*err = tell(scene, &region, before, after);
	return 1;
}

/* Those of @part better than @rank that meet @box, behind the @count obstacles. */
static size_t obstacles_add(struct scene *scene, size_t count, const struct xspd_diff_part *part,
			    uint32_t rank, const struct xspd_box *box)
{
	for (size_t i = 0; i < part->count && i < rank; i++)
		if (xspd_box_meet(box, &part->pols[i].box))
			scene->outside[count++] = &part->pols[i].box;
	return count;
}

/* Need @other be looked at beside @pol, which is not stable? The pass over @before comes first. */
static bool candidate(const struct xspd_diff_pol *pol, const struct xspd_diff_pol *other,
		      bool first)
{
	if (other->stable)
		return other->twin->rank > pol->rank; /* else it hides @pol on its own side */
	return first && !(other->twin == pol && xspd_diff_says_same(other->pol, pol->pol));
}

/*
 * What @pol wins on its @own side, by the winners on the @other side: each in
 * turn, the better ones being obstacles to those behind them, and at last none.
 */
static int winners(struct scene *scene, const struct xspd_diff_pol *pol,
		   const struct xspd_diff_part *own, const struct xspd_diff_part *other, bool first)
{
	struct xspd_box all, box;
	size_t count, told = 0;
	int err = 0;

	if (!xspd_box_meet(&scene->within, &pol->box))
		return 0;
	xspd_box_both(&all, &scene->within, &pol->box);
	count = obstacles_add(scene, scene->outside_count, own, pol->rank, &all);
	for (size_t i = 0; i < other->count && !err; i++) {
		const struct xspd_diff_pol *at = &other->pols[i];
		bool covers;

		if (!xspd_box_meet(&all, &at->box))
			continue;
		covers = xspd_box_covers(&at->box, &all);
		xspd_box_both(&box, &all, &at->box);
		if (candidate(pol, at, first)) {
			bool last = told >= WINNERS_MAX;

			told += (size_t)try(scene, last ? &all : &box, count, last,
					    first ? pol->pol : at->pol, first ? at->pol : pol->pol,
					    &err);
			if (last && told > WINNERS_MAX)
				return err;
		}
		if (covers)
			return err;
		scene->outside[count++] = &at->box;
	}
	if (!err)
		try(scene, &all, count, false, first ? pol->pol : NULL, first ? NULL : pol->pol,
		    &err);
	return err;
}

static int parts_compare(struct scene *scene, uint8_t type, uint8_t dir)
{
	struct xspd_diff_part before =
		xspd_diff_part_get(scene->before, type, dir, scene->family, scene->if_id);
	struct xspd_diff_part after =
		xspd_diff_part_get(scene->after, type, dir, scene->family, scene->if_id);
	int err = 0;

	for (size_t i = 0; i < before.count && !err; i++)
		if (!before.pols[i].stable)
			err = winners(scene, &before.pols[i], &before, &after, true);
	for (size_t i = 0; i < after.count && !err; i++)
		if (!after.pols[i].stable)
			err = winners(scene, &after.pols[i], &after, &before, false);
	return err;
}

/* Main policies are asked after a sub policy, too: by its direction and action. */
static int behind_sub(struct scene *scene, const struct xspd_diff_part *before,
		      const struct xspd_diff_part *after, const struct xspd_diff_pol *sub)
{
	size_t count = 0;

	if (scene->dir == XSPD_OUT && sub->pol->action == XSPD_BLOCK)
		return 0;
	count = obstacles_add(scene, 0, before, sub->rank, &sub->box);
	scene->outside_count = obstacles_add(scene, count, after, sub->twin->rank, &sub->box);
	scene->within = sub->box;
	return parts_compare(scene, XSPD_MAIN, scene->dir == XSPD_OUT ? XSPD_OUT : XSPD_IN);
}

/* All flows of one direction, family and if_id. */
static int flows_compare(struct scene *scene)
{
	struct xspd_diff_part before = xspd_diff_part_get(scene->before, XSPD_SUB, scene->dir,
							  scene->family, scene->if_id);
	struct xspd_diff_part after =
		xspd_diff_part_get(scene->after, XSPD_SUB, scene->dir, scene->family, scene->if_id);
	struct xspd_box everything = {};
	size_t count;
	int err;

	scene->within = everything;
	scene->outside_count = 0;
	scene->second = true;
	err = parts_compare(scene, XSPD_SUB, scene->dir);
	for (size_t i = 0; i < before.count && !err; i++)
		if (before.pols[i].twin &&
		    xspd_diff_says_same(before.pols[i].pol, before.pols[i].twin->pol))
			err = behind_sub(scene, &before, &after, &before.pols[i]);
	if (err)
		return err;
	scene->within = everything;
	scene->second = false;
	count = obstacles_add(scene, 0, &before, (uint32_t)before.count, &everything);
	scene->outside_count =
		obstacles_add(scene, count, &after, (uint32_t)after.count, &everything);
	return parts_compare(scene, XSPD_MAIN, scene->dir);
}

static int u32_compare(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Every if_id that a policy has, each once; 0 among them. NULL: no memory. */
static uint32_t *if_ids(const struct scene *scene, size_t *ret_count)
{
	const struct xspd_diff_side *sides[] = {scene->before, scene->after};
	uint32_t *ids = calloc(scene->before->count + scene->after->count + 1, sizeof(*ids));
	size_t count = 1, kept = 0;

	if (!ids)
		return NULL;
	for (int s = 0; s < 2; s++)
		for (size_t i = 0; i < sides[s]->count; i++)
			if (sides[s]->pols[i].pol->if_id)
				ids[count++] = sides[s]->pols[i].pol->if_id;
	qsort(ids, count, sizeof(*ids), u32_compare);
	for (size_t i = 0; i < count; i++)
		if (!i || ids[i] != ids[kept - 1])
			ids[kept++] = ids[i];
	*ret_count = kept;
	return ids;
}

static int all_compare(struct scene *scene)
{
	static const uint8_t families[] = {XSPD_INET, XSPD_INET6};
	size_t count = 0;
	uint32_t *ids = if_ids(scene, &count);
	int err = ids ? 0 : -ENOMEM;

	for (size_t i = 0; i < count && !err; i++) {
		scene->if_id = ids[i];
		for (int f = 0; f < 2 && !err; f++) {
			scene->family = families[f];
			for (scene->dir = 0; scene->dir < XSPD_DIR_MAX_ && !err; scene->dir++)
				err = flows_compare(scene);
		}
	}
	free(ids);
	return err;
}

static void counts_take(const struct xspd_diff_side *before, const struct xspd_diff_side *after,
			struct xspd_diff_counts *ret)
{
	for (size_t i = 0; i < before->count; i++) {
		const struct xspd_diff_pol *at = &before->pols[i];

		if (!at->twin)
			ret->only_before++;
		else if (!xspd_diff_says_same(at->pol, at->twin->pol))
			ret->changed++;
		else if (!at->stable)
			ret->moved++;
	}
	for (size_t i = 0; i < after->count; i++)
		ret->only_after += !after->pols[i].twin;
}

int xspd_diff(const struct xspd_spd *before, const struct xspd_spd *after, xspd_region_cb cb,
	      void *ctx, struct xspd_diff_counts *ret)
{
	struct xspd_diff_side a = {}, b = {};
	struct scene scene = {.before = &a, .after = &b, .cb = cb, .ctx = ctx};
	int err = xspd_diff_side_init(&a, before);

	if (!err)
		err = xspd_diff_side_init(&b, after);
	if (!err)
		err = xspd_diff_pair(&a, &b);
	/* sub and main policies of both sides at once, at most */
	if (!err) {
		scene.outside = malloc((2 * (a.count + b.count) + 1) * sizeof(*scene.outside));
		err = scene.outside ? all_compare(&scene) : -ENOMEM;
	}
	*ret = (struct xspd_diff_counts){.regions = scene.regions};
	if (!err)
		counts_take(&a, &b, ret);
	free(scene.outside);
	xspd_diff_side_free(&a);
	xspd_diff_side_free(&b);
	return err;
}
