// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nl/nl.h"
#include "snapshot/collect.h"
#include "snapshot/state.h"
#include "spd/spd.h"
#include "util.h"

#define ATTEMPTS    5
#define RCVBUF	    (16 << 20)
#define DUMP_STRIDE 1024 /* entries between two looks at the events */
#define DRAIN_BATCH 256

/*
 * A dump is no moment's picture, and its entries come without their order in
 * time relative to events: the mirror knows how to merge the two.  It keeps what
 * a policy means; the message that said so last is kept here.
 */
struct raw {
	uint32_t index;
	uint32_t rank; /* 0: of the dump; events count up from 1 */
	size_t nr;     /* in said */
};

struct collect {
	struct xspd_nl *requests;
	struct xspd_nl *events;
	struct xspd_spd *spd;
	struct xspd_vault said;
	struct raw *raw;
	size_t count, room;
	uint32_t rank;
	bool again; /* something happened that events do not tell in full */
};

static int raw_note(struct collect *c, const struct xspd_event *event, uint32_t rank)
{
	size_t room = c->room ? 2 * c->room : 1024;
	struct raw *raw;

	if (c->count == c->room) {
		raw = realloc(c->raw, room * sizeof(*raw));
		if (!raw)
			return -ENOMEM;
		c->raw = raw;
		c->room = room;
	}
	c->raw[c->count++] = (struct raw){event->pol.index, rank, c->said.count};
	return xspd_vault_append(&c->said, event->msg);
}

static int on_change(void *ctx, const struct xspd_event *event)
{
	struct collect *c = ctx;
	int err;

	switch (event->kind) {
	case XSPD_EVENT_POLICY:
		err = raw_note(c, event, ++c->rank);
		return err ? err : xspd_spd_upsert(c->spd, &event->pol);
	case XSPD_EVENT_REMOVE:
		return xspd_spd_remove(c->spd, event->pol.index);
	case XSPD_EVENT_FLUSH:
		return xspd_spd_flush(c->spd, event->type);
	case XSPD_EVENT_MIGRATE:
	case XSPD_EVENT_UNMODELLED:
		c->again = true;
		return 0;
	default:
		return 0;
	}
}

static int changes_take(struct collect *c)
{
	int n;

	do
		n = xspd_nl_recv(c->events, DRAIN_BATCH, on_change, c);
	while (n == DRAIN_BATCH);
	return n < 0 ? n : 0;
}

static int on_entry(void *ctx, const struct xspd_event *event)
{
	struct collect *c = ctx;
	int err;

	if (event->kind != XSPD_EVENT_POLICY)
		return -EBADMSG;
	err = raw_note(c, event, 0);
	if (!err)
		err = xspd_spd_dump_entry(c->spd, &event->pol);
	if (err || c->count % DUMP_STRIDE)
		return err;
	return changes_take(c);
}

static int read_all(struct collect *c)
{
	struct xspd_spdinfo info;
	struct xspd_spd_diff diff;
	int err = xspd_spd_dump_begin(c->spd);

	if (!err)
		err = xspd_nl_dump(c->requests, on_entry, c);
	/* answered under the lock of the changes: what came before it is queued by now */
	if (!err)
		err = xspd_nl_spdinfo(c->requests, &info);
	if (!err)
		err = changes_take(c);
	if (!err)
		err = xspd_spd_dump_end(c->spd, &diff);
	/* events leave out the security context */
	if (!err && c->rank && c->spd->unmodelled)
		c->again = true;
	return err;
}

static int compare_raw(const void *a, const void *b)
{
	const struct raw *x = a, *y = b;

	if (x->index != y->index)
		return x->index < y->index ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

static int compare_pos(const void *a, const void *b)
{
	const struct xspd_pol *const *x = a, *const *y = b;

	return ((*x)->pos > (*y)->pos) - ((*x)->pos < (*y)->pos);
}

/* The last that was said of @index. */
static const struct raw *raw_find(const struct collect *c, uint32_t index)
{
	size_t low = 0, high = c->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (c->raw[mid].index <= index)
			low = mid + 1;
		else
			high = mid;
	}
	return low && c->raw[low - 1].index == index ? &c->raw[low - 1] : NULL;
}

/* As a dump tells it, whoever it was that said it. */
static void header_plain(struct nlmsghdr *nlh, uint16_t type)
{
	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = 0;
	nlh->nlmsg_seq = 0;
	nlh->nlmsg_pid = 0;
}

