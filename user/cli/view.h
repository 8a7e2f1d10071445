/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The pinned maps as a reader sees them: opened and mapped read-only, with or
 * without a daemon behind them, and without disturbing it.
 */
#ifndef XSPD_CLI_VIEW_H
#define XSPD_CLI_VIEW_H

#include <stddef.h>

#include "xspd/abi.h"
#include "cli/cli.h"

#define XSPD_PIN_ROOT "/sys/fs/bpf/xspd"

struct cli_view {
	const char *instance;
	char dir[160]; /* XSPD_PIN_ROOT/<instance>/v1 */
	char set[64];  /* where its link "maps" leads: the set in service */
	const struct xspd_conf *conf;
	const struct xspd_info *info;
	const struct xspd_policy *policy;
	size_t conf_size, info_size, policy_size;
	uint32_t slots;
	uint32_t cpus;
	int count_fd, stat_fd, query_fd;
};

/* Path of an instance's pins; @name is appended if not NULL. */
void cli_pin_path(char *buf, size_t size, const char *instance, const char *name);

/**
 * cli_view_open() - Open the set in service of @instance.
 * Complains itself: XSPD_DONE or XSPD_FAILED. Leave with cli_view_close().
 */
int cli_view_open(struct cli_view *ret, const char *instance);
/* The same in silence: 0 or a negative errno. */
int cli_view_try(struct cli_view *ret, const char *instance);
void cli_view_close(struct cli_view *view);

/* Another set was put into service since: this one is history, open it anew. */
bool cli_view_stale(const struct cli_view *view);
/* ... which this does, if need be. Complains itself: XSPD_DONE or XSPD_FAILED. */
int cli_view_follow(struct cli_view *view);

/* A generation between two changes, to compare with later; waits a little for one. */
uint64_t cli_view_generation(const struct cli_view *view);

/* Copy a slot's record; false if it is free, or changed while it was read. */
bool cli_view_info(const struct cli_view *view, uint32_t slot, struct xspd_info *ret);

/* Sum over CPUs plus what earlier slots counted. 0 or a negative errno. */
int cli_view_count(const struct cli_view *view, uint32_t slot, const struct xspd_info *info,
		   struct xspd_count *ret);
int cli_view_stat(const struct cli_view *view, enum xspd_hook hook, enum xspd_reason reason,
		  struct xspd_stat *ret);
/* All of them: [XSPD_ASKED_MAX_][XSPD_HOOK_MAX_][XSPD_R_MAX_] is added to. */
int cli_view_stats(const struct cli_view *view, struct xspd_stat *ret);
/* What the modes did: [XSPD_HOOK_MAX_][XSPD_A_MAX_] is added to. */
int cli_view_acts(const struct cli_view *view, struct xspd_stat *ret);
/* Of the set in service: a new one begins with an empty cache. 0 where there is none. */
void cli_view_cache(const struct cli_view *view, uint64_t *hits, uint64_t *misses);

#endif
