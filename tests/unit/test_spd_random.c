// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random histories.  A plain list plays the SPD (as the
 * kernel's policy_all: new and updated policies go to its head); dumps walk it in
 * chunks while it changes, events are delivered late and sometimes lost.  Each
 * time a dump has ended and the events are read, mirror and list are equal, and
 * a copy kept from the listener's changes alone is equal as well.
 */
#include "spd_pol.h"

#define POLS 40

/* pos is the time of the last change, slot that of the place: when it got its priority */
struct list {
	struct xspd_pol pol[POLS]; /* newest first */
	size_t count;
	uint32_t counter; /* of indexes */
	uint32_t stamp;	  /* of changes */
	bool reprioritise;
};

struct event {
	enum { UPSERT, REMOVE, FLUSH } kind;
	struct xspd_pol pol;
};

struct queue {
	struct event event[256];
	size_t count;
};

struct copy {
	struct xspd_pol pol[4 * POLS];
	size_t count;
	struct xspd_spd *spd;
};

static uint32_t rng_state = 1;

static uint32_t rng(uint32_t below)
{
	rng_state = rng_state * 1664525u + 1013904223u;
	return (rng_state >> 8) % below;
}

static void copy_forget(struct copy *copy, uint32_t index)
{
	size_t i;

	for (i = 0; i < copy->count && copy->pol[i].index != index; i++)
		;
	cr_assert_lt(i, copy->count, "told of what was never added");
	copy->pol[i] = copy->pol[--copy->count];
}

static void copy_enter(struct copy *copy, const struct xspd_pol *pol)
{
	size_t i;

	for (i = 0; i < copy->count; i++)
		cr_assert_neq(copy->pol[i].index, pol->index, "added twice");
	copy->pol[copy->count++] = *pol;
}

static int copy_listen(void *ctx, const struct xspd_change *change)
{
	struct copy *copy = ctx;
	struct xspd_pol *pol;
	size_t i;

	switch (change->kind) {
	case XSPD_CHANGE_ADD:
		copy_enter(copy, change->pol);
		break;
	case XSPD_CHANGE_REPLACE:
		cr_assert_eq(change->pol->index, change->old->index);
		copy_forget(copy, change->old->index);
		copy_enter(copy, change->pol);
		break;
	case XSPD_CHANGE_REMOVE:
		copy_forget(copy, change->old->index);
		break;
	case XSPD_CHANGE_FLUSH:
		for (i = copy->count; i-- > 0;)
			if (copy->pol[i].type == change->type)
				copy->pol[i] = copy->pol[--copy->count];
		break;
	case XSPD_CHANGE_RENUMBER:
		copy->count = 0;
		for (pol = copy->spd->by_index; pol; pol = pol->hh.next)
			copy_enter(copy, pol);
		break;
	default:
		cr_assert(0);
	}
	return 0;
}

static void queue_add(struct queue *queue, int kind, const struct xspd_pol *pol)
{
	cr_assert_lt(queue->count, 256);
	queue->event[queue->count].kind = kind;
	queue->event[queue->count++].pol = *pol;
}

static void list_cut(struct list *list, size_t i)
{
	memmove(&list->pol[i], &list->pol[i + 1], (--list->count - i) * sizeof(list->pol[0]));
}

static void list_head(struct list *list, const struct xspd_pol *pol)
{
	memmove(&list->pol[1], &list->pol[0], list->count++ * sizeof(list->pol[0]));
	list->pol[0] = *pol;
	list->pol[0].pos = ++list->stamp;
}

static void list_flush(struct list *list, struct queue *queue, uint8_t type)
{
	struct xspd_pol what = {.type = type};
	size_t i, before = list->count;

	for (i = list->count; i-- > 0;)
		if (list->pol[i].type == type)
			list_cut(list, i);
	if (list->count < before)
		queue_add(queue, FLUSH, &what);
}

/* One change of the list, and its event. */
static void list_step(struct list *list, struct queue *queue)
{
	uint32_t priority, what = rng(100);
	struct xspd_pol pol;
	size_t i;

	if (what < 2) {
		list_flush(list, queue, rng(2));
	} else if (what < 40 && list->count < POLS) {
		pol = pol_any(++list->counter, 10 + rng(3));
		pol.type = rng(4) == 0;
		pol.slot = list->stamp + 1;
		list_head(list, &pol);
		queue_add(queue, UPSERT, &pol);
	} else if (list->count) {
		i = rng(list->count);
		pol = list->pol[i];
		priority = pol.priority;
		list_cut(list, i);
		if (what < 70) {
			queue_add(queue, REMOVE, &pol);
			return;
		}
		if (list->reprioritise && rng(2))
			pol.priority = 10 + rng(3);
		if (pol.priority != priority)
			pol.slot = list->stamp + 1;
		list_head(list, &pol);
		queue_add(queue, UPSERT, &pol);
	}
}

