/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What following the SPD costs whoever changes it, and how soon a change is in
 * the data plane.  The policies are those of the kernel's own selftest
 * xfrm_policy_add_speed: blocks between /30 networks, one side of them fixed.
 */
#ifndef XSPD_BENCH_SYNC_H
#define XSPD_BENCH_SYNC_H

#include "bench/child.h"
#include "spd/policy.h"

#define XSPD_SYNC_MOST	     1632000 /* as many has the pattern */
#define XSPD_SYNC_CHURN_RATE 30000   /* changes/s */

struct xspd_sync_lag {
	double p50_us, p99_us;
	double rate; /* changes/s while it was measured */
	uint32_t count;
	uint32_t swaps; /* sets of maps put into service meanwhile */
	uint32_t lost;	/* times that events were lost meanwhile */
};

/* Medians of @runs; times in seconds. */
struct xspd_sync_row {
	uint32_t policies;
	uint32_t runs;
	double insert_off, insert_on; /* ip -batch, the daemon off and on */
	double slowdown;	      /* of each pair: on / off - 1 */
	double cpu_slowdown;	      /* the same of the CPU time that ip spent */
	/* the same with a process that is told of every change, and does nothing with it: the first
	 * never reads, the second does */
	double deaf_slowdown, reader_slowdown;
	double load, load_on;	 /* xspd snapshot load */
	double complete_ms;	 /* from the end of ip until all is mirrored */
	double load_complete_ms; /* ... of the load */
	uint32_t mirrored;	 /* the least that was found in the maps */
	struct xspd_sync_lag quiet, churn;
	uint64_t lost, redumps; /* of all insertions */
};

/* The @i-th policy of the pattern, and the same as a line for ip -batch. */
void xspd_sync_pol(uint32_t i, struct xspd_pol *ret);
int xspd_sync_batch_file(uint32_t count, const char *path);

/*
 * From before a change is sent until a lookup shows it, asked as fast as can be: one at a time
 * (@rate 0), or among @rate other changes a second. 0 or a negative errno.
 */
int xspd_sync_lag(const struct xspd_child *child, uint32_t rate, struct xspd_sync_lag *ret);

/**
 * xspd_bench_sync() - One row, in network namespaces of its own.
 * @ret_what: on failure, the step that failed.
 * Return: 0 or a negative errno.
 */
int xspd_bench_sync(uint32_t policies, uint32_t runs, struct xspd_sync_row *ret,
		    const char **ret_what);

#endif
