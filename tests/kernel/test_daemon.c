// SPDX-License-Identifier: GPL-2.0-only
/* The daemon's loop: in step with the kernel, and back in step after whatever went wrong. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <string.h>

#include "daemon/daemon.h"
#include "lib/netns.h"
#include "lib/request.h"
#include "util.h"

static struct xspd_daemon *d;
static struct xspd_nl *nl;
static struct xspd_batch *batch;

static void setup(int rcvbuf)
{
	struct xspd_daemon_opts opts = {.rcvbuf = rcvbuf, .plane.capacity = 64};

	cr_assert_eq(netns_enter(), 0);
	cr_assert_eq(xspd_nl_open(&nl, 0, 1 << 20), 0);
	cr_assert_eq(xspd_batch_new(&batch, nl, NULL, NULL), 0);
	cr_assert_eq(xspd_daemon_new(&d, &opts), 0);
}

static void teardown(void)
{
	xspd_daemon_free(d);
	xspd_batch_free(batch);
	xspd_nl_free(nl);
}

/* A tunnel to 10.128.0.0 + n. */
static struct xspd_pol tunnel(uint32_t n)
{
	struct xspd_pol pol = {.dir = XSPD_OUT, .priority = 10};

	pol.sel.family = AF_INET;
	pol.sel.daddr.a4 = htonl(0x0a800000 + n);
	pol.sel.prefixlen_d = 32;
	pol.tmpl = (struct xspd_tmpl){.reqid = n + 1,
				      .family = AF_INET,
				      .proto = IPPROTO_ESP,
				      .mode = XFRM_MODE_TUNNEL,
				      .count = 1,
				      .required = 1};
	pol.tmpl.saddr[0] = htonl(0xc0000201);
	pol.tmpl.daddr[0] = htonl(0xc0000202);
	return pol;
}

static void tunnels(uint32_t from, uint32_t to, uint16_t type)
{
	for (uint32_t n = from; n < to; n++) {
		struct xspd_pol pol = tunnel(n);

		request_put(batch, &pol, type);
	}
	cr_assert_eq(xspd_batch_flush(batch), 0);
}

/* The verdict for a packet to 10.128.0.0 + n. */
static enum xspd_verdict verdict(uint32_t n, enum xspd_reason *ret_reason)
{
	struct xspd_flow flow = {.family = XSPD_INET, .dir = XSPD_OUT, .proto = IPPROTO_UDP};
	struct xspd_answer answer = {};

	flow.daddr[0] = htonl(0x0a800000 + n);
	cr_assert_eq(xspd_plane_query(d->plane, &flow, &answer), 0);
	if (ret_reason)
		*ret_reason = answer.reason;
	return answer.verdict;
}

/* Turn until there is no doubt, for at most ten seconds; false if it never ends. */
static bool settle(void)
{
	uint64_t end = xspd_now(CLOCK_MONOTONIC) + 10000000000ull;

	do
		cr_assert_eq(xspd_daemon_turn(d, 20, -1), 0);
	while ((xspd_plane_conf(d->plane)->doubt || d->dump_at || d->reread_at || d->rebuild_at ||
		d->beat_at <= xspd_now(CLOCK_MONOTONIC)) &&
	       xspd_now(CLOCK_MONOTONIC) < end);
	return !xspd_plane_conf(d->plane)->doubt;
}

Test(daemon, follows_events)
{
	setup(0);
	tunnels(0, 1000, XFRM_MSG_NEWPOLICY); /* the plane has room for 64 */
	cr_assert(settle());
	cr_expect_eq(xspd_plane_conf(d->plane)->policies, 1000);
	cr_expect_eq(verdict(999, NULL), XSPD_PROTECT);
	cr_expect_eq(verdict(1000, NULL), XSPD_PLAIN);
	tunnels(500, 1000, XFRM_MSG_DELPOLICY);
	cr_assert(settle());
	cr_expect_eq(verdict(499, NULL), XSPD_PROTECT);
	cr_expect_eq(verdict(500, NULL), XSPD_PLAIN);
	cr_expect_eq(d->stats.lost, 0);
	cr_expect_eq(d->stats.dumps, 1);
	teardown();
}

