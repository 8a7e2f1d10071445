/* SPDX-License-Identifier: GPL-2.0-only */
/* Which flows two sets of policies answer differently, as regions. Pure. */
#ifndef XSPD_DIFF_DIFF_H
#define XSPD_DIFF_DIFF_H

#include "diff/box.h"
#include "spd/spd.h"

/*
 * What is in @box, of its direction, family and if_id, less what better policies
 * take. The winners are those of the example; they hold for all of the region
 * unless it is @mixed.
 */
struct xspd_region {
	struct xspd_box box;
	uint32_t if_id;
	uint8_t family;
	uint8_t dir;
	bool mixed;  /* flows of it get several answers; @example one of them */
	bool proven; /* @example differs; else none was found, but not ruled out either */
	struct xspd_flow example;
	struct xspd_ref before, after; /* of @example */
};

typedef int (*xspd_region_cb)(void *ctx, const struct xspd_region *region);

struct xspd_diff_counts {
	uint32_t only_before, only_after; /* policies, by selector, direction, mark, if_id, type */
	uint32_t changed;		  /* ... in both, but saying something else */
	uint32_t moved;			  /* ... in another order among others */
	uint32_t regions;
};

/**
 * xspd_diff() - Call @cb for regions that together hold every flow whose answer changes.
 *
 * Answers are the same if verdict and reason are, and the policies behind them have the same
 * selector, action and templates; their numbers and priorities may differ. The order of
 * equal priorities is taken to be that of the two mirrors.
 * Return: 0, -ENOMEM, or the first negative return of @cb.
 */
int xspd_diff(const struct xspd_spd *before, const struct xspd_spd *after, xspd_region_cb cb,
	      void *ctx, struct xspd_diff_counts *ret);

/* Do they answer the same? */
bool xspd_ref_same(const struct xspd_ref *a, const struct xspd_ref *b);

#endif
