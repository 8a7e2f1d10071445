/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sets of flows of one family, direction and if_id as a value and a mask over
 * all other fields, and points that lie in one but in none of others. Pure.
 */
#ifndef XSPD_DIFF_BOX_H
#define XSPD_DIFF_BOX_H

#include "spd/policy.h"

/* IPv4: src and dst in word 0. IPv6: dst in 0 and 1, src in 2 and 3. All in host order. */
enum { XSPD_BOX_PORTS_MARK = 4, XSPD_BOX_PROTO_DEV = 5, XSPD_BOX_WORDS = 6 };

struct xspd_box {
	uint64_t value[XSPD_BOX_WORDS]; /* already cut by mask */
	uint64_t mask[XSPD_BOX_WORDS];
};

/* The flows that @pol matches, apart from family, direction and if_id. */
void xspd_box_of(struct xspd_box *ret, const struct xspd_pol *pol);

bool xspd_box_meet(const struct xspd_box *a, const struct xspd_box *b);
/* All of @b lies in @a. */
bool xspd_box_covers(const struct xspd_box *a, const struct xspd_box *b);
/* What is in both, which meet. */
void xspd_box_both(struct xspd_box *ret, const struct xspd_box *a, const struct xspd_box *b);

bool xspd_box_has(const struct xspd_box *box, const struct xspd_flow *flow);

/* The selector of a policy that matches what lies in @box. */
void xspd_box_selector(struct xspd_pol *ret, const struct xspd_box *box, uint16_t family);

enum xspd_point {
	XSPD_POINT_NONE = 0,
	XSPD_POINT_FOUND,
	XSPD_POINT_UNKNOWN, /* given up: it may or may not exist */
};

/**
 * xspd_box_point() - A flow of @box that lies in none of @others.
 * @ret: direction, family and if_id are the caller's, and say which flows there are.
 *
 * Only flows that packets can have count: ports belong to protocols with
 * ports, type and code are of one byte.
 */
enum xspd_point xspd_box_point(const struct xspd_box *box, const struct xspd_box *const *others,
			       size_t count, struct xspd_flow *ret);

#endif
