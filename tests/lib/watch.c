// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <libmnl/libmnl.h>

#include "lib/watch.h"
#include "util.h"

static void request_refused(void *ctx, uint32_t seq, int error, const char *extack)
{
	struct watch *watch = ctx;

	(void)seq;
	(void)extack;
	watch->refused = -error;
}

int watch_new(struct watch **ret, int rcvbuf)
{
	struct watch *watch = calloc(1, sizeof(*watch));
	int err;

	if (!watch)
		return -ENOMEM;
	watch->dump_seq = 0x80000000;
	watch->spd = xspd_spd_new();
	err = watch->spd ? 0 : -errno;
	if (!err)
		err = xspd_nl_open(&watch->events, XSPD_NL_GROUPS, rcvbuf ? rcvbuf : 16 << 20);
	if (!err)
		err = xspd_nl_open(&watch->requests, 0, 0);
	if (!err)
		err = xspd_batch_new(&watch->batch, watch->requests, request_refused, watch);
	if (!err)
		err = watch_dump(watch, NULL);
	if (err) {
		watch_free(watch);
		return err;
	}
	*ret = watch;
	return 0;
}

void watch_free(struct watch *watch)
{
	if (!watch)
		return;
	xspd_batch_free(watch->batch);
	xspd_nl_free(watch->events);
	xspd_nl_free(watch->requests);
	xspd_spd_free(watch->spd);
	free(watch);
}

void *watch_room(struct watch *watch, uint32_t *ret_seq)
{
	void *room = xspd_batch_room(watch->batch, ret_seq);

	if (!room)
		abort();
	return room;
}

int watch_send(struct watch *watch, const struct nlmsghdr *nlh)
{
	int err;

	watch->refused = 0;
	xspd_batch_commit(watch->batch, nlh);
	err = xspd_batch_flush(watch->batch);
	return err < 0 ? -err : watch->refused;
}

int watch_new_policy(struct watch *watch, const struct xspd_pol *pol)
{
	uint32_t seq;
	void *room = watch_room(watch, &seq);

	return watch_send(watch, xspd_nl_put_policy(room, pol, XFRM_MSG_NEWPOLICY, 0, seq));
}

int watch_update(struct watch *watch, const struct xspd_pol *pol)
{
	uint32_t seq;
	void *room = watch_room(watch, &seq);

	return watch_send(watch, xspd_nl_put_policy(room, pol, XFRM_MSG_UPDPOLICY, 0, seq));
}

int watch_delete(struct watch *watch, const struct xspd_pol *pol, bool by_index)
{
	uint32_t seq;
	void *room = watch_room(watch, &seq);

	return watch_send(watch, xspd_nl_put_delete(room, pol, by_index, 0, seq));
}

int watch_flush(struct watch *watch, uint8_t type)
{
	uint32_t seq;
	void *room = watch_room(watch, &seq);

	return watch_send(watch, xspd_nl_put_flush(room, type, 0, seq));
}

static struct nlmsghdr *request_put(struct watch *watch, uint16_t type)
{
	uint32_t seq;
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(watch_room(watch, &seq));

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_REQUEST;
	nlh->nlmsg_seq = seq;
	return nlh;
}

int watch_expire(struct watch *watch, const struct xspd_pol *pol, bool hard)
{
	struct xfrm_user_polexpire expire = {.hard = hard};
	struct xfrm_mark mark = {pol->mark, pol->mark_mask};
	struct nlmsghdr *nlh;

	expire.pol.sel = pol->sel;
	expire.pol.dir = pol->dir;
	nlh = request_put(watch, XFRM_MSG_POLEXPIRE);
	memcpy(mnl_nlmsg_put_extra_header(nlh, sizeof(expire)), &expire, sizeof(expire));
	if (mark.m)
		mnl_attr_put(nlh, XFRMA_MARK, sizeof(mark), &mark);
	if (pol->if_id)
		mnl_attr_put_u32(nlh, XFRMA_IF_ID, pol->if_id);
	return watch_send(watch, nlh);
}

int watch_set_default(struct watch *watch, uint8_t in, uint8_t fwd, uint8_t out)
{
	struct xfrm_userpolicy_default def = {.in = in, .fwd = fwd, .out = out};
	struct nlmsghdr *nlh;

	nlh = request_put(watch, XFRM_MSG_SETDEFAULT);
	memcpy(mnl_nlmsg_put_extra_header(nlh, sizeof(def)), &def, sizeof(def));
	return watch_send(watch, nlh);
}

static int event_apply(void *ctx, const struct xspd_event *event)
{
	struct watch *watch = ctx;
	struct xspd_spd *spd = watch->spd;

	if (event->multi && event->kind != XSPD_EVENT_DONE)
		return event->kind == XSPD_EVENT_POLICY ? xspd_spd_dump_entry(spd, &event->pol) : 0;
	watch->told[event->kind]++;
	watch->in_between += spd->dumping;
	switch (event->kind) {
	case XSPD_EVENT_POLICY:
		return xspd_spd_upsert(spd, &event->pol);
	case XSPD_EVENT_REMOVE:
		return xspd_spd_remove(spd, event->pol.index);
	case XSPD_EVENT_FLUSH:
		return xspd_spd_flush(spd, event->type);
	case XSPD_EVENT_DEFAULTS:
		return xspd_spd_set_defaults(spd, (spd->defaults & ~event->defaults_known) |
							  event->defaults);
	case XSPD_EVENT_DONE:
		watch->dump_done = true;
		return event->error;
	case XSPD_EVENT_UNMODELLED:
	case XSPD_EVENT_ERROR:
		return -EBADMSG;
	default:
		return 0;
	}
}

