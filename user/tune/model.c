// SPDX-License-Identifier: GPL-2.0-only
/* Policies, numbered and sorted once for all layouts. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#include "tune/layout.h"

static bool is_hashed(const struct xspd_tune_item *item, const struct xspd_tune_bits *bits)
{
	uint8_t d, s;

	xspd_tune_thresholds(bits, item->side, &d, &s);
	return item->dlen >= d && item->slen >= s;
}

static xspd_u128 address(const xfrm_address_t *addr, uint16_t family)
{
	xspd_u128 ret = 0;

	for (int i = 0; i < (family == AF_INET6 ? 4 : 1); i++)
		ret |= (xspd_u128)ntohl(addr->a6[i]) << (96 - 32 * i);
	return ret;
}

static void item_fill(struct xspd_tune_item *item, const struct xspd_pol *pol,
		      const struct xspd_tune_bits *now)
{
	bool v6 = pol->sel.family == AF_INET6;
	xspd_u128 d = address(&pol->sel.daddr, pol->sel.family);
	xspd_u128 s = address(&pol->sel.saddr, pol->sel.family);
	uint8_t least = v6 ? 48 : 16;

	*item = (struct xspd_tune_item){
		.pol = pol,
		.dlen = pol->sel.prefixlen_d,
		.slen = pol->sel.prefixlen_s,
		.side = (uint8_t)(pol->dir * 2 + v6),
		/* the kernel looks at the whole address, the bits below the prefix, too */
		.any_d = !d || pol->sel.prefixlen_d < least,
		.any_s = !s || pol->sel.prefixlen_s < least,
	};
	item->d = xspd_tune_cut(d, item->dlen);
	item->s = xspd_tune_cut(s, item->slen);
	item->was_hashed = is_hashed(item, now);
}

static int compare_order(const void *a, const void *b)
{
	const struct xspd_pol *x = ((const struct xspd_tune_item *)a)->pol;
	const struct xspd_pol *y = ((const struct xspd_tune_item *)b)->pol;

	if (x->priority != y->priority)
		return x->priority < y->priority ? -1 : 1;
	return (x->pos > y->pos) - (x->pos < y->pos);
}

static int compare_bin(const struct xspd_tune_item *x, const struct xspd_tune_item *y)
{
	if (x->side != y->side)
		return x->side < y->side ? -1 : 1;
	if (x->pol->type != y->pol->type)
		return x->pol->type < y->pol->type ? -1 : 1;
	return (x->pol->if_id > y->pol->if_id) - (x->pol->if_id < y->pol->if_id);
}

static int compare_d(const void *a, const void *b, void *items)
{
	const struct xspd_tune_item *x = (struct xspd_tune_item *)items + *(const uint32_t *)a;
	const struct xspd_tune_item *y = (struct xspd_tune_item *)items + *(const uint32_t *)b;
	int order = compare_bin(x, y);

	if (order)
		return order;
	if (x->d != y->d)
		return x->d < y->d ? -1 : 1;
	if (x->dlen != y->dlen)
		return x->dlen < y->dlen ? -1 : 1;
	return (x > y) - (x < y);
}

static int compare_s(const void *a, const void *b, void *items)
{
	const struct xspd_tune_item *x = (struct xspd_tune_item *)items + *(const uint32_t *)a;
	const struct xspd_tune_item *y = (struct xspd_tune_item *)items + *(const uint32_t *)b;
	int order = compare_bin(x, y);

	if (order)
		return order;
	if (x->s != y->s)
		return x->s < y->s ? -1 : 1;
	if (x->slen != y->slen)
		return x->slen < y->slen ? -1 : 1;
	return (x > y) - (x < y);
}

static void bins_number(struct xspd_tune *tune)
{
	struct xspd_tune_item *item, *last = NULL;

	for (uint32_t i = 0; i < tune->count; i++) {
		item = &tune->item[tune->by_d[i]];
		if (!last || compare_bin(last, item))
			tune->bin[tune->bins++] = (struct xspd_tune_bin){
				.side = item->side,
				.type = item->pol->type,
				.if_id = item->pol->if_id,
			};
		item->bin = tune->bins - 1;
		last = item;
	}
}

static int tune_fill(struct xspd_tune *tune, const struct xspd_pol *const *pols, size_t count)
{
	size_t room = count + 1;

	for (tune->mask = 15; tune->mask < 2 * count; tune->mask = 2 * tune->mask + 1)
		;
	tune->item = calloc(room, sizeof(*tune->item));
	tune->by_d = calloc(room, sizeof(*tune->by_d));
	tune->by_s = calloc(room, sizeof(*tune->by_s));
	tune->bin = calloc(room, sizeof(*tune->bin));
	tune->node = calloc(2 * room, sizeof(*tune->node));
	tune->list = calloc(room, sizeof(*tune->list));
	tune->member = calloc(room, sizeof(*tune->member));
	tune->sorted = calloc(room, sizeof(*tune->sorted));
	tune->before = calloc(room, sizeof(*tune->before));
	tune->bucket = calloc(tune->mask + 1ul, sizeof(*tune->bucket));
	if (!tune->item || !tune->by_d || !tune->by_s || !tune->bin || !tune->node || !tune->list ||
	    !tune->member || !tune->sorted || !tune->before || !tune->bucket)
		return -1;
	for (size_t i = 0; i < count; i++) {
		item_fill(&tune->item[i], pols[i], &tune->now);
		tune->directed[pols[i]->dir]++;
	}
	tune->count = (uint32_t)count;
	qsort(tune->item, count, sizeof(*tune->item), compare_order);
	for (uint32_t i = 0; i < count; i++)
		tune->by_d[i] = tune->by_s[i] = i;
	qsort_r(tune->by_d, count, sizeof(*tune->by_d), compare_d, tune->item);
	qsort_r(tune->by_s, count, sizeof(*tune->by_s), compare_s, tune->item);
	bins_number(tune);
	return 0;
}

int xspd_tune_new(struct xspd_tune **ret, const struct xspd_pol *const *pols, size_t count,
		  const struct xspd_tune_bits *now, const struct xspd_tune_costs *costs)
{
	struct xspd_tune *tune = calloc(1, sizeof(*tune));

	if (!tune)
		return -ENOMEM;
	tune->costs = *costs;
	tune->now = *now;
	if (tune_fill(tune, pols, count) < 0) {
		xspd_tune_free(tune);
		return -ENOMEM;
	}
	*ret = tune;
	return 0;
}

void xspd_tune_free(struct xspd_tune *tune)
{
	if (!tune)
		return;
	free(tune->item);
	free(tune->by_d);
	free(tune->by_s);
	free(tune->bin);
	free(tune->node);
	free(tune->list);
	free(tune->member);
	free(tune->sorted);
	free(tune->before);
	free(tune->bucket);
	free(tune);
}
