// SPDX-License-Identifier: GPL-2.0-only
/* There and back again: what one direction protects, seen from the other. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lint/check.h"

/* Reqids of one direction; a policy is told apart from its opposite by nothing better. */
static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

struct reqids {
	uint32_t *at;
	size_t count;
};

/* @dirs: bits 1 << dir */
static void reqids_fill(const struct xspd_lint_table *table, uint32_t dirs, struct reqids *ret)
{
	for (uint32_t i = 0; i < table->count; i++) {
		const struct xspd_pol *pol = table->item[i].pol;

		if (dirs & 1u << pol->dir && pol->tmpl.count && pol->tmpl.reqid)
			ret->at[ret->count++] = pol->tmpl.reqid;
	}
	if (ret->count)
		qsort(ret->at, ret->count, sizeof(*ret->at), compare_u32);
}

static bool reqids_have(const struct reqids *reqids, uint32_t reqid)
{
	return reqid && reqids->count &&
	       bsearch(&reqid, reqids->at, reqids->count, sizeof(*reqids->at), compare_u32);
}

/* The way back: addresses and ports change places; a mark or a device says nothing about it. */
static void mirrored(const uint64_t from[XSPD_LINT_WORDS], uint64_t ret[XSPD_LINT_WORDS])
{
	uint64_t ports = from[XSPD_LINT_W_PORTS];

	memcpy(ret, from, sizeof(uint64_t) * XSPD_LINT_WORDS);
	memcpy(&ret[XSPD_LINT_W_DST], &from[XSPD_LINT_W_SRC], 2 * sizeof(uint64_t));
	memcpy(&ret[XSPD_LINT_W_SRC], &from[XSPD_LINT_W_DST], 2 * sizeof(uint64_t));
	ret[XSPD_LINT_W_MARK] = 0;
	ret[XSPD_LINT_W_PORTS] =
		(ports & 0xffff0000) << 16 | (ports >> 16 & 0xffff0000) | (ports & 0xffff);
}

static void class_answer(struct xspd_lint_table *table, uint32_t own, uint32_t other,
			 bool *answered)
{
	const struct xspd_lint_class *c = &table->class[own];
	uint64_t mask[XSPD_LINT_WORDS], value[XSPD_LINT_WORDS];
	uint32_t found;

	mirrored(c->mask, mask);
	for (int w = 0; w < XSPD_LINT_WORDS; w++)
		mask[w] &= table->class[other].mask[w];
	if (!xspd_lint_join(table, other, mask, false)) {
		for (uint32_t m = 0; m < c->count; m++) /* not known: nothing is claimed */
			answered[table->member[c->at + m]] = true;
		return;
	}
	for (uint32_t m = 0; m < c->count; m++) {
		uint32_t item = table->member[c->at + m];

		if (answered[item])
			continue;
		mirrored(table->item[item].value, value);
		found = xspd_lint_probe(table, value, 0);
		while (found != XSPD_LINT_NONE && table->item[found].pol->action == XSPD_BLOCK)
			found = xspd_lint_next(table, found);
		answered[item] = found != XSPD_LINT_NONE || !table->work;
	}
}

static bool opposite(const struct xspd_lint_class *a, const struct xspd_lint_class *b)
{
	return a->family == b->family && (a->dir == XSPD_OUT) != (b->dir == XSPD_OUT);
}

/* Most have the very policy that they should: those need no join. */
static void find_exact(struct xspd_lint_table *table, uint32_t own, bool *answered)
{
	const struct xspd_lint_class *c = &table->class[own];
	uint64_t mask[XSPD_LINT_WORDS], value[XSPD_LINT_WORDS];
	uint32_t found;

	mirrored(c->mask, mask);
	for (uint32_t i = 0; i < table->classes; i++) {
		if (!opposite(c, &table->class[i]) ||
		    memcmp(mask, table->class[i].mask, sizeof(mask)))
			continue;
		for (uint32_t m = 0; m < c->count; m++) {
			mirrored(table->item[table->member[c->at + m]].value, value);
			found = xspd_lint_find(table, i, value);
			if (found != XSPD_LINT_NONE && table->item[found].pol->action == XSPD_ALLOW)
				answered[table->member[c->at + m]] = true;
		}
	}
}

static bool all_answered(const struct xspd_lint_table *table, uint32_t class, const bool *answered)
{
	const struct xspd_lint_class *c = &table->class[class];

	for (uint32_t m = 0; m < c->count; m++)
		if (!answered[table->member[c->at + m]])
			return false;
	return true;
}

static void report(struct xspd_lint *lint, const bool *answered, const struct reqids *in_only)
{
	for (uint32_t i = 0; i < lint->table.count && !lint->err; i++) {
		const struct xspd_pol *pol = lint->table.item[i].pol;

		if (answered[i])
			continue;
		if (pol->dir == XSPD_OUT)
			xspd_lint_add(lint, XSPD_LINT_OUT_ONLY, XSPD_LINT_WARNING, pol);
		else if (pol->dir == XSPD_IN || !reqids_have(in_only, pol->tmpl.reqid))
			/* in and fwd are two policies of one tunnel: told once */
			xspd_lint_add(lint, XSPD_LINT_IN_ONLY, XSPD_LINT_WARNING, pol);
	}
}

static void ways(struct xspd_lint *lint, bool *answered, struct reqids *out, struct reqids *in,
		 struct reqids *in_only)
{
	struct xspd_lint_table *table = &lint->table;

	reqids_fill(table, 1u << XSPD_OUT, out);
	reqids_fill(table, 1u << XSPD_IN | 1u << XSPD_FWD, in);
	reqids_fill(table, 1u << XSPD_IN, in_only);
	for (uint32_t i = 0; i < table->count; i++) {
		const struct xspd_pol *pol = table->item[i].pol;

		answered[i] = !xspd_lint_protects(pol) || pol->unmodelled ||
			      table->item[i].covered != XSPD_LINT_NONE ||
			      reqids_have(pol->dir == XSPD_OUT ? in : out, pol->tmpl.reqid);
	}
	for (uint32_t i = 0; i < table->classes; i++)
		if (!all_answered(table, i, answered))
			find_exact(table, i, answered);
	for (uint32_t i = 0; i < table->classes; i++)
		for (uint32_t j = 0; j < table->classes; j++)
			if (opposite(&table->class[i], &table->class[j]) &&
			    !all_answered(table, i, answered))
				class_answer(table, i, j, answered);
	report(lint, answered, in_only);
}

void xspd_lint_check_ways(struct xspd_lint *lint)
{
	size_t room = lint->table.count + 1ul;
	struct reqids out = {.at = calloc(room, sizeof(*out.at))};
	struct reqids in = {.at = calloc(room, sizeof(*in.at))};
	struct reqids in_only = {.at = calloc(room, sizeof(*in_only.at))};
	bool *answered = calloc(room, sizeof(*answered));

	if (out.at && in.at && in_only.at && answered)
		ways(lint, answered, &out, &in, &in_only);
	else
		lint->err = -ENOMEM;
	free(answered);
	free(out.at);
	free(in.at);
	free(in_only.at);
}
