/* SPDX-License-Identifier: GPL-2.0-only */
/* A flow in the words of `ip xfrm policy`. */
#ifndef XSPD_CLI_FLOW_H
#define XSPD_CLI_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xspd/abi.h"

struct cli_flow_form {
	bool path;	  /* of a packet that is forwarded: "dir" is not said */
	bool reverse;	  /* the way back is asked, too: "iif" may be said */
	const char *file; /* what complaints name, NULL: the words were typed */
	size_t line;
};

/**
 * cli_flow_parse() - "dir out src 10.0.0.1 dst 10.0.0.2 proto udp ..." -> *ret.
 * @ret_iif: the device of "iif", or 0; may be NULL.
 *
 * What a packet of that flow would look like to the kernel: fragments and
 * protocols without ports have ports 0, and in direction in the device is
 * loopback. A forwarded packet is in direction fwd, and its outgoing device
 * is unknown unless "dev" says it.
 * Complains itself: XSPD_DONE, XSPD_USAGE, XSPD_FAILED (no such device).
 */
int cli_flow_parse(const struct cli_flow_form *form, int argc, char **argv, struct xspd_flow *ret,
		   uint32_t *ret_iif);

/* A flow in those words. */
void cli_flow_text(const struct xspd_flow *flow, char *buf, size_t size);

#endif
