// SPDX-License-Identifier: GPL-2.0-only
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lint/table.h"

/* Steps of all comparisons together: some seconds. */
#define WORK 80000000ull

struct fill {
	uint64_t mask[XSPD_LINT_WORDS];
	uint64_t value[XSPD_LINT_WORDS];
};

static uint64_t ones(unsigned int len)
{
	return len >= 64 ? ~0ull : len ? ~0ull << (64 - len) : 0;
}

static void address_fill(struct fill *fill, int word, const xfrm_address_t *addr, uint16_t family,
			 uint8_t len)
{
	fill->mask[word] = ones(len);
	fill->value[word] = (uint64_t)ntohl(addr->a6[0]) << 32;
	if (family != AF_INET6)
		return;
	fill->mask[word + 1] = ones(len > 64 ? len - 64u : 0);
	fill->value[word] |= ntohl(addr->a6[1]);
	fill->value[word + 1] = (uint64_t)ntohl(addr->a6[2]) << 32 | ntohl(addr->a6[3]);
}

static struct fill fill_of(const struct xspd_pol *pol)
{
	const struct xfrm_selector *sel = &pol->sel;
	struct fill fill = {};

	address_fill(&fill, XSPD_LINT_W_DST, &sel->daddr, sel->family, sel->prefixlen_d);
	address_fill(&fill, XSPD_LINT_W_SRC, &sel->saddr, sel->family, sel->prefixlen_s);
	fill.mask[XSPD_LINT_W_MARK] = (uint64_t)pol->mark_mask << 32 | (sel->ifindex ? ~0u : 0);
	fill.value[XSPD_LINT_W_MARK] = (uint64_t)pol->mark << 32 | (uint32_t)sel->ifindex;
	fill.mask[XSPD_LINT_W_PORTS] = (uint64_t)ntohs(sel->dport_mask) << 32 |
				       (uint64_t)ntohs(sel->sport_mask) << 16 |
				       (sel->proto ? 0xff : 0);
	fill.value[XSPD_LINT_W_PORTS] =
		(uint64_t)ntohs(sel->dport) << 32 | (uint64_t)ntohs(sel->sport) << 16 | sel->proto;
	fill.mask[XSPD_LINT_W_IF_ID] = ~0ull;
	fill.value[XSPD_LINT_W_IF_ID] = pol->if_id;
	for (int i = 0; i < XSPD_LINT_WORDS; i++)
		fill.value[i] &= fill.mask[i];
	return fill;
}

/* Most masks leave most words alone: only those named are looked at. */
static uint8_t words_used(const uint64_t mask[XSPD_LINT_WORDS], uint8_t word[XSPD_LINT_WORDS])
{
	uint8_t n = 0;

	for (uint8_t i = 0; i < XSPD_LINT_WORDS; i++)
		if (mask[i])
			word[n++] = i;
	return n;
}

static uint32_t words_hash(uint64_t seed, const uint64_t *value, const uint64_t *mask,
			   const uint8_t *word, uint8_t words)
{
	uint64_t h = seed * 0x9e3779b97f4a7c15ull + 1;

	for (uint8_t i = 0; i < words; i++) {
		h = (h ^ (value[word[i]] & mask[word[i]])) * 0xbf58476d1ce4e5b9ull;
		h ^= h >> 32;
	}
	return (uint32_t)(h ^ h >> 17);
}

static bool words_agree(const uint64_t *a, const uint64_t *b, const uint64_t *mask,
			const uint8_t *word, uint8_t words)
{
	for (uint8_t i = 0; i < words; i++)
		if ((a[word[i]] ^ b[word[i]]) & mask[word[i]])
			return false;
	return true;
}

/* --- classes ------------------------------------------------------------------- */
static bool class_is(const struct xspd_lint_class *class, const struct xspd_pol *pol,
		     const struct fill *fill)
{
	return class->dir == pol->dir && class->type == pol->type &&
	       class->family == pol->sel.family &&
	       !memcmp(class->mask, fill->mask, sizeof(fill->mask));
}

/* An open hash of classes; @slot holds number + 1. */
static uint32_t class_for(struct xspd_lint_table *table, uint32_t *slot, const struct xspd_pol *pol,
			  const struct fill *fill)
{
	uint64_t seed = (uint64_t)pol->dir << 16 | (uint64_t)pol->type << 8 | pol->sel.family;
	uint8_t word[XSPD_LINT_WORDS], words = words_used(fill->mask, word);
	uint32_t i = words_hash(seed, fill->mask, fill->mask, word, words);

	for (;; i++) {
		uint32_t *s = &slot[i & table->mask];

		if (!*s) {
			struct xspd_lint_class *class = &table->class[table->classes];

			*class = (struct xspd_lint_class){
				.dir = pol->dir,
				.type = pol->type,
				.family = (uint8_t)pol->sel.family,
				.best = pol->priority, /* they come best first */
				.words = words,
			};
			memcpy(class->word, word, sizeof(word));
			memcpy(class->mask, fill->mask, sizeof(class->mask));
			*s = ++table->classes;
			return table->classes - 1;
		}
		if (class_is(&table->class[*s - 1], pol, fill))
			return *s - 1;
	}
}

