/* SPDX-License-Identifier: GPL-2.0-only */
/* The modes of hooks: their words, their entries in the pinned map, and where each may be set. */
#ifndef XSPD_CLI_MODE_H
#define XSPD_CLI_MODE_H

#include <json-c/json.h>

#include "cli/hook.h"

#define CLI_MODES                                                                                  \
	(XSPD_MODE_MARK | XSPD_MODE_ENFORCE | XSPD_MODE_BYPASS | XSPD_MODE_STEER | XSPD_MODE_GUARD)

/* "enforce,mark" -> enum xspd_mode_flag; "observe" is none. Complains itself: XSPD_USAGE. */
int cli_mode_parse(const char *text, uint32_t *ret);

/* Are @flags for @hook at all? Complains itself: XSPD_DONE or XSPD_USAGE. */
int cli_mode_fits(const char *dev, enum xspd_hook hook, uint32_t flags);

/**
 * cli_mode_check() - May @flags be set on a hook of @dev?
 *
 * Looks at the device, and for bypass at netfilter. Fills ret->mac and ->flags.
 * Complains itself, with the reason and what to do: XSPD_DONE or XSPD_FAILED.
 */
int cli_mode_check(const char *dev, enum xspd_hook hook, uint32_t flags, struct xspd_mode *ret);

/* A map that outlives the sets, "xspd_mode" ... Complains itself: the fd, or -1. */
int cli_lasting_open(const char *instance, const char *name);

/* Entry of a hook: what is set (flags 0: nothing). 0 or a negative errno. */
int cli_mode_get(int map, uint32_t ifindex, enum xspd_hook hook, struct xspd_mode *ret);
/* In one step; flags without a mode take the entry away. 0 or a negative errno. */
int cli_mode_set(int map, uint32_t ifindex, enum xspd_hook hook, const struct xspd_mode *mode);
/* Take the entry away, if there is one, quietly. */
void cli_mode_drop(const char *instance, uint32_t ifindex, enum xspd_hook hook);

/* "enforce, bypass (dry run)", "observe" */
void cli_mode_text(const struct xspd_mode *mode, char *buf, size_t size);
/* ["enforce"] */
struct json_object *cli_mode_json(uint32_t flags);

#endif
