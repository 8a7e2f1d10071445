/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Policies by mask class: what is covered and what overlaps is found by hashing
 * masked values, not by comparing each with each.
 */
#ifndef XSPD_LINT_TABLE_H
#define XSPD_LINT_TABLE_H

#include "lint/lint.h"

#define XSPD_LINT_NONE 0xffffffffu

/*
 * What a policy compares with a flow, as one long number: dst, src, mark and device, ports and
 * protocol, if_id. A policy matches where (flow ^ value) & mask is 0 in each word.
 */
#define XSPD_LINT_WORDS 7
enum {
	XSPD_LINT_W_DST = 0,
	XSPD_LINT_W_SRC = 2,
	XSPD_LINT_W_MARK = 4,
	XSPD_LINT_W_PORTS = 5,
	XSPD_LINT_W_IF_ID = 6
};

struct xspd_lint_box {
	uint64_t value[XSPD_LINT_WORDS];
	uint64_t mask[XSPD_LINT_WORDS];
};

/* A policy; they are numbered in the order in which the kernel prefers them. */
struct xspd_lint_item {
	const struct xspd_pol *pol;
	uint64_t value[XSPD_LINT_WORDS]; /* cut by the mask of its class */
	uint32_t class;
	uint32_t next;	  /* with the same class and value */
	uint32_t covered; /* by this one, NONE: not, or not known to be */
	bool twin;	  /* told as such */
};

/* All policies of one direction, type and family with the same mask. */
struct xspd_lint_class {
	uint64_t mask[XSPD_LINT_WORDS];
	uint8_t word[XSPD_LINT_WORDS], words; /* those that the mask has bits in */
	uint8_t dir, type, family;
	bool mixed;	      /* its policies do not all say the same */
	bool hard;	      /* some of them protect or block */
	uint32_t at, count;   /* in member[], best first */
	uint32_t best, worst; /* priorities */
};

struct xspd_lint_table {
	struct xspd_lint_item *item;
	uint32_t count;
	struct xspd_lint_class *class;
	uint32_t classes;
	uint32_t *member; /* items, class by class */
	uint32_t *slot;	  /* item + 1 that begins a chain of equal class and value; 0: free */
	uint32_t mask;
	uint64_t work; /* steps that are left */
	bool incomplete;

	/* of the join at hand */
	uint32_t *join_slot, *join_next, *join_last;
	uint64_t join_mask[XSPD_LINT_WORDS];
	uint8_t join_word[XSPD_LINT_WORDS], join_words;
	uint32_t join_size;
	uint32_t join_class; /* whose own index serves: its mask is the join's; NONE: none does */
	bool join_priority;
};

int xspd_lint_table_new(struct xspd_lint_table *ret, const struct xspd_spd *spd);
void xspd_lint_table_drop(struct xspd_lint_table *table);

/* The best policy of @class that has exactly @value in the bits of its mask, or NONE. */
uint32_t xspd_lint_find(const struct xspd_lint_table *table, uint32_t class,
			const uint64_t value[XSPD_LINT_WORDS]);

/*
 * Join: index the policies of @class by the bits of @mask alone. Then each probe gives the best of
 * those that agree with @value in them, and _next() the others, from better to worse.  With
 * @priority they agree in that, too. False: the work is used up.
 */
bool xspd_lint_join(struct xspd_lint_table *table, uint32_t class,
		    const uint64_t mask[XSPD_LINT_WORDS], bool priority);
uint32_t xspd_lint_probe(struct xspd_lint_table *table, const uint64_t value[XSPD_LINT_WORDS],
			 uint32_t priority);
uint32_t xspd_lint_next(const struct xspd_lint_table *table, uint32_t item);

/* Of two with equal priority: does their age decide? */
bool xspd_lint_certain(const struct xspd_pol *a, const struct xspd_pol *b);
/* Is @a preferred to @b for certain? */
bool xspd_lint_better(const struct xspd_pol *a, const struct xspd_pol *b);

static inline bool xspd_lint_within(const uint64_t inner[XSPD_LINT_WORDS],
				    const uint64_t outer[XSPD_LINT_WORDS])
{
	for (int i = 0; i < XSPD_LINT_WORDS; i++)
		if (inner[i] & ~outer[i])
			return false;
	return true;
}

static inline bool xspd_lint_agree(const uint64_t a[XSPD_LINT_WORDS],
				   const uint64_t b[XSPD_LINT_WORDS],
				   const uint64_t mask[XSPD_LINT_WORDS])
{
	uint64_t differ = 0;

	for (int i = 0; i < XSPD_LINT_WORDS; i++)
		differ |= (a[i] ^ b[i]) & mask[i];
	return !differ;
}

static inline struct xspd_lint_box xspd_lint_box(const struct xspd_lint_table *table, uint32_t item)
{
	const struct xspd_lint_item *i = &table->item[item];
	struct xspd_lint_box box;

	for (int w = 0; w < XSPD_LINT_WORDS; w++) {
		box.value[w] = i->value[w];
		box.mask[w] = table->class[i->class].mask[w];
	}
	return box;
}

/* Answers of a policy: without IPsec, or not. */
static inline bool xspd_lint_plain(const struct xspd_pol *pol)
{
	return pol->action == XSPD_ALLOW &&
	       !(pol->dir == XSPD_OUT ? pol->tmpl.count : pol->tmpl.required);
}

static inline bool xspd_lint_protects(const struct xspd_pol *pol)
{
	return pol->action == XSPD_ALLOW && !xspd_lint_plain(pol);
}

bool xspd_lint_same_treatment(const struct xspd_pol *a, const struct xspd_pol *b);

/* Do all policies of two classes say the same? */
bool xspd_lint_uniform(const struct xspd_lint_table *table, const struct xspd_lint_class *a,
		       const struct xspd_lint_class *b);

/* The best policy of @item's direction, type and family that is better than @item and covers @box,
 * or NONE. */
uint32_t xspd_lint_cover(struct xspd_lint_table *table, uint32_t item,
			 const struct xspd_lint_box *box);

#endif
