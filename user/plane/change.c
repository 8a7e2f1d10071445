// SPDX-License-Identifier: GPL-2.0-only
/* Publishing single changes in the set that serves, or in a larger one if it is full. */
#include <errno.h>

#include "plane/plane_priv.h"
#include "plane/steer.h"
#include "util.h"

#define XSPD_LARGE (1u << 17)

/* A set is not worth the time it takes to load unless it lasts; a large one is much memory. */
static uint32_t roomier(uint32_t capacity)
{
	return capacity < XSPD_LARGE ? capacity * 4 : capacity * 2;
}

static int grow(struct xspd_plane *plane, struct xspd_spd *spd)
{
	uint32_t count = HASH_COUNT(spd->by_index) + plane->gones.count;
	uint32_t capacity = plane->set->sizes.slots - 1, steers = 0;

	if (plane->opts.steer && xspd_steer_count(spd, &steers))
		steers = count;
	count += steers;
	return xspd_plane_build_for(plane, spd,
				    count > capacity / 2 ? roomier(capacity) : capacity);
}

static int change_publish(struct xspd_plane *plane, struct xspd_spd *spd,
			  const struct xspd_change *change)
{
	struct xspd_set *set = plane->set;

	switch (change->kind) {
	case XSPD_CHANGE_ADD:
		return xspd_set_add(set, plane->grace, change->pol, NULL);
	case XSPD_CHANGE_REPLACE:
		return xspd_set_replace(set, plane->grace, change->pol, change->old);
	case XSPD_CHANGE_REMOVE:
		return xspd_set_remove(set, plane->grace, change->old);
	case XSPD_CHANGE_FLUSH:
		return xspd_set_flush(set, plane->grace, spd, change->type);
	case XSPD_CHANGE_DEFAULTS:
		XSPD_STORE(set->conf->defaults, spd->defaults);
		XSPD_STORE(set->conf->generation, set->conf->generation + 2);
		return 0;
	case XSPD_CHANGE_RENUMBER:
		plane->gones.count = 0; /* their places among the others are lost */
		return -ENOSPC;		/* every record changes: build anew */
	default:
		return 0;
	}
}

/*
 * Many more mask classes than when the set was built: plan anew, or ask the tries from now on.
 * Not before there are twice the policies: a new set takes its time, and nothing is answered
 * meanwhile.
 */
static bool outgrown(struct xspd_set *set, const struct xspd_pol *pol)
{
	const struct xspd_partition *part;
	int err;

	part = xspd_partition_get(set, pol, false, &err);
	if (!part || part->count <= part->expected || part->policies < 2 * part->built)
		return false;
	return part->count > 2 * set->prune_at || part->count > 2 * set->coarsen_at;
}

static bool build_wanted(struct xspd_set *set, const struct xspd_change *change)
{
	struct xspd_pol view;

	if (change->kind != XSPD_CHANGE_ADD)
		return false;
	if (outgrown(set, change->pol))
		return true;
	if (!xspd_steer_wants(set, change->pol))
		return false;
	xspd_steer_view(change->pol, &view);
	return outgrown(set, &view);
}

/* Slots that can be had without waiting: a change needs one, or with XSPD_STEER two or three. */
static bool has_spare(const struct xspd_set *set)
{
	uint32_t spare = set->free_slots.count + set->sizes.slots - set->fresh_slot;

	return spare > (set->steer ? 3 : 0);
}

/* Before the set is full: half of what was left of it when it was put into service. */
static void spare_prepare(struct xspd_plane *plane)
{
	const struct xspd_set *set = plane->set;

	if (plane->opts.later &&
	    set->fresh_slot - set->filled > (set->sizes.slots - set->filled) / 2)
		xspd_spare_want(plane, roomier(set->sizes.slots - 1), set->parts * 4);
}

/* For other mask classes, not for more policies: the set in service is right until it is done. */
static int replan(struct xspd_plane *plane, struct xspd_spd *spd)
{
	uint32_t capacity = plane->set->sizes.slots - 1;

	if (plane->opts.later && xspd_plane_spare(plane, spd, capacity) == -EAGAIN)
		return 0;
	return xspd_plane_build_for(plane, spd, capacity);
}

int xspd_plane_change(struct xspd_plane *plane, struct xspd_spd *spd,
		      const struct xspd_change *change)
{
	struct xspd_set *set = plane->set;
	bool spare = has_spare(set), built = false;
	int err, err2 = 0;

	/* what rests is worth a wait of one grace period if it is a good part of the set */
	xspd_set_reclaim(set, plane->grace,
			 !spare && set->retired_count > (set->steer ? 0 : set->sizes.slots / 8));
	if (plane->linger_ns)
		err2 = xspd_gone_take(plane, spd, change, &built);
	set = plane->set;
	err = built ? 0 : change_publish(plane, spd, change);
	/* one grace period is much less than a new set, if what rests is all that is short */
	if (err == -ENOSPC && change->kind != XSPD_CHANGE_RENUMBER && set->retired_count) {
		xspd_set_reclaim(set, plane->grace, true);
		err = change_publish(plane, spd, change);
	}
	if (err == -ENOSPC || err == -ENOBUFS)
		err = grow(plane, spd);
	else if (!err && build_wanted(set, change))
		err = replan(plane, spd);
	err = err ?: err2;
	if (err) {
		xspd_plane_doubt(plane, XSPD_DOUBT_GROWING, 0);
		return err;
	}
	spare_prepare(plane);
	xspd_conf_note(plane->set);
	return 0;
}
