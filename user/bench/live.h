/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What lookups cost the kernel of the namespace the thread is in, asked without a
 * packet and without a trace: no SA is made, no key manager is called, nothing is counted.
 */
#ifndef XSPD_BENCH_LIVE_H
#define XSPD_BENCH_LIVE_H

#include "nl/nl.h"
#include "spd/spd.h"

struct xspd_live;

/**
 * xspd_live_new() - Choose flows that meet @spd's policies, each as likely as any other.
 * Return: 0, -EOPNOTSUPP (Linux before 6.12, or without CONFIG_XFRM_MIGRATE), -ENOENT
 * (@spd has no policy), or another negative errno. Free with xspd_live_free().
 */
int xspd_live_new(struct xspd_live **ret, const struct xspd_spd *spd);
void xspd_live_free(struct xspd_live *live);

/* Are there only policies that want a mark? A question has none: it walks to the end of lists. */
bool xspd_live_marked(const struct xspd_live *live);

/* Median ns of a lookup, less what one takes that meets no list at all. 0 or a negative errno. */
int xspd_live_time(struct xspd_live *live, double *ret_ns);

/**
 * xspd_live_rebuild() - Set the thresholds of @want, and watch the kernel rebuild.
 * @patience: ns to wait for it to begin and end, at least.
 * @ret_stall: the longest that its lock was seen to be held, in ns.
 *
 * Return: 0 or a negative errno.
 */
int xspd_live_rebuild(struct xspd_nl *nl, const struct xspd_spdinfo *want, double patience,
		      double *ret_stall);

#endif
