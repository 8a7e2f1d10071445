// SPDX-License-Identifier: GPL-2.0-only
/* Policies that several better ones cover together. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lint/check.h"

#define CANDIDATES_MOST 512
#define CELLS_MOST	4096 /* that one policy is divided into */
#define BATCH		1024 /* policies looked at together */
#define KINDS_MOST	24   /* of selectors that cover one kind together */

struct cells {
	const struct xspd_lint_table *table;
	uint32_t left; /* that may still be looked at */
};

/* Bits of @mask beyond @box, and the first of them. */
static unsigned int extra_bits(const struct xspd_lint_box *box, const uint64_t *mask, int *ret_word,
			       uint64_t *ret_bit)
{
	unsigned int count = 0;

	for (int i = XSPD_LINT_WORDS; i-- > 0;) {
		uint64_t extra = mask[i] & ~box->mask[i];

		if (!extra)
			continue;
		count += (unsigned int)__builtin_popcountll(extra);
		*ret_word = i;
		*ret_bit = 1ull << (63 - __builtin_clzll(extra));
	}
	return count;
}

static bool overlaps(const struct xspd_lint_table *table, const struct xspd_lint_box *box,
		     uint32_t item)
{
	const struct xspd_lint_item *i = &table->item[item];
	const uint64_t *mask = table->class[i->class].mask;
	uint64_t differ = 0;

	for (int w = 0; w < XSPD_LINT_WORDS; w++)
		differ |= (box->value[w] ^ i->value[w]) & box->mask[w] & mask[w];
	return !differ;
}

/* 2^-bits, as parts of 2^32; what is smaller counts as one part, never as nothing. */
static uint64_t share(unsigned int bits)
{
	return bits >= 32 ? 1 : 1ull << (32 - bits);
}

#define WHOLE (1ull << 32)

/*
 * Is every flow in @box in one of @items? Divided in two along a bit that one of them asks for
 * until one of them takes a whole part.
 */
static bool cell_covered(struct cells *cells, const struct xspd_lint_box *box,
			 const uint32_t *items, uint32_t count)
{
	uint32_t kept[CANDIDATES_MOST], n = 0;
	struct xspd_lint_box half = *box;
	unsigned int least = ~0u, bits;
	int word = 0, at;
	uint64_t bit = 0, first, sum = 0;

	if (!cells->left)
		return false;
	cells->left--;
	for (uint32_t i = 0; i < count; i++) {
		if (!overlaps(cells->table, box, items[i]))
			continue;
		bits = extra_bits(box, cells->table->class[cells->table->item[items[i]].class].mask,
				  &at, &first);
		if (!bits)
			return true;
		sum += share(bits);
		kept[n++] = items[i];
		if (bits < least) {
			least = bits;
			word = at;
			bit = first;
		}
	}
	if (sum < WHOLE)
		return false;
	half.mask[word] |= bit;
	half.value[word] &= ~bit;
	if (!cell_covered(cells, &half, kept, n))
		return false;
	half.value[word] |= bit;
	return cell_covered(cells, &half, kept, n);
}

/* Can policies of @class, all in all, cover one of @own? If not, none needs a look. */
static uint64_t class_share(const struct xspd_lint_class *own, const struct xspd_lint_class *class)
{
	struct xspd_lint_box box = {};
	uint64_t bit;
	int word;
	unsigned int bits;

	if (own->dir != class->dir || own->type != class->type || own->family != class->family ||
	    class->best > own->worst)
		return 0;
	memcpy(box.mask, own->mask, sizeof(box.mask));
	bits = extra_bits(&box, class->mask, &word, &bit);
	return bits ? share(bits) * class->count : 0;
}

/* Some policies of one class, and what may cover them. */
struct batch {
	uint32_t item[BATCH];
	uint32_t found[BATCH];
	uint32_t count;
	uint32_t (*candidate)[CANDIDATES_MOST];
};

static void batch_probe(struct xspd_lint_table *table, struct batch *batch, uint32_t nr)
{
	uint32_t item = batch->item[nr];
	uint32_t found = xspd_lint_probe(table, table->item[item].value, 0);

	for (; found < item; found = xspd_lint_next(table, found)) {
		if (!xspd_lint_better(table->item[found].pol, table->item[item].pol))
			continue;
		if (batch->found[nr] >= CANDIDATES_MOST) { /* too many to tell */
			batch->found[nr] = CANDIDATES_MOST + 1;
			return;
		}
		batch->candidate[nr][batch->found[nr]++] = found;
	}
}

