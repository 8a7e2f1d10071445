// SPDX-License-Identifier: GPL-2.0-only
#include <stdlib.h>

#include "spd/mirror.h"
#include "spd/suspect.h"

struct rank {
	uint64_t list; /* priority and if_id */
	uint32_t part; /* the rest of the partition */
	uint32_t item; /* number, oldest first */
};

static const struct xspd_pol *item_pol(const struct xspd_spd_item *item)
{
	return item->copy ? item->copy : item->pol;
}

/* Does nothing at all stand out of the order of the indexes? Their low bits are the direction. */
static bool in_order(const struct xspd_spd *spd)
{
	uint32_t highest = 0;
	size_t i;

	for (i = 0; i < spd->item_count; i++) {
		if (spd->items[i].skip)
			continue;
		if (spd->items[i].index >> 3 < highest)
			return false;
		highest = spd->items[i].index >> 3;
	}
	return true;
}

static int rank_compare(const void *a, const void *b)
{
	const struct rank *x = a, *y = b;

	if (x->list != y->list)
		return x->list < y->list ? -1 : 1;
	if (x->part != y->part)
		return x->part < y->part ? -1 : 1;
	return x->item < y->item ? -1 : x->item > y->item;
}

static size_t ranks_fill(const struct xspd_spd *spd, struct rank *ranks)
{
	size_t i, count = 0;

	for (i = 0; i < spd->item_count; i++) {
		const struct xspd_pol *pol = item_pol(&spd->items[i]);

		if (spd->items[i].skip)
			continue;
		ranks[count++] = (struct rank){
			.list = (uint64_t)pol->priority << 32 | pol->if_id,
			.part = (uint32_t)pol->sel.family << 16 | pol->type << 8 | pol->dir,
			.item = i,
		};
	}
	return count;
}

static void item_accuse(const struct xspd_spd *spd, struct xspd_spd_item *item)
{
	if (item->pos >= spd->suspect_from)
		item->tie = true;
}

static void ranks_walk(struct xspd_spd *spd, const struct rank *ranks, size_t count)
{
	uint32_t highest = 0;
	size_t i;

	for (i = 0; i < count; i++) {
		struct xspd_spd_item *item = &spd->items[ranks[i].item];

		if (!i || ranks[i].list != ranks[i - 1].list || ranks[i].part != ranks[i - 1].part)
			highest = 0;
		if (item->index < highest)
			item_accuse(spd, item);
		else
			highest = item->index;
	}
}

void xspd_spd_suspect(struct xspd_spd *spd)
{
	struct rank *ranks;
	size_t i, count;

	if (in_order(spd))
		return;
	ranks = malloc(spd->item_count * sizeof(*ranks));
	if (!ranks) { /* then every one may be */
		for (i = 0; i < spd->item_count; i++)
			item_accuse(spd, &spd->items[i]);
		return;
	}
	count = ranks_fill(spd, ranks);
	qsort(ranks, count, sizeof(*ranks), rank_compare);
	ranks_walk(spd, ranks, count);
	free(ranks);
}
