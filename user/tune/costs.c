// SPDX-License-Identifier: GPL-2.0-only
#include "tune/tune.h"

/* As "xspd bench tune" found them on an AMD EPYC with nothing else to do, Linux 6.18. */
const struct xspd_tune_costs xspd_tune_costs_builtin = {
	.base = 35,
	.hit = 200,
	.hit6 = 270,
	.walk = {6, 6, 15, 20, 60},
	.host = {10, 80, 150, 350, 600},
	.tree = {20, 120, 270, 500, 700},
	.insert = {7, 7, 19, 25, 70},
	.rebuild = 300,
};
