// SPDX-License-Identifier: GPL-2.0-only
/* Building a fresh set from the mirror. */
#include <errno.h>
#include <string.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "plane/crash.h"
#include "plane/plane_priv.h"
#include "plane/steer.h"
#include "util.h"
#include "xspd.skel.h"

#define XSPD_ATTEMPTS 10 /* each with twice the room for lists */
#define XSPD_AHEAD    8	 /* policies between fetching a bucket and using it */

/* Where the policies are in the set in service: needed for their counters, and to go back to. */
struct was {
	uint32_t slot;
	uint16_t tuple;
	uint16_t pad;
};

static uint32_t ifids_count(const struct xspd_spd *spd)
{
	const struct xspd_pol *pol;
	uint32_t ifids = 0;

	/* policies, not partitions: at worst too much room */
	for (pol = spd->by_index; pol; pol = pol->hh.next)
		ifids += pol->if_id != 0;
	return ifids;
}

static struct was *places_save(const struct xspd_spd *spd)
{
	struct was *was = malloc((HASH_COUNT(spd->by_index) + 1) * sizeof(*was));
	const struct xspd_pol *pol;
	size_t i = 0;

	for (pol = spd->by_index; was && pol; pol = pol->hh.next)
		was[i++] = (struct was){.slot = pol->slot, .tuple = pol->tuple};
	return was;
}

static void places_restore(struct xspd_spd *spd, const struct was *was)
{
	struct xspd_pol *pol;
	size_t i = 0;

	for (pol = spd->by_index; pol; pol = pol->hh.next, i++) {
		pol->slot = was[i].slot;
		pol->tuple = was[i].tuple;
	}
}

/* What @pol has counted so far: in the set in service, or in the one of a former daemon. */
static const struct xspd_count *counted(const struct xspd_plane *plane, const struct xspd_pol *pol,
					const struct xspd_count *counts, uint32_t slot,
					struct xspd_count *sum)
{
	if (!counts || !slot)
		return xspd_former_find(plane->former, pol);
	*sum = counts[slot];
	sum->packets += plane->set->info[slot].base_packets;
	sum->bytes += plane->set->info[slot].base_bytes;
	sum->acted += plane->set->info[slot].base_acted;
	return sum->packets ? sum : NULL;
}

static int policies_add(struct xspd_plane *plane, struct xspd_set *set, struct xspd_spd *spd,
			const struct was *was)
{
	xspd_autofree struct xspd_count *counts = NULL;
	struct xspd_pol *pol, *ahead = spd->by_index;
	size_t i = 0;
	int err;

	for (int n = 0; n < XSPD_AHEAD && ahead; n++)
		ahead = ahead->hh.next;
	if (plane->set && plane->set->policies) {
		counts = xspd_counts_read(xspd_set_map_fd(plane->set, "xspd_count"),
					  plane->set->sizes.slots);
		if (!counts)
			return -errno;
	}
	for (pol = spd->by_index; pol; pol = pol->hh.next, i++) {
		struct xspd_count sum;

		pol->slot = 0;
		err = xspd_set_add(set, NULL, pol, counted(plane, pol, counts, was[i].slot, &sum));
		if (err)
			return err;
		if (!ahead)
			continue;
		xspd_set_prefetch(set, ahead, pol);
		ahead = ahead->hh.next;
	}
	return 0;
}

/* Is walking this partition's tuples dearer than asking the tries?  Notes how many it was built
 * with. */
static bool tries_want(const struct xspd_set *set, struct xspd_partition *part)
{
	part->expected = part->count * 2;
	part->built = part->policies;
	/* those that are gone are few, or soon fewer */
	part->prune = part->count > set->prune_at && part->key.type < XSPD_TYPE_MAX_;
	return part->prune;
}

