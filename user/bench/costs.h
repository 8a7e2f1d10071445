/* SPDX-License-Identifier: GPL-2.0-only */
/* What the steps of a policy lookup cost this machine's kernel. */
#ifndef XSPD_BENCH_COSTS_H
#define XSPD_BENCH_COSTS_H

#include "bench/lab.h"
#include "tune/tune.h"

/* Flows that costs and lookups are both measured with: as many policies' worth of caches. */
#define XSPD_BENCH_FLOWS 4096

/**
 * xspd_bench_costs() - Measure, in network namespaces made for it and gone with it.
 * @ret: rebuild and sub_policy are left as they are.
 * @ret_what: on failure, the step that failed.
 *
 * The calling thread is where it was afterwards. 0 or a negative errno.
 */
int xspd_bench_costs(struct xspd_tune_costs *ret, const char **ret_what);

/*
 * ns of a policy lookup: @lab's minus @empty's, which has no policy at all, over the same
 * flows; of several rounds the fastest of each, since other work can only slow them.
 */
int xspd_bench_lookup_ns(struct xspd_lab *lab, struct xspd_lab *empty, enum xspd_lab_way way,
			 const struct xspd_flow *flows, uint32_t count, double *ret);

/* chase.c: ns per object of a list of @count objects, as large as policies, in memory of our own.
 */
double xspd_bench_chase(uint32_t count);

#endif