/* More changes at once than the queue holds: some are lost, none of it may show. */
static void lose_events(uint32_t count)
{
	enum xspd_reason reason;

	setup(4096);
	tunnels(0, 20, XFRM_MSG_NEWPOLICY);
	cr_assert(settle());
	tunnels(20, 20 + count, XFRM_MSG_NEWPOLICY);
	tunnels(0, 20, XFRM_MSG_DELPOLICY);
	cr_assert_lt(xspd_daemon_drain(d), 0, "the queue held it all: lose more");
	cr_expect_eq(verdict(0, &reason), XSPD_DEFER);
	cr_expect_eq(reason, XSPD_R_DOUBT);
	cr_expect(xspd_plane_conf(d->plane)->doubt & XSPD_DOUBT_LOST_EVENTS);
	cr_assert(settle());
	cr_expect_geq(d->stats.lost, 1);
	cr_expect_gt(d->stats.repaired_add, 0);
	cr_expect_eq(xspd_plane_conf(d->plane)->policies, count);
	cr_expect_eq(verdict(0, NULL), XSPD_PLAIN);
	cr_expect_eq(verdict(20, NULL), XSPD_PROTECT);
	cr_expect_eq(verdict(19 + count, NULL), XSPD_PROTECT);
	cr_expect_eq(xspd_plane_conf(d->plane)->doubt_since, 0);
	teardown();
}

Test(daemon, lost_events_are_patched)
{
	lose_events(500);
}

Test(daemon, many_lost_events_are_built_anew)
{
	lose_events(6000);
}

/* There are ways to lose a policy without an event (a device with offload that goes). */
Test(daemon, counts_that_differ_are_noticed)
{
	struct xspd_pol *any;

	setup(0);
	tunnels(0, 10, XFRM_MSG_NEWPOLICY);
	cr_assert(settle());
	any = d->spd->by_index;
	cr_assert_eq(xspd_spd_remove(d->spd, any->index), 0);
	xspd_daemon_check(d);
	cr_expect_eq(xspd_plane_conf(d->plane)->doubt, 0, "once may be a lagging event");
	cr_expect(d->mismatch);
	xspd_daemon_check(d);
	cr_expect_eq(xspd_plane_conf(d->plane)->doubt, XSPD_DOUBT_COUNT_MISMATCH);
	cr_assert(settle());
	cr_expect_eq(d->stats.repaired_add, 1);
	for (uint32_t n = 0; n < 10; n++)
		cr_expect_eq(verdict(n, NULL), XSPD_PROTECT, "tunnel %u", n);
	teardown();
}

Test(daemon, migrate_rereads_templates_without_doubt)
{
	struct xspd_pol pol = tunnel(3);
	const struct xspd_pol *mine;
	uint32_t seq;
	void *room;

	setup(0);
	tunnels(0, 10, XFRM_MSG_NEWPOLICY);
	cr_assert(settle());
	room = xspd_batch_room(batch, &seq);
	xspd_batch_commit(batch, request_migrate(room, &pol, 0xc0000299, seq));
	cr_assert_eq(xspd_batch_flush(batch), 0);
	cr_assert_gt(xspd_daemon_drain(d), 0);
	cr_expect_gt(d->reread_at, 0);
	cr_expect_eq(verdict(3, NULL), XSPD_PROTECT, "no verdict hangs on it");
	cr_assert(settle());
	for (mine = d->spd->by_index; mine && mine->tmpl.reqid != 4; mine = mine->hh.next)
		;
	cr_assert_not_null(mine);
	cr_expect_eq(mine->tmpl.daddr[0], htonl(0xc0000299));
	cr_expect_eq(d->stats.doubts, 1, "only that of the start");
	cr_expect_eq(d->stats.repaired_mod, 0, "nothing was wrong");
	cr_expect_eq(d->stats.dumps, 2);
	teardown();
}

