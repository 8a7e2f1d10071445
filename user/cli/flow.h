/* SPDX-License-Identifier: GPL-2.0-only */
/* A flow in the words of `ip xfrm policy`. */
#ifndef XSPD_CLI_FLOW_H
#define XSPD_CLI_FLOW_H

#include "xspd/abi.h"

/**
 * cli_flow_parse() - "dir out src 10.0.0.1 dst 10.0.0.2 proto udp ..." -> *ret.
 *
 * What a packet of that flow would look like to the kernel: fragments and
 * protocols without ports have ports 0, and in direction in the device is
 * loopback. Complains itself: XSPD_DONE, XSPD_USAGE, XSPD_FAILED (no such device).
 */
int cli_flow_parse(int argc, char **argv, struct xspd_flow *ret);

#endif
