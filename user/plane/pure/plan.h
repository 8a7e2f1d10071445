/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which mask classes to store a partition's policies under, when it has many:
 * fewer, coarser classes cost longer chains and save probes.  Pure.
 */
#ifndef XSPD_PLANE_PLAN_H
#define XSPD_PLANE_PLAN_H

#include <stddef.h>

#include "plane/pure/class.h"

struct xspd_plan_pol {
	struct xspd_class cls;
	struct xspd_key key;
	uint64_t order; /* priority << 32 | pos: lower is looked at first */
};

/* Policies of class @exact are stored under @stored, which covers it. */
struct xspd_plan_class {
	struct xspd_class exact;
	struct xspd_class stored;
};

#define XSPD_PLAN_SAMPLE 16384 /* policies that are worth looking at */

/**
 * xspd_plan() - Choose where the policies of each class are stored: at most @max places.
 * @pols: a sample of the partition's policies, every @scale-th one; at most XSPD_PLAN_SAMPLE.
 * @ret: room for @count entries, one for each class that occurs.
 *
 * Return: number of entries, or a negative errno.
 */
int xspd_plan(const struct xspd_plan_pol *pols, size_t count, double scale,
	      struct xspd_plan_class *ret, size_t max);

#endif
