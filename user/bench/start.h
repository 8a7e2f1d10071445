/* SPDX-License-Identifier: GPL-2.0-only */
/* How soon the daemon answers, and what it costs when nothing happens. */
#ifndef XSPD_BENCH_START_H
#define XSPD_BENCH_START_H

#include "bench/shape.h"

#define XSPD_BENCH_IDLE_S 10

struct xspd_bench_start {
	double ready_ms; /* from fork until no doubt is left */
	double cpu_ms;	 /* spent until then */
	double idle_ms;	 /* CPU time in the XSPD_BENCH_IDLE_S seconds after that */
};

/**
 * xspd_bench_start() - Run "xspd run" over @set in a namespace of its own.
 * @ret_what: on failure, the step that failed.
 *
 * The daemon is stopped and its pins are removed on return.
 * Return: 0 or a negative errno (-ECHILD: the daemon ended; -ETIMEDOUT: not ready in a minute).
 */
int xspd_bench_start(const struct xspd_bench_set *set, struct xspd_bench_start *ret,
		     const char **ret_what);

#endif
