/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A router in a fresh namespace, and all that comes out of it: frames on its three
 * devices, datagrams at its sockets, ACQUIREs. The far ends of the devices are in the same
 * namespace, so that marks set by the sender survive, but nothing is addressed to them.
 */
#ifndef XSPD_TESTS_LIB_GATEWAY_H
#define XSPD_TESTS_LIB_GATEWAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Its devices: c0 and s0 receive, t0 only sends (a smaller MTU, never a bypass device). */
enum gateway_side { GATEWAY_C, GATEWAY_S, GATEWAY_T, GATEWAY_SIDES };

/* A UDP port of the gateway whose socket has its own policy, beside 500 and 4500. */
#define GATEWAY_EXEMPT 7001

/*
 * What is behind them. 10.0.0.0/9 and 2001:db8::/33 by c0, the other halves by s0, of these
 * 10.129.0.0/16 and 2001:db8:8000:8000::/49 by t0; some routes that lead nowhere, to a
 * neighbour that is not there, or are narrow. Its own: these, and 192.0.2.1, 198.51.100.1.
 */
#define GATEWAY_V4_C "10.0.0.1"
#define GATEWAY_V4_S "10.128.0.1"
#define GATEWAY_V6_C "2001:db8::1"
#define GATEWAY_V6_S "2001:db8:8000::1"

/* The narrowest of the routes. */
#define GATEWAY_ROUTE_MTU 1000

struct gateway;

enum gateway_option {
	GATEWAY_RP_FILTER = 1,
	GATEWAY_DEFAULT = 2, /* a default route, by t0 */
};
int gateway_new(struct gateway **ret, uint32_t options);
void gateway_free(struct gateway *gw);

uint32_t gateway_ifindex(const struct gateway *gw, enum gateway_side side);
const uint8_t *gateway_mac(const struct gateway *gw, enum gateway_side side);

/* A frame into device @side; every few of them, what has come out is collected. */
int gateway_send(struct gateway *gw, enum gateway_side side, uint32_t mark, const void *frame,
		 size_t len);

/* Wait until nothing is on its way any more, and collect it. */
int gateway_finish(struct gateway *gw);

/* What came out, as a sorted bag. Outlives the gateway. */
struct gateway_out;
struct gateway_out *gateway_take(struct gateway *gw);
void gateway_out_free(struct gateway_out *out);
size_t gateway_out_count(const struct gateway_out *out, bool local);
size_t gateway_out_acquires(const struct gateway_out *out);

/* Things that only one of them has; the first few are printed. */
size_t gateway_out_compare(const struct gateway_out *a, const struct gateway_out *b);

#endif
