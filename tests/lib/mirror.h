/* SPDX-License-Identifier: GPL-2.0-only */
/* The parts of the daemon, put together for a test: events -> mirror -> tables. */
#ifndef XSPD_TESTS_LIB_MIRROR_H
#define XSPD_TESTS_LIB_MIRROR_H

#include "nl/nl.h"
#include "plane/plane.h"
#include "spd/spd.h"

struct mirror {
	struct xspd_nl *events; /* NULL: no kernel SPD behind it */
	struct xspd_nl *requests;
	struct xspd_spd *spd;
	struct xspd_plane *plane;
	uint64_t changes; /* that the plane was told of */
	int failed;	  /* first negative return of xspd_plane_change() */
	uint32_t next;	  /* number of the next policy that is added by hand */
};

/*
 * mirror_new() - Subscribe to @groups (0: none, and no netlink at all) in the caller's namespace,
 * load a plane, dump, build, and put it into service.
 */
int mirror_new(struct mirror **ret, uint32_t groups, const struct xspd_plane_opts *opts);
void mirror_free(struct mirror *mirror);

/* Add a policy by hand, with an index of its own, which is returned. */
uint32_t mirror_add(struct mirror *mirror, struct xspd_pol pol);

/* Apply the events that are queued: all that the kernel has done so far. MIGRATE is ignored. */
int mirror_drain(struct mirror *mirror);

/* Dump again; what the dump shows different is applied, and counted in @ret. */
int mirror_dump(struct mirror *mirror, struct xspd_spd_diff *ret);

/* Renew the lease; tests take longer than a daemon may be silent. */
void mirror_beat(struct mirror *mirror);

/* Lookups that the flow cache has answered, on all CPUs. UINT64_MAX: it cannot be read. */
uint64_t mirror_hits(const struct mirror *mirror);

/* Flows by the words of `ip xfrm`; addresses decide the family. Ports in host order. */
struct xspd_flow flow_make(uint8_t dir, const char *src, const char *dst, uint8_t proto,
			   uint16_t sport, uint16_t dport);

/* The policy that the plane names, NULL: none, or no longer there. */
const struct xspd_pol *mirror_named(const struct mirror *mirror, uint32_t index);

#endif