static void members_fill(struct xspd_lint_table *table)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < table->classes; i++) {
		table->class[i].at = sum;
		sum += table->class[i].count;
		table->class[i].count = 0;
	}
	for (uint32_t i = 0; i < table->count; i++) {
		struct xspd_lint_class *class = &table->class[table->item[i].class];

		table->member[class->at + class->count++] = i;
		class->worst = table->item[i].pol->priority;
		class->hard |= !xspd_lint_plain(table->item[i].pol);
		class->mixed |= !xspd_lint_same_treatment(table->item[table->member[class->at]].pol,
							  table->item[i].pol);
	}
}

/* --- by class and value --------------------------------------------------------- */
static uint32_t *slot_for(const struct xspd_lint_table *table, uint32_t class,
			  const uint64_t value[XSPD_LINT_WORDS])
{
	const struct xspd_lint_class *c = &table->class[class];
	uint32_t i = words_hash(class, value, c->mask, c->word, c->words);

	for (;; i++) {
		uint32_t *slot = &table->slot[i & table->mask];
		const struct xspd_lint_item *item = &table->item[*slot - 1];

		if (!*slot || (item->class == class &&
			       words_agree(item->value, value, c->mask, c->word, c->words)))
			return slot;
	}
}

uint32_t xspd_lint_find(const struct xspd_lint_table *table, uint32_t class,
			const uint64_t value[XSPD_LINT_WORDS])
{
	return *slot_for(table, class, value) - 1;
}

static void slots_fill(struct xspd_lint_table *table)
{
	/* from the worst, so that each chain begins with its best */
	for (uint32_t i = table->count; i-- > 0;) {
		uint32_t *slot = slot_for(table, table->item[i].class, table->item[i].value);

		table->item[i].next = *slot - 1;
		*slot = i + 1;
	}
}

static int compare_order(const void *a, const void *b)
{
	const struct xspd_pol *x = ((const struct xspd_lint_item *)a)->pol;
	const struct xspd_pol *y = ((const struct xspd_lint_item *)b)->pol;

	if (x->priority != y->priority)
		return x->priority < y->priority ? -1 : 1;
	return (x->pos > y->pos) - (x->pos < y->pos);
}

static int table_fill(struct xspd_lint_table *table, const struct xspd_spd *spd)
{
	size_t size = table->mask + 1ul;
	uint32_t *slot = calloc(size, sizeof(*slot)), i = 0;
	struct xspd_pol *pol;

	if (!slot)
		return -ENOMEM;
	for (pol = spd->by_index; pol; pol = pol->hh.next)
		table->item[i++].pol = pol;
	qsort(table->item, table->count, sizeof(*table->item), compare_order);
	for (i = 0; i < table->count; i++) {
		struct xspd_lint_item *item = &table->item[i];
		struct fill fill = fill_of(item->pol);

		memcpy(item->value, fill.value, sizeof(item->value));
		item->covered = XSPD_LINT_NONE;
		item->class = class_for(table, slot, item->pol, &fill);
		table->class[item->class].count++;
	}
	free(slot);
	members_fill(table);
	slots_fill(table);
	return 0;
}

int xspd_lint_table_new(struct xspd_lint_table *ret, const struct xspd_spd *spd)
{
	uint32_t count = HASH_COUNT(spd->by_index);
	struct xspd_lint_table table = {.count = count, .work = WORK, .mask = 15};
	size_t room = count + 1ul;
	int err;

	while (table.mask < 2 * room)
		table.mask = 2 * table.mask + 1;
	table.item = calloc(room, sizeof(*table.item));
	table.class = calloc(room, sizeof(*table.class));
	table.member = calloc(room, sizeof(*table.member));
	table.slot = calloc(table.mask + 1ul, sizeof(*table.slot));
	table.join_slot = calloc(table.mask + 1ul, sizeof(*table.join_slot));
	table.join_next = calloc(room, sizeof(*table.join_next));
	table.join_last = calloc(room, sizeof(*table.join_last));
	if (!table.item || !table.class || !table.member || !table.slot || !table.join_slot ||
	    !table.join_next || !table.join_last)
		err = -ENOMEM;
	else
		err = table_fill(&table, spd);
	if (err)
		xspd_lint_table_drop(&table);
	else
		*ret = table;
	return err;
}

void xspd_lint_table_drop(struct xspd_lint_table *table)
{
	free(table->item);
	free(table->class);
	free(table->member);
	free(table->slot);
	free(table->join_slot);
	free(table->join_next);
	free(table->join_last);
}

/* --- by some bits only ------------------------------------------------------------ */
static uint32_t *join_slot_for(struct xspd_lint_table *table, const uint64_t value[XSPD_LINT_WORDS],
			       uint32_t priority)
{
	uint32_t i = words_hash(table->join_priority ? priority : 0, value, table->join_mask,
				table->join_word, table->join_words);

	for (;; i++) {
		uint32_t *slot = &table->join_slot[i & table->join_size];
		const struct xspd_lint_item *item = &table->item[*slot - 1];

		if (!*slot || ((!table->join_priority || item->pol->priority == priority) &&
			       words_agree(item->value, value, table->join_mask, table->join_word,
					   table->join_words)))
			return slot;
	}
}

