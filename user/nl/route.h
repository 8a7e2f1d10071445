/* SPDX-License-Identifier: GPL-2.0-only */
/* MTUs that routes have of their own, in the calling thread's network namespace. */
#ifndef XSPD_NL_ROUTE_H
#define XSPD_NL_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

/* The smallest of them, both families and all tables; 0: none has one. 0 or a negative errno. */
int xspd_route_mtu(uint32_t *ret);

/* A socket that is told of changes, -1 with errno. */
int xspd_route_watch(void);
/* Empty it. Did a route with such an MTU come or go, or was anything lost? */
bool xspd_route_watched(int fd);

#endif
