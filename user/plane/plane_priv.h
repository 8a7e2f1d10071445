/* SPDX-License-Identifier: GPL-2.0-only */
/* Internal to plane/. */
#ifndef XSPD_PLANE_PRIV_H
#define XSPD_PLANE_PRIV_H

#include "plane/counts.h"
#include "plane/gone.h"
#include "plane/pins.h"
#include "plane/plane.h"
#include "plane/set.h"
#include "plane/spare.h"

struct xspd_plane {
	struct xspd_plane_opts opts; /* defaults filled in; pin is not kept */
	struct xspd_set *set;	     /* in service; with opts.pin, NULL until the first build */
	struct xspd_conf early;	     /* stands for its record until then */
	struct xspd_spare *spare;    /* being loaded, or waiting for its use */
	struct xspd_grace *grace;    /* NULL: the kernel has none to offer, nothing is reused */
	struct xspd_pins pins;
	int lasting[XSPD_LASTING];
	uint32_t doubt;
	uint32_t env;
	uint32_t route_mtu, route_many, route_rules;
	int steer_err; /* of loading the steering program */
	uint64_t swaps;
	unsigned int left_alone;
	bool served;	    /* with opts.pin: the first set is behind the pins */
	uint64_t linger_ns; /* how long gone policies linger; 0: not at all */
	struct xspd_gones gones;
	struct xspd_former *former; /* counters of the daemon before us, until the first build */
};

/* Put @set into service: its pins, then the jump tables. */
int xspd_plane_serve(struct xspd_plane *plane, struct xspd_set *set);
/* What a set with room for @capacity policies takes, @ifids of them with an interface id. */
struct xspd_sizes xspd_plane_sizes(const struct xspd_plane *plane, uint32_t capacity,
				   uint32_t ifids, unsigned int attempt);
/* An empty set of these sizes. */
int xspd_plane_set(struct xspd_plane *plane, const struct xspd_sizes *sizes, struct xspd_set **ret);
/* As xspd_plane_build(), with room for @capacity policies. */
int xspd_plane_build_for(struct xspd_plane *plane, struct xspd_spd *spd, uint32_t capacity);
/* Is a set with so much room loaded? -EAGAIN: it will be; else it has to be, here and now. */
int xspd_plane_spare(struct xspd_plane *plane, const struct xspd_spd *spd, uint32_t capacity);
/* The numbers of the set that `status` shows. */
void xspd_conf_note(struct xspd_set *set);
/* Tell a set that was just loaded what the plane knows. */
void xspd_plane_brief(struct xspd_plane *plane, struct xspd_set *set);

#endif