/* Fill the tries of the partitions with many tuples. */
static int tries_fill(struct xspd_set *set, struct xspd_spd *spd)
{
	struct xspd_partition *part, *tmp;
	struct xspd_steer *steer, *next;
	struct xspd_pol *pol;
	bool any = false;
	int err = 0;

	for (size_t i = 0; i < XSPD_PARTS_FIXED; i++) {
		part = set->fixed[i];
		if (part)
			any |= tries_want(set, part);
	}
	HASH_ITER (hh, set->by_ifid, part, tmp)
		any |= tries_want(set, part);
	if (!any)
		return 0;
	for (pol = spd->by_index; pol && !err; pol = pol->hh.next) {
		part = xspd_partition_get(set, pol, false, &err);
		if (part && part->prune)
			err = xspd_partition_widen(set, part, pol,
						   xspd_partition_tuple(part, pol->tuple));
	}
	HASH_ITER (hh, set->steers, steer, next) {
		part = xspd_partition_get(set, &steer->shown, false, &err);
		if (part && part->prune && !err)
			err = xspd_partition_widen(set, part, &steer->shown,
						   xspd_partition_tuple(part, steer->shown.tuple));
	}
	for (size_t i = 0; i < XSPD_PARTS_FIXED && !err; i++)
		if (set->fixed[i] && set->fixed[i]->prune)
			err = xspd_partition_publish(set, NULL, set->fixed[i]);
	if (err)
		return err;
	HASH_ITER (hh, set->by_ifid, part, tmp)
		if (part->prune && !err)
			err = xspd_partition_publish(set, NULL, part);
	return err;
}

static int fill(struct xspd_plane *plane, struct xspd_set *set, struct xspd_spd *spd,
		const struct was *was)
{
	int err;

	set->conf->defaults = spd->defaults;
	err = xspd_set_plan(set, spd);
	err = err ?: policies_add(plane, set, spd, was);
	err = err ?: xspd_gone_fill(plane, set);
	return err ?: tries_fill(set, spd);
}

/* The spare one first; then ever larger ones. */
static int set_fill(struct xspd_plane *plane, struct xspd_spd *spd, uint32_t capacity,
		    const struct was *was, struct xspd_set **ret)
{
	uint32_t ifids = ifids_count(spd);
	unsigned int attempt = 0;
	struct xspd_set *set = xspd_spare_take(plane, capacity);
	int err = -ENOSPC;

	while ((err == -ENOSPC || err == -ENOBUFS) && attempt < XSPD_ATTEMPTS) {
		struct xspd_sizes sizes = xspd_plane_sizes(plane, capacity, ifids, attempt);

		err = set ? 0 : xspd_plane_set(plane, &sizes, &set);
		attempt++;
		if (err)
			return err;
		err = fill(plane, set, spd, was);
		if (err)
			xspd_set_free(xspd_take(set));
	}
	if (!err)
		*ret = set;
	return err;
}

/* What people read goes on in the new set's record; the first cache line xspd_plane_brief() knows.
 */
static void conf_carry(struct xspd_conf *to, const struct xspd_conf *from)
{
	size_t cold = offsetof(struct xspd_conf, pid);

	memcpy((char *)to + cold, (const char *)from + cold, sizeof(*to) - cold);
	to->generation = (from->generation + 2) & ~1ull;
	to->lease_until = from->lease_until;
}

static void conf_sizes(struct xspd_plane *plane)
{
	struct xspd_conf *conf = plane->set->conf;

	conf->slots = plane->set->sizes.slots;
	conf->buckets = plane->set->sizes.buckets;
	conf->map_bytes = xspd_set_match_bytes(plane->set);
	conf->cpus = plane->set->cpus;
	conf->swaps = plane->swaps;
}

void xspd_conf_note(struct xspd_set *set)
{
	set->conf->policies = set->policies;
	set->conf->tuples = set->tuples;
	set->conf->parts = set->parts;
	set->conf->steer = set->steer ? HASH_COUNT(set->steers) + 1 : 0;
}

/* The set of a former daemon: from here on it answers nothing, and then what it has counted is
 * final.
 */
