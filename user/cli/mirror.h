/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef XSPD_CLI_MIRROR_H
#define XSPD_CLI_MIRROR_H

#include "cli/view.h"
#include "spd/spd.h"

/**
 * cli_mirror_read() - The policies that @view shows, as a mirror of the caller's own.
 *
 * Whether they are of one state of the SPD, the generations before and after tell.
 * Return: 0 or -ENOMEM. Free with xspd_spd_free().
 */
int cli_mirror_read(struct xspd_spd **ret, const struct cli_view *view);

/**
 * cli_mirror_read_settled() - ... all of one state of the SPD.
 * @who: begins complaints.
 * @ret_doubt: why the mirror cannot be relied upon, or XSPD_R_NONE.
 *
 * Complains itself: XSPD_DONE or XSPD_FAILED.
 */
int cli_mirror_read_settled(struct xspd_spd **ret, struct cli_view *view, const char *who,
			    enum xspd_reason *ret_doubt);

#endif
