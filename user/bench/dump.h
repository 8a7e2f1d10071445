/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a start over an SPD that is there already costs: beside a dump that nobody looks at, which
 * is the least that anybody could spend, and in memory of user space.
 */
#ifndef XSPD_BENCH_DUMP_H
#define XSPD_BENCH_DUMP_H

#include "bench/sync.h"

/* Medians of @runs; times in seconds. */
struct xspd_dump_row {
	uint32_t policies;
	uint32_t runs;
	double bare;		  /* a dump read by a loop that does nothing */
	double dump_build;	  /* dump, mirror and tables, the programs being loaded before */
	double ratio;		  /* of each pair: dump_build / bare */
	double cpu_ratio;	  /* the same of their CPU time */
	double ready;		  /* from fork until the daemon answers */
	double user_bytes;	  /* a policy: anonymous memory, which the mapped maps are not */
	double map_bytes;	  /* a policy: what matching reads */
	struct xspd_sync_lag lag; /* one change at a time, afterwards */
};

/**
 * xspd_bench_dump() - One row, in a network namespace of its own, with the pattern of bench/sync.h.
 * @ret_what: on failure, the step that failed.
 * Return: 0 or a negative errno.
 */
int xspd_bench_dump(uint32_t policies, uint32_t runs, struct xspd_dump_row *ret,
		    const char **ret_what);

#endif
