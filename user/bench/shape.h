/* SPDX-License-Identifier: GPL-2.0-only */
/* Sets of policies to measure: generated shapes and rule files, and flows through them. */
#ifndef XSPD_BENCH_SHAPE_H
#define XSPD_BENCH_SHAPE_H

#include "bench/rng.h"
#include "spd/policy.h"

/*
 * A shape makes its policy number @i without knowing how many there will be,
 * so numbers past the last one tell flows that match nothing.
 */
struct xspd_shape {
	const char *name;
	const char *what;
	void (*pol)(uint32_t i, struct xspd_pol *ret);
	uint32_t max;	/* policies it can make, 0: as many as anyone wants */
	uint32_t room;	/* numbers that tell policies apart, 0: as many as anyone wants */
	uint32_t block; /* policies that share a cover: misses begin at the next multiple */
	bool linear;	/* the kernel walks a list of them: insertion takes n * n */
	bool catch_all; /* policy 0 matches everything; taken out to measure misses */
	bool migrate;	/* flows that a UDP socket cannot make: the kernel is asked by MIGRATE */
};

/* NULL: no such shape. */
const struct xspd_shape *xspd_shape_find(const char *name);
extern const struct xspd_shape xspd_shapes[]; /* ends with a NULL name */

/* What is measured: a shape of some size, or the rules of a file. */
struct xspd_bench_set {
	const char *name;
	const struct xspd_shape *shape; /* NULL: from a file */
	struct xspd_pol *pols;		/* of a file */
	uint32_t count;
	uint32_t catch_all; /* its number + 1; 0: there is none */
	bool linear;
	bool migrate;
	/* of a file with traces: flows, and the number + 1 of the policy each should find */
	struct xspd_flow *trace[2]; /* .int, .rnd */
	uint32_t *winner[2];
	uint32_t traced[2];
};

/**
 * xspd_bench_set_open() - A set by name: a shape with @count policies, or "file:PATH".
 * @ret: filled on success; free with xspd_bench_set_close().
 *
 * Return: 0, -ENOENT (no such shape or file), -E2BIG (the shape has fewer policies, see
 * its max), -EBADMSG (a line that cannot be read, its number in *@ret_line), or another errno.
 */
int xspd_bench_set_open(struct xspd_bench_set *ret, const char *name, uint32_t count,
			uint32_t *ret_line);
void xspd_bench_set_close(struct xspd_bench_set *set);

/* Policy @i with index, direction and priority, in the order of insertion. Past count: shapes only.
 */
void xspd_bench_pol(const struct xspd_bench_set *set, uint32_t i, struct xspd_pol *ret);

/* The index that xspd_bench_pol() gave it, and back: number + 1, so that 0 is none. */
static inline uint32_t xspd_bench_index(uint32_t i, uint8_t dir)
{
	return (i + 1) << 3 | dir;
}

static inline uint32_t xspd_bench_number(uint32_t index)
{
	return index >> 3;
}

/* A random flow that @pol matches; @oif is the device it would leave by. */
void xspd_bench_flow(struct xspd_rng *rng, const struct xspd_pol *pol, uint32_t oif,
		     struct xspd_flow *ret);
/* @count flows, each through a policy drawn uniformly / through policies that do not exist. */
void xspd_bench_hits(const struct xspd_bench_set *set, uint32_t oif, struct xspd_flow *ret,
		     uint32_t count);
void xspd_bench_misses(const struct xspd_bench_set *set, uint32_t oif, struct xspd_flow *ret,
		       uint32_t count);

/* user/bench/file.c: the rules of @path and the traces beside it. Used by xspd_bench_set_open(). */
int xspd_bench_file_read(struct xspd_bench_set *set, const char *path, uint32_t *ret_line);

#endif
