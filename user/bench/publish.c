// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <sys/resource.h>

#include "bench/bench.h"
#include "util.h"

#define LEASE_MS 3600000
#define CHANGES	 10000

static uint64_t user_ns(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (uint64_t)usage.ru_utime.tv_sec * 1000000000ull +
	       (uint64_t)usage.ru_utime.tv_usec * 1000ull;
}

/* A build of nothing is subtracted: what loading the programs costs is not the policies' due. */
int xspd_bench_build(struct xspd_bench *b)
{
	struct xspd_plane_opts opts = {.lease_ms = LEASE_MS, .bench = true};
	struct xspd_spd *nothing = xspd_spd_new();
	uint64_t start, empty, full;
	int err;

	b->what = "load the programs";
	if (!nothing)
		return -errno;
	err = xspd_plane_new(&b->plane, &opts);
	start = user_ns();
	if (!err)
		err = xspd_plane_build(b->plane, nothing);
	empty = user_ns() - start;
	xspd_spd_free(nothing);
	if (err < 0)
		return err;
	b->what = "publish the policies";
	start = user_ns();
	err = xspd_plane_build(b->plane, b->spd);
	if (err < 0)
		return err;
	full = user_ns() - start;
	b->row.build = full > empty ? (double)(full - empty) / b->row.policies : 0;
	xspd_plane_beat(b->plane);
	xspd_plane_doubt(b->plane, 0, ~0u);
	return 0;
}

/* The policies to change, spread over all numbers; @ret has room for CHANGES. */
static uint32_t pick(const struct xspd_bench *b, struct xspd_pol **ret)
{
	uint32_t count = b->row.policies < CHANGES ? b->row.policies : CHANGES, kept = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t nr = (uint32_t)((uint64_t)i * b->row.policies / count);
		struct xspd_pol *pol = xspd_spd_find(b->spd, xspd_bench_index(nr, XSPD_OUT));

		if (pol)
			ret[kept++] = pol;
	}
	return kept;
}

static int remove_all(struct xspd_bench *b, struct xspd_pol **pols, struct xspd_pol *copies,
		      uint32_t count)
{
	struct xspd_change change = {.kind = XSPD_CHANGE_REMOVE};
	int err = 0;

	for (uint32_t i = 0; i < count && !err; i++) {
		copies[i] = *pols[i];
		err = xspd_spd_remove(b->spd, copies[i].index);
		change.old = &copies[i];
		if (!err)
			err = xspd_plane_change(b->plane, b->spd, &change);
	}
	return err;
}

static int add_all(struct xspd_bench *b, const struct xspd_pol *copies, uint32_t count)
{
	xspd_autofree struct xspd_pol **pols = calloc(count, sizeof(*pols));
	struct xspd_change change = {.kind = XSPD_CHANGE_ADD};
	uint64_t start;
	int err = pols ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < count && !err; i++) {
		err = xspd_spd_upsert(b->spd, &copies[i]);
		pols[i] = xspd_spd_find(b->spd, copies[i].index);
	}
	start = xspd_now(CLOCK_THREAD_CPUTIME_ID);
	for (uint32_t i = 0; i < count && !err; i++) {
		change.pol = pols[i];
		err = xspd_plane_change(b->plane, b->spd, &change);
	}
	b->row.publish = (double)(xspd_now(CLOCK_THREAD_CPUTIME_ID) - start) / count;
	return err;
}

int xspd_bench_change(struct xspd_bench *b)
{
	xspd_autofree struct xspd_pol **pols = calloc(CHANGES, sizeof(*pols));
	xspd_autofree struct xspd_pol *copies = calloc(CHANGES, sizeof(*copies));
	uint32_t count;
	int err;

	b->what = "publish changes";
	if (!pols || !copies)
		return -ENOMEM;
	count = pick(b, pols);
	err = remove_all(b, pols, copies, count);
	return err ? err : add_all(b, copies, count);
}
