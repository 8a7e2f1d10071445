/* SPDX-License-Identifier: GPL-2.0-only */
/* One of the two sets of policies that are compared, partition by partition. */
#ifndef XSPD_DIFF_SIDE_H
#define XSPD_DIFF_SIDE_H

#include <uthash.h>

#include "diff/box.h"
#include "spd/spd.h"

/* What tells policies apart; all of its bytes count. */
struct xspd_diff_id {
	struct xfrm_selector sel;
	uint32_t mark, mark_mask, if_id;
	uint8_t dir, type, pad[2];
};

struct xspd_diff_pol {
	const struct xspd_pol *pol;
	struct xspd_diff_id id;
	struct xspd_box box;
	struct xspd_diff_pol *twin; /* of the same identity on the other side, or NULL */
	bool stable;		    /* the twin says the same, in the same order among its like */
	uint32_t rank;		    /* in its partition, best first */
	UT_hash_handle hh;	    /* by id */
};

/* Policies that are looked at for the same flows, best first. */
struct xspd_diff_part {
	struct xspd_diff_pol *pols;
	size_t count;
};

struct xspd_diff_side {
	const struct xspd_spd *spd;
	struct xspd_diff_pol *pols; /* partition after partition */
	struct xspd_diff_pol *by_identity;
	size_t count;
};

int xspd_diff_side_init(struct xspd_diff_side *ret, const struct xspd_spd *spd);
void xspd_diff_side_free(struct xspd_diff_side *side);

/* Find the twins, and which of them are stable. 0 or -ENOMEM. */
int xspd_diff_pair(struct xspd_diff_side *before, struct xspd_diff_side *after);

struct xspd_diff_part xspd_diff_part_get(const struct xspd_diff_side *side, uint8_t type,
					 uint8_t dir, uint8_t family, uint32_t if_id);

/* Same action and templates, and as modelled. */
bool xspd_diff_says_same(const struct xspd_pol *a, const struct xspd_pol *b);

#endif
