/* SPDX-License-Identifier: GPL-2.0-only */
/* What sets routes and rules apart for the programs, in the calling thread's network namespace. */
#ifndef XSPD_NL_ROUTE_H
#define XSPD_NL_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "xspd/abi.h"

struct xspd_routes {
	uint32_t mtu; /* the smallest that any has of its own, both families and all tables; 0: none
			 has */
	bool many;    /* an IPv4 route has several next hops, or a next hop object */
	enum xspd_rules rules; /* of both families */
};

/* 0 or a negative errno. */
int xspd_routes_scan(struct xspd_routes *ret);

/* A socket that is told of changes, -1 with errno. */
int xspd_route_watch(void);
/* Empty it. Did such a route or rule come or go, or was anything lost? */
bool xspd_route_watched(int fd);

#endif
