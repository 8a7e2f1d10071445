/* SPDX-License-Identifier: GPL-2.0-only */
/* What came out of a gateway, as gateway.c collects it. */
#ifndef XSPD_TESTS_LIB_GATEWAY_OUT_H
#define XSPD_TESTS_LIB_GATEWAY_OUT_H

#include "lib/gateway.h"

struct gateway_thing {
	uint8_t *bytes; /* the first says where: a side, or GATEWAY_SIDES + socket */
	size_t len;
};

struct gateway_out {
	struct gateway_thing *thing;
	size_t count, room;
	size_t acquires;
};

/*
 * A captured frame. Left out: what the kernel says on its own when it likes (ARP, MLD, IGMP,
 * neighbour and router solicitations). The gateway's own IPv4 packets lose the identification
 * that the kernel draws by chance.
 */
void gateway_out_frame(struct gateway_out *out, int side, uint8_t *frame, size_t len);
void gateway_out_forget(uint8_t *ip, size_t len); /* the same of what a raw socket received */
void gateway_out_local(struct gateway_out *out, int socket, const uint8_t *data, size_t len);
void gateway_out_sort(struct gateway_out *out);

#endif
