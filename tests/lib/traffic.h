/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Packets for a gateway (gateway.h): flows that policies match or nearly match, and in every
 * shape for which the kernel has a rule of its own. The same seed gives the same packets.
 */
#ifndef XSPD_TESTS_LIB_TRAFFIC_H
#define XSPD_TESTS_LIB_TRAFFIC_H

#include "lib/gateway.h"
#include "lib/gen.h"

#define TRAFFIC_MAX 1514

struct traffic_frame {
	uint8_t b[TRAFFIC_MAX + 64];
	size_t len;
	uint32_t mark;
	enum gateway_side side;
};

struct traffic {
	struct gen *gen;
	const struct xspd_pol *pols;
	size_t count;
	bool marks;  /* some packets have one */
	uint32_t nr; /* of the packet: its identification or flow label */
	bool pending;
	struct traffic_frame later; /* the second half of a datagram */
};

void traffic_next(struct traffic *traffic, struct traffic_frame *ret);

#endif