static void former_take(struct xspd_plane *plane)
{
	struct xspd_former_maps maps;

	if (plane->served || plane->former || !plane->pins.taken)
		return;
	xspd_former_open(&maps, plane->pins.dir);
	xspd_former_doubt(&maps, XSPD_DOUBT_GROWING);
	if (plane->grace)
		xspd_grace_wait(plane->grace, xspd_grace_ticket(plane->grace));
	plane->former = xspd_former_read(&maps);
	xspd_crash_point("build: former read");
}

int xspd_plane_spare(struct xspd_plane *plane, const struct xspd_spd *spd, uint32_t capacity)
{
	int err = xspd_spare_ready(plane, capacity);

	return err == -ENOENT ? xspd_spare_want(plane, capacity, ifids_count(spd)) : err;
}

int xspd_plane_build_for(struct xspd_plane *plane, struct xspd_spd *spd, uint32_t capacity)
{
	xspd_autofree struct was *was = NULL;
	struct xspd_set *set, *old = plane->set;
	int err;

	/* nobody has an answer before the first build: that one is waited for */
	err = plane->swaps && plane->opts.later ? xspd_plane_spare(plane, spd, capacity) : 0;
	if (err == -EAGAIN)
		return err;
	was = places_save(spd);
	if (!was)
		return -ENOMEM;
	xspd_gone_save(plane);
	/* from here on nothing is answered, nor counted, by the old set */
	xspd_plane_doubt(plane, XSPD_DOUBT_GROWING, 0);
	xspd_crash_point("build: begun");
	former_take(plane);
	if (old && old->policies && plane->grace)
		xspd_grace_wait(plane->grace, xspd_grace_ticket(plane->grace));
	if (old)
		xspd_set_reclaim(old, plane->grace, false);
	err = set_fill(plane, spd, capacity, was, &set);
	if (err) {
		places_restore(spd, was);
		xspd_gone_restore(plane);
		return err;
	}
	xspd_crash_point("build: filled");
	conf_carry(set->conf, xspd_plane_conf(plane));
	err = xspd_plane_serve(plane, set);
	if (err) {
		places_restore(spd, was);
		xspd_gone_restore(plane);
		xspd_set_free(set);
		return err;
	}
	xspd_crash_point("build: served");
	xspd_set_free(old);
	xspd_former_free(xspd_take(plane->former));
	plane->swaps++;
	set->filled = set->fresh_slot;
	xspd_conf_note(set);
	conf_sizes(plane);
	xspd_crash_point("build: noted");
	xspd_plane_doubt(plane, 0, XSPD_DOUBT_GROWING);
	return 0;
}

/* Not too tight: the next policy should not need the next set. */
static uint32_t capacity_for(const struct xspd_plane *plane, const struct xspd_spd *spd)
{
	uint32_t count = HASH_COUNT(spd->by_index), steers = 0, capacity;

	/* at worst too much room */
	if (plane->opts.steer && xspd_steer_count(spd, &steers))
		steers = count;

	count += steers;
	capacity = count + count / 16 + 64;
	/* room for all of them to linger, and for those that do */
	if (plane->linger_ns)
		capacity += count + plane->gones.count;
	return capacity > plane->opts.capacity ? capacity : plane->opts.capacity;
}

int xspd_plane_build(struct xspd_plane *plane, struct xspd_spd *spd)
{
	return xspd_plane_build_for(plane, spd, capacity_for(plane, spd));
}

bool xspd_plane_prepare(struct xspd_plane *plane, const struct xspd_spd *spd)
{
	return !plane->opts.later ||
	       xspd_plane_spare(plane, spd, capacity_for(plane, spd)) != -EAGAIN;
}

int xspd_plane_steer(struct xspd_plane *plane, struct xspd_spd *spd, bool on)
{
	plane->opts.steer = on;
	return xspd_plane_steer_due(plane) && !plane->opts.later ? xspd_plane_build(plane, spd) : 0;
}

bool xspd_plane_steer_due(const struct xspd_plane *plane)
{
	return plane->set && plane->set->steer != plane->opts.steer &&
	       (!plane->pins.dir || plane->served);
}
