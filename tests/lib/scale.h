/* SPDX-License-Identifier: GPL-2.0-only */
/* Less of the same for machines that are slow: XSPD_SCALE is a percentage, 100 without it. */
#ifndef XSPD_TESTS_LIB_SCALE_H
#define XSPD_TESTS_LIB_SCALE_H

#include <stdint.h>
#include <stdlib.h>

static inline uint32_t scaled(uint32_t count)
{
	const char *scale = getenv("XSPD_SCALE");
	uint64_t percent = scale ? strtoul(scale, NULL, 10) : 100;
	uint64_t some = (count * percent + 99) / 100;

	return some ? (uint32_t)some : 1;
}

#endif