/* While the plane is out of order, changes go to the mirror only; the build has them all. */
Test(daemon, a_plane_that_failed_is_built_anew)
{
	setup(0);
	tunnels(0, 10, XFRM_MSG_NEWPOLICY);
	cr_assert(settle());
	d->rebuild = true;
	xspd_daemon_doubt(d, XSPD_DOUBT_GROWING, 0);
	tunnels(10, 20, XFRM_MSG_NEWPOLICY);
	tunnels(0, 5, XFRM_MSG_DELPOLICY);
	cr_assert_gt(xspd_daemon_drain(d), 0);
	cr_expect_eq(verdict(15, NULL), XSPD_DEFER);
	xspd_daemon_rebuild(d);
	cr_assert(settle());
	cr_expect_eq(verdict(4, NULL), XSPD_PLAIN);
	cr_expect_eq(verdict(5, NULL), XSPD_PROTECT);
	cr_expect_eq(verdict(15, NULL), XSPD_PROTECT);
	teardown();
}

/*
 * The kernel sorts its lists anew then, some time.  When is not known: what an update in place has
 * left uncertain stays so.
 */
Test(daemon, changed_thresholds_are_noticed_and_no_tie_is_lifted)
{
	struct xspd_pol pol = tunnel(0), wide = tunnel(0);
	enum xspd_reason reason;

	setup(0);
	wide.sel.prefixlen_d = 16;
	request_put(batch, &pol, XFRM_MSG_NEWPOLICY);
	request_put(batch, &wide, XFRM_MSG_NEWPOLICY);
	request_put(batch, &pol, XFRM_MSG_UPDPOLICY);
	cr_assert_eq(xspd_batch_flush(batch), 0);
	cr_assert(settle());
	xspd_daemon_check(d);
	cr_expect_eq(d->stats.threshold_changes, 0);
	cr_expect_eq(verdict(0, &reason), XSPD_DEFER);
	cr_expect_eq(reason, XSPD_R_TIE);
	cr_assert_eq(netns_run("ip xfrm policy set hthresh4 24 24"), 0);
	xspd_daemon_check(d);
	cr_expect_eq(d->stats.threshold_changes, 1);
	cr_expect_eq(verdict(0, &reason), XSPD_DEFER);
	cr_expect_eq(reason, XSPD_R_TIE);
	xspd_daemon_check(d);
	cr_expect_eq(d->stats.threshold_changes, 1);
	teardown();
}

/* What is still queued after a long pause must not be answered around: no lease before it is in. */
Test(daemon, a_lease_is_not_renewed_over_a_backlog)
{
	struct xspd_daemon_opts opts = {.plane = {.lease_ms = 3000}};
	uint64_t until;

	cr_assert_eq(netns_enter(), 0);
	cr_assert_eq(xspd_nl_open(&nl, 0, 1 << 20), 0);
	cr_assert_eq(xspd_batch_new(&batch, nl, NULL, NULL), 0);
	cr_assert_eq(xspd_daemon_new(&d, &opts), 0);
	until = xspd_plane_conf(d->plane)->lease_until;
	xspd_daemon_beat(d);
	cr_expect_eq(xspd_plane_conf(d->plane)->lease_until, until, "nothing was looked at");
	tunnels(0, 20000, XFRM_MSG_NEWPOLICY);
	until = d->fresh_at;
	cr_assert_gt(xspd_daemon_drain(d), 16000);
	cr_expect_eq(d->fresh_at, until, "there is more");
	cr_assert_gt(xspd_daemon_drain(d), 0);
	cr_expect_gt(d->fresh_at, until);
	teardown();
}

/* The lease is renewed by turning, and by nothing else. */
Test(daemon, a_daemon_that_does_not_turn_is_not_believed)
{
	struct timespec pause = {.tv_nsec = 300000000};
	struct xspd_daemon_opts opts = {.plane.lease_ms = 150};
	enum xspd_reason reason;

	cr_assert_eq(netns_enter(), 0);
	cr_assert_eq(xspd_daemon_new(&d, &opts), 0);
	nanosleep(&pause, NULL);
	cr_expect_eq(verdict(0, &reason), XSPD_DEFER);
	cr_expect_eq(reason, XSPD_R_LEASE);
	cr_assert_eq(xspd_daemon_turn(d, 0, -1), 0);
	cr_expect_eq(verdict(0, NULL), XSPD_PLAIN);
	xspd_daemon_free(d);
}