int watch_drain(struct watch *watch)
{
	int n;

	do
		n = xspd_nl_recv(watch->events, 64, event_apply, watch);
	while (n > 0);
	return n;
}

static int dump_finish(struct watch *watch, struct xspd_spd_diff *ret)
{
	uint32_t defaults;
	int err;

	err = xspd_spd_dump_end(watch->spd, ret);
	if (!err)
		err = xspd_nl_defaults(watch->requests, &defaults);
	if (!err)
		err = xspd_spd_set_defaults(watch->spd, defaults);
	return err;
}

static int entry_take(void *ctx, const struct xspd_event *event)
{
	struct watch *watch = ctx;

	if (event->kind != XSPD_EVENT_POLICY)
		return -EBADMSG;
	return xspd_spd_dump_entry(watch->spd, &event->pol);
}

int watch_dump(struct watch *watch, struct xspd_spd_diff *ret)
{
	int err = xspd_spd_dump_begin(watch->spd);

	if (!err)
		err = xspd_nl_dump(watch->requests, entry_take, watch);
	return err ? err : dump_finish(watch, ret);
}

int watch_dump_mixed(struct watch *watch, struct xspd_spd_diff *ret)
{
	struct pollfd pfd = {.fd = xspd_nl_fd(watch->events), .events = POLLIN};
	int n = 0, err;

	err = xspd_spd_dump_begin(watch->spd);
	if (!err)
		err = xspd_nl_request_dump(watch->events, ++watch->dump_seq);
	watch->dump_done = false;
	watch->in_between = 0;
	while (!err && !watch->dump_done) {
		n = xspd_nl_recv(watch->events, 1, event_apply, watch);
		err = n < 0 ? n : 0;
		if (n == 0 && poll(&pfd, 1, 5000) == 0)
			err = -ETIMEDOUT;
	}
	return err ? err : dump_finish(watch, ret);
}

/* --- compare ------------------------------------------------------------------- */

struct pols {
	struct xspd_pol *pol;
	size_t count, room;
};

static int pols_add(void *ctx, const struct xspd_event *event)
{
	struct pols *pols = ctx;

	if (event->kind != XSPD_EVENT_POLICY)
		return -EBADMSG;
	if (pols->count == pols->room) {
		pols->room = pols->room ? 2 * pols->room : 256;
		pols->pol = realloc(pols->pol, pols->room * sizeof(*pols->pol));
		if (!pols->pol)
			return -ENOMEM;
	}
	pols->pol[pols->count++] = event->pol;
	return 0;
}

static const char *pol_differs(const struct xspd_pol *a, const struct xspd_pol *b)
{
	if (memcmp(&a->sel, &b->sel, sizeof(a->sel)))
		return "selector";
	if (memcmp(&a->tmpl, &b->tmpl, sizeof(a->tmpl)))
		return "templates";
	if (a->priority != b->priority)
		return "priority";
	if (a->mark != b->mark || a->mark_mask != b->mark_mask)
		return "mark";
	if (a->if_id != b->if_id)
		return "if_id";
	if (a->dir != b->dir || a->type != b->type)
		return "direction or type";
	if (a->action != b->action || a->flags != b->flags)
		return "action or flags";
	if (a->unmodelled != b->unmodelled)
		return "unmodelled";
	return NULL;
}

static const char *pols_compare(const struct pols *pols, const struct xspd_spd *spd)
{
	static char text[128];
	uint32_t newer = UINT32_MAX;
	const char *what;
	size_t i;

	if (pols->count != HASH_COUNT(spd->by_index)) {
		snprintf(text, sizeof(text), "%zu policies, mirrored %u", pols->count,
			 HASH_COUNT(spd->by_index));
		return text;
	}
	for (i = 0; i < pols->count; i++) {
		const struct xspd_pol *pol = xspd_spd_find(spd, pols->pol[i].index);

		what = pol ? pol_differs(&pols->pol[i], pol) : "not mirrored";
		if (!what && pol->pos >= newer)
			what = "order";
		if (what) {
			snprintf(text, sizeof(text), "index %u: %s", pols->pol[i].index, what);
			return text;
		}
		newer = pol->pos;
	}
	return NULL;
}

static const char *counts_compare(struct watch *watch)
{
	struct xspd_spdinfo info;
	uint32_t defaults;

	if (xspd_nl_spdinfo(watch->requests, &info) < 0)
		return "no spdinfo";
	if (memcmp(info.count, watch->spd->count, sizeof(info.count)))
		return "counts";
	if (xspd_nl_defaults(watch->requests, &defaults) < 0)
		return "no defaults";
	return defaults == watch->spd->defaults ? NULL : "defaults";
}

const char *watch_compare(struct watch *watch)
{
	struct pols pols = {};
	const char *what;

	if (watch_drain(watch) < 0)
		return "reading events failed";
	if (xspd_nl_dump(watch->requests, pols_add, &pols) < 0)
		return "the dump failed";
	what = pols_compare(&pols, watch->spd);
	free(pols.pol);
	return what ? what : counts_compare(watch);
}
