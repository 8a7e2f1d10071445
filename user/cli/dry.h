/* SPDX-License-Identifier: GPL-2.0-only */
/* The mirror with changes that nobody has made yet. */
#ifndef XSPD_CLI_DRY_H
#define XSPD_CLI_DRY_H

#include "cli/ask.h"

struct cli_dry;

/**
 * cli_dry_new() - What @view mirrors, with the lines of the file @path ("-": standard input)
 * applied as `ip -batch` would have them.
 *
 * All of one state of the SPD. A mirror in doubt stays so: then all is deferred.
 * Complains itself, also of a line that the kernel would refuse: XSPD_DONE or XSPD_FAILED.
 */
int cli_dry_new(struct cli_dry **ret, struct cli_view *view, const char *path);
void cli_dry_free(struct cli_dry *dry);

/* As cli_ask() and cli_ask_many(). */
int cli_dry_ask(struct cli_dry *dry, struct cli_answer *answers, size_t count, bool explain);
int cli_dry_ask_many(struct cli_dry *dry, const struct xspd_flow *flows, size_t count,
		     struct xspd_answer *ret);

#endif
