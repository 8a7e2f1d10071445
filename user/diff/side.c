// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM	 1
#define uthash_nonfatal_oom(obj) (linked = false)

#include "diff/side.h"

static struct xspd_diff_id identity_of(const struct xspd_pol *pol)
{
	return (struct xspd_diff_id){.sel = pol->sel,
				     .mark = pol->mark,
				     .mark_mask = pol->mark_mask,
				     .if_id = pol->if_id,
				     .dir = pol->dir,
				     .type = pol->type};
}

static unsigned int identity_hash(const struct xspd_diff_id *id)
{
	const uint32_t *word = (const void *)id;
	uint64_t hash = 0;

	for (size_t i = 0; i < sizeof(*id) / sizeof(*word); i++)
		hash = (hash ^ word[i]) * 0x9e3779b97f4a7c15ull, hash ^= hash >> 29;
	return (unsigned int)(hash >> 16);
}

bool xspd_diff_says_same(const struct xspd_pol *a, const struct xspd_pol *b)
{
	return a->action == b->action && !a->unmodelled == !b->unmodelled &&
	       !memcmp(&a->tmpl, &b->tmpl, sizeof(a->tmpl));
}

static uint64_t part_key(const struct xspd_pol *pol)
{
	return (uint64_t)pol->if_id << 32 | (uint64_t)pol->sel.family << 16 | pol->dir << 8 |
	       pol->type;
}

/* Whatever is unmodelled stands before all others: it may win. */
static int pol_compare(const void *a, const void *b)
{
	const struct xspd_pol *x = ((const struct xspd_diff_pol *)a)->pol;
	const struct xspd_pol *y = ((const struct xspd_diff_pol *)b)->pol;
	uint64_t kx = part_key(x), ky = part_key(y);

	if (kx != ky)
		return kx < ky ? -1 : 1;
	if (!x->unmodelled != !y->unmodelled)
		return x->unmodelled ? -1 : 1;
	return xspd_pol_before(x, y) ? -1 : xspd_pol_before(y, x);
}

int xspd_diff_side_init(struct xspd_diff_side *ret, const struct xspd_spd *spd)
{
	struct xspd_diff_side side = {.spd = spd};
	bool linked = true;
	const struct xspd_pol *pol;
	size_t room = HASH_COUNT(spd->by_index) + 1;

	side.pols = calloc(room, sizeof(*side.pols));
	if (!side.pols)
		return -ENOMEM;
	for (pol = spd->by_index; pol; pol = pol->hh.next)
		side.pols[side.count++].pol = pol;
	qsort(side.pols, side.count, sizeof(*side.pols), pol_compare);
	for (size_t i = 0; i < side.count; i++) {
		struct xspd_diff_pol *at = &side.pols[i];

		xspd_box_of(&at->box, at->pol);
		at->rank = i && part_key(at->pol) == part_key(at[-1].pol) ? at[-1].rank + 1 : 0;
		at->id = identity_of(at->pol);
		HASH_ADD_BYHASHVALUE(hh, side.by_identity, id, sizeof(at->id),
				     identity_hash(&at->id), at);
	}
	*ret = side;
	if (linked)
		return 0;
	xspd_diff_side_free(ret);
	return -ENOMEM;
}

void xspd_diff_side_free(struct xspd_diff_side *side)
{
	HASH_CLEAR(hh, side->by_identity);
	free(side->pols);
	side->pols = NULL;
}

static struct xspd_diff_pol *twin_find(const struct xspd_diff_side *side,
				       const struct xspd_diff_id *id)
{
	struct xspd_diff_pol *found;

	HASH_FIND_BYHASHVALUE(hh, side->by_identity, id, sizeof(*id), identity_hash(id), found);
	return found;
}

/*
 * The longest run of twins that stand in the same order on both sides (patience
 * sorting): all others of them count as moved.
 */
static int order_keep(struct xspd_diff_pol **twins, size_t count)
{
	size_t *pile = malloc((count + 1) * sizeof(*pile)), piles = 0;
	size_t *link = malloc((count + 1) * sizeof(*link));

	if (!pile || !link) {
		free(pile);
		free(link);
		return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++) {
		size_t low = 0, high = piles;

		while (low < high) {
			size_t middle = (low + high) / 2;

			if (twins[pile[middle]]->twin->rank < twins[i]->twin->rank)
				low = middle + 1;
			else
				high = middle;
		}
		link[i] = low ? pile[low - 1] : count;
		pile[low] = i;
		if (low == piles)
			piles++;
	}
	for (size_t i = piles ? pile[piles - 1] : count; i < count; i = link[i])
		twins[i]->stable = twins[i]->twin->stable = true;
	free(pile);
	free(link);
	return 0;
}

int xspd_diff_pair(struct xspd_diff_side *before, struct xspd_diff_side *after)
{
	struct xspd_diff_pol **twins = malloc((before->count + 1) * sizeof(*twins));
	size_t count = 0;
	int err = twins ? 0 : -ENOMEM;

	for (size_t i = 0; i < before->count && !err; i++) {
		struct xspd_diff_pol *at = &before->pols[i];

		if (i && part_key(at->pol) != part_key(at[-1].pol)) {
			err = order_keep(twins, count);
			count = 0;
		}
		at->twin = twin_find(after, &at->id);
		if (!at->twin)
			continue;
		at->twin->twin = at;
		if (xspd_diff_says_same(at->pol, at->twin->pol))
			twins[count++] = at;
	}
	if (!err)
		err = order_keep(twins, count);
	free(twins);
	return err;
}

struct xspd_diff_part xspd_diff_part_get(const struct xspd_diff_side *side, uint8_t type,
					 uint8_t dir, uint8_t family, uint32_t if_id)
{
	struct xspd_pol like = {
		.sel = {.family = family}, .type = type, .dir = dir, .if_id = if_id};
	uint64_t key = part_key(&like);
	size_t low = 0, high = side->count;
	struct xspd_diff_part part = {};

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (part_key(side->pols[middle].pol) < key)
			low = middle + 1;
		else
			high = middle;
	}
	part.pols = side->pols + low;
	while (low + part.count < side->count && part_key(part.pols[part.count].pol) == key)
		part.count++;
	return part;
}
