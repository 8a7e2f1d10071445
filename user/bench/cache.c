// SPDX-License-Identifier: GPL-2.0-only
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "bench/cache.h"
#include "bench/median.h"
#include "bench/rng.h"
#include "plane/plane.h"
#include "spd/spd.h"
#include "util.h"

#define POLICIES   10000
#define CAPACITY   65536 /* room for changes, so that none makes the plane build a larger set */
#define LOOKUPS	   131072
#define LEASE_MS   3600000
#define ROUNDS_MAX 64
#define TICK_NS	   1000000
#define CHURN_ROOM 512 /* policies that come and go */

const uint32_t xspd_cache_sizes[XSPD_CACHE_SIZES] = {0, 1024, 4096, 16384};

struct bench {
	struct xspd_spd *spd[XSPD_CACHE_SIZES]; /* each plane numbers the slots of its own */
	struct xspd_plane *plane[XSPD_CACHE_SIZES];
	struct xspd_flow *flows;
	struct xspd_answer *answers;
	struct xspd_cache_row row;
	uint32_t rounds;
	const char *what;
};

/* Policy @i is for one host, and for sources below one of @tuples nested prefixes. */
static void policy(bool v6, uint32_t tuples, uint32_t i, struct xspd_pol *ret)
{
	uint32_t host = i * 0x9e3779b1u & 0xffffff;
	struct xspd_pol pol = {.dir = XSPD_OUT};

	if (v6) {
		pol.sel.family = AF_INET6;
		pol.sel.daddr.a6[0] = pol.sel.saddr.a6[0] = htonl(0x20010db8);
		pol.sel.daddr.a6[3] = htonl(host);
		pol.sel.prefixlen_d = 128;
		pol.sel.prefixlen_s = 112 + i % tuples;
	} else {
		pol.sel.family = AF_INET;
		pol.sel.daddr.a4 = htonl(0x0a000000 | host);
		pol.sel.saddr.a4 = htonl(0xac100000);
		pol.sel.prefixlen_d = 32;
		pol.sel.prefixlen_s = 16 + i % tuples;
	}
	/* mixed over the prefixes, so that none of them can be skipped */
	pol.priority = 1000 + (i * 0x85ebca6bu >> 16) % 1000;
	pol.index = (i + 1) << 3 | pol.dir;
	*ret = pol;
}

static void make_flows(struct bench *b)
{
	const struct xspd_cache_row *row = &b->row;
	struct xspd_rng rng = {.state = 3};
	struct xspd_pol pol;

	for (uint32_t i = 0; i < row->flows; i++) {
		struct xspd_flow flow = {
			.family = row->v6 ? XSPD_INET6 : XSPD_INET,
			.dir = XSPD_OUT,
			.proto = IPPROTO_UDP,
			.oif = 2,
			.dport = htons(4789),
			.sport = (__be16)i,
		};

		policy(row->v6, row->tuples, xspd_rng_below(&rng, POLICIES), &pol);
		memcpy(flow.daddr, &pol.sel.daddr, row->v6 ? 16 : 4);
		memcpy(flow.saddr, &pol.sel.saddr, row->v6 ? 16 : 4);
		b->flows[i] = flow;
	}
}

static int open_plane(struct bench *b, int nr)
{
	struct xspd_plane_opts opts = {
		.capacity = CAPACITY,
		.lease_ms = LEASE_MS,
		.bench = true,
		.coarsen_at = XSPD_TUPLES, /* keep the classes apart */
		.cache = xspd_cache_sizes[nr],
	};
	struct xspd_pol pol;
	int err = 0;

	b->spd[nr] = xspd_spd_new();
	if (!b->spd[nr])
		return -errno;
	for (uint32_t i = 0; i < POLICIES && !err; i++) {
		policy(b->row.v6, b->row.tuples, i, &pol);
		err = xspd_spd_upsert(b->spd[nr], &pol);
	}
	if (!err)
		err = xspd_plane_new(&b->plane[nr], &opts);
	if (!err)
		err = xspd_plane_build(b->plane[nr], b->spd[nr]);
	if (err)
		return err;
	xspd_plane_beat(b->plane[nr]);
	xspd_plane_doubt(b->plane[nr], 0, ~0u);
	return 0;
}

static void close_planes(struct bench *b)
{
	for (int i = 0; i < XSPD_CACHE_SIZES; i++) {
		xspd_plane_free(b->plane[i]);
		xspd_spd_free(b->spd[i]);
		b->plane[i] = NULL;
		b->spd[i] = NULL;
	}
}

static int open_planes(struct bench *b)
{
	int err = 0;

	b->what = "publish the policies";
	for (int i = 0; i < XSPD_CACHE_SIZES && !err; i++)
		err = open_plane(b, i);
	return err;
}

/* --- changes meanwhile ------------------------------------------------------------ */

struct churn {
	struct xspd_plane *plane;
	struct xspd_spd *spd;
	uint32_t rate;
	pthread_t thread;
	atomic_bool stop;
	uint64_t done;
	int err;
};

/* Of another direction than what is looked up. */
static int change_one(struct churn *churn)
{
	uint32_t i = (uint32_t)(churn->done / 2 % CHURN_ROOM);
	struct xspd_change change = {.kind = XSPD_CHANGE_ADD};
	struct xspd_pol pol, *found;
	int err;

	policy(false, 1, POLICIES + i, &pol);
	pol.dir = XSPD_IN;
	pol.index = (POLICIES + i + 1) << 3 | XSPD_IN;
	if (churn->done++ % 2 == 0) {
		err = xspd_spd_upsert(churn->spd, &pol);
		change.pol = xspd_spd_find(churn->spd, pol.index);
		return err ? err : xspd_plane_change(churn->plane, churn->spd, &change);
	}
	found = xspd_spd_find(churn->spd, pol.index);
	if (!found)
		return -ENOENT;
	pol = *found;
	change.kind = XSPD_CHANGE_REMOVE;
	change.old = &pol;
	err = xspd_spd_remove(churn->spd, pol.index);
	return err ? err : xspd_plane_change(churn->plane, churn->spd, &change);
}

