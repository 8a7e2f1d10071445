/* SPDX-License-Identifier: GPL-2.0-only */
/* What the kernel has now, message by message, oldest first. */
#ifndef XSPD_SNAPSHOT_COLLECT_H
#define XSPD_SNAPSHOT_COLLECT_H

#include <stdbool.h>
#include <stdint.h>

#include "snapshot/vault.h"

/**
 * xspd_collect_policies() - All policies of the caller's namespace but those of sockets.
 *
 * Changes that fall into the dump are taken in from the events, so that the
 * result is the SPD at one moment after the call began.
 * Return: 0, or a negative errno (-EBUSY: changes too fast to follow).
 */
int xspd_collect_policies(struct xspd_vault *ret);

/**
 * xspd_collect_states() - All SAs but larval ones, with their age as an attribute.
 * @keys: leave them in; else they are overwritten before the call returns.
 *
 * Each SA that lives through the call is there; one that begins or ends meanwhile
 * may be.
 * Return: 0, or a negative errno (-ENOKEY: @keys, but the kernel hides them).
 */
int xspd_collect_states(struct xspd_vault *ret, bool keys);

#endif
