// SPDX-License-Identifier: GPL-2.0-only
/* A block in fwd meets packets on their way to a tunnel before they are looked up in out. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lint/check.h"

/* What fwd does to the flows of an out policy. */
struct fate {
	uint32_t block; /* the best that takes all of them */
	uint32_t allow; /* the best that takes any of them */
};

/*
 * A packet from the network has no if_id yet, and any mark and device: what an out policy says
 * of those is left out, so that only policies without them count as covering.
 */
static void as_forwarded(const uint64_t from[XSPD_LINT_WORDS], uint64_t ret[XSPD_LINT_WORDS])
{
	memcpy(ret, from, sizeof(uint64_t) * XSPD_LINT_WORDS);
	ret[XSPD_LINT_W_MARK] = 0;
}

static void probe(struct xspd_lint_table *table, uint32_t item, bool covers, struct fate *fate)
{
	uint64_t value[XSPD_LINT_WORDS];
	uint32_t found;

	as_forwarded(table->item[item].value, value);
	value[XSPD_LINT_W_IF_ID] = 0;
	found = xspd_lint_probe(table, value, 0);
	for (; found != XSPD_LINT_NONE; found = xspd_lint_next(table, found)) {
		if (table->item[found].pol->action == XSPD_ALLOW) {
			if (found < fate->allow)
				fate->allow = found;
			return;
		}
		if (covers && found < fate->block)
			fate->block = found;
	}
}

static bool classes_probe(struct xspd_lint_table *table, uint32_t out, uint32_t fwd,
			  struct fate *fate)
{
	const struct xspd_lint_class *c = &table->class[out];
	uint64_t mask[XSPD_LINT_WORDS], join[XSPD_LINT_WORDS];

	as_forwarded(c->mask, mask);
	for (int w = 0; w < XSPD_LINT_WORDS; w++)
		join[w] = mask[w] & table->class[fwd].mask[w];
	if (!xspd_lint_join(table, fwd, join, false))
		return false;
	for (uint32_t m = 0; m < c->count; m++) {
		uint32_t item = table->member[c->at + m];

		probe(table, item, xspd_lint_within(table->class[fwd].mask, mask), &fate[item]);
	}
	return true;
}

/* From a network, through a tunnel: not what this host says itself. */
static bool is_forwarded(const struct xspd_pol *pol)
{
	return pol->dir == XSPD_OUT && xspd_lint_protects(pol) && !pol->unmodelled &&
	       pol->tmpl.mode == XFRM_MODE_TUNNEL &&
	       pol->sel.prefixlen_s < (pol->sel.family == AF_INET6 ? 128 : 32);
}

static void report(struct xspd_lint *lint, const struct fate *fate)
{
	struct xspd_lint_table *table = &lint->table;
	size_t *finding = calloc(table->count + 1ul, sizeof(*finding)); /* + 1, by block */

	if (!finding) {
		lint->err = -ENOMEM;
		return;
	}
	for (uint32_t i = 0; i < table->count && !lint->err; i++) {
		uint32_t block = fate[i].block, allow = fate[i].allow;

		if (!is_forwarded(table->item[i].pol) || block == XSPD_LINT_NONE ||
		    (allow != XSPD_LINT_NONE &&
		     !xspd_lint_better(table->item[block].pol, table->item[allow].pol)))
			continue;
		if (!finding[block])
			finding[block] = 1 + xspd_lint_add(lint, XSPD_LINT_FWD_BLOCK,
							   XSPD_LINT_ERROR, table->item[block].pol);
		xspd_lint_more(lint, finding[block] - 1, table->item[i].pol);
	}
	free(finding);
}

static bool any_block(const struct xspd_lint_table *table)
{
	for (uint32_t i = 0; i < table->count; i++)
		if (table->item[i].pol->dir == XSPD_FWD && table->item[i].pol->action == XSPD_BLOCK)
			return true;
	return false;
}

static bool pairs_probe(struct xspd_lint_table *table, struct fate *fate)
{
	for (uint32_t i = 0; i < table->classes; i++)
		for (uint32_t j = 0; j < table->classes; j++) {
			const struct xspd_lint_class *out = &table->class[i];
			const struct xspd_lint_class *fwd = &table->class[j];

			/* a sub policy has main ones asked in addition: leave those alone */
			if (out->dir != XSPD_OUT || fwd->dir != XSPD_FWD ||
			    out->family != fwd->family || out->type || fwd->type)
				continue;
			if (!classes_probe(table, i, j, fate))
				return false;
		}
	return true;
}

void xspd_lint_check_fwd(struct xspd_lint *lint)
{
	struct xspd_lint_table *table = &lint->table;
	struct fate *fate;

	if (!any_block(table))
		return;
	fate = malloc((table->count + 1ul) * sizeof(*fate));
	if (!fate) {
		lint->err = -ENOMEM;
		return;
	}
	for (uint32_t i = 0; i < table->count; i++)
		fate[i] = (struct fate){XSPD_LINT_NONE, XSPD_LINT_NONE};
	if (pairs_probe(table, fate))
		report(lint, fate);
	free(fate);
}
