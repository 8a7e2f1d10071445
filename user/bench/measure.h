/* SPDX-License-Identifier: GPL-2.0-only */
/* One row of the benchmark: a set in the kernel, mirrored, published, and both asked the same. */
#ifndef XSPD_BENCH_MEASURE_H
#define XSPD_BENCH_MEASURE_H

#include "bench/lab.h"
#include "bench/shape.h"

#define XSPD_BENCH_ROUNDS 7

/* What measuring needs once: two nearly empty SPDs, whose cost is subtracted. */
struct xspd_bench_labs {
	struct xspd_lab *hit;  /* one policy, which matches everything */
	struct xspd_lab *miss; /* one policy, which matches nothing asked */
};
int xspd_bench_labs_new(struct xspd_bench_labs *ret);
void xspd_bench_labs_free(struct xspd_bench_labs *labs);

/* NAN stands for what was not or cannot be measured. Times in ns, medians unless named min. */
struct xspd_bench_row {
	const char *shape;
	uint32_t policies;
	uint32_t tuples;
	double hit, hit_min;
	double miss, miss_min;
	double rnd; /* a file's .rnd trace */
	double kernel, kernel_min;
	double kernel_miss, kernel_miss_min;
	double bytes;	/* of maps for matching, per policy */
	double build;	/* user time per policy: all of them at once */
	double publish; /* CPU time per policy: one more, with the others in place */
	double probes, probes_miss;
	double insert;	  /* kernel, per policy */
	uint32_t checked; /* answers compared with the linear reference or a trace's winner */
	uint32_t wrong;
	uint32_t deferred;
	uint32_t longest_chain;
};

/**
 * xspd_bench_measure() - Measure @set.
 * @labs: NULL: without the kernel, its policies go straight into the mirror.
 * @ret_what: on failure, the step that failed.
 *
 * With @labs the thread is in another network namespace afterwards.
 * Return: 0 or a negative errno.
 */
int xspd_bench_measure(const struct xspd_bench_set *set, const struct xspd_bench_labs *labs,
		       struct xspd_bench_row *ret, const char **ret_what);

#endif
