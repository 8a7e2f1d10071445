/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Out policies that were deleted, or stopped to protect, and that the guard goes by for some
 * seconds more.  They lie in the tables as policies of the types XSPD_GONE_*.
 */
#ifndef XSPD_PLANE_GONE_H
#define XSPD_PLANE_GONE_H

#include "spd/spd.h"

struct xspd_plane;
struct xspd_set;

struct xspd_gone {
	struct xspd_pol pol; /* slot 0: not in the tables yet */
	uint32_t was_slot;   /* before the build under way */
	uint16_t was_tuple;
	uint16_t pad;
};

/* In the order of their being deleted. */
struct xspd_gones {
	struct xspd_gone *gone;
	uint32_t first, count, room;
};

/**
 * xspd_gone_take() - Let linger what @change takes away.
 * *@ret_built: for want of room a new set was built, which has the change already.
 * Return: 0, or a negative errno: those that are not in the tables come with the next build.
 */
int xspd_gone_take(struct xspd_plane *plane, struct xspd_spd *spd, const struct xspd_change *change,
		   bool *ret_built);

/* Of a build: put them into @set; note where they are, and go back there when it failed. */
int xspd_gone_fill(struct xspd_plane *plane, struct xspd_set *set);
void xspd_gone_save(struct xspd_plane *plane);
void xspd_gone_restore(struct xspd_plane *plane);

void xspd_gone_forget(struct xspd_plane *plane);

#endif
