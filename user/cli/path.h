/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The lookups that one packet goes through, there and back, and what their
 * answers mean for it.
 */
#ifndef XSPD_CLI_PATH_H
#define XSPD_CLI_PATH_H

#include "cli/ask.h"

#define CLI_WAY_MAX 3 /* fwd, out, and out again after source NAT */

/* A new address and, if it is not 0, a new port. */
struct cli_nat {
	bool set;
	uint8_t family;
	__be32 addr[4];
	__be16 port;
};

/* "ADDR", "ADDR:PORT", "[ADDR6]:PORT" of @option. Complains itself: XSPD_DONE or XSPD_USAGE. */
int cli_nat_parse(const char *option, const char *text, struct cli_nat *ret);

/* One way of a packet through the gateway. */
struct cli_way {
	struct cli_answer step[CLI_WAY_MAX];
	size_t steps;
	bool renamed; /* the last step asks again, after source NAT */
};

struct cli_path {
	struct cli_way there, back;
	bool both; /* @back is asked for */
};

/* @flow as it arrives, to be forwarded: fwd as it is, then out as NAT leaves it. */
void cli_way_forward(struct cli_way *ret, const struct xspd_flow *flow, const struct cli_nat *dnat,
		     const struct cli_nat *snat);
/* The one lookup of @flow. */
void cli_way_single(struct cli_way *ret, const struct xspd_flow *flow);

/*
 * The way of what answers @flow: forwarded as well (the device is @iif, 0: unknown), or for a flow
 * of one lookup the same on the other side: out for in, in for out.
 */
void cli_way_back(struct cli_way *ret, const struct cli_way *there, const struct cli_nat *dnat,
		  const struct cli_nat *snat, uint32_t iif);

enum cli_fate {
	CLI_FATE_PLAIN,	    /* goes on, in the clear */
	CLI_FATE_PROTECTED, /* out: goes on through IPsec */
	CLI_FATE_DEMANDS,   /* in, fwd: goes on only if it came through IPsec */
	CLI_FATE_DROPPED,
	CLI_FATE_DEFERRED, /* the kernel knows */
};

const char *cli_fate_name(enum cli_fate fate);
enum cli_fate cli_fate_of(const struct cli_answer *answer);

/*
 * The counter of /proc/net/xfrm_stat that tells of this packet being dropped,
 * and under which condition ("always", "unprotected", "no_sa"); NULL if there is none.
 */
const char *cli_fate_counter(const struct cli_answer *answer, const char **ret_when);

/* The step at which the packet is dropped or its fate is unknown, else the last one. */
const struct cli_answer *cli_way_end(const struct cli_way *way);

/* The @nr-th remark on @path, or NULL when there are no more; lives until the next call. */
const char *cli_path_warning(const struct cli_path *path, size_t nr);

/* Tell of all steps, of the ends, and the warnings. */
void cli_path_print(const struct cli_path *path);
struct json_object *cli_path_json(const struct cli_path *path);

#endif
