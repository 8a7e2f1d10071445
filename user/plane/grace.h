/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * RCU grace periods, waited for by a thread of its own: the writer asks for a ticket
 * and goes on.  membarrier(2) MEMBARRIER_CMD_GLOBAL waits for one (synchronize_rcu()).
 */
#ifndef XSPD_PLANE_GRACE_H
#define XSPD_PLANE_GRACE_H

#include <stdbool.h>
#include <stdint.h>

struct xspd_grace;

/* 0, -EOPNOTSUPP where the kernel has no MEMBARRIER_CMD_GLOBAL, or another negative errno. */
int xspd_grace_new(struct xspd_grace **ret);
void xspd_grace_free(struct xspd_grace *grace);

/* Number of a grace period that begins after this call. */
uint64_t xspd_grace_ticket(struct xspd_grace *grace);
bool xspd_grace_over(struct xspd_grace *grace, uint64_t ticket);
void xspd_grace_wait(struct xspd_grace *grace, uint64_t ticket);

#endif
