// SPDX-License-Identifier: GPL-2.0-only
/* Does the kernel have what the mirror has?  Counts, and the thresholds of its lists. */
#include <string.h>

#include "daemon/daemon.h"
#include "daemon/log.h"
#include "util.h"

static bool counts_equal(const struct xspd_daemon *d, const struct xspd_spdinfo *info)
{
	for (int dir = 0; dir < XSPD_DIR_MAX_; dir++)
		if (d->spd->count[dir] != info->count[dir])
			return false;
	return true;
}

/*
 * After a change of thresholds (NEWSPDINFO) the kernel builds its lists anew, in the order
 * of age: what an update in place has left out of order is in order again.  So certain
 * policies stay certain, and each XSPD_P_TIE that is older than the last look but one could be
 * lifted, if only one could know that the building, which is queued work without an event, has
 * been done.  Nothing tells: the thresholds read back are the ones asked for.  The marks stay,
 * and cost DEFERs; lifting one too early would cost a wrong answer.
 */
static void check_thresholds(struct xspd_daemon *d, const struct xspd_spdinfo *info)
{
	struct xspd_spdinfo now = {.lbits4 = info->lbits4,
				   .rbits4 = info->rbits4,
				   .lbits6 = info->lbits6,
				   .rbits6 = info->rbits6};
	bool changed = d->thresholds_known && memcmp(&d->thresholds, &now, sizeof(now));

	d->thresholds = now;
	d->thresholds_known = true;
	if (!changed)
		return;
	d->stats.threshold_changes++;
	xspd_log("thresholds: changed to %u/%u, %u/%u; %u ties stay marked", now.lbits4, now.rbits4,
		 now.lbits6, now.rbits6, d->spd->ties);
}

/*
 * Timers take policies out without the lock, so that their events may lag
 * behind the counts: only a difference that stays is one.
 */
void xspd_daemon_check(struct xspd_daemon *d)
{
	struct xspd_spdinfo info;
	int n;

	if (d->dump_at || xspd_daemon_drain_dry(d) < 0 || xspd_nl_spdinfo(d->requests, &info) < 0)
		return;
	check_thresholds(d, &info);
	n = xspd_daemon_drain(d);
	if (n < 0)
		return;
	if (n > 0 || counts_equal(d, &info)) { /* n: the counts may be older than the mirror */
		d->mismatch = false;
		return;
	}
	if (!d->mismatch) {
		d->mismatch = true;
		d->check_at = xspd_mono() + XSPD_DAEMON_RECHECK;
		return;
	}
	d->mismatch = false;
	xspd_daemon_doubt(d, XSPD_DOUBT_COUNT_MISMATCH, 0);
	xspd_daemon_want_dump(d);
	xspd_log("counts: the kernel has %u in, %u out, %u fwd, the mirror %u, %u, %u: reading "
		 "all policies again",
		 info.count[XSPD_IN], info.count[XSPD_OUT], info.count[XSPD_FWD],
		 d->spd->count[XSPD_IN], d->spd->count[XSPD_OUT], d->spd->count[XSPD_FWD]);
}
