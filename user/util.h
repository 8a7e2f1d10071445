/* SPDX-License-Identifier: GPL-2.0-only */
/* Ownership helpers: owned locals are tagged, and leave only through xspd_take*(). */
#ifndef XSPD_UTIL_H
#define XSPD_UTIL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define XSPD_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static inline void xspd_freep(void *p)
{
	free(*(void **)p);
}

static inline void xspd_closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void xspd_fclosep(FILE **f)
{
	if (*f)
		fclose(*f);
}

#define xspd_autofree	__attribute__((cleanup(xspd_freep)))
#define xspd_autoclose	__attribute__((cleanup(xspd_closep)))
#define xspd_autofclose __attribute__((cleanup(xspd_fclosep)))

/* Hand an owned pointer on: the tagged local becomes NULL. */
#define xspd_take(p)                                                                               \
	({                                                                                         \
		__auto_type xspd_taken_ = (p);                                                     \
		(p) = NULL;                                                                        \
		xspd_taken_;                                                                       \
	})

static inline int xspd_take_fd(int *fd)
{
	int ret = *fd;

	*fd = -1;
	return ret;
}

/* Is the running kernel of this release or later?  Unknown: no. */
static inline bool xspd_kernel_since(unsigned int major, unsigned int minor)
{
	unsigned int a = 0, b = 0;
	struct utsname name;

	if (uname(&name) || sscanf(name.release, "%u.%u", &a, &b) != 2)
		return false;
	return a > major || (a == major && b >= minor);
}

/* Nanoseconds of @clock (CLOCK_MONOTONIC, CLOCK_REALTIME, ...). */
static inline uint64_t xspd_now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

/* ... of the clock that deadlines and leases go by. */
static inline uint64_t xspd_mono(void)
{
	return xspd_now(CLOCK_MONOTONIC);
}

#endif
