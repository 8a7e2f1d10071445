// SPDX-License-Identifier: GPL-2.0-only
/*
 * A dump, compared with the mirror.  Its entries are gathered first; end()
 * then finds out what becomes of each (resolve), in which order they stand
 * (plan), whose order is doubtful (suspect.c), and only then changes anything
 * (apply).  What events touched since begin() is newer than all the rest: it
 * keeps its contents, and stands last.
 */
#include <errno.h>
#include <stdlib.h>

#include "spd/mirror.h"
#include "spd/suspect.h"

void xspd_spd_dump_forget(struct xspd_spd *spd)
{
	size_t i;

	for (i = 0; i < spd->item_count; i++)
		free(spd->items[i].copy);
	free(spd->items);
	free(spd->gone);
	spd->items = NULL;
	spd->gone = NULL;
	spd->item_count = spd->item_room = 0;
	spd->gone_count = spd->gone_room = 0;
	spd->flushed = 0;
	spd->dumping = false;
}

int xspd_spd_dump_begin(struct xspd_spd *spd)
{
	xspd_spd_dump_forget(spd);
	if (!spd->suspecting) { /* an aborted dump leaves it as it was */
		spd->suspecting = true;
		spd->suspect_from = spd->next_pos;
	}
	spd->dump++;
	spd->dumping = true;
	return 0;
}

void xspd_spd_dump_abort(struct xspd_spd *spd)
{
	xspd_spd_dump_forget(spd);
}

static int items_reserve(struct xspd_spd *spd, size_t need)
{
	size_t room = spd->item_room ? spd->item_room : 256;
	struct xspd_spd_item *items;

	while (room < need)
		room *= 2;
	if (room == spd->item_room)
		return 0;
	items = realloc(spd->items, room * sizeof(*items));
	if (!items)
		return -ENOMEM;
	spd->items = items;
	spd->item_room = room;
	return 0;
}

static bool touched(const struct xspd_spd *spd, const struct xspd_pol *pol)
{
	return pol->seen == spd->dump;
}

int xspd_spd_dump_entry(struct xspd_spd *spd, const struct xspd_pol *pol)
{
	struct xspd_pol *known, *copy = NULL;
	int err;

	if (!spd->dumping)
		return -EINVAL;
	err = items_reserve(spd, spd->item_count + 1);
	if (err < 0)
		return err;
	known = xspd_spd_find(spd, pol->index);
	if (!known || !xspd_pol_same_identity(known, pol) || !xspd_pol_same_update(known, pol) ||
	    !xspd_pol_same_rest(known, pol)) {
		copy = xspd_pol_clone(pol);
		if (!copy)
			return -ENOMEM;
	}
	spd->items[spd->item_count++] = (struct xspd_spd_item){.index = pol->index, .copy = copy};
	return 0;
}

