// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <linux/xfrm.h>

#include "words/change.h"

/* Not in use, of the direction that its low bits tell, and above all others. */
static uint32_t index_new(const struct xspd_spd *spd, uint8_t dir)
{
	const struct xspd_pol *pol;
	uint32_t highest = 0;

	for (pol = spd->by_index; pol; pol = pol->hh.next)
		if (pol->index > highest)
			highest = pol->index;
	highest = (highest & ~7u) + 8;
	while (!highest || xspd_spd_find(spd, highest | dir)) /* it went round */
		highest += 8;
	return highest | dir;
}

static bool index_fits(const struct xspd_pol *pol)
{
	return !pol->index || (pol->index & 7) == pol->dir;
}

/* Transport mode does with addresses of another family what only a tunnel can. */
static bool tmpl_fits(const struct xspd_pol *pol)
{
	bool tunnel = pol->tmpl.mode == XFRM_MODE_TUNNEL || pol->tmpl.mode == XFRM_MODE_BEET;

	if (!pol->tmpl.count)
		return true;
	if (tunnel && pol->dir == XSPD_OUT && pol->tmpl.required < pol->tmpl.count)
		return false;
	return tunnel || pol->tmpl.family == pol->sel.family;
}

static int change(struct xspd_spd *spd, const struct xspd_line *line, uint32_t *ret_index)
{
	const struct xspd_pol *old = xspd_spd_find_identity(spd, &line->pol);
	struct xspd_pol pol = line->pol;

	if (!index_fits(&pol) || !tmpl_fits(&pol))
		return -EINVAL;
	if (old && line->kind == XSPD_LINE_ADD)
		return -EEXIST;
	if (old) {
		pol.index = old->index;
	} else if (!pol.index || xspd_spd_find(spd, pol.index)) {
		pol.index = index_new(spd, pol.dir);
		*ret_index = pol.index;
	}
	return xspd_spd_upsert(spd, &pol);
}

static int delete_index(struct xspd_spd *spd, const struct xspd_pol *key)
{
	const struct xspd_pol *pol = xspd_spd_find(spd, key->index);

	if (!index_fits(key))
		return -ENOENT;
	if (!pol || pol->type != key->type || pol->mark != key->mark ||
	    pol->mark_mask != key->mark_mask || pol->if_id != key->if_id)
		return -ENOENT;
	return xspd_spd_remove(spd, key->index);
}

static int delete (struct xspd_spd *spd, const struct xspd_pol *key)
{
	const struct xspd_pol *pol = xspd_spd_find_identity(spd, key);

	return pol ? xspd_spd_remove(spd, pol->index) : -ENOENT;
}

int xspd_line_apply(struct xspd_spd *spd, const struct xspd_line *line, uint32_t *ret_index)
{
	uint32_t known = line->defaults_known;

	*ret_index = 0;
	switch (line->kind) {
	case XSPD_LINE_ADD:
	case XSPD_LINE_UPDATE:
		return change(spd, line, ret_index);
	case XSPD_LINE_DELETE:
		return delete (spd, &line->pol);
	case XSPD_LINE_DELETE_INDEX:
		return delete_index(spd, &line->pol);
	case XSPD_LINE_FLUSH:
		return xspd_spd_flush(spd, line->pol.type);
	case XSPD_LINE_DEFAULTS:
		return xspd_spd_set_defaults(spd, (spd->defaults & ~known) | line->defaults);
	default:
		return 0;
	}
}