/* The classes that can take the largest parts of one of @own, and whether that can be all. */
struct kinds {
	uint32_t class[KINDS_MOST];
	uint64_t share[KINDS_MOST];
	uint32_t count;
	uint64_t sum;
};

static void kinds_add(struct kinds *kinds, uint32_t class, uint64_t share)
{
	uint32_t i = kinds->count < KINDS_MOST ? kinds->count++ : KINDS_MOST;

	if (i == KINDS_MOST && kinds->share[--i] >= share)
		return;
	for (; i > 0 && kinds->share[i - 1] < share; i--) {
		kinds->class[i] = kinds->class[i - 1];
		kinds->share[i] = kinds->share[i - 1];
	}
	kinds->class[i] = class;
	kinds->share[i] = share;
}

static struct kinds kinds_of(const struct xspd_lint_table *table, uint32_t own)
{
	struct kinds kinds = {};
	uint64_t share;

	for (uint32_t i = 0; i < table->classes; i++) {
		share = class_share(&table->class[own], &table->class[i]);
		if (share)
			kinds_add(&kinds, i, share);
	}
	for (uint32_t i = 0; i < kinds.count; i++)
		kinds.sum += kinds.share[i];
	return kinds;
}

static void batch_gather(struct xspd_lint_table *table, struct batch *batch, uint32_t own,
			 const struct kinds *kinds)
{
	uint64_t mask[XSPD_LINT_WORDS];

	for (uint32_t i = 0; i < kinds->count; i++) {
		for (int w = 0; w < XSPD_LINT_WORDS; w++)
			mask[w] = table->class[own].mask[w] & table->class[kinds->class[i]].mask[w];
		if (!xspd_lint_join(table, kinds->class[i], mask, false)) {
			batch->count = 0;
			return;
		}
		for (uint32_t nr = 0; nr < batch->count; nr++)
			batch_probe(table, batch, nr);
	}
}

/* The best of @items that overlaps @item comes first: they are worth naming in that order. */
static int compare_item(const void *a, const void *b)
{
	return *(const uint32_t *)a < *(const uint32_t *)b ? -1 : 1;
}

static void batch_judge(struct xspd_lint *lint, struct batch *batch)
{
	struct xspd_lint_table *table = &lint->table;

	for (uint32_t nr = 0; nr < batch->count && !lint->err; nr++) {
		struct cells cells = {table, CELLS_MOST};
		struct xspd_lint_item *item = &table->item[batch->item[nr]];
		struct xspd_lint_box box = xspd_lint_box(table, batch->item[nr]);
		uint32_t *candidate = batch->candidate[nr], found = batch->found[nr];
		size_t finding;

		if (found < 2 || found > CANDIDATES_MOST ||
		    !cell_covered(&cells, &box, candidate, found))
			continue;
		qsort(candidate, found, sizeof(*candidate), compare_item);
		item->covered = candidate[0];
		finding = xspd_lint_add(lint, XSPD_LINT_NEVER, XSPD_LINT_WARNING, item->pol);
		for (uint32_t i = 0; i < found; i++)
			xspd_lint_more(lint, finding, table->item[candidate[i]].pol);
		if (!lint->err)
			lint->report->finding[finding].detail = 1;
	}
}

static void class_judge(struct xspd_lint *lint, struct batch *batch, uint32_t class,
			const struct kinds *kinds)
{
	struct xspd_lint_table *table = &lint->table;
	const struct xspd_lint_class *c = &table->class[class];

	for (uint32_t i = 0; i < c->count;) {
		memset(batch->found, 0, sizeof(batch->found));
		for (batch->count = 0; i < c->count && batch->count < BATCH; i++) {
			uint32_t item = table->member[c->at + i];

			if (table->item[item].covered == XSPD_LINT_NONE &&
			    !table->item[item].pol->unmodelled)
				batch->item[batch->count++] = item;
		}
		batch_gather(table, batch, class, kinds);
		batch_judge(lint, batch);
	}
}

void xspd_lint_check_unions(struct xspd_lint *lint)
{
	struct batch batch = {};

	batch.candidate = malloc(BATCH * sizeof(*batch.candidate));
	if (!batch.candidate) {
		lint->err = -ENOMEM;
		return;
	}
	for (uint32_t i = 0; i < lint->table.classes && !lint->err; i++) {
		struct kinds kinds = kinds_of(&lint->table, i);

		if (kinds.sum >= WHOLE)
			class_judge(lint, &batch, i, &kinds);
	}
	free(batch.candidate);
}
