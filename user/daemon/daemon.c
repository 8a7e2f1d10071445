// SPDX-License-Identifier: GPL-2.0-only
/* The life of the daemon: birth, one turn of the loop, death. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/daemon.h"
#include "daemon/log.h"
#include "nl/netfilter.h"
#include "util.h"

#define MS	    1000000ull
#define CHECK_EVERY (5000 * MS)
#define BREATH	    200000ull	 /* ns between drains in a stream of changes */
#define STREAM	    (2 * BREATH) /* ns between drains that make a stream */
#define BEAT_EVERY  (1000 * MS)
#define AT_ONCE	    20000ull /* ns in poll(): it did not wait */

static int plane_open(struct xspd_daemon *d, const struct xspd_plane_opts *opts)
{
	struct xspd_plane_opts plane = *opts;

	plane.later = true; /* there are events to read and leases to renew meanwhile */
	return xspd_plane_new(&d->plane, &plane);
}

static int open_all(struct xspd_daemon *d, const struct xspd_daemon_opts *opts)
{
	struct stat st;
	int err;

	if (stat("/proc/thread-self/ns/net", &st) < 0)
		return -errno;
	d->netns_ino = st.st_ino;
	d->spd = xspd_spd_new();
	if (!d->spd)
		return -ENOMEM;
	d->spd->old_order = !xspd_kernel_since(6, 12);
	/* membership before the dump: a change is in the dump or an event, never in neither */
	err = xspd_nl_open(&d->events, XSPD_NL_GROUPS,
			   opts->rcvbuf ? opts->rcvbuf : XSPD_DAEMON_RCVBUF);
	if (!err)
		err = xspd_nl_open(&d->requests, 0, 1 << 20);
	if (!err)
		err = plane_open(d, &opts->plane);
	return err;
}

/*
 * What a former daemon has left stays in service, answering DEFER, until there is a set to replace
 * it: if the dump fails, that is when a later one has succeeded.
 */
static int first_build(struct xspd_daemon *d)
{
	int err;

	xspd_daemon_doubt(d, XSPD_DOUBT_START, 0);
	err = xspd_daemon_dump(d);
	if (err == -EPERM)
		return err; /* trying again will not help */
	if (err) {
		d->rebuild = true;
		return 0;
	}
	err = xspd_plane_build(d->plane, d->spd);
	if (err)
		return err;
	d->ready = true;
	xspd_daemon_doubt(d, 0, XSPD_DOUBT_START);
	return 0;
}

int xspd_daemon_new(struct xspd_daemon **ret, const struct xspd_daemon_opts *opts)
{
	uint64_t lease = (opts->plane.lease_ms ? opts->plane.lease_ms : 3000) * MS;
	struct xspd_daemon *d = calloc(1, sizeof(*d));
	int err;

	if (!d)
		return -ENOMEM;
	d->stats.started = xspd_now(CLOCK_REALTIME);
	d->netfilter = -1;
	d->routes = -1;
	d->watch.ring_map = -1;
	d->beat_every = lease / 3 < BEAT_EVERY ? lease / 3 : BEAT_EVERY;
	err = open_all(d, opts);
	if (!err)
		err = xspd_daemon_look(d); /* nothing is answered before */
	if (!err)
		err = first_build(d);
	if (err) {
		xspd_daemon_free(d);
		return err;
	}
	err = xspd_watch_open(&d->watch, d->plane);
	if (err)
		xspd_log("history: %s: none is kept", strerror(-err));
	d->watch.defaults = d->spd->defaults;
	xspd_watch_note(&d->watch, XSPD_C_START, HASH_COUNT(d->spd->by_index));
	d->spd->listener = xspd_daemon_changed;
	d->spd->ctx = d;
	d->check_at = xspd_mono() + CHECK_EVERY;
	xspd_daemon_beat(d);
	xspd_daemon_publish(d);
	*ret = d;
	return 0;
}

void xspd_daemon_free(struct xspd_daemon *d)
{
	if (!d)
		return;
	if (d->plane)
		xspd_daemon_publish(d);
	xspd_watch_close(&d->watch);
	xspd_plane_free(d->plane);
	xspd_spd_free(d->spd);
	xspd_nl_free(d->requests);
	xspd_nl_free(d->events);
	xspd_closep(&d->netfilter);
	xspd_closep(&d->routes);
	free(d);
}

/* Time until the first of the deadlines, rounded up: waking early would be waking twice. */
static int wait_ms(const struct xspd_daemon *d, int timeout_ms)
{
	const uint64_t at[] = {d->beat_at,   d->env_at,	    d->check_at, d->dump_at,
			       d->reread_at, d->rebuild_at, d->gone_at,	 d->settle_at};
	uint64_t now = xspd_mono();

	for (size_t i = 0; i < XSPD_ARRAY_SIZE(at); i++) {
		uint64_t left = at[i] > now ? (at[i] - now + MS - 1) / MS : 0;

		if (at[i] && (timeout_ms < 0 || left < (uint64_t)timeout_ms))
			timeout_ms = (int)left;
	}
	return timeout_ms;
}

static bool due(uint64_t at)
{
	return at && xspd_mono() >= at;
}

static void do_due(struct xspd_daemon *d)
{
	if (due(d->env_at))
		xspd_daemon_look(d);
	if (due(d->beat_at))
		xspd_daemon_beat(d);
	if (due(d->dump_at) || (!d->dump_at && due(d->reread_at)))
		xspd_daemon_dump(d);
	if (due(d->rebuild_at))
		xspd_daemon_rebuild(d);
	if (due(d->check_at)) {
		d->check_at = xspd_mono() + CHECK_EVERY;
		xspd_daemon_check(d);
	}
}

/*
 * In a stream of changes each wake-up costs the one who makes them more than the change costs
 * us: let some gather.  A change that comes alone is not kept waiting.
 */
static void breathe(struct xspd_daemon *d, int drained)
{
	uint64_t before = d->drained_at;

	d->drained_at = xspd_mono();
	if (drained > 0)
		xspd_watch_lag(&d->watch, d->woken_at, d->drained_at);
	if (drained > 0 && d->drained_at - before < STREAM)
		nanosleep(&(struct timespec){.tv_nsec = BREATH}, NULL);
}

int xspd_daemon_turn(struct xspd_daemon *d, int timeout_ms, int wake_fd)
{
	struct pollfd fds[5] = {{.fd = xspd_nl_fd(d->events), .events = POLLIN},
				{.fd = wake_fd, .events = POLLIN},
				{.fd = d->netfilter, .events = POLLIN},
				{.fd = d->routes, .events = POLLIN},
				{.fd = xspd_watch_fd(&d->watch), .events = POLLIN}};
	uint64_t before = xspd_mono();

	if (poll(fds, 5, wait_ms(d, timeout_ms)) < 0)
		return errno == EINTR ? 0 : -errno;
	d->woken_at = xspd_mono();
	if (d->woken_at - before < AT_ONCE)
		d->woken_at = before; /* they have been waiting for us */
	if (fds[2].revents)
		xspd_daemon_look(d);
	else if (fds[3].revents)
		xspd_daemon_routes(d);
	if (fds[0].revents || due(d->beat_at))
		breathe(d, xspd_daemon_drain(d));
	if (fds[4].revents)
		xspd_watch_samples(&d->watch);
	do_due(d);
	d->gone_at = xspd_plane_gone(d->plane);
	d->settle_at = xspd_plane_settle(d->plane);
	xspd_daemon_publish(d);
	return fds[1].revents ? 1 : 0;
}