static void queue_read(struct queue *queue, struct xspd_spd *spd, size_t most)
{
	size_t i, n = most < queue->count ? most : queue->count;

	for (i = 0; i < n; i++) {
		const struct event *event = &queue->event[i];

		if (event->kind == UPSERT)
			cr_assert_eq(xspd_spd_upsert(spd, &event->pol), 0);
		else if (event->kind == REMOVE)
			cr_assert_eq(xspd_spd_remove(spd, event->pol.index), 0);
		else
			cr_assert_eq(xspd_spd_flush(spd, event->pol.type), 0);
	}
	queue->count -= n;
	memmove(queue->event, queue->event + n, queue->count * sizeof(queue->event[0]));
}

/* The list is sorted by the time of the last change: walk down from @stamp. */
static const struct xspd_pol *list_next(const struct list *list, uint32_t stamp)
{
	size_t i;

	for (i = 0; i < list->count; i++)
		if (list->pol[i].pos < stamp)
			return &list->pol[i];
	return NULL;
}

static void list_dump(struct list *list, struct queue *queue, struct xspd_spd *spd)
{
	const struct xspd_pol *pol;
	uint32_t stamp = UINT32_MAX;

	cr_assert_eq(xspd_spd_dump_begin(spd), 0);
	while ((pol = list_next(list, stamp))) {
		cr_assert_eq(xspd_spd_dump_entry(spd, pol), 0);
		stamp = pol->pos;
		if (rng(4))
			continue;
		list_step(list, queue);
		if (rng(3) == 0)
			queue_read(queue, spd, rng(4));
	}
	queue_read(queue, spd, 256);
	cr_assert_eq(xspd_spd_dump_end(spd, NULL), 0);
}

static void expect_same(const struct xspd_pol *a, const struct xspd_pol *b)
{
	cr_assert_not_null(b, "%u is missing", a->index);
	cr_assert_arr_eq(&a->sel, &b->sel, sizeof(a->sel));
	cr_assert_arr_eq(&a->tmpl, &b->tmpl, sizeof(a->tmpl));
	cr_assert_eq(a->priority, b->priority);
	cr_assert_eq(a->type, b->type);
}

static void expect_equal(const struct list *list, struct xspd_spd *spd, const struct copy *copy)
{
	uint32_t newer = UINT32_MAX;
	size_t i;

	cr_assert_eq(HASH_COUNT(spd->by_index), list->count);
	cr_assert_eq(copy->count, list->count);
	for (i = 0; i < list->count; i++) {
		const struct xspd_pol *pol = xspd_spd_find(spd, list->pol[i].index);

		expect_same(&list->pol[i], pol);
		cr_assert_lt(pol->pos, newer, "order differs at %zu", i);
		newer = pol->pos;
	}
	for (i = 0; i < copy->count; i++) {
		const struct xspd_pol *pol = xspd_spd_find(spd, copy->pol[i].index);

		expect_same(&copy->pol[i], pol);
		cr_assert_eq(copy->pol[i].pos, pol->pos);
		cr_assert_eq(copy->pol[i].tie, pol->tie);
	}
}

/* Where age and place disagree, somebody must be marked. */
static void expect_ties(const struct list *list, struct xspd_spd *spd)
{
	size_t i, j;

	for (i = 0; i < list->count; i++)
		for (j = i + 1; j < list->count; j++) {
			const struct xspd_pol *newer = &list->pol[i], *older = &list->pol[j];

			if (newer->type == older->type && newer->priority == older->priority &&
			    newer->slot < older->slot)
				cr_assert(xspd_spd_find(spd, newer->index)->tie, "%u before %u",
					  newer->index, older->index);
		}
}

static void history(bool lossy, bool reprioritise)
{
	static struct list list;
	static struct queue queue;
	static struct copy copy;
	struct xspd_spd *spd = spd_make(NULL);
	int round, i;

	spd->listener = copy_listen;
	spd->ctx = &copy;
	copy.spd = spd;
	list.reprioritise = reprioritise;
	for (round = 0; round < 3000; round++) {
		for (i = round || lossy ? rng(20) : 0; i > 0; i--)
			list_step(&list, &queue);
		if (lossy && rng(3) == 0)
			queue.count = 0;
		queue_read(&queue, spd, 256);
		if (rng(50) == 0 && spd->next_pos < UINT32_MAX - 100)
			spd->next_pos = UINT32_MAX - rng(60) - 1;
		list_dump(&list, &queue, spd);
		expect_equal(&list, spd, &copy);
		for (i = rng(20); i > 0; i--) {
			list_step(&list, &queue);
			queue_read(&queue, spd, 256);
		}
		expect_equal(&list, spd, &copy);
		/* a change of priority that nobody saw leaves no trace */
		if (!lossy || !reprioritise)
			expect_ties(&list, spd);
	}
	xspd_spd_free(spd);
}

Test(spd_random, nothing_lost)
{
	history(false, true);
}

Test(spd_random, events_lost)
{
	history(true, true);
}

Test(spd_random, events_lost_but_no_priority_changes)
{
	history(true, false);
}
