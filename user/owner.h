/* SPDX-License-Identifier: GPL-2.0-only */
/* Who may have made a policy, by what is peculiar to those who make them. Pure. */
#ifndef XSPD_OWNER_H
#define XSPD_OWNER_H

#include "xspd/abi.h"

/**
 * xspd_owner_hint() - "strongswan", "libreswan", "cilium", or NULL: it looks like nobody's.
 * *@ret_why: what gives it away.
 */
const char *xspd_owner_hint(const struct xspd_info *info, const char **ret_why);

#endif
