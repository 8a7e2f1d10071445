/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Real packets as the question: one is sent into the caller's namespace with a mark
 * (SO_MARK on AF_PACKET survives a veth pair), and the policies whose time of use
 * is set afterwards are those that the kernel found for it.  A time of use can be
 * cleared only by inserting the policy again, so this is one question for each
 * load of the SPD.  Every template should be optional: a required one ends the
 * OUT lookup before the time is set.
 */
#ifndef XSPD_TESTS_LIB_PACKET_H
#define XSPD_TESTS_LIB_PACKET_H

#include <stddef.h>
#include <stdint.h>

#include "xspd/abi.h"

struct packet_way;

/* Times to ask before a wrong answer counts: packets of the kernel's own use policies too. */
#define PACKET_TRIES 3

/*
 * Needs netns_routes().  Makes two devices: packets that come in by one are
 * forwarded, by the other delivered locally.  Pins the thread to one CPU, since a
 * second frame tells that the first one has been dealt with.
 */
int packet_way_new(struct packet_way **ret);
void packet_way_free(struct packet_way *way);

/* flowi_oif as the kernel will see it for @dir. */
uint32_t packet_way_oif(const struct packet_way *way, uint8_t dir);

/*
 * Send a packet that has the fields of @flow, and wait until the stack is through with it: in is
 * delivered, fwd and out are forwarded.  flow->frag makes it that fragment, with the
 * ports in it although the kernel will not look.
 */
int packet_send(struct packet_way *way, const struct xspd_flow *flow);

#define PACKET_MAX 256

/*
 * The frame itself, for @flow; checksums are right.  @buf has room for PACKET_MAX bytes.
 * Return: its length, 14 bytes of Ethernet header included (addresses are left 0).
 */
size_t packet_build(void *buf, const struct xspd_flow *flow);

/* A policy of the kernel's SPD with a time of use. */
struct packet_used {
	uint32_t index;
	uint32_t reqid; /* of the first template */
	uint8_t dir;
	uint8_t type;
};
/* At most @max are stored; @ret_count gets how many there are. */
int packet_used(struct packet_used *ret, size_t max, size_t *ret_count);

#endif
