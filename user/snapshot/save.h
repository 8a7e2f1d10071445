/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef XSPD_SNAPSHOT_SAVE_H
#define XSPD_SNAPSHOT_SAVE_H

#include <signal.h>

#include "snapshot/format.h"
#include "snapshot/vault.h"

/**
 * xspd_snap_save() - Write @states and @policies to the file @path, mode 0600.
 * @flags: enum xspd_snap_flag.
 * @stop: give up as soon as it is set.
 * @ret: the header that was written.
 *
 * Whatever happens, @path is what it was before or the whole new file, safe on its disk.
 * Return: 0, or a negative errno (-EINTR: @stop; -EEXIST: @path is something else than a file;
 * -EMSGSIZE: an entry is too long to be loaded again).
 */
int xspd_snap_save(const char *path, uint32_t flags, const struct xspd_vault *states,
		   const struct xspd_vault *policies, const volatile sig_atomic_t *stop,
		   struct xspd_snap_header *ret);

#endif
