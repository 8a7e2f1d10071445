/* SPDX-License-Identifier: GPL-2.0-only */
/* A policy as xspd_info tells it, and back. Pure. */
#ifndef XSPD_PLANE_INFO_H
#define XSPD_PLANE_INFO_H

#include "spd/policy.h"

/* enum xspd_policy_flag of a policy. */
uint8_t xspd_pol_flags(const struct xspd_pol *pol);

/* All but the counters, which are 0; the index, which says that a record holds something, last. */
void xspd_info_fill(struct xspd_info *ret, const struct xspd_pol *pol);

/* All that the mirror knows of it, but for slot, tuple and the padding of its selector. */
void xspd_pol_of_info(struct xspd_pol *ret, const struct xspd_info *info);

#endif
