// SPDX-License-Identifier: GPL-2.0-only
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>

#include "bench/lab.h"
#include "bench/live.h"
#include "bench/median.h"
#include "bench/shape.h"
#include "util.h"

#define FLOWS	 512
#define LEAST	 8
#define ROUNDS	 15
#define ROUND_NS 10000000.0

#define WATCH_NS  100000000.0 /* a rebuild begins within that, or has been too short to be seen */
#define SEEN_NS	  1000000.0
#define REST_NS	  200000
#define BEHIND_NS 20000000.0 /* what came after the longest wait: it is over */

struct xspd_live {
	struct xspd_lab lab;
	struct xspd_flow flow[FLOWS];
	struct xspd_flow none[FLOWS]; /* as many that meet nothing */
	uint32_t count;
	bool marked;
};

/* An if_id that no policy has: its lookups find no tree and no list. */
static uint32_t if_id_free(const struct xspd_spd *spd)
{
	uint32_t least = ~0u;

	for (const struct xspd_pol *pol = spd->by_index; pol; pol = pol->hh.next)
		if (pol->if_id && pol->if_id <= least)
			least = pol->if_id - 1;
	return least ? least : ~0u;
}

static void flows_draw(struct xspd_live *live, const struct xspd_spd *spd)
{
	struct xspd_rng rng = {.state = 3};
	uint32_t seen = 0, at;

	for (const struct xspd_pol *pol = spd->by_index; pol; pol = pol->hh.next) {
		if (pol->mark_mask && !live->marked)
			continue;
		/* each of those seen so far is as likely to be kept as any other */
		at = seen < FLOWS ? seen : xspd_rng_below(&rng, seen + 1);
		seen++;
		if (at < FLOWS)
			xspd_bench_flow(&rng, pol, 0, &live->flow[at]);
	}
	live->count = seen < FLOWS ? seen : FLOWS;
}

static void none_draw(struct xspd_live *live, uint32_t if_id)
{
	for (uint32_t i = 0; i < live->count; i++) {
		live->none[i] = live->flow[i];
		live->none[i].if_id = if_id;
		/* nor a bucket that anything else is in */
		live->none[i].daddr[live->flow[i].family == XSPD_INET6 ? 3 : 0] ^=
			htonl(0x00a5a5a5);
		live->none[i].saddr[live->flow[i].family == XSPD_INET6 ? 3 : 0] ^=
			htonl(0x005a5a5a);
	}
}

static bool all_marked(const struct xspd_spd *spd)
{
	for (const struct xspd_pol *pol = spd->by_index; pol; pol = pol->hh.next)
		if (!pol->mark_mask)
			return false;
	return true;
}

int xspd_live_new(struct xspd_live **ret, const struct xspd_spd *spd)
{
	struct xspd_live *live;
	int err = xspd_lab_migrate_works();

	if (err < 0)
		return err;
	live = calloc(1, sizeof(*live));
	if (!live)
		return -ENOMEM;
	live->lab.tun = live->lab.netlink = -1;
	live->lab.netns = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	live->marked = all_marked(spd);
	flows_draw(live, spd);
	none_draw(live, if_id_free(spd));
	err = live->lab.netns < 0 ? -errno : live->count ? 0 : -ENOENT;
	if (err < 0)
		xspd_live_free(live);
	else
		*ret = live;
	return err;
}

void xspd_live_free(struct xspd_live *live)
{
	if (!live)
		return;
	xspd_closep(&live->lab.netlink);
	xspd_closep(&live->lab.netns);
	free(live);
}

bool xspd_live_marked(const struct xspd_live *live)
{
	return live->marked;
}

int xspd_live_time(struct xspd_live *live, double *ret_ns)
{
	uint32_t count = live->count < LEAST ? live->count : LEAST;
	double diff[ROUNDS], ns = 0, loop;
	int err = xspd_lab_time(&live->lab, XSPD_LAB_MIGRATE, live->flow, count, &ns);

	if (err < 0)
		return err;
	if (ns * live->count > ROUND_NS)
		count = (uint32_t)fmax(ROUND_NS / ns, count);
	else
		count = live->count;
	for (int i = 0; i < ROUNDS && !err; i++) {
		err = xspd_lab_time(&live->lab, XSPD_LAB_MIGRATE, live->flow, count, &ns);
		if (!err)
			err = xspd_lab_time(&live->lab, XSPD_LAB_MIGRATE, live->none, count, &loop);
		diff[i] = ns - loop;
	}
	if (err < 0)
		return err;
	xspd_sort(diff, ROUNDS);
	*ret_ns = fmax(diff[ROUNDS / 2], 0);
	return 0;
}

/* A request that takes the lock of the policies and changes nothing: how long it waited. */
static double lock_wait(struct xspd_nl *nl)
{
	const struct xspd_pol like = {.dir = XSPD_OUT};
	uint64_t start = xspd_mono();
	struct xspd_pol pol;

	xspd_nl_policy(nl, 1u << 31 | XSPD_OUT, &like, &pol);
	return (double)(xspd_mono() - start);
}

int xspd_live_rebuild(struct xspd_nl *nl, const struct xspd_spdinfo *want, double patience,
		      double *ret_stall)
{
	uint64_t start = xspd_mono(), longest_at;
	struct xspd_spdinfo got;
	double longest, wait, now;
	int err = xspd_nl_set_hthresh(nl, want);

	if (err < 0)
		return err;
	/* it often begins on this CPU, and before the request returns */
	longest_at = xspd_mono();
	longest = (double)(longest_at - start);
	do {
		wait = lock_wait(nl);
		if (wait > longest) {
			longest = wait;
			longest_at = xspd_mono();
		}
		nanosleep(&(struct timespec){.tv_nsec = REST_NS}, NULL);
		now = (double)(xspd_mono() - start);
	} while (now < WATCH_NS ||
		 (now < patience + WATCH_NS && longest < fmax(SEEN_NS, patience / 4)) ||
		 (double)(xspd_mono() - longest_at) < BEHIND_NS);
	*ret_stall = longest;
	err = xspd_nl_spdinfo(nl, &got);
	if (err < 0)
		return err;
	return got.lbits4 == want->lbits4 && got.rbits4 == want->rbits4 &&
			       got.lbits6 == want->lbits6 && got.rbits6 == want->rbits6
		       ? 0
		       : -EBUSY;
}
