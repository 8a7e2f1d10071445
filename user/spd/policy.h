/* SPDX-License-Identifier: GPL-2.0-only */
/* One security policy as the mirror keeps it. */
#ifndef XSPD_SPD_POLICY_H
#define XSPD_SPD_POLICY_H

#include <stdbool.h>
#include <stdint.h>
#include <linux/xfrm.h>
#include <uthash.h>

#include "xspd/abi.h"

#define XSPD_TMPL_MAX 6 /* XFRM_MAX_DEPTH, which the kernel keeps to itself */

/* Summary of the templates: the first one, and how many there are. */
struct xspd_tmpl {
	uint32_t reqid;
	__be32 daddr[4]; /* tunnel end points; 0 in transport mode */
	__be32 saddr[4];
	uint16_t family;  /* of the end points */
	uint8_t proto;	  /* IPPROTO_ESP, _AH, _COMP */
	uint8_t mode;	  /* XFRM_MODE_* */
	uint8_t count;	  /* 0..XSPD_TMPL_MAX */
	uint8_t required; /* of them not optional */
	uint16_t pad;
};

/* Why a policy cannot be answered for. */
enum xspd_unmodelled {
	XSPD_UNMODELLED_SEC_CTX = 1,
	XSPD_UNMODELLED_OFFLOAD = 2, /* XFRM_DEV_OFFLOAD_PACKET: wins out of order */
};

/*
 * Keyed by @index, unique per namespace among non-socket policies.  Order
 * among equal priorities is @pos, lower (older) wins; @tie says that this
 * policy's place among equal priorities is not certain; @apart, that
 * it is certain only among policies of the same prefix lengths.
 */
struct xspd_pol {
	struct xfrm_selector sel; /* raw, as the kernel stores it: identity */
	uint32_t index;
	uint32_t priority;
	uint32_t pos;
	uint32_t mark; /* as the kernel keeps it: bits beyond mark_mask match nothing */
	uint32_t mark_mask;
	uint32_t if_id;
	struct xspd_tmpl tmpl;
	uint8_t dir;	    /* enum xspd_dir */
	uint8_t type;	    /* enum xspd_type */
	uint8_t action;	    /* enum xspd_action */
	uint8_t flags;	    /* XFRM_POLICY_LOCALOK, _ICMP */
	uint8_t unmodelled; /* enum xspd_unmodelled bits */
	bool tie;
	bool apart;
	uint16_t tuple;	     /* the plane's: mask class it is stored under */
	uint32_t slot;	     /* the plane's: 0 = not published */
	uint32_t seen;	     /* the mirror's: dump it was last seen in */
	uint64_t gone_until; /* the plane's: of XSPD_GONE_* */
	UT_hash_handle hh;
};

#endif
