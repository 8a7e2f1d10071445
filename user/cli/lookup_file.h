/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef XSPD_CLI_LOOKUP_FILE_H
#define XSPD_CLI_LOOKUP_FILE_H

#include "cli/ask.h"

/**
 * cli_lookup_file() - Answer each line of @path ("-": standard input), in order.
 *
 * A line is a flow in the words of the command line; what follows '#' and empty
 * lines are skipped. Ends at the first line that is none; what came before
 * it has been answered.
 * Complains itself: XSPD_DONE, XSPD_FAILED or XSPD_USAGE.
 */
int cli_lookup_file(struct cli_asker *asker, const char *path, bool json);

#endif
