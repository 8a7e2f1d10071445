/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the daemon keeps for those who watch: the history of the SPD, packets that the programs
 * sampled, how far the mirror lags.  The histories are pinned maps that outlive the daemon.
 */
#ifndef XSPD_DAEMON_WATCH_H
#define XSPD_DAEMON_WATCH_H

#include "nl/nl.h"
#include "plane/plane.h"
#include "spd/spd.h"

struct ring_buffer;

struct xspd_watch {
	struct xspd_changed *change; /* NULL: there is none, and nothing is kept */
	struct xspd_sample *sample;
	uint64_t change_seq, sample_seq; /* the last one's */
	struct ring_buffer *ring;
	int ring_map;

	const struct xspd_event *event; /* being applied, NULL: none */
	bool reread;			/* what changes was found by a dump */

	/* deletions since @since (CLOCK_MONOTONIC, ns), of so many policies */
	uint64_t since;
	uint32_t deleted, of;
	bool alarmed;

	uint32_t defaults; /* before the next change of them */
	uint32_t comm_pid; /* whose name was looked up last */
	char comm[16];

	uint64_t changes[XSPD_C_MAX_];
	uint64_t samples, samples_missed;
	uint64_t lag_sum, lag_max, lag_count[XSPD_LAGS];
};

/* A daemon works without: 0, or a negative errno, and then nothing is kept. */
int xspd_watch_open(struct xspd_watch *watch, const struct xspd_plane *plane);
void xspd_watch_close(struct xspd_watch *watch);

/* The mirror has changed; it holds what is being flushed still. */
void xspd_watch_change(struct xspd_watch *watch, const struct xspd_spd *spd,
		       const struct xspd_change *change);
/* Something else worth keeping: XSPD_C_START, _LOST. */
void xspd_watch_note(struct xspd_watch *watch, enum xspd_change_what what, uint32_t count);

/* Readable when there are samples; -1: never. */
int xspd_watch_fd(const struct xspd_watch *watch);
void xspd_watch_samples(struct xspd_watch *watch);

/* Changes that were queued at @from at the earliest are published at @to. */
void xspd_watch_lag(struct xspd_watch *watch, uint64_t from, uint64_t to);
void xspd_watch_publish(const struct xspd_watch *watch, struct xspd_conf *conf);

#endif
