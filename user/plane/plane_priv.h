/* SPDX-License-Identifier: GPL-2.0-only */
/* Internal to plane/. */
#ifndef XSPD_PLANE_PRIV_H
#define XSPD_PLANE_PRIV_H

#include "plane/counts.h"
#include "plane/gone.h"
#include "plane/pins.h"
#include "plane/plane.h"
#include "plane/set.h"

struct xspd_plane {
	struct xspd_plane_opts opts; /* defaults filled in; pin is not kept */
	struct xspd_set *set;	     /* in service */
	struct xspd_grace *grace;    /* NULL: the kernel has none to offer, nothing is reused */
	struct xspd_pins pins;
	int lasting[XSPD_LASTING];
	uint32_t doubt;
	uint32_t env;
	uint32_t route_mtu;
	uint64_t swaps;
	unsigned int left_alone;
	bool served; /* with opts.pin: the first set is behind the pins */
	uint64_t linger_ns; /* how long gone policies linger; 0: not at all */
	struct xspd_gones gones;
	struct xspd_former *former; /* counters of the daemon before us, until the first build */
};

/* Put @set into service: its pins, then the jump tables. */
int xspd_plane_serve(struct xspd_plane *plane, struct xspd_set *set);
/* An empty set with room for @capacity policies. */
int xspd_plane_set(struct xspd_plane *plane, uint32_t capacity, uint32_t ifids,
		   unsigned int attempt, struct xspd_set **ret);

#endif
