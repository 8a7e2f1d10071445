// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/mirror.h"
#include "plane/pure/info.h"
#include "spd/mirror.h"
#include "util.h"

#define ATTEMPTS 20

static int add(struct xspd_spd *spd, const struct xspd_info *info)
{
	struct xspd_pol pol, *copy;
	int err;

	xspd_pol_of_info(&pol, info);
	copy = xspd_pol_clone(&pol);
	if (!copy)
		return -ENOMEM;
	err = xspd_spd_link(spd, copy);
	if (err)
		free(copy);
	else if (pol.pos >= spd->next_pos)
		spd->next_pos = pol.pos + 1;
	return err;
}

int cli_mirror_read(struct xspd_spd **ret, const struct cli_view *view)
{
	struct xspd_spd *spd = xspd_spd_new();
	struct xspd_info info;
	int err = 0;

	if (!spd)
		return -ENOMEM;
	spd->suspecting = false;
	spd->old_order = !xspd_kernel_since(6, 12);
	spd->defaults = view->conf->defaults;
	for (uint32_t slot = 1; slot < view->slots && !err; slot++) {
		/* the same index twice: an update caught in the act, which the generation tells */
		if (cli_view_info(view, slot, &info) && !xspd_spd_find(spd, info.index))
			err = add(spd, &info);
	}
	if (err)
		xspd_spd_free(spd);
	else
		*ret = spd;
	return err;
}

static enum xspd_reason doubt_of(const struct cli_view *view)
{
	if (view->conf->doubt)
		return XSPD_R_DOUBT;
	return view->conf->lease_until < xspd_mono() ? XSPD_R_LEASE : XSPD_R_NONE;
}

int cli_mirror_read_settled(struct xspd_spd **ret, struct cli_view *view, const char *who,
			    enum xspd_reason *ret_doubt)
{
	struct xspd_spd *spd = NULL;
	uint64_t generation;

	for (int i = 0; i < ATTEMPTS; i++) {
		int err;

		if (cli_view_follow(view))
			return XSPD_FAILED;
		generation = cli_view_generation(view);
		*ret_doubt = doubt_of(view);
		err = cli_mirror_read(&spd, view);
		if (err)
			return cli_fail("%s: %s", who, strerror(-err));
		if (view->conf->generation == generation && !cli_view_stale(view)) {
			*ret = spd;
			return XSPD_DONE;
		}
		xspd_spd_free(spd);
	}
	return cli_fail("%s: the policies keep changing; try again", who);
}
