// SPDX-License-Identifier: GPL-2.0-only
/* Policies that better ones leave nothing to, or less than they were meant for. */
#include <errno.h>
#include <stdlib.h>

#include "lint/check.h"

#define STEPS_MOST 64 /* along a chain of overlapping policies */

static bool same_group(const struct xspd_lint_class *a, const struct xspd_lint_class *b)
{
	return a->dir == b->dir && a->type == b->type && a->family == b->family;
}

/* --- twins ----------------------------------------------------------------------- */

/* One class and value: they match the same flows, so the kernel tells them apart by other bits. */
void xspd_lint_check_twins(struct xspd_lint *lint)
{
	struct xspd_lint_table *table = &lint->table;

	for (uint32_t i = 0; i < table->count; i++) {
		struct xspd_lint_item *item = &table->item[i];
		uint32_t next = item->next;
		size_t nr;

		if (item->twin || next == XSPD_LINT_NONE || item->pol->unmodelled)
			continue;
		nr = xspd_lint_add(lint, XSPD_LINT_TWIN, XSPD_LINT_WARNING, item->pol);
		for (; next != XSPD_LINT_NONE; next = table->item[next].next) {
			xspd_lint_more(lint, nr, table->item[next].pol);
			table->item[next].twin = true;
			table->item[next].covered = i;
		}
	}
}

/* --- covered ---------------------------------------------------------------------- */

/* Classes whose policies can cover one of @own: what they compare, it compares. */
static uint32_t classes_wider(const struct xspd_lint_table *table, uint32_t own, uint32_t *ret)
{
	const struct xspd_lint_class *c = &table->class[own];
	uint32_t n = 0;

	for (uint32_t i = 0; i < table->classes; i++)
		if (same_group(c, &table->class[i]) && table->class[i].best <= c->worst &&
		    xspd_lint_within(table->class[i].mask, c->mask))
			ret[n++] = i;
	return n;
}

static uint32_t cover_of(struct xspd_lint_table *table, uint32_t item, const uint32_t *wider,
			 uint32_t count)
{
	const struct xspd_lint_item *own = &table->item[item];
	uint32_t best = XSPD_LINT_NONE, found;

	for (uint32_t i = 0; i < count; i++) {
		if (table->class[wider[i]].best > own->pol->priority)
			continue;
		found = xspd_lint_find(table, wider[i], own->value);
		if (found < best && xspd_lint_better(table->item[found].pol, own->pol))
			best = found;
	}
	return best;
}

static void class_never(struct xspd_lint *lint, uint32_t class, uint32_t *wider)
{
	struct xspd_lint_table *table = &lint->table;
	const struct xspd_lint_class *c = &table->class[class];
	uint32_t count = classes_wider(table, class, wider);
	size_t nr;

	if (table->work < (uint64_t)count * c->count) {
		table->incomplete = true;
		return;
	}
	table->work -= (uint64_t)count * c->count;
	for (uint32_t m = 0; m < c->count && !lint->err; m++) {
		uint32_t i = table->member[c->at + m];

		if (table->item[i].covered != XSPD_LINT_NONE)
			continue;
		table->item[i].covered = cover_of(table, i, wider, count);
		if (table->item[i].covered == XSPD_LINT_NONE)
			continue;
		nr = xspd_lint_add(lint, XSPD_LINT_NEVER, XSPD_LINT_WARNING, table->item[i].pol);
		xspd_lint_more(lint, nr, table->item[table->item[i].covered].pol);
	}
}

void xspd_lint_check_never(struct xspd_lint *lint)
{
	uint32_t *wider = calloc(lint->table.classes + 1ul, sizeof(*wider));

	if (!wider) {
		lint->err = -ENOMEM;
		return;
	}
	for (uint32_t i = 0; i < lint->table.classes && !lint->err; i++)
		class_never(lint, i, wider);
	free(wider);
}

/* --- bypasses ----------------------------------------------------------------------- */
struct taken {
	uint32_t by; /* the best that takes a part of it, NONE: none */
};

