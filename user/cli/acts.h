/* SPDX-License-Identifier: GPL-2.0-only */
/* What the modes did and what keeps them from it, for `xspd status`. */
#ifndef XSPD_CLI_ACTS_H
#define XSPD_CLI_ACTS_H

#include <json-c/json.h>

#include "cli/hook.h"
#include "cli/view.h"

struct cli_acts {
	struct xspd_stat act[XSPD_HOOK_MAX_][XSPD_A_MAX_];
	struct xspd_mode *mode; /* one of each hook listed */
	uint64_t hits, misses;
};

/* 0 or a negative errno; leave with cli_acts_free(). */
int cli_acts_read(struct cli_acts *ret, const struct cli_view *view, const struct cli_hook *hooks,
		  size_t count);
void cli_acts_free(struct cli_acts *acts);

void cli_acts_print(const struct cli_acts *acts);
void cli_acts_print_env(uint32_t env);
void cli_acts_print_cache(const struct cli_acts *acts, uint32_t entries);
/* { hook: { act: { packets, bytes } } }, zeros included. */
struct json_object *cli_acts_json(const struct cli_acts *acts);
struct json_object *cli_acts_env_json(uint32_t env);
struct json_object *cli_acts_cache_json(const struct cli_acts *acts, uint32_t entries);

#endif
