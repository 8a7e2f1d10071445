// SPDX-License-Identifier: GPL-2.0-only
/*
 * One thread changes and asks, so that with the daemon there are two to run: a
 * third would measure the scheduler.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "bench/median.h"
#include "bench/sync.h"
#include "nl/nl.h"
#include "plane/ask.h"
#include "util.h"

#define PROBES	   4000
#define SECONDS	   5
#define QUIET_NS   300000 /* between two changes when nothing else happens */
#define BATCH	   10
#define CHURNED	   4096 /* policies that come and go */
#define STALE_NS   20000000ull
#define GIVE_UP_NS 30000000000ull

struct lag {
	const struct xspd_child *child;
	struct xspd_nl *nl;
	struct xspd_batch *batch;
	int query; /* of the set in service when it was opened */
	uint32_t rate;
	uint32_t step; /* of the churn */
	uint32_t refused;
	bool there, pending; /* the probe */
	uint64_t sent_at;
	uint64_t changes;
	double *us;
	uint32_t count;
};

static void on_failed(void *ctx, uint32_t seq, int error, const char *extack)
{
	(void)seq;
	(void)error;
	(void)extack;
	((struct lag *)ctx)->refused++;
}

/* Between hosts that no other policy has anything to do with. */
static struct xspd_pol probe_pol(void)
{
	struct xspd_pol pol = {.dir = XSPD_OUT, .action = XSPD_BLOCK, .priority = 5};

	pol.sel.family = AF_INET;
	pol.sel.saddr.a4 = htonl(0xc0000201);
	pol.sel.daddr.a4 = htonl(0xc6120001);
	pol.sel.prefixlen_s = pol.sel.prefixlen_d = 32;
	return pol;
}

static int put(struct lag *lag, const struct xspd_pol *pol, uint16_t type)
{
	struct nlmsghdr *nlh;
	uint32_t seq;
	void *room = xspd_batch_room(lag->batch, &seq);

	if (!room)
		return -errno;
	if (type == XFRM_MSG_DELPOLICY)
		nlh = xspd_nl_put_delete(room, pol, false, 0, seq);
	else
		nlh = xspd_nl_put_policy(room, pol, type, 0, seq);
	xspd_batch_commit(lag->batch, nlh);
	lag->changes++;
	return 0;
}

/*
 * In turn: a policy between hosts comes, is updated, and goes.  Not one of the
 * pattern: among 100,000 of them each update, and each removal by selector, has the kernel
 * look through all of its inexact list for what can be pruned (5 ms), so that there are no
 * 30,000 changes a second to follow.
 */
static int churn_step(struct lag *lag)
{
	uint32_t step = lag->step++;
	struct xspd_pol pol = probe_pol();

	pol.sel.daddr.a4 = htonl(0xc6130000 + step / 3 % CHURNED);
	return put(lag, &pol, step % 3 == 2 ? XFRM_MSG_DELPOLICY : XFRM_MSG_UPDPOLICY);
}

static int send_round(struct lag *lag)
{
	struct xspd_pol pol = probe_pol();
	int err = 0;

	for (int i = 0; lag->rate && i < BATCH && !err; i++)
		err = churn_step(lag);
	if (!err && !lag->pending) {
		err = put(lag, &pol, lag->there ? XFRM_MSG_DELPOLICY : XFRM_MSG_NEWPOLICY);
		lag->there = !lag->there;
		lag->pending = true;
		lag->sent_at = xspd_mono();
	}
	if (!err)
		err = xspd_batch_flush(lag->batch);
	return !err && lag->refused ? -EPROTO : err;
}

static int query_open(struct lag *lag)
{
	int fd = xspd_child_pin(lag->child, "xspd_query");

	if (fd < 0)
		return fd;
	xspd_closep(&lag->query);
	lag->query = fd;
	return 0;
}

/* Does a lookup show what was last sent? */
static int visible(struct lag *lag)
{
	struct xspd_pol pol = probe_pol();
	struct xspd_flow flow = {.daddr = {pol.sel.daddr.a4},
				 .saddr = {pol.sel.saddr.a4},
				 .family = XSPD_INET,
				 .dir = XSPD_OUT,
				 .proto = IPPROTO_UDP};
	struct xspd_answer answer;
	int err = xspd_ask(lag->query, &flow, 1, &answer);

	if (err)
		return err;
	return answer.reason == (lag->there ? XSPD_R_BLOCK : XSPD_R_NO_POLICY);
}

static int ask(struct lag *lag)
{
	int seen = visible(lag);
	uint64_t waited = xspd_mono() - lag->sent_at;

	if (seen < 0)
		return seen;
	if (seen) {
		lag->us[lag->count++] = (double)waited / 1e3;
		lag->pending = false;
		return 0;
	}
	if (waited > GIVE_UP_NS)
		return -ETIMEDOUT;
	/* perhaps another set was put into service: the old one never changes again */
	return waited > STALE_NS ? query_open(lag) : 0;
}

static int measure(struct lag *lag)
{
	uint64_t gap = lag->rate ? 1000000000ull * BATCH / lag->rate : QUIET_NS;
	uint64_t begin = xspd_mono(), end = begin + SECONDS * 1000000000ull;
	uint64_t due = begin, now = begin;
	int err = 0;

	while (!err && (lag->pending || (lag->count < PROBES && now < end))) {
		if (now >= due && (lag->rate || !lag->pending)) {
			due = lag->rate ? due + gap : now + gap;
			err = send_round(lag);
		}
		if (!err && lag->pending)
			err = ask(lag);
		now = xspd_mono();
	}
	lag->rate = (uint32_t)((double)lag->changes * 1e9 / (double)(now - begin));
	return err;
}

static int lag_open(struct lag *lag)
{
	int err = query_open(lag);

	lag->us = calloc(PROBES + 1, sizeof(*lag->us));
	if (!err && !lag->us)
		err = -ENOMEM;
	if (!err)
		err = xspd_nl_open(&lag->nl, 0, 0);
	if (!err)
		err = xspd_batch_new(&lag->batch, lag->nl, on_failed, lag);
	return err;
}

/* Leave the SPD as it was found. */
static int tidy(struct lag *lag)
{
	struct xspd_pol pol = probe_pol();
	int err = 0;

	while (lag->rate && lag->step % 3 && !err)
		err = churn_step(lag);
	if (!err && lag->there)
		err = put(lag, &pol, XFRM_MSG_DELPOLICY);
	return err ? err : xspd_batch_flush(lag->batch);
}

int xspd_sync_lag(const struct xspd_child *child, uint32_t rate, struct xspd_sync_lag *ret)
{
	struct lag lag = {.child = child, .query = -1, .rate = rate};
	struct xspd_conf before = {}, after = {};
	int err = lag_open(&lag);

	if (!err)
		err = xspd_child_conf(child, &before);
	if (!err)
		err = measure(&lag);
	if (!err)
		err = tidy(&lag);
	if (!err)
		err = xspd_child_conf(child, &after);
	if (!err) {
		xspd_sort(lag.us, lag.count);
		*ret = (struct xspd_sync_lag){
			.p50_us = lag.us[lag.count / 2],
			.p99_us = lag.us[(uint64_t)lag.count * 99 / 100],
			.rate = lag.rate,
			.count = lag.count,
			.swaps = (uint32_t)(after.swaps - before.swaps),
			.lost = (uint32_t)(after.lost - before.lost),
		};
	}
	xspd_batch_free(lag.batch);
	xspd_nl_free(lag.nl);
	xspd_closep(&lag.query);
	free(lag.us);
	return err;
}
