/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef XSPD_CLI_LOOKUP_STEER_H
#define XSPD_CLI_LOOKUP_STEER_H

#include "cli/cli.h"

/* Answer "lookup --steer" for the flow in the words @argv. Complains itself: enum xspd_exit. */
int cli_lookup_steer(const struct cli_common *common, int argc, char **argv);

#endif
