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

/* A policy that is not there yet: of a shape the next, of a file a neighbour of one that is. */
static bool make_fresh(const struct xspd_bench_set *set, uint32_t i, struct xspd_pol *ret)
{
	struct xspd_pol pol;

	if (set->shape) {
		if (set->shape->room && set->count + i >= set->shape->room)
			return false;
		xspd_bench_pol(set, set->count + i, ret);
		return true;
	}
	xspd_bench_pol(set, i * 7919u % set->count, &pol);
	if (!pol.sel.prefixlen_d)
		return false;
	((uint8_t *)&pol.sel.daddr)[(pol.sel.prefixlen_d - 1) / 8] ^=
		(uint8_t)(0x80 >> (pol.sel.prefixlen_d - 1) % 8);
	pol.index = xspd_bench_index(set->count + i, pol.dir);
	*ret = pol;
	return true;
}

/* As many as fit without a larger set of maps: growing is building, and timed as such. */
static uint32_t room_for_changes(const struct xspd_bench *b)
{
	struct xspd_plane_usage usage;
	uint32_t room;

	xspd_plane_usage(b->plane, &usage);
	room = usage.slots > usage.policies + 2 ? usage.slots - usage.policies - 2 : 0;
	return room < CHANGES ? room : CHANGES;
}

/* The mirror takes them all first, so that only publishing is timed. */
static int upsert_fresh(struct xspd_bench *b, struct xspd_pol **pols, uint32_t room,
			uint32_t *ret_count)
{
	struct xspd_pol pol;
	uint32_t count = 0;
	int err;

	for (uint32_t i = 0; i < room; i++) {
		if (!make_fresh(b->set, i, &pol))
			continue;
		err = xspd_spd_upsert(b->spd, &pol);
		if (err < 0)
			return err;
		pols[count++] = xspd_spd_find(b->spd, pol.index);
	}
	*ret_count = count;
	return 0;
}

int xspd_bench_change(struct xspd_bench *b)
{
	xspd_autofree struct xspd_pol **pols = calloc(CHANGES, sizeof(*pols));
	struct xspd_change change = {.kind = XSPD_CHANGE_ADD};
	uint32_t count = 0;
	uint64_t start;
	int err;

	b->what = "publish changes";
	if (!pols)
		return -ENOMEM;
	err = upsert_fresh(b, pols, room_for_changes(b), &count);
	start = xspd_now(CLOCK_THREAD_CPUTIME_ID);
	for (uint32_t i = 0; i < count && !err; i++) {
		change.pol = pols[i];
		err = xspd_plane_change(b->plane, b->spd, &change);
	}
	if (!err && count)
		b->row.publish = (double)(xspd_now(CLOCK_THREAD_CPUTIME_ID) - start) / count;
	return err;
}
