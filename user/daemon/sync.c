// SPDX-License-Identifier: GPL-2.0-only
/* Mirror and plane in step with the kernel, and what to do when they are not. */
#include <errno.h>
#include <string.h>

#include "daemon/daemon.h"
#include "daemon/log.h"
#include "util.h"

#define MS	     1000000ull
#define BACKOFF_MIN  (50 * MS)
#define BACKOFF_MAX  (5000 * MS)
#define CALM	     (10000 * MS) /* without trouble, and it is forgotten */
#define REREAD_DELAY (200 * MS)	  /* MIGRATE messages come in swarms */
#define DUMP_SHARE   10		  /* dumps take one part of so many, at most */
#define LOADING	     (2 * MS)	  /* between looks at whether a set is loaded */
#define DRAIN_BATCH  256
#define DRAIN_MOST   64	  /* batches a turn, so that the rest gets its turn too */
#define DUMP_STRIDE  1024 /* entries between two looks at the events */
#define CHANGES_MOST 4096 /* more differences than this: build anew, do not patch */

void xspd_daemon_publish(struct xspd_daemon *d)
{
	struct xspd_conf *conf = xspd_plane_conf(d->plane);

	if (conf->doubt && !d->stats.doubt_since) {
		d->stats.doubt_since = xspd_now(CLOCK_REALTIME);
		d->stats.doubts++;
	} else if (!conf->doubt) {
		d->stats.doubt_since = 0;
	}
	conf->pid = (uint32_t)getpid();
	conf->netns_ino = d->netns_ino;
	conf->started = d->stats.started;
	conf->doubt_since = d->stats.doubt_since;
	conf->doubts = d->stats.doubts;
	conf->events = d->stats.events;
	conf->lost = d->stats.lost;
	conf->dumps = d->stats.dumps;
	if (!d->rebuild) /* else the tables hold others */
		conf->policies = (uint32_t)HASH_COUNT(d->spd->by_index);
	conf->ties = d->spd->ties;
	conf->unmodelled = d->spd->unmodelled;
	conf->repaired_add = d->stats.repaired_add;
	conf->repaired_del = d->stats.repaired_del;
	conf->repaired_mod = d->stats.repaired_mod;
	conf->last_repair = d->stats.last_repair;
	conf->last_add = d->stats.last.added;
	conf->last_del = d->stats.last.removed;
	conf->last_mod = d->stats.last.modified;
	conf->threshold_changes = d->stats.threshold_changes;
	memcpy(conf->doubt_times, d->stats.doubt_times, sizeof(conf->doubt_times));
	xspd_watch_publish(&d->watch, conf);
}

static void count_raised(struct xspd_daemon *d, uint32_t raised)
{
	for (size_t bit = 0; bit < XSPD_ARRAY_SIZE(d->stats.doubt_times); bit++)
		d->stats.doubt_times[bit] += raised >> bit & 1;
}

void xspd_daemon_doubt(struct xspd_daemon *d, uint32_t set, uint32_t clear)
{
	count_raised(d, set & ~xspd_plane_conf(d->plane)->doubt);
	xspd_plane_doubt(d->plane, set, clear);
	xspd_daemon_publish(d);
}

/*
 * The lease runs from when the mirror was last seen to be in step, not from now: a daemon that
 * was stopped must not answer for what is still queued.
 */
void xspd_daemon_beat(struct xspd_daemon *d)
{
	xspd_plane_lease(d->plane, d->fresh_at);
	d->beat_at = d->fresh_at + d->beat_every;
}

/* At once the first time, then ever later while trouble goes on; @most: but no later than that. */
static uint64_t backed_off(struct xspd_daemon *d, uint64_t most)
{
	uint64_t now = xspd_mono(), at;

	if (now >= d->calm_at)
		d->backoff = 0;
	at = now + d->backoff;
	d->backoff = d->backoff ? d->backoff * 2 : BACKOFF_MIN;
	if (d->backoff > most)
		d->backoff = most;
	d->calm_at = at + CALM;
	return at ? at : 1;
}

void xspd_daemon_rebuild_later(struct xspd_daemon *d, int err)
{
	if (err == -EAGAIN) { /* a larger set is being loaded: the mirror goes on meanwhile */
		d->rebuild = true;
		d->rebuild_at = xspd_mono() + LOADING;
		xspd_daemon_doubt(d, XSPD_DOUBT_GROWING, 0);
		return;
	}
	xspd_log("plane: %s: deferring to the kernel until it is built anew", strerror(-err));
	d->rebuild = true;
	d->rebuild_at = backed_off(d, BACKOFF_MAX);
	xspd_daemon_doubt(d, XSPD_DOUBT_GROWING, 0);
}

