/* SPDX-License-Identifier: GPL-2.0-only */
/* What the flow cache buys, and what it costs when nothing is found in it. */
#ifndef XSPD_BENCH_CACHE_H
#define XSPD_BENCH_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#define XSPD_CACHE_SIZES 4 /* the first of them is none */
extern const uint32_t xspd_cache_sizes[XSPD_CACHE_SIZES];

/* ns per lookup, the empty loop taken off: medians, and the fastest rounds. */
struct xspd_cache_row {
	bool v6;
	uint32_t flows;
	uint32_t tuples; /* mask classes that a lookup has to look into */
	uint32_t churn;	 /* changes/s that were asked for */
	double rate;	 /* and those that were published */
	double ns[XSPD_CACHE_SIZES];
	double ns_min[XSPD_CACHE_SIZES];
};

/**
 * xspd_bench_cache() - All rows; the sizes alternate, round by round.
 * @ret_what: on failure, the step that failed.
 *
 * Return: 0 or a negative errno.
 */
int xspd_bench_cache(uint32_t rounds, void (*row)(void *ctx, const struct xspd_cache_row *row),
		     void *ctx, const char **ret_what);

#endif