static int oldest_first(struct collect *c, struct xspd_vault *ret)
{
	size_t i = 0, count = HASH_COUNT(c->spd->by_index);
	xspd_autofree struct xspd_pol **order = malloc((count + 1) * sizeof(*order));
	const struct raw *raw;
	int err = 0;

	if (!order)
		return -ENOMEM;
	for (struct xspd_pol *pol = c->spd->by_index; pol; pol = pol->hh.next)
		order[i++] = pol;
	qsort(order, count, sizeof(*order), compare_pos);
	qsort(c->raw, c->count, sizeof(*c->raw), compare_raw);
	for (i = 0; i < count && !err; i++) {
		raw = raw_find(c, order[i]->index);
		if (!raw)
			return -EBADMSG;
		err = xspd_vault_append(ret, xspd_vault_get(&c->said, raw->nr));
		if (!err)
			header_plain(xspd_vault_get(ret, i), XFRM_MSG_NEWPOLICY);
	}
	return err;
}

static int collect_once(struct collect *c)
{
	int err;

	c->spd = xspd_spd_new();
	if (!c->spd)
		return -ENOMEM;
	/* membership first: a change is in the dump or an event, never in neither */
	err = xspd_nl_open(&c->events, XSPD_NL_GROUPS, RCVBUF);
	if (!err)
		err = xspd_nl_open(&c->requests, 0, 1 << 20);
	if (!err)
		err = read_all(c);
	return err;
}

static void collect_drop(struct collect *c)
{
	xspd_nl_free(c->requests);
	xspd_nl_free(c->events);
	xspd_spd_free(c->spd);
	xspd_vault_empty(&c->said);
	free(c->raw);
}

int xspd_collect_policies(struct xspd_vault *ret)
{
	int err = -EBUSY;

	for (int i = 0; i < ATTEMPTS; i++) {
		struct collect c = {};

		err = collect_once(&c);
		if (!err && c.again)
			err = -EBUSY;
		if (!err)
			err = oldest_first(&c, ret);
		collect_drop(&c);
		if (err != -EBUSY && err != -ENOBUFS && err != -EINTR)
			break;
		xspd_vault_empty(ret);
		err = -EBUSY;
	}
	if (err)
		xspd_vault_empty(ret);
	return err;
}

static int on_state(void *ctx, const struct xspd_event *event)
{
	struct xspd_vault *said = ctx;

	return event->msg ? xspd_vault_append(said, event->msg) : -EBADMSG;
}

/* What the kernel lists, without the attribute that only requests have. */
static int state_take(struct xspd_vault *ret, const struct nlmsghdr *nlh, bool keys)
{
	size_t more = sizeof(struct xfrm_lifetime_cur) + NLMSG_ALIGNTO;
	struct xspd_snap_state state;
	int err = xspd_snap_state_read(nlh, &state);

	if (err || state.larval)
		return err;
	if (keys && state.keys_zero)
		return -ENOKEY;
	err = xspd_vault_reserve(ret, NLMSG_ALIGN(nlh->nlmsg_len) + more);
	if (!err)
		err = xspd_vault_append(ret, nlh);
	if (err)
		return err;
	header_plain(xspd_vault_get(ret, ret->count - 1), XFRM_MSG_NEWSA);
	xspd_snap_state_age(xspd_vault_get(ret, ret->count - 1), &state);
	ret->used = ret->message[ret->count - 1] +
		    NLMSG_ALIGN(xspd_vault_get(ret, ret->count - 1)->nlmsg_len);
	if (!keys)
		xspd_snap_state_wipe(xspd_vault_get(ret, ret->count - 1));
	return 0;
}

int xspd_collect_states(struct xspd_vault *ret, bool keys)
{
	struct xspd_vault said = {};
	struct xspd_nl *nl = NULL;
	int err = xspd_nl_open(&nl, 0, 1 << 20);

	if (!err)
		err = xspd_vault_reserve(&said, 1);
	if (!err)
		err = xspd_vault_reserve(ret, 1);
	xspd_vault_lock(&said);
	if (keys)
		xspd_vault_lock(ret);
	if (!err)
		err = xspd_nl_dump_states(nl, on_state, &said);
	for (size_t i = said.count; i > 0 && !err; i--) /* newest first, as listed */
		err = state_take(ret, xspd_vault_get(&said, i - 1), keys);
	xspd_nl_free(nl); /* wipes its buffer */
	xspd_vault_empty(&said);
	if (err)
		xspd_vault_empty(ret);
	return err;
}