static void change_publish(struct xspd_daemon *d, const struct xspd_change *change)
{
	int err;

	if (d->rebuild) {
		xspd_plane_skip(d->plane, d->spd, change);
		return; /* the build takes it from the mirror */
	}
	if (d->patching && d->changes++ > CHANGES_MOST) {
		d->rebuild = true;
		xspd_daemon_doubt(d, XSPD_DOUBT_DUMPING, 0);
		return;
	}
	if (change->old || change->kind == XSPD_CHANGE_FLUSH)
		xspd_daemon_linger(d);
	err = xspd_plane_change(d->plane, d->spd, change);
	if (err < 0)
		xspd_daemon_rebuild_later(d, err);
}

int xspd_daemon_changed(void *ctx, const struct xspd_change *change)
{
	struct xspd_daemon *d = ctx;

	change_publish(d, change);
	/* what is being removed is told of after that */
	xspd_watch_change(&d->watch, d->spd, change);
	return 0; /* the mirror is right, whatever became of the plane */
}

void xspd_daemon_rebuild(struct xspd_daemon *d)
{
	int err = xspd_plane_build(d->plane, d->spd);

	if (err < 0) {
		xspd_daemon_rebuild_later(d, err);
		return;
	}
	d->ready = true;
	d->rebuild = false;
	d->rebuild_at = 0;
	xspd_daemon_doubt(d, 0, XSPD_DOUBT_GROWING | XSPD_DOUBT_START);
}

/*
 * Nothing is answered until it is done: however often events are lost, it is put off only for as
 * long as keeps the dumps to a tenth of the time.
 */
void xspd_daemon_want_dump(struct xspd_daemon *d)
{
	uint64_t most = d->dump_ns * (DUMP_SHARE - 1);

	most = most < BACKOFF_MIN ? BACKOFF_MIN : most;
	d->dump_at = backed_off(d, most < BACKOFF_MAX ? most : BACKOFF_MAX);
	d->reread_at = 0; /* it comes along */
}

void xspd_daemon_lost(struct xspd_daemon *d, const char *why)
{
	xspd_daemon_doubt(d, XSPD_DOUBT_LOST_EVENTS, 0);
	d->stats.lost++;
	xspd_watch_note(&d->watch, XSPD_C_LOST, 0);
	/* now, not when the request is sent: what comes from here on is suspect */
	xspd_spd_dump_begin(d->spd);
	if (d->dump_at) /* each loss would put it off for longer */
		return;
	xspd_daemon_want_dump(d);
	xspd_log("events: %s: reading all policies again", why);
}

static int apply_defaults(struct xspd_daemon *d, const struct xspd_event *event)
{
	uint32_t known = event->defaults_known;

	return xspd_spd_set_defaults(d->spd,
				     (d->spd->defaults & ~known) | (event->defaults & known));
}

/* Not a failure, but not understood either: only the kernel knows what it did. */
static void unmodelled(struct xspd_daemon *d, const struct xspd_event *event)
{
	xspd_daemon_doubt(d, XSPD_DOUBT_UNMODELLED, 0);
	if (!d->dump_at)
		xspd_daemon_want_dump(d);
	xspd_log("events: message type %u is not understood: reading all policies again",
		 event->nlmsg_type);
}

static int apply(void *ctx, const struct xspd_event *event)
{
	struct xspd_daemon *d = ctx;
	int err = 0;

	if (event->kind != XSPD_EVENT_NONE)
		d->stats.events++;
	d->watch.event = event;
	switch (event->kind) {
	case XSPD_EVENT_POLICY:
		err = xspd_spd_upsert(d->spd, &event->pol);
		break;
	case XSPD_EVENT_REMOVE:
		err = xspd_spd_remove(d->spd, event->pol.index);
		break;
	case XSPD_EVENT_FLUSH:
		err = xspd_spd_flush(d->spd, event->type);
		break;
	case XSPD_EVENT_DEFAULTS:
		err = apply_defaults(d, event);
		break;
	case XSPD_EVENT_MIGRATE:
		if (!d->dump_at && !d->reread_at)
			d->reread_at = xspd_mono() + REREAD_DELAY + 10 * d->dump_ns;
		break;
	case XSPD_EVENT_UNMODELLED:
		unmodelled(d, event);
		break;
	default:
		break;
	}
	d->watch.event = NULL;
	return err;
}

int xspd_daemon_drain(struct xspd_daemon *d)
{
	int n, total = 0;

	for (int i = 0; i < DRAIN_MOST; i++) {
		uint64_t start = xspd_mono();

		n = xspd_nl_recv(d->events, DRAIN_BATCH, apply, d);
		if (n < 0) {
			xspd_daemon_lost(d, strerror(-n));
			return n;
		}
		total += n;
		if (n < DRAIN_BATCH) {
			d->fresh_at = start;
			break;
		}
	}
	return total;
}

int xspd_daemon_drain_dry(struct xspd_daemon *d)
{
	int n;

	for (int i = 0; i < DRAIN_MOST; i++) {
		n = xspd_daemon_drain(d);
		if (n <= 0)
			return n;
	}
	return -EBUSY;
}