/* What both @a and @b match, given that they overlap. */
static struct xspd_lint_box common(const struct xspd_lint_table *table, uint32_t a, uint32_t b)
{
	struct xspd_lint_box box = xspd_lint_box(table, a), other = xspd_lint_box(table, b);

	for (int w = 0; w < XSPD_LINT_WORDS; w++) {
		box.mask[w] |= other.mask[w];
		box.value[w] |= other.value[w];
	}
	return box;
}

/* Is the part that @by takes from @bypass anyway another bypass's, a better one than @by? */
static bool given_back(struct xspd_lint_table *table, uint32_t bypass, uint32_t by)
{
	struct xspd_lint_box box = common(table, bypass, by);
	uint32_t cover = xspd_lint_cover(table, by, &box);

	return cover != XSPD_LINT_NONE && xspd_lint_plain(table->item[cover].pol);
}

static void bypass_probe(struct xspd_lint_table *table, uint32_t item, struct taken *taken)
{
	uint32_t found = xspd_lint_probe(table, table->item[item].value, 0);

	for (int i = 0; i < STEPS_MOST && found < item; i++, found = xspd_lint_next(table, found)) {
		const struct xspd_pol *pol = table->item[found].pol;

		if (xspd_lint_plain(pol) || !xspd_lint_better(pol, table->item[item].pol) ||
		    table->item[found].covered != XSPD_LINT_NONE || given_back(table, item, found))
			continue;
		if (found < taken->by)
			taken->by = found;
		return;
	}
}

/*
 * An exception below the bypass, in all it compares, is what better priorities
 * are for; what takes a part of it in one way and is wider in another is an accident.
 */
static void class_bypass(struct xspd_lint *lint, uint32_t own, struct taken *taken)
{
	struct xspd_lint_table *table = &lint->table;
	const struct xspd_lint_class *c = &table->class[own], *class;
	uint64_t mask[XSPD_LINT_WORDS];

	for (uint32_t i = 0; i < table->classes; i++) {
		class = &table->class[i];
		if (!class->hard || !same_group(c, class) || class->best > c->worst ||
		    xspd_lint_within(c->mask, class->mask))
			continue;
		for (int w = 0; w < XSPD_LINT_WORDS; w++)
			mask[w] = c->mask[w] & class->mask[w];
		if (!xspd_lint_join(table, i, mask, false))
			return;
		for (uint32_t m = 0; m < c->count; m++) {
			uint32_t item = table->member[c->at + m];

			if (xspd_lint_plain(table->item[item].pol) &&
			    table->item[item].covered == XSPD_LINT_NONE)
				bypass_probe(table, item, &taken[item]);
		}
	}
}

static bool has_bypass(const struct xspd_lint_table *table, const struct xspd_lint_class *class)
{
	for (uint32_t i = 0; i < class->count; i++)
		if (xspd_lint_plain(table->item[table->member[class->at + i]].pol))
			return true;
	return false;
}

void xspd_lint_check_bypass(struct xspd_lint *lint)
{
	struct xspd_lint_table *table = &lint->table;
	struct taken *taken = calloc(table->count + 1ul, sizeof(*taken));
	size_t nr;

	if (!taken) {
		lint->err = -ENOMEM;
		return;
	}
	for (uint32_t i = 0; i < table->count; i++)
		taken[i].by = XSPD_LINT_NONE;
	for (uint32_t i = 0; i < table->classes; i++)
		if (has_bypass(table, &table->class[i]))
			class_bypass(lint, i, taken);
	for (uint32_t i = 0; i < table->count && !lint->err; i++) {
		if (taken[i].by == XSPD_LINT_NONE)
			continue;
		nr = xspd_lint_add(lint, XSPD_LINT_BYPASS, XSPD_LINT_WARNING, table->item[i].pol);
		xspd_lint_more(lint, nr, table->item[taken[i].by].pol);
	}
	free(taken);
}
