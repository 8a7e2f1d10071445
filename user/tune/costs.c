// SPDX-License-Identifier: GPL-2.0-only
#include "tune/tune.h"

/* As "xspd tune --calibrate" found them on an idle machine. */
const struct xspd_tune_costs xspd_tune_costs_builtin = {
	.base = 110,
	.walk = {6, 12, 40, 90},
	.host = {50, 100, 250, 500},
	.tree = {60, 200, 400, 900},
	.insert = {10, 20, 60, 110},
	.rebuild = 1000,
};
