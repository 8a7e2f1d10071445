// SPDX-License-Identifier: GPL-2.0-only
/* The mirror: events applied to it. */
#include <errno.h>
#include <stdlib.h>

#include "spd/mirror.h"

struct xspd_spd *xspd_spd_new(void)
{
	struct xspd_spd *spd = calloc(1, sizeof(*spd));

	if (!spd)
		return NULL;
	spd->next_pos = 1;
	/* what comes before the first dump has ended has a past nobody saw */
	spd->suspecting = true;
	spd->suspect_from = 1;
	return spd;
}

static void all_free(struct xspd_spd *spd)
{
	struct xspd_pol *pol, *next;

	pol = spd->by_index;
	HASH_CLEAR(hh, spd->by_index);
	for (; pol; pol = next) {
		next = pol->hh.next;
		free(pol);
	}
}

void xspd_spd_free(struct xspd_spd *spd)
{
	if (!spd)
		return;
	xspd_spd_dump_forget(spd);
	all_free(spd);
	free(spd);
}

struct xspd_pol *xspd_spd_find(const struct xspd_spd *spd, uint32_t index)
{
	struct xspd_pol *pol;

	HASH_FIND_BYHASHVALUE(hh, spd->by_index, &index, sizeof(index), xspd_index_hash(index),
			      pol);
	return pol;
}

struct xspd_pol *xspd_spd_find_identity(const struct xspd_spd *spd, const struct xspd_pol *key)
{
	struct xspd_pol *pol;

	for (pol = spd->by_index; pol; pol = pol->hh.next)
		if (xspd_pol_same_identity(pol, key))
			return pol;
	return NULL;
}

static int upsert_new(struct xspd_spd *spd, const struct xspd_pol *pol)
{
	struct xspd_pol *fresh = xspd_pol_clone(pol);

	if (!fresh)
		return -ENOMEM;
	fresh->tie = false;
	fresh->pos = spd->next_pos++;
	return xspd_spd_add(spd, fresh);
}

static int upsert_known(struct xspd_spd *spd, struct xspd_pol *old, const struct xspd_pol *pol)
{
	struct xspd_pol with = *pol;

	with.pos = spd->next_pos++;
	if (!xspd_pol_same_identity(old, pol)) {
		with.tie = false;
		return xspd_spd_supersede(spd, old, &with);
	}
	/* at its old priority it keeps its place in the kernel's list, at another it goes last */
	with.tie = old->priority == pol->priority;
	/* events do not say whether there is one, and it cannot go away under the same index */
	with.unmodelled |= old->unmodelled & XSPD_UNMODELLED_SEC_CTX;
	return xspd_spd_replace(spd, old, &with);
}

int xspd_spd_upsert(struct xspd_spd *spd, const struct xspd_pol *pol)
{
	struct xspd_pol *old = xspd_spd_find(spd, pol->index);
	int err, err2;

	err = xspd_spd_renumber(spd, 1);
	if (err < 0)
		return err;
	err = old ? upsert_known(spd, old, pol) : upsert_new(spd, pol);
	err2 = xspd_spd_renumbered(spd);
	return err < 0 ? err : err2;
}

/* A dump under way may still show it: note that it is gone. */
static int gone_note(struct xspd_spd *spd, uint32_t index)
{
	size_t room = spd->gone_room ? 2 * spd->gone_room : 64;
	uint32_t *gone;

	if (!spd->dumping)
		return 0;
	if (spd->gone_count == spd->gone_room) {
		gone = realloc(spd->gone, room * sizeof(*gone));
		if (!gone)
			return -ENOMEM;
		spd->gone = gone;
		spd->gone_room = room;
	}
	spd->gone[spd->gone_count++] = index;
	return 0;
}

int xspd_spd_remove(struct xspd_spd *spd, uint32_t index)
{
	struct xspd_pol *pol = xspd_spd_find(spd, index);
	int err;

	err = gone_note(spd, index);
	if (err < 0)
		return err;
	return pol ? xspd_spd_drop(spd, pol) : 0;
}

int xspd_spd_flush(struct xspd_spd *spd, uint8_t type)
{
	struct xspd_change change = {.kind = XSPD_CHANGE_FLUSH, .type = type};
	struct xspd_pol *pol, *tmp;
	int err;

	if (spd->dumping)
		spd->flushed |= 1u << type;
	for (pol = spd->by_index; pol && pol->type != type; pol = pol->hh.next)
		;
	if (!pol)
		return 0;
	err = xspd_spd_tell(spd, &change);
	for (; pol; pol = tmp) {
		tmp = pol->hh.next;
		if (pol->type != type)
			continue;
		xspd_spd_unlink(spd, pol);
		free(pol);
	}
	return err;
}

int xspd_spd_set_defaults(struct xspd_spd *spd, uint32_t defaults)
{
	struct xspd_change change = {.kind = XSPD_CHANGE_DEFAULTS};

	if (spd->defaults == defaults)
		return 0;
	spd->defaults = defaults;
	return xspd_spd_tell(spd, &change);
}
