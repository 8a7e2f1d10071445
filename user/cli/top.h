/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of `xspd top` share: two looks, and the rates between them. */
#ifndef XSPD_CLI_TOP_H
#define XSPD_CLI_TOP_H

#include "cli/cli.h"
#include "cli/gather.h"

enum top_sort { TOP_RATE, TOP_PACKETS, TOP_BYTES, TOP_INDEX, TOP_SORTS };

struct top_policy {
	const struct cli_counted *now; /* of the gather */
	double packets, bytes;	       /* a second */
};

/* A reason or an act of a hook. */
struct top_reason {
	char text[48];
	uint64_t total;
	double packets;
};

#define TOP_REASONS 512
#define TOP_PAST    60

struct top {
	struct cli_common common;
	uint32_t interval; /* seconds */
	uint32_t count;	   /* looks, 0: no end */
	uint32_t follow;   /* index, 0: all */
	const char *filter;
	enum top_sort sort;
	unsigned int family; /* 0: both, 4, 6 */
	bool plain;

	struct cli_gather now, before;
	bool two; /* there are two looks */
	struct top_policy *policy;
	size_t policies; /* that pass the filter */
	struct top_reason reason[TOP_REASONS];
	size_t reasons;	       /* busiest first */
	double packets;	       /* of all policies, a second */
	double past[TOP_PAST]; /* rates of the followed policy, latest last */
	unsigned int pasts;
};

extern const char *const top_sort_names[TOP_SORTS];

/* Look again, and work out the rates. 0 or a negative errno. */
int top_look(struct top *top);
/* Choose and order anew what was seen. */
void top_arrange(struct top *top);

/* "in step", "DOUBT: ...", "the daemon is NOT RUNNING" */
void top_state_text(const struct top *top, char *buf, size_t size);
/* "out src 10.1.0.0/16 dst 10.2.0.0/16 proto udp" */
void top_policy_text(const struct top_policy *policy, char *buf, size_t size);

/* SIGINT or SIGTERM came. */
bool top_stopped(void);

/* On a terminal: until the reader has enough. */
int top_screen(struct top *top);

#endif
