/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory for netlink messages that may carry keys: left out of core dumps, never
 * copied when it grows, wiped before it is given back.
 */
#ifndef XSPD_SNAPSHOT_VAULT_H
#define XSPD_SNAPSHOT_VAULT_H

#include <stddef.h>
#include <linux/netlink.h>

/* A zeroed one is empty. Pointers into it end with the next append. */
struct xspd_vault {
	char *at;
	size_t used, room;
	size_t *message; /* where each begins, as appended */
	size_t count, message_room;
};

/* Room for @more bytes: 0 or -ENOMEM. Nothing is appended yet. */
int xspd_vault_reserve(struct xspd_vault *vault, size_t more);
/* A copy of @nlh, whose length has been checked. 0 or -ENOMEM. */
int xspd_vault_append(struct xspd_vault *vault, const struct nlmsghdr *nlh);
struct nlmsghdr *xspd_vault_get(const struct xspd_vault *vault, size_t nr);
/* Never swapped out from here on, if the kernel lets us. */
void xspd_vault_lock(struct xspd_vault *vault);
/* Wipe, and give back; the vault is an empty one again. */
void xspd_vault_empty(struct xspd_vault *vault);

#endif
