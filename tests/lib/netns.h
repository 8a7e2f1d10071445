/* SPDX-License-Identifier: GPL-2.0-only */
/* A private network namespace for the calling process (Criterion runs each test in its own). */
#ifndef XSPD_TESTS_LIB_NETNS_H
#define XSPD_TESTS_LIB_NETNS_H

#include <stdbool.h>
#include <stdint.h>

/* Move into a fresh namespace with lo up. 0 or a negative errno. */
int netns_enter(void);

/* Run a command line in this namespace. 0, or -EIO after saying on stderr what failed. */
__attribute__((format(printf, 1, 2))) int netns_run(const char *fmt, ...);

/* Write a value below /proc/sys ("net/ipv4/ip_forward"). */
int netns_sysctl(const char *path, const char *value);

/* Number of device @name, made as one end of a veth pair if there is none. 0 on failure. */
uint32_t netns_device(const char *name);

/*
 * Routes by which anything can be sent and forwarded: every address leads to
 * device "away0" (no ARP, no NDP needed), both families, no reverse path filter.
 */
int netns_routes(void);

#endif
