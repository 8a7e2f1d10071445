// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <string.h>
#include <netinet/in.h>

#include "plane/plane_priv.h"
#include "util.h"

#define SECOND 1000000000ull

/* Whatever met it left as ESP or AH; a small packet may leave IPComp as it came. */
static bool protects(const struct xspd_pol *pol)
{
	if (pol->dir != XSPD_OUT || pol->action != XSPD_ALLOW || pol->unmodelled)
		return false;
	switch (pol->tmpl.proto) {
	case IPPROTO_ESP:
	case IPPROTO_AH:
		return pol->tmpl.required > 0;
	case IPPROTO_COMP:
		return pol->tmpl.required > 1;
	}
	return false;
}

/* An update that protects as before, and is found no later, leaves nothing to linger. */
static bool lingers(const struct xspd_pol *old, const struct xspd_pol *now)
{
	return protects(old) && !(now && protects(now) && now->priority <= old->priority);
}

static int room_make(struct xspd_gones *gones)
{
	uint32_t room = gones->room ? gones->room * 2 : 64;
	struct xspd_gone *grown;

	if (gones->first + gones->count < gones->room)
		return 0;
	if (gones->first > gones->room / 2) {
		memmove(gones->gone, gones->gone + gones->first,
			gones->count * sizeof(*gones->gone));
		gones->first = 0;
		return 0;
	}
	grown = reallocarray(gones->gone, room, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	gones->gone = grown;
	gones->room = room;
	return 0;
}

static int publish(struct xspd_plane *plane, struct xspd_set *set, struct xspd_gone *gone)
{
	return xspd_set_add(set, set->live ? plane->grace : NULL, &gone->pol, NULL);
}

/* One more; in the tables at once if there is room. */
static int one_add(struct xspd_plane *plane, const struct xspd_pol *pol, uint64_t until)
{
	struct xspd_gones *gones = &plane->gones;
	struct xspd_gone *gone;
	int err = room_make(gones);

	if (err)
		return err;
	gone = &gones->gone[gones->first + gones->count++];
	*gone = (struct xspd_gone){.pol = *pol};
	memset(&gone->pol.hh, 0, sizeof(gone->pol.hh));
	gone->pol.type = pol->type + XSPD_GONE_MAIN;
	gone->pol.slot = 0;
	gone->pol.gone_until = until;
	return publish(plane, plane->set, gone);
}

static uint32_t wanted(const struct xspd_spd *spd, const struct xspd_change *change)
{
	const struct xspd_pol *pol;
	uint32_t count = 0;

	switch (change->kind) {
	case XSPD_CHANGE_REMOVE:
		return lingers(change->old, NULL);
	case XSPD_CHANGE_REPLACE:
		return lingers(change->old, change->pol);
	case XSPD_CHANGE_FLUSH:
		for (pol = spd->by_index; pol; pol = pol->hh.next)
			count += pol->type == change->type && lingers(pol, NULL);
		return count;
	default:
		return 0;
	}
}

static int all_add(struct xspd_plane *plane, struct xspd_spd *spd, const struct xspd_change *change)
{
	uint64_t until = xspd_mono() + plane->linger_ns;
	const struct xspd_pol *pol;
	int err = 0;

	if (change->kind != XSPD_CHANGE_FLUSH)
		return one_add(plane, change->old, until);
	for (pol = spd->by_index; pol; pol = pol->hh.next)
		if (pol->type == change->type && lingers(pol, NULL))
			err = one_add(plane, pol, until) ?: err;
	return err;
}

int xspd_gone_take(struct xspd_plane *plane, struct xspd_spd *spd, const struct xspd_change *change,
		   bool *ret_built)
{
	uint32_t need = wanted(spd, change);
	const struct xspd_set *set = plane->set;
	int err = 0;

	*ret_built = false;
	if (!need)
		return 0;
	if (set->free_slots.count + (set->sizes.slots - set->fresh_slot) < need) {
		err = xspd_plane_build(plane, spd);
		*ret_built = !err && change->kind != XSPD_CHANGE_FLUSH;
	}
	return all_add(plane, spd, change) ?: err;
}

void xspd_plane_skip(struct xspd_plane *plane, struct xspd_spd *spd,
		     const struct xspd_change *change)
{
	if (plane->set && plane->linger_ns && wanted(spd, change))
		all_add(plane, spd, change);
}

int xspd_gone_fill(struct xspd_plane *plane, struct xspd_set *set)
{
	struct xspd_gones *gones = &plane->gones;
	int err = 0;

	for (uint32_t i = 0; i < gones->count && !err; i++)
		err = publish(plane, set, &gones->gone[gones->first + i]);
	return err;
}

void xspd_gone_save(struct xspd_plane *plane)
{
	for (uint32_t i = 0; i < plane->gones.count; i++) {
		struct xspd_gone *gone = &plane->gones.gone[plane->gones.first + i];

		gone->was_slot = gone->pol.slot;
		gone->was_tuple = gone->pol.tuple;
	}
}

void xspd_gone_restore(struct xspd_plane *plane)
{
	for (uint32_t i = 0; i < plane->gones.count; i++) {
		struct xspd_gone *gone = &plane->gones.gone[plane->gones.first + i];

		gone->pol.slot = gone->was_slot;
		gone->pol.tuple = gone->was_tuple;
	}
}

void xspd_gone_forget(struct xspd_plane *plane)
{
	free(plane->gones.gone);
	plane->gones = (struct xspd_gones){};
}

void xspd_plane_linger(struct xspd_plane *plane, uint32_t seconds)
{
	plane->linger_ns = seconds * SECOND;
	xspd_plane_conf(plane)->linger = seconds;
}

bool xspd_plane_cramped(const struct xspd_plane *plane, const struct xspd_spd *spd)
{
	return plane->set && plane->linger_ns &&
	       plane->set->sizes.slots <= 2 * HASH_COUNT(spd->by_index);
}

uint64_t xspd_plane_gone(struct xspd_plane *plane)
{
	struct xspd_gones *gones = &plane->gones;
	uint64_t now = gones->count ? xspd_mono() : 0;

	while (gones->count && gones->gone[gones->first].pol.gone_until <= now) {
		const struct xspd_pol *pol = &gones->gone[gones->first].pol;

		if (pol->slot)
			xspd_set_remove(plane->set, plane->grace, pol);
		gones->first++;
		gones->count--;
	}
	if (!gones->count)
		gones->first = 0;
	xspd_plane_conf(plane)->gone = gones->count;
	return gones->count ? gones->gone[gones->first].pol.gone_until : 0;
}
