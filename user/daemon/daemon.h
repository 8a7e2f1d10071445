/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keeps a mirror of the SPD of the calling thread's network namespace, and the
 * plane in step with it: subscribe, dump, then events; re-dump on any doubt.
 */
#ifndef XSPD_DAEMON_DAEMON_H
#define XSPD_DAEMON_DAEMON_H

#include "daemon/watch.h"
#include "nl/nl.h"
#include "plane/plane.h"
#include "spd/spd.h"

#define XSPD_DAEMON_RCVBUF  (64 << 20)
#define XSPD_DAEMON_RECHECK 100000000ull /* ns until counts that differ are compared again */

struct xspd_daemon_opts {
	struct xspd_plane_opts plane;
	int rcvbuf; /* of the event socket; 0: XSPD_DAEMON_RCVBUF */
};

/* Statistics for xspd_conf; kept here since the record is replaced by a swap. */
struct xspd_daemon_stats {
	uint64_t started, doubt_since;
	uint64_t doubts, events, lost, dumps;
	uint64_t repaired_add, repaired_del, repaired_mod;
	uint64_t last_repair; /* CLOCK_REALTIME, ns */
	struct xspd_spd_diff last;
	uint32_t threshold_changes;
	uint32_t doubt_times[XSPD_DOUBT_BITS]; /* by bit number */
};

/* All times are CLOCK_MONOTONIC, ns; 0: not due. */
struct xspd_daemon {
	struct xspd_nl *events;
	struct xspd_nl *requests;
	struct xspd_spd *spd;
	struct xspd_plane *plane;
	struct xspd_daemon_stats stats;
	struct xspd_watch watch;
	uint64_t netns_ino;

	int netfilter; /* readable when nf_tables have changed, -1 */
	int routes;    /* told of changes of routes, -1 */
	bool routes_known;
	bool steer;	 /* a device is in mode steer */
	bool steer_told; /* ... and that it cannot be */
	uint32_t env;	 /* enum xspd_env, as last told to the plane */
	uint32_t linger; /* seconds, as last told to the plane */
	uint64_t linger_read;

	uint64_t beat_every;
	uint64_t beat_at;
	uint64_t fresh_at; /* the last time that no event was queued */
	uint64_t drained_at;
	uint64_t woken_at;   /* by what is being drained, or when it was found */
	uint64_t env_at;     /* look at netfilter and sysctls */
	uint64_t check_at;   /* compare counts with the kernel's */
	uint64_t gone_at;    /* a lingering policy's time is over */
	uint64_t settle_at;  /* what was counted during an update can be added up */
	uint64_t dump_at;    /* a re-dump is wanted */
	uint64_t reread_at;  /* a dump for changed templates only: no doubt about the rest */
	uint64_t rebuild_at; /* the plane failed: build it anew from the mirror */
	uint64_t backoff;    /* of the next dump or rebuild */
	uint64_t calm_at;    /* when back-off starts from nothing again */
	uint64_t dump_ns;    /* what the last dump took */
	uint32_t changes;    /* published while patching */
	bool patching;	     /* the differences of a dump are being published */
	bool ready;	     /* the first build is done */
	bool rebuild;	     /* publish nothing, a build is due */
	bool mismatch;	     /* the counts differed at the last look */
	bool thresholds_known;
	struct xspd_spdinfo thresholds; /* as last read: the prefix lengths only */
};

/**
 * xspd_daemon_new() - Open the sockets, load the plane, take the first dump and publish it.
 * Return: 0 with *ret, to be freed with xspd_daemon_free(), or a negative errno.
 */
int xspd_daemon_new(struct xspd_daemon **ret, const struct xspd_daemon_opts *opts);
/* Pins and hooks stay, and answer DEFER. */
void xspd_daemon_free(struct xspd_daemon *d);

/**
 * xspd_daemon_turn() - Wait for events, at most @timeout_ms (-1: no limit of the caller's), and do
 * what is due.
 * @wake_fd: returns early when it becomes readable; -1: none.
 *
 * Troubles end in doubt and a later attempt, not in an error.
 * Return: 1 if @wake_fd is readable, else 0, or a negative errno of poll().
 */
int xspd_daemon_turn(struct xspd_daemon *d, int timeout_ms, int wake_fd);

/* daemon/sync.c: bring mirror and plane in step; troubles are noted in @d. */
void xspd_daemon_lost(struct xspd_daemon *d, const char *why);
/* 0, or a negative errno, and then another is due. */
int xspd_daemon_dump(struct xspd_daemon *d);
void xspd_daemon_rebuild(struct xspd_daemon *d);
/* The plane failed with @err: on DEFER until it has been built anew. */
void xspd_daemon_rebuild_later(struct xspd_daemon *d, int err);
/* Soon; later and later while there is trouble. */
void xspd_daemon_want_dump(struct xspd_daemon *d);
/*
 * Ask the kernel for its counts, and its thresholds.  Counts that differ twice are doubt.  Changed
 * thresholds (xfrm's hthresh) are noted and nothing more: see check.c.
 */
void xspd_daemon_check(struct xspd_daemon *d);
/* Apply what is queued. Return: messages read, or a negative errno after xspd_daemon_lost(). */
int xspd_daemon_drain(struct xspd_daemon *d);
/* All of it; a source that is faster than we are counts as a loss. */
int xspd_daemon_drain_dry(struct xspd_daemon *d);
void xspd_daemon_doubt(struct xspd_daemon *d, uint32_t set, uint32_t clear);
void xspd_daemon_beat(struct xspd_daemon *d);
/* Copy the statistics into the live record. */
void xspd_daemon_publish(struct xspd_daemon *d);

/* The mirror's listener: publishes a change, or notes that a build is due. */
int xspd_daemon_changed(void *ctx, const struct xspd_change *change);

/* daemon/surroundings.c: tell the plane of netfilter and sysctls, and forget modes of devices gone.
 */
int xspd_daemon_look(struct xspd_daemon *d);	/* -ENOMEM at the start, else 0 */
void xspd_daemon_linger(struct xspd_daemon *d); /* for how long deleted policies are to stay */
void xspd_daemon_routes(struct xspd_daemon *d); /* tell it of the MTUs of routes */

#endif
