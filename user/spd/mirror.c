// SPDX-License-Identifier: GPL-2.0-only
/* The single steps by which the mirror changes. */
#include <errno.h>
#include <stdlib.h>

/* a table that cannot grow is an error to return, not a reason to exit() */
#define HASH_NONFATAL_OOM	 1
#define uthash_nonfatal_oom(obj) (linked = false)
/* shorter chains than uthash's own 10: at a million policies each step is a cache miss */
#define HASH_BKT_CAPACITY_THRESH 3U

#include "spd/mirror.h"

struct xspd_pol *xspd_pol_clone(const struct xspd_pol *pol)
{
	struct xspd_pol *ret = malloc(sizeof(*ret));

	if (ret)
		memcpy(ret, pol, sizeof(*ret));
	return ret;
}

static void account(struct xspd_spd *spd, const struct xspd_pol *pol, int sign)
{
	if (pol->dir < XSPD_DIR_MAX_)
		spd->count[pol->dir] += sign;
	spd->ties += pol->tie ? sign : 0;
	spd->unmodelled += pol->unmodelled ? sign : 0;
}

int xspd_spd_link(struct xspd_spd *spd, struct xspd_pol *pol)
{
	bool linked = true;

	HASH_ADD_BYHASHVALUE(hh, spd->by_index, index, sizeof(pol->index),
			     xspd_index_hash(pol->index), pol);
	if (!linked)
		return -ENOMEM;
	account(spd, pol, 1);
	return 0;
}

void xspd_spd_unlink(struct xspd_spd *spd, struct xspd_pol *pol)
{
	account(spd, pol, -1);
	HASH_DEL(spd->by_index, pol);
}

int xspd_spd_tell(struct xspd_spd *spd, const struct xspd_change *change)
{
	int err;

	if (!spd->listener || spd->quiet)
		return 0;
	err = spd->listener(spd->ctx, change);
	return err < 0 ? err : 0;
}

static bool beyond(const xfrm_address_t *addr, unsigned int plen)
{
	const uint8_t *byte = (const uint8_t *)addr;

	for (unsigned int i = 0; i < sizeof(*addr); i++) {
		unsigned int bits = plen > i * 8 ? plen - i * 8 : 0;

		if (bits < 8 && byte[i] & 0xff >> bits)
			return true;
	}
	return false;
}

/* Which list of the kernel's it stands in may hang on bits that no packet is compared with. */
static void order_old(const struct xspd_spd *spd, struct xspd_pol *pol)
{
	pol->apart = spd->old_order;
	if (spd->old_order)
		pol->tie |= beyond(&pol->sel.saddr, pol->sel.prefixlen_s) ||
			    beyond(&pol->sel.daddr, pol->sel.prefixlen_d);
}

int xspd_spd_add(struct xspd_spd *spd, struct xspd_pol *pol)
{
	struct xspd_change change = {.kind = XSPD_CHANGE_ADD, .pol = pol};
	int err;

	order_old(spd, pol);
	pol->slot = 0;
	pol->tuple = 0;
	pol->seen = spd->dump;
	err = xspd_spd_link(spd, pol);
	if (err < 0) {
		free(pol);
		return err;
	}
	return xspd_spd_tell(spd, &change);
}

int xspd_spd_drop(struct xspd_spd *spd, struct xspd_pol *pol)
{
	struct xspd_change change = {.kind = XSPD_CHANGE_REMOVE, .old = pol};
	int err;

	xspd_spd_unlink(spd, pol);
	err = xspd_spd_tell(spd, &change);
	free(pol);
	return err;
}

/* All of @with but what belongs to the hash table and to the plane. */
static void contents_copy(struct xspd_pol *pol, const struct xspd_pol *with)
{
	memcpy(pol, with, offsetof(struct xspd_pol, tuple));
}

int xspd_spd_replace(struct xspd_spd *spd, struct xspd_pol *pol, const struct xspd_pol *with)
{
	struct xspd_pol old = *pol;
	struct xspd_change change = {.kind = XSPD_CHANGE_REPLACE, .pol = pol, .old = &old};

	account(spd, pol, -1);
	contents_copy(pol, with);
	order_old(spd, pol);
	pol->seen = spd->dump;
	account(spd, pol, 1);
	return xspd_spd_tell(spd, &change);
}

int xspd_spd_supersede(struct xspd_spd *spd, struct xspd_pol *pol, const struct xspd_pol *with)
{
	struct xspd_pol *fresh = xspd_pol_clone(with);
	int err, err2;

	if (!fresh)
		return -ENOMEM;
	err = xspd_spd_drop(spd, pol);
	err2 = xspd_spd_add(spd, fresh);
	return err < 0 ? err : err2;
}

static int pos_compare(const void *a, const void *b)
{
	const struct xspd_pol *const *x = a, *const *y = b;

	return (*x)->pos < (*y)->pos ? -1 : (*x)->pos > (*y)->pos;
}

int xspd_spd_renumber(struct xspd_spd *spd, size_t need)
{
	size_t i = 0, count = HASH_COUNT(spd->by_index);
	struct xspd_pol **order, *pol;
	uint32_t suspect_from = 1;

	if (need < UINT32_MAX - spd->next_pos)
		return 0;
	order = malloc((count + 1) * sizeof(*order));
	if (!order)
		return -ENOMEM;
	for (pol = spd->by_index; pol; pol = pol->hh.next)
		order[i++] = pol;
	qsort(order, count, sizeof(*order), pos_compare);
	for (i = 0; i < count; i++) {
		suspect_from += order[i]->pos < spd->suspect_from;
		order[i]->pos = i + 1;
	}
	free(order);
	spd->next_pos = count + 1;
	spd->suspect_from = suspect_from;
	spd->quiet = true;
	return 0;
}

int xspd_spd_renumbered(struct xspd_spd *spd)
{
	struct xspd_change change = {.kind = XSPD_CHANGE_RENUMBER};

	if (!spd->quiet)
		return 0;
	spd->quiet = false;
	return xspd_spd_tell(spd, &change);
}
