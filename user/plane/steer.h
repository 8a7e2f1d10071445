/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The partitions XSPD_STEER: every out policy with an if_id once more, whatever that is.  Policies
 * that differ in nothing but the if_id are one record, however many: where it matches there is
 * no telling them apart.  Policies of a device are left out, since the lookup of an xfrm interface
 * names none.  Internal to plane/.
 */
#ifndef XSPD_PLANE_STEER_H
#define XSPD_PLANE_STEER_H

#include "plane/set.h"

/* What makes out policies one, all masked. */
struct xspd_steer_key {
	struct xfrm_selector sel;
	uint32_t priority;
	uint32_t mark, mark_mask;
	uint8_t type;
	uint8_t unmodelled;
	uint16_t pad;
};

struct xspd_steer {
	struct xspd_steer_key key;
	struct xspd_pol shown; /* as which it stands in its partition */
	uint32_t members;
	uint32_t pad;
	/* sums over the members: the if_id, its square, the slot */
	uint64_t if_ids, slots;
	unsigned __int128 squares;
	UT_hash_handle hh;
};

/* Is @pol kept in these partitions of @set too? */
bool xspd_steer_wants(const struct xspd_set *set, const struct xspd_pol *pol);

/* @pol as it stands there: what partition and mask class are told by. */
void xspd_steer_view(const struct xspd_pol *pol, struct xspd_pol *ret);

/* How many records the policies of @spd make there. 0 or a negative errno. */
int xspd_steer_count(const struct xspd_spd *spd, uint32_t *ret);

/*
 * After the policy itself has been published; before it is taken out of service.  On failure the
 * set lags behind: -ENOBUFS when a larger one is needed, which trying again is no help against.
 */
int xspd_steer_add(struct xspd_set *set, struct xspd_grace *grace, const struct xspd_pol *pol);
int xspd_steer_replace(struct xspd_set *set, struct xspd_grace *grace, const struct xspd_pol *pol,
		       const struct xspd_pol *old);
int xspd_steer_remove(struct xspd_set *set, struct xspd_grace *grace, const struct xspd_pol *old);
/* All of one type at once, which readers do not see any more. */
int xspd_steer_flush(struct xspd_set *set, struct xspd_grace *grace, uint8_t type);
void xspd_steer_free(struct xspd_set *set);

/* steer_prog.c: load the steering program with the maps of @set. 0 or a negative errno. */
int xspd_steer_load(struct xspd_set *set);
void xspd_steer_unload(struct xspd_set *set);
int xspd_steer_prog(const struct xspd_set *set); /* its fd, -1: not loaded */

/*
 * Load the program that sets if_ids, with the map xspd_act, into the map xspd_jump_tc, by their
 * fds; it stays there, whatever the set, until xspd_if_id_drop().  Needs CAP_SYS_ADMIN:
 * bpf_btf_get_fd_by_id(). 0 or a negative errno.
 */
int xspd_if_id_store(int jump, int act);
/* Take it out again: it keeps the module xfrm_interface in use. */
void xspd_if_id_drop(int jump);

#endif
