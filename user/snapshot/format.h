/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The snapshot file: a header, then the netlink messages by which the kernel
 * listed its SAs and policies, oldest first, SAs before policies since traffic that
 * finds a policy without its SA begins a negotiation. All integers are in the byte order of the
 * machine, which the header names. Pure.
 */
#ifndef XSPD_SNAPSHOT_FORMAT_H
#define XSPD_SNAPSHOT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/netlink.h>

#define XSPD_SNAP_MAGIC	  "xspdsnap"
#define XSPD_SNAP_VERSION 1
#define XSPD_SNAP_ORDER	  0x01020304u

enum xspd_snap_flag {
	XSPD_SNAP_STATES = 1, /* SAs were asked for */
	XSPD_SNAP_KEYS = 2,   /* ... with their keys */
};

struct xspd_snap_header {
	char magic[8];
	uint32_t order;
	uint32_t version;
	uint32_t flags;
	uint32_t states;
	uint32_t policies;
	uint32_t body_crc; /* CRC-32 of what follows the header */
	uint64_t body_size;
	uint64_t saved; /* CLOCK_REALTIME, ns */
	uint32_t pad[3];
	uint32_t header_crc; /* of all before it */
};
_Static_assert(sizeof(struct xspd_snap_header) == 64, "file format");

/* What is wrong with a file; xspd_snap_fault_text() says it. */
enum xspd_snap_fault {
	XSPD_SNAP_FINE = 0,
	XSPD_SNAP_FOREIGN,
	XSPD_SNAP_OTHER_ORDER,
	XSPD_SNAP_OTHER_VERSION,
	XSPD_SNAP_TRUNCATED,
	XSPD_SNAP_BAD_HEADER,
	XSPD_SNAP_LONGER,
	XSPD_SNAP_BAD_BODY,
	XSPD_SNAP_BAD_MESSAGE,
	XSPD_SNAP_FAULT_MAX_,
};

/* Magic, version, byte order and checksum; the rest is the caller's. */
void xspd_snap_seal(struct xspd_snap_header *header);

/* CRC-32 of @data, going on from @crc; begin with 0. */
uint32_t xspd_snap_crc(uint32_t crc, const void *data, size_t size);

/**
 * xspd_snap_check() - Is this a whole, sound file of ours? Looks at each message, too.
 * @ret: its header, also with faults from XSPD_SNAP_OTHER_VERSION on (zero otherwise).
 */
enum xspd_snap_fault xspd_snap_check(const void *file, size_t size, struct xspd_snap_header *ret);

const char *xspd_snap_fault_text(enum xspd_snap_fault fault);

/* Do two listed policies differ in nothing but index, age and use? */
bool xspd_snap_same_policy(const struct nlmsghdr *a, const struct nlmsghdr *b);

#endif
