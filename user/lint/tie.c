// SPDX-License-Identifier: GPL-2.0-only
/* Equal priorities that overlap and say different things. */
#include <errno.h>
#include <stdlib.h>

#include "lint/check.h"

#define STEPS_MOST 64 /* along a chain of overlapping policies */

/* The pairs of one policy, the wider one of each: one that ties with many is one finding. */
struct tied {
	uint32_t with[XSPD_LINT_NAMED - 1];
	uint32_t count;
	bool open; /* the order of one of them is not certain */
};

static unsigned int width(const struct xspd_lint_table *table, uint32_t item)
{
	const uint64_t *mask = table->class[table->item[item].class].mask;
	unsigned int bits = 0;

	for (int w = 0; w < XSPD_LINT_WORDS; w++)
		bits += (unsigned int)__builtin_popcountll(mask[w]);
	return bits;
}

/* Does one of another priority decide all that both match? Then their order is nobody's concern. */
static bool decided(struct xspd_lint_table *table, uint32_t a, uint32_t b)
{
	struct xspd_lint_box box = xspd_lint_box(table, a), other = xspd_lint_box(table, b);
	uint32_t cover;

	for (int w = 0; w < XSPD_LINT_WORDS; w++) {
		box.mask[w] |= other.mask[w];
		box.value[w] |= other.value[w];
	}
	cover = xspd_lint_cover(table, a < b ? a : b, &box);
	return cover != XSPD_LINT_NONE &&
	       table->item[cover].pol->priority != table->item[a].pol->priority;
}

static void tied_add(struct tied *tied, uint32_t with, bool open)
{
	/* the uncertain ones are what is told: they come first */
	if (open && !tied->open)
		tied->count = 0;
	if (tied->open && !open)
		return;
	if (tied->count < XSPD_LINT_NAMED - 1)
		tied->with[tied->count] = with;
	tied->count++;
	tied->open = open;
}

static void pair_add(struct xspd_lint_table *table, uint32_t a, uint32_t b, struct tied *tied)
{
	const struct xspd_pol *x = table->item[a].pol, *y = table->item[b].pol;
	unsigned int wa, wb;

	if (xspd_lint_same_treatment(x, y) || x->unmodelled || y->unmodelled ||
	    table->item[a].covered != XSPD_LINT_NONE || table->item[b].covered != XSPD_LINT_NONE ||
	    decided(table, a, b))
		return;
	wa = width(table, a);
	wb = width(table, b);
	if (wa < wb || (wa == wb && a < b))
		tied_add(&tied[a], b, !xspd_lint_certain(x, y));
	else
		tied_add(&tied[b], a, !xspd_lint_certain(x, y));
}

static void classes_compare(struct xspd_lint_table *table, uint32_t own, uint32_t other,
			    struct tied *tied)
{
	const struct xspd_lint_class *a = &table->class[own], *b = &table->class[other];
	uint64_t mask[XSPD_LINT_WORDS];

	for (int w = 0; w < XSPD_LINT_WORDS; w++)
		mask[w] = a->mask[w] & b->mask[w];
	if (!xspd_lint_join(table, other, mask, true))
		return;
	for (uint32_t m = 0; m < a->count; m++) {
		uint32_t item = table->member[a->at + m];
		uint32_t found = xspd_lint_probe(table, table->item[item].value,
						 table->item[item].pol->priority);

		for (int i = 0; i < STEPS_MOST && found != XSPD_LINT_NONE; i++) {
			pair_add(table, item, found, tied);
			found = xspd_lint_next(table, found);
		}
	}
}

/* The wider one is to be hashed, if one is: it is already. */
static void pair_compare(struct xspd_lint_table *table, uint32_t a, uint32_t b, struct tied *tied)
{
	if (xspd_lint_within(table->class[a].mask, table->class[b].mask))
		classes_compare(table, b, a, tied);
	else
		classes_compare(table, a, b, tied);
}

static bool may_differ(const struct xspd_lint_table *table, const struct xspd_lint_class *a,
		       const struct xspd_lint_class *b)
{
	return a->dir == b->dir && a->type == b->type && a->family == b->family &&
	       a->best <= b->worst && b->best <= a->worst && !xspd_lint_uniform(table, a, b);
}

void xspd_lint_check_ties(struct xspd_lint *lint)
{
	struct xspd_lint_table *table = &lint->table;
	struct tied *tied = calloc(table->count + 1ul, sizeof(*tied));
	size_t nr;

	if (!tied) {
		lint->err = -ENOMEM;
		return;
	}
	for (uint32_t i = 0; i < table->classes; i++)
		for (uint32_t j = i + 1; j < table->classes; j++)
			if (may_differ(table, &table->class[i], &table->class[j]))
				pair_compare(table, i, j, tied);
	for (uint32_t i = 0; i < table->count && !lint->err; i++) {
		if (!tied[i].count)
			continue;
		nr = tied[i].open ? xspd_lint_add(lint, XSPD_LINT_TIE, XSPD_LINT_WARNING,
						  table->item[i].pol)
				  : xspd_lint_add(lint, XSPD_LINT_AGE, XSPD_LINT_INFO,
						  table->item[i].pol);
		for (uint32_t k = 0; k < tied[i].count && k < XSPD_LINT_NAMED - 1; k++)
			xspd_lint_more(lint, nr, table->item[tied[i].with[k]].pol);
		if (!lint->err)
			lint->report->finding[nr].count = tied[i].count + 1;
	}
	free(tied);
}
