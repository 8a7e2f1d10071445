/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef XSPD_SPD_SUSPECT_H
#define XSPD_SPD_SUSPECT_H

#include "spd/spd.h"

/*
 * xspd_spd_suspect() - Set tie on those of spd->items (oldest first, planned) that may have
 * been updated in place while nobody watched.
 *
 * The kernel counts indexes up and an update keeps the index, so that among
 * policies of one partition and priority a lower index that stands as newer
 * gives an update away.  Policies with a pos below spd->suspect_from have been
 * watched all along and are left alone.
 */
void xspd_spd_suspect(struct xspd_spd *spd);

#endif