struct dump {
	struct xspd_daemon *d;
	uint32_t entries;
};

static int dump_entry(void *ctx, const struct xspd_event *event)
{
	struct dump *dump = ctx;
	struct xspd_daemon *d = dump->d;
	int err;

	if (event->kind == XSPD_EVENT_UNMODELLED)
		return -EBADMSG;
	if (event->kind != XSPD_EVENT_POLICY)
		return 0;
	err = xspd_spd_dump_entry(d->spd, &event->pol);
	if (err < 0 || ++dump->entries % DUMP_STRIDE)
		return err;
	/* they must not overflow their queue while a large dump is read */
	err = xspd_daemon_drain(d);
	if (xspd_mono() >= d->beat_at)
		xspd_daemon_beat(d);
	return err < 0 ? err : 0;
}

/*
 * Read everything, then a request that the kernel answers under the lock of
 * the changes: once it is answered, the events of all earlier ones are queued.
 */
static int read_all(struct xspd_daemon *d)
{
	struct dump dump = {.d = d};
	struct xspd_spdinfo info;
	uint32_t defaults;
	int err = xspd_nl_dump(d->requests, dump_entry, &dump);

	if (!err)
		err = xspd_nl_spdinfo(d->requests, &info);
	if (!err)
		err = xspd_daemon_drain_dry(d);
	if (!err)
		err = xspd_nl_defaults(d->requests, &defaults);
	if (!err)
		err = xspd_spd_set_defaults(d->spd, defaults);
	return err;
}

static void note_repairs(struct xspd_daemon *d, const struct xspd_spd_diff *diff, bool quiet)
{
	if (!d->ready)
		return;
	if (quiet && !(diff->added | diff->removed))
		return; /* changed templates are what it was for */
	d->stats.repaired_add += diff->added;
	d->stats.repaired_del += diff->removed;
	d->stats.repaired_mod += diff->modified;
	if (!(diff->added | diff->removed | diff->modified))
		return;
	d->stats.last_repair = xspd_now(CLOCK_REALTIME);
	d->stats.last = *diff;
	xspd_log("dump: put right: %u added, %u removed, %u changed", diff->added, diff->removed,
		 diff->modified);
}

/* What is left of a dump that was given up would be in the way of the next. */
static void reopen(struct xspd_daemon *d)
{
	struct xspd_nl *fresh;

	if (xspd_nl_open(&fresh, 0, 1 << 20) < 0)
		return;
	xspd_nl_free(d->requests);
	d->requests = fresh;
}

static void dump_failed(struct xspd_daemon *d, int err)
{
	xspd_daemon_doubt(d, XSPD_DOUBT_LOST_EVENTS, XSPD_DOUBT_DUMPING);
	reopen(d);
	if (d->dump_at)
		return; /* events were lost: told, and arranged for */
	if (err == -EPERM && !d->ready)
		return; /* the start fails, and says why */
	xspd_spd_dump_begin(d->spd);
	xspd_daemon_want_dump(d);
	xspd_log("dump: %s: trying again", strerror(-err));
}

static int dump_and_patch(struct xspd_daemon *d, bool quiet)
{
	struct xspd_spd_diff diff = {};
	int err = xspd_daemon_drain_dry(d); /* so that fewer events come in between */

	if (err < 0)
		return err;
	if (!d->spd->dumping)
		xspd_spd_dump_begin(d->spd);
	err = read_all(d);
	if (err < 0)
		return err;
	d->changes = 0;
	d->patching = d->watch.reread = true;
	err = xspd_spd_dump_end(d->spd, &diff);
	d->patching = d->watch.reread = false;
	if (!err)
		note_repairs(d, &diff, quiet);
	return err;
}

int xspd_daemon_dump(struct xspd_daemon *d)
{
	/* changed templates leave every verdict as it is; else answers wait for the end */
	bool quiet = !d->dump_at && d->ready;
	uint64_t start = xspd_mono();
	int err;

	d->dump_at = d->reread_at = 0;
	if (!quiet)
		xspd_daemon_doubt(d, XSPD_DOUBT_DUMPING, 0);
	err = dump_and_patch(d, quiet);
	if (err < 0) {
		dump_failed(d, err);
		return err;
	}
	d->stats.dumps++;
	d->dump_ns = xspd_mono() - start;
	d->check_at = xspd_mono() + XSPD_DAEMON_RECHECK;
	if (d->rebuild)
		xspd_daemon_rebuild(d);
	xspd_daemon_doubt(d, 0,
			  XSPD_DOUBT_DUMPING | XSPD_DOUBT_LOST_EVENTS | XSPD_DOUBT_UNMODELLED |
				  XSPD_DOUBT_COUNT_MISMATCH);
	return 0;
}
