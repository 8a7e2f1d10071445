/* SPDX-License-Identifier: GPL-2.0-only */
/* The model of the kernel's lists, held against the kernel. */
#ifndef XSPD_BENCH_TUNE_H
#define XSPD_BENCH_TUNE_H

#include "bench/shape.h"
#include "tune/tune.h"

/* ns; NAN where thresholds cannot help, so that nothing was changed. */
struct xspd_tune_row {
	uint32_t policies, longest;
	double predicted, measured;
	struct xspd_tune_bits bits; /* the best */
	double predicted_after, measured_after;
	double predicted_stall, measured_stall; /* of the change */
	double measured_back;			/* with the old thresholds again */
	double predicted_stall_back, measured_stall_back;
	struct xspd_tune_costs costs; /* of this machine, just before */
};

/**
 * xspd_bench_tune() - One shape, in a network namespace of its own.
 * @ret_what: on failure, the step that failed.
 *
 * Return: 0 or a negative errno. The calling thread is in another namespace afterwards.
 */
int xspd_bench_tune(const struct xspd_bench_set *set, struct xspd_tune_row *ret,
		    const char **ret_what);

#endif