static void join_fill(struct xspd_lint_table *table, const struct xspd_lint_class *c)
{
	for (table->join_size = 3; table->join_size < 2 * c->count;)
		table->join_size = 2 * table->join_size + 1;
	memset(table->join_slot, 0, (table->join_size + 1ul) * sizeof(*table->join_slot));
	for (uint32_t i = 0; i < c->count; i++) {
		uint32_t item = table->member[c->at + i];
		uint32_t *slot = join_slot_for(table, table->item[item].value,
					       table->item[item].pol->priority);

		table->join_next[item] = XSPD_LINT_NONE;
		if (*slot)
			table->join_next[table->join_last[*slot - 1]] = item;
		else
			*slot = item + 1;
		table->join_last[*slot - 1] = item;
	}
}

bool xspd_lint_join(struct xspd_lint_table *table, uint32_t class,
		    const uint64_t mask[XSPD_LINT_WORDS], bool priority)
{
	const struct xspd_lint_class *c = &table->class[class];

	table->join_priority = priority;
	table->join_class = XSPD_LINT_NONE;
	if (xspd_lint_within(c->mask, mask)) {
		table->join_class = class;
		return true;
	}
	if (table->work < c->count) {
		table->incomplete = true;
		return false;
	}
	table->work -= c->count;
	memcpy(table->join_mask, mask, sizeof(table->join_mask));
	table->join_words = words_used(mask, table->join_word);
	join_fill(table, c);
	return true;
}

/* Of a chain in the class's own index, which knows no priorities. */
static uint32_t of_priority(const struct xspd_lint_table *table, uint32_t item, uint32_t priority)
{
	while (item != XSPD_LINT_NONE && table->join_priority &&
	       table->item[item].pol->priority != priority)
		item = table->item[item].next;
	return item;
}

uint32_t xspd_lint_probe(struct xspd_lint_table *table, const uint64_t value[XSPD_LINT_WORDS],
			 uint32_t priority)
{
	if (!table->work) {
		table->incomplete = true;
		return XSPD_LINT_NONE;
	}
	table->work--;
	if (table->join_class != XSPD_LINT_NONE)
		return of_priority(table, xspd_lint_find(table, table->join_class, value),
				   priority);
	return *join_slot_for(table, value, priority) - 1;
}

uint32_t xspd_lint_next(const struct xspd_lint_table *table, uint32_t item)
{
	if (table->join_class != XSPD_LINT_NONE)
		return of_priority(table, table->item[item].next, table->item[item].pol->priority);
	return table->join_next[item];
}

/* --- order, and what covers --------------------------------------------------------- */
bool xspd_lint_certain(const struct xspd_pol *a, const struct xspd_pol *b)
{
	if (a->tie || b->tie)
		return false;
	return !a->apart || (a->sel.prefixlen_d == b->sel.prefixlen_d &&
			     a->sel.prefixlen_s == b->sel.prefixlen_s);
}

bool xspd_lint_better(const struct xspd_pol *a, const struct xspd_pol *b)
{
	if (a->unmodelled | b->unmodelled)
		return false;
	if (a->priority != b->priority)
		return a->priority < b->priority;
	return xspd_lint_certain(a, b) && a->pos < b->pos;
}

bool xspd_lint_same_treatment(const struct xspd_pol *a, const struct xspd_pol *b)
{
	return a->action == b->action &&
	       (a->action == XSPD_BLOCK || !memcmp(&a->tmpl, &b->tmpl, sizeof(a->tmpl)));
}

bool xspd_lint_uniform(const struct xspd_lint_table *table, const struct xspd_lint_class *a,
		       const struct xspd_lint_class *b)
{
	return !a->mixed && !b->mixed &&
	       xspd_lint_same_treatment(table->item[table->member[a->at]].pol,
					table->item[table->member[b->at]].pol);
}

uint32_t xspd_lint_cover(struct xspd_lint_table *table, uint32_t item,
			 const struct xspd_lint_box *box)
{
	const struct xspd_lint_class *own = &table->class[table->item[item].class], *class;
	const struct xspd_pol *pol = table->item[item].pol;
	uint32_t best = XSPD_LINT_NONE, found;

	for (uint32_t i = 0; i < table->classes; i++) {
		class = &table->class[i];
		if (class->dir != own->dir || class->type != own->type ||
		    class->family != own->family || class->best > pol->priority ||
		    !xspd_lint_within(class->mask, box->mask))
			continue;
		if (!table->work) {
			table->incomplete = true;
			break;
		}
		table->work--;
		found = xspd_lint_find(table, i, box->value);
		if (found < best && xspd_lint_better(table->item[found].pol, pol))
			best = found;
	}
	return best;
}
