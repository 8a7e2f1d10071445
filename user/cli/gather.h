/* SPDX-License-Identifier: GPL-2.0-only */
/* One look at everything an instance counts: for metrics, the status page and `xspd top`. */
#ifndef XSPD_CLI_GATHER_H
#define XSPD_CLI_GATHER_H

#include "cli/view.h"

struct cli_counted {
	struct xspd_info info;
	struct xspd_count count;
};

/* Policies of one shape: direction, family, prefix lengths, and which other fields are given. */
struct cli_shape {
	enum xspd_dir dir;
	enum xspd_family family;
	uint8_t dlen, slen;
	bool proto, ports, mark, dev, if_id;
	uint32_t policies;
	uint64_t packets;
};

struct cli_gather {
	struct xspd_conf conf;
	bool alive;
	uint32_t cpus;
	uint64_t time; /* CLOCK_MONOTONIC, ns */
	struct xspd_stat stat[XSPD_ASKED_MAX_][XSPD_HOOK_MAX_][XSPD_R_MAX_];
	struct xspd_stat act[XSPD_HOOK_MAX_][XSPD_A_MAX_];
	uint64_t hits, misses; /* of the flow cache */
	struct cli_counted *policy;
	size_t policies;
	struct cli_shape *shape; /* most policies first */
	size_t shapes;
};

/**
 * cli_gather() - Look.
 * Return: 0, to be freed with cli_gather_free(), or a negative errno (-ENOENT: no such instance).
 */
int cli_gather(struct cli_gather *ret, const char *instance);
void cli_gather_free(struct cli_gather *gather);

/* Put the @most busiest policies first, busiest first. Return: how many those are. */
size_t cli_gather_top(struct cli_gather *gather, size_t most);

/* "/24 <- /16 udp port", for people. */
void cli_shape_text(const struct cli_shape *shape, char *buf, size_t size);

#endif