static void *churn_run(void *ctx)
{
	struct churn *churn = ctx;
	uint64_t start = xspd_mono();

	while (!churn->err && !atomic_load(&churn->stop)) {
		uint64_t due = (xspd_mono() - start) / 1000 * churn->rate / 1000000;

		while (!churn->err && churn->done < due && !atomic_load(&churn->stop))
			churn->err = change_one(churn);
		nanosleep(&(struct timespec){.tv_nsec = TICK_NS}, NULL);
	}
	return NULL;
}

/* One round of one size; *ret_rate gets the changes/s that were published meanwhile. */
static int one_round(struct bench *b, int nr, double *ret_ns, double *ret_null, double *ret_rate)
{
	struct churn churn = {.plane = b->plane[nr], .spd = b->spd[nr], .rate = b->row.churn};
	uint32_t count = b->row.flows, rounds = LOOKUPS / count;
	uint64_t start = xspd_mono();
	int err;

	if (!churn.rate)
		return xspd_plane_bench(b->plane[nr], count, rounds, ret_ns, ret_null);
	err = -pthread_create(&churn.thread, NULL, churn_run, &churn);
	if (err)
		return err;
	/* long enough that the changes are spread over it */
	err = xspd_plane_bench(b->plane[nr], count, rounds * 8, ret_ns, ret_null);
	atomic_store(&churn.stop, true);
	pthread_join(churn.thread, NULL);
	*ret_rate = (double)churn.done * 1e9 / (double)(xspd_mono() - start);
	while (!churn.err && churn.done % 2)
		churn.err = change_one(&churn);
	return err ? err : churn.err;
}

/* --- rows ------------------------------------------------------------------------- */

static int one_row(struct bench *b)
{
	double ns[XSPD_CACHE_SIZES][ROUNDS_MAX], least[XSPD_CACHE_SIZES], null, rate = 0;
	double null_least = 1e9;
	int err = 0;

	make_flows(b);
	b->what = "ask the programs";
	for (int i = 0; i < XSPD_CACHE_SIZES && !err; i++) {
		least[i] = 1e9;
		err = xspd_plane_ask(b->plane[i], b->flows, b->row.flows, b->answers, NULL);
		for (uint32_t k = 0; k < b->row.flows && !err; k++)
			if (b->answers[k].reason != XSPD_R_BYPASS)
				err = -EBADE;
	}
	for (uint32_t round = 0; round < b->rounds && !err; round++) {
		for (int i = 0; i < XSPD_CACHE_SIZES && !err; i++) {
			err = one_round(b, i, &ns[i][round], &null, &rate);
			least[i] = ns[i][round] < least[i] ? ns[i][round] : least[i];
			null_least = null < null_least ? null : null_least;
			ns[i][round] -= null;
		}
	}
	for (int i = 0; i < XSPD_CACHE_SIZES && !err; i++) {
		xspd_sort(ns[i], b->rounds);
		b->row.ns[i] = ns[i][b->rounds / 2];
		b->row.ns_min[i] = least[i] - null_least;
	}
	b->row.rate = rate;
	return err;
}

/* The planes of one family and number of tuples, and the rows that they serve. */
static int one_set(struct bench *b, void (*give)(void *ctx, const struct xspd_cache_row *row),
		   void *ctx)
{
	static const uint32_t counts[] = {1, 512, 4096, 16384, 65536};
	static const uint32_t churns[] = {1000, 30000};
	int err = open_planes(b);

	for (size_t i = 0; i < XSPD_ARRAY_SIZE(counts) && !err; i++) {
		b->row.flows = counts[i];
		b->row.churn = 0;
		err = one_row(b);
		if (!err)
			give(ctx, &b->row);
	}
	for (size_t i = 0; i < XSPD_ARRAY_SIZE(churns) && !err && b->row.tuples == 4; i++) {
		b->row.flows = 512;
		b->row.churn = churns[i];
		err = one_row(b);
		if (!err)
			give(ctx, &b->row);
	}
	close_planes(b);
	return err;
}

int xspd_bench_cache(uint32_t rounds, void (*row)(void *ctx, const struct xspd_cache_row *row),
		     void *ctx, const char **ret_what)
{
	static const uint32_t tuples[] = {1, 4, 16};
	struct bench b = {.rounds = rounds < ROUNDS_MAX ? rounds : ROUNDS_MAX};
	int err = 0;

	b.what = "allocate";
	b.flows = calloc(XSPD_ASK_MAX, sizeof(*b.flows));
	b.answers = calloc(XSPD_ASK_MAX, sizeof(*b.answers));
	if (!b.flows || !b.answers)
		err = -ENOMEM;
	for (int v6 = 0; v6 < 2 && !err; v6++) {
		for (size_t i = 0; i < XSPD_ARRAY_SIZE(tuples) && !err; i++) {
			b.row = (struct xspd_cache_row){.v6 = v6, .tuples = tuples[i]};
			err = one_set(&b, row, ctx);
		}
	}
	free(b.flows);
	free(b.answers);
	*ret_what = b.what;
	return err;
}
