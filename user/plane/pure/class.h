/* SPDX-License-Identifier: GPL-2.0-only */
/* Mask classes: which bits of a selector are compared ("tuples" of tuple-space search). Pure. */
#ifndef XSPD_PLANE_CLASS_H
#define XSPD_PLANE_CLASS_H

#include "spd/policy.h"
#include "xspd/hash.h"

struct xspd_class {
	uint32_t ports_mask; /* sport mask:dport mask as they lie in xspd_flow */
	uint32_t mark_mask;
	uint8_t dlen;
	uint8_t slen;
	uint8_t proto_mask; /* 0 or 0xff */
	uint8_t dev;	    /* 0 or 1 */
	uint32_t pad;
};

/* The class of exactly the bits that @pol compares. */
void xspd_class_of(const struct xspd_pol *pol, struct xspd_class *ret);

/* true if every bit of @coarse is also one of @fine: policies of @fine may be stored under it. */
bool xspd_class_covers(const struct xspd_class *coarse, const struct xspd_class *fine);

/* How many bits the class compares: among covering classes the finest has the shortest chains. */
unsigned int xspd_class_bits(const struct xspd_class *cls);

bool xspd_class_equal(const struct xspd_class *a, const struct xspd_class *b);

/* The masks of @cls as the data plane applies them; leaves best, seed, id and policies at 0. */
void xspd_class_tuple(const struct xspd_class *cls, bool v6, struct xspd_tuple *ret);

/* The values of @pol as a flow would carry them (unmasked bits are not cleared: the hash does). */
void xspd_class_key(const struct xspd_pol *pol, struct xspd_key *ret);

#endif
