/* SPDX-License-Identifier: GPL-2.0-only */
/* A set into the SPD of the namespace the thread is in, and from there into a mirror. */
#ifndef XSPD_BENCH_FILL_H
#define XSPD_BENCH_FILL_H

#include "bench/shape.h"
#include "spd/spd.h"

/**
 * xspd_bench_insert() - Add every policy of @set to the kernel.
 * @ret_ns: nanoseconds per policy. @ret_refused: how many the kernel did not take.
 *
 * The kernel is settled on return: its hash tables have the size they will keep.
 */
int xspd_bench_insert(const struct xspd_bench_set *set, double *ret_ns, uint32_t *ret_refused);

/* Add one policy to the kernel / take one out, by index. */
int xspd_bench_insert_one(const struct xspd_pol *pol);
int xspd_bench_delete_one(const struct xspd_pol *pol);

/* Dump the kernel's SPD into @spd. */
int xspd_bench_mirror(struct xspd_spd *spd);
/* The same without a kernel. */
int xspd_bench_fill(const struct xspd_bench_set *set, struct xspd_spd *spd);

#endif
