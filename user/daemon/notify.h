/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tells a service manager how the daemon fares, as sd_notify(3) describes: datagrams to the socket
 * that $NOTIFY_SOCKET names.  The protocol is spoken here, as that page suggests, since libsystemd
 * would come with half a dozen libraries to load for each `xspd lookup`.
 */
#ifndef XSPD_DAEMON_NOTIFY_H
#define XSPD_DAEMON_NOTIFY_H

#include "daemon/daemon.h"

struct xspd_notify {
	int fd;		   /* connected to the manager, -1: there is none */
	uint64_t watchdog; /* ns between signs of life, 0: none wanted */
	uint64_t watchdog_at;
	uint64_t status_at; /* CLOCK_MONOTONIC, ns: not before, changes may come in streams */
	bool ready;	    /* has been told */
	char status[160];   /* as last told */
};

/**
 * xspd_notify_open() - Find the manager, and forget its address: no child is to speak for us.
 *
 * Return: 0, also without a manager, or a negative errno, and then it is as without one.
 */
int xspd_notify_open(struct xspd_notify *ret);
/* Says that we stop, and closes. */
void xspd_notify_close(struct xspd_notify *notify);

/**
 * xspd_notify_tell() - After a turn of @d: ready as soon as a full copy is published, the status
 * when it has changed, the watchdog when it is due.
 */
void xspd_notify_tell(struct xspd_notify *notify, struct xspd_daemon *d);
/* How long the next turn may wait, ms; -1: for ever. */
int xspd_notify_wait(const struct xspd_notify *notify);

#endif