static int index_compare(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static bool is_gone(const struct xspd_spd *spd, const struct xspd_spd_item *item)
{
	if (!item->copy || spd->flushed & 1u << item->copy->type)
		return true; /* without a copy it was known when the entry came */
	return spd->gone_count &&
	       bsearch(&item->index, spd->gone, spd->gone_count, sizeof(*spd->gone), index_compare);
}

/* Only dumps know of security contexts: take that much from an entry that is outdated otherwise. */
static int sec_ctx_learn(struct xspd_spd *spd, struct xspd_pol *pol, const struct xspd_pol *copy)
{
	struct xspd_pol with;

	if (!copy || !(copy->unmodelled & ~pol->unmodelled & XSPD_UNMODELLED_SEC_CTX) ||
	    !xspd_pol_same_identity(pol, copy))
		return 0;
	with = *pol;
	with.unmodelled |= XSPD_UNMODELLED_SEC_CTX;
	return xspd_spd_replace(spd, pol, &with);
}

static int item_resolve(struct xspd_spd *spd, struct xspd_spd_item *item)
{
	struct xspd_pol *pol = xspd_spd_find(spd, item->index);

	if (!pol) {
		item->skip = is_gone(spd, item);
		return 0;
	}
	if (touched(spd, pol)) { /* or shown twice */
		item->skip = true;
		return sec_ctx_learn(spd, pol, item->copy);
	}
	pol->seen = spd->dump;
	item->pol = pol;
	return 0;
}

/* Oldest first from here on. */
static void items_reverse(struct xspd_spd *spd)
{
	struct xspd_spd_item tmp;
	size_t i, j;

	for (i = 0, j = spd->item_count; i + 1 < j; i++) {
		j--;
		tmp = spd->items[i];
		spd->items[i] = spd->items[j];
		spd->items[j] = tmp;
	}
}

static int item_pos_compare(const void *a, const void *b)
{
	const struct xspd_spd_item *x = a, *y = b;

	return x->pol->pos < y->pol->pos ? -1 : x->pol->pos > y->pol->pos;
}

/* Append what events touched, in the order of the events. */
static int touched_append(struct xspd_spd *spd)
{
	size_t count = 0, first = spd->item_count;
	struct xspd_pol *pol;
	int err;

	for (pol = spd->by_index; pol; pol = pol->hh.next)
		count += touched(spd, pol);
	err = items_reserve(spd, first + count);
	if (err < 0)
		return err;
	for (pol = spd->by_index; pol; pol = pol->hh.next)
		if (touched(spd, pol))
			spd->items[spd->item_count++] =
				(struct xspd_spd_item){.pol = pol, .index = pol->index};
	if (count)
		qsort(spd->items + first, count, sizeof(*spd->items), item_pos_compare);
	return 0;
}

/* Was it updated, and did we not hear of it? Then its place is not known. */
static bool update_missed(const struct xspd_spd_item *item)
{
	return item->copy && (!xspd_pol_same_identity(item->pol, item->copy) ||
			      !xspd_pol_same_update(item->pol, item->copy));
}

/*
 * Old numbers are kept up to the first (oldest) policy that is new or stands
 * elsewhere; everything newer is numbered afresh.
 */
static void items_plan(struct xspd_spd *spd, size_t entries)
{
	uint32_t newest = 0; /* pos among those known so far */
	bool fresh = false;
	size_t i;

	for (i = 0; i < spd->item_count; i++) {
		struct xspd_spd_item *item = &spd->items[i];
		bool missed;

		if (item->skip)
			continue;
		item->moved = item->pol && i < entries && item->pol->pos < newest;
		if (item->pol && item->pol->pos > newest)
			newest = item->pol->pos;
		missed = item->pol && (item->moved || update_missed(item));
		fresh |= !item->pol || missed;
		item->pos = fresh ? spd->next_pos++ : item->pol->pos;
		item->tie = missed || (item->pol && item->pol->tie);
	}
}

static int item_add(struct xspd_spd *spd, struct xspd_spd_item *item, struct xspd_spd_diff *diff)
{
	struct xspd_pol *pol = item->copy;

	if (item->skip || item->pol || xspd_spd_find(spd, item->index))
		return 0;
	item->copy = NULL;
	pol->pos = item->pos;
	pol->tie = item->tie;
	diff->added++;
	return xspd_spd_add(spd, pol);
}

static int item_change(struct xspd_spd *spd, struct xspd_spd_item *item, struct xspd_spd_diff *diff)
{
	struct xspd_pol with;

	if (item->skip || !item->pol)
		return 0;
	if (!item->copy && item->pos == item->pol->pos && item->tie == item->pol->tie)
		return 0;
	with = item->copy ? *item->copy : *item->pol;
	with.pos = item->pos;
	with.tie = item->tie;
	if (!xspd_pol_same_identity(item->pol, &with)) {
		diff->added++;
		diff->removed++;
		return xspd_spd_supersede(spd, item->pol, &with);
	}
	diff->modified += item->copy || item->moved;
	return xspd_spd_replace(spd, item->pol, &with);
}

static void keep_first(int *err, int next)
{
	if (!*err)
		*err = next;
}

static int items_apply(struct xspd_spd *spd, struct xspd_spd_diff *diff)
{
	struct xspd_pol *pol, *tmp;
	int err = 0;
	size_t i;

	for (i = 0; i < spd->item_count; i++)
		keep_first(&err, item_add(spd, &spd->items[i], diff));
	for (i = 0; i < spd->item_count; i++)
		keep_first(&err, item_change(spd, &spd->items[i], diff));
	for (pol = spd->by_index; pol; pol = tmp) {
		tmp = pol->hh.next;
		if (touched(spd, pol))
			continue;
		diff->removed++;
		keep_first(&err, xspd_spd_drop(spd, pol));
	}
	return err;
}

int xspd_spd_dump_end(struct xspd_spd *spd, struct xspd_spd_diff *ret)
{
	size_t i, entries = spd->item_count;
	struct xspd_spd_diff diff = {};
	int err;

	if (!spd->dumping)
		return -EINVAL;
	items_reverse(spd);
	err = touched_append(spd);
	if (!err)
		err = xspd_spd_renumber(spd, spd->item_count);
	if (err < 0) {
		xspd_spd_dump_forget(spd);
		return err;
	}
	if (spd->gone_count)
		qsort(spd->gone, spd->gone_count, sizeof(*spd->gone), index_compare);
	for (i = 0; i < entries; i++)
		keep_first(&err, item_resolve(spd, &spd->items[i]));
	items_plan(spd, entries);
	xspd_spd_suspect(spd);
	keep_first(&err, items_apply(spd, &diff));
	spd->suspecting = false;
	xspd_spd_dump_forget(spd);
	keep_first(&err, xspd_spd_renumbered(spd));
	if (ret)
		*ret = diff;
	return err;
}
