/* SPDX-License-Identifier: GPL-2.0-only */
/* splitmix64: small, fast, the same numbers on every machine. */
#ifndef XSPD_BENCH_RNG_H
#define XSPD_BENCH_RNG_H

#include <stdint.h>

struct xspd_rng {
	uint64_t state;
};

static inline uint64_t xspd_rng_next(struct xspd_rng *rng)
{
	uint64_t z = rng->state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* Uniform in 0..@n-1; the bias is below 2^-32. */
static inline uint32_t xspd_rng_below(struct xspd_rng *rng, uint32_t n)
{
	return (uint32_t)(((xspd_rng_next(rng) >> 32) * n) >> 32);
}

#endif
