/* SPDX-License-Identifier: GPL-2.0-only */
/* The records of a policy, and the chains that they are linked into.  Internal to plane/. */
#ifndef XSPD_PLANE_RECORD_H
#define XSPD_PLANE_RECORD_H

#include "plane/set.h"

/* Where a slot number is stored: a bucket entry or the link in another policy. */
struct xspd_place {
	uint64_t *entry; /* tag | slot << 32, of the chain's head */
	uint32_t pred;	 /* slot before it in the chain, 0: it is the head */
};

/* Unmodelled policies stand before everything: whatever else matches, the kernel must be asked. */
uint32_t xspd_record_priority(const struct xspd_pol *pol);
uint64_t xspd_record_key(const struct xspd_pol *pol); /* with pos */

void xspd_record_fill(struct xspd_policy *rec, const struct xspd_pol *pol, uint32_t part);

/* Find where @slot is linked in. 0 or -ENOENT. */
int xspd_place_find(const struct xspd_set *set, const struct xspd_pol *pol,
		    const struct xspd_tuple *tuple, uint32_t slot, struct xspd_place *ret);
/* The visible store: @slot takes this place; 0 empties it. */
void xspd_place_set(struct xspd_set *set, const struct xspd_place *place, uint32_t tag,
		    uint32_t slot);
/* Link @slot into its chain: behind all that are as good or better. */
void xspd_chain_insert(struct xspd_set *set, const struct xspd_pol *pol,
		       const struct xspd_tuple *tuple, uint32_t slot);
void xspd_chain_remove(struct xspd_set *set, const struct xspd_place *place, uint32_t slot);

/* publish.c: a visible change has happened. */
uint64_t xspd_set_generation(struct xspd_set *set, uint64_t add);
/*
 * publish.c: make the lists promise what @pol is about to need; undone by nobody: supersets are
 * harmless.  After a failure nothing counts as promised, so that it can be tried again.
 */
int xspd_set_promise(struct xspd_set *set, struct xspd_grace *grace, struct xspd_partition *part,
		     const struct xspd_pol *pol, struct xspd_part_tuple *tuple, bool fresh);

#endif
