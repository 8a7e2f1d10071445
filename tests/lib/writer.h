/* SPDX-License-Identifier: GPL-2.0-only */
/* Processes that change policies at full speed, in every way there is. */
#ifndef XSPD_TESTS_LIB_WRITER_H
#define XSPD_TESTS_LIB_WRITER_H

#include <stdatomic.h>

#include "lib/gen.h"

#define WRITERS		2
#define WRITER_POLICIES 1500 /* that one of them has at most */

/* In memory that all processes share. */
struct writer_shared {
	atomic_bool pause, stop;
	atomic_bool paused[WRITERS];
	atomic_bool gentle; /* bursts, so that a small buffer gets its chance in between */
	atomic_ullong changes[WRITERS], flushes, timers, sockets;
};

/*
 * Policy @n of writer @who: the selector hangs on the number, the rest changes.  All of them
 * are worse than the sentinels, and sub policies, which are asked first, match none of these.
 */
struct xspd_pol writer_pol(uint32_t who, uint32_t n, struct gen *with);

/* Write until shared->stop, resting while shared->pause. Ends the process. */
_Noreturn void writer_run(uint32_t who, const struct gen *gen, struct writer_shared *shared);

#endif
