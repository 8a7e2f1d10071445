/* SPDX-License-Identifier: GPL-2.0-only */
/* Reading whole count maps, and taking over what a former daemon's set has counted. */
#ifndef XSPD_PLANE_COUNTS_H
#define XSPD_PLANE_COUNTS_H

#include "spd/policy.h"

/**
 * xspd_counts_read() - The sums over CPUs of the first @slots elements of a xspd_count map.
 * Return: array of @slots, to free; NULL with errno.
 */
struct xspd_count *xspd_counts_read(int map, uint32_t slots);

struct xspd_former; /* policies that have counted something, by kernel index */

/* The maps of a former set, kept open until it has ended; -1: there is none. */
struct xspd_former_maps {
	int info, count, conf;
	uint32_t slots;
};

/* Open them in directory @dir. Nothing there, or not ours: both -1. */
void xspd_former_open(struct xspd_former_maps *ret, const char *dir);
/* Raise doubt bits (enum xspd_doubt) in that set, whose daemon has ended. */
void xspd_former_doubt(const struct xspd_former_maps *maps, uint32_t set);
/* Read and close them. Counters are no reason to fail: NULL when they cannot be had. */
struct xspd_former *xspd_former_read(struct xspd_former_maps *maps);
void xspd_former_free(struct xspd_former *former);
/* What @pol had counted, NULL if nothing or if its index is another policy's by now. */
const struct xspd_count *xspd_former_find(const struct xspd_former *former,
					  const struct xspd_pol *pol);

#endif
