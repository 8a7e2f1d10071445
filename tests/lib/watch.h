/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The running kernel's SPD and a mirror that follows it by events, for tests:
 * make changes, take in what the kernel says of them, compare with a fresh dump.
 */
#ifndef XSPD_TESTS_LIB_WATCH_H
#define XSPD_TESTS_LIB_WATCH_H

#include <linux/netlink.h>

#include "nl/nl.h"
#include "spd/spd.h"

struct watch {
	struct xspd_nl *events;
	struct xspd_nl *requests;
	struct xspd_batch *batch;
	struct xspd_spd *spd;
	int refused;	     /* errno of the last refused request, 0: none since watch_send() */
	uint32_t told[16];   /* events by enum xspd_event_kind */
	uint32_t dump_seq;   /* of the dump on the events socket */
	bool dump_done;	     /* its DONE was read */
	uint32_t in_between; /* notifications read between its begin and its DONE */
};

/* In the caller's namespace. @rcvbuf: of the events socket, 0 = 16 MiB. Dumps once. */
int watch_new(struct watch **ret, int rcvbuf);
void watch_free(struct watch *watch);

/* Room for a request; its header is there, as xspd_nl_put_*() leave it. */
void *watch_room(struct watch *watch, uint32_t *ret_seq);
/* Send one request: 0, or the errno of the kernel's refusal (positive). */
int watch_send(struct watch *watch, const struct nlmsghdr *nlh);

/* The requests themselves; as watch_send(). */
int watch_new_policy(struct watch *watch, const struct xspd_pol *pol);
int watch_update(struct watch *watch, const struct xspd_pol *pol);
int watch_delete(struct watch *watch, const struct xspd_pol *pol, bool by_index);
int watch_flush(struct watch *watch, uint8_t type);
int watch_expire(struct watch *watch, const struct xspd_pol *pol, bool hard);
int watch_set_default(struct watch *watch, uint8_t in, uint8_t fwd, uint8_t out);

/* Apply all events that are queued; 0 or a negative errno. */
int watch_drain(struct watch *watch);

/* Dump through the requests socket (no events in between). */
int watch_dump(struct watch *watch, struct xspd_spd_diff *ret);
/* Dump through the events socket, events in between applied as they come. */
int watch_dump_mixed(struct watch *watch, struct xspd_spd_diff *ret);

/*
 * Drain, then compare with what the kernel says now: every field of every
 * policy, their order, the counts, the defaults. NULL if equal, else what differs.
 */
const char *watch_compare(struct watch *watch);

#endif
