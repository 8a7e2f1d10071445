// SPDX-License-Identifier: GPL-2.0-only
/*
 * Datagrams of NETLINK_XFRM, as the daemon would take them: decoded, applied to
 * a mirror (events and dumps mixed), and the mirror asked.  The sanitizers look
 * for what is read past a message; the checks for a mirror that lost count.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "nl/socket.h"
#include "spd/spd.h"

static void check(bool ok)
{
	if (!ok)
		abort();
}

/* What a listener may rely on. */
static int listener_check(void *ctx, const struct xspd_change *change)
{
	struct xspd_spd *spd = ctx;
	struct xspd_pol *pol;

	switch (change->kind) {
	case XSPD_CHANGE_ADD:
	case XSPD_CHANGE_REPLACE:
		check(xspd_spd_find(spd, change->pol->index) == change->pol);
		break;
	case XSPD_CHANGE_REMOVE:
		check(!xspd_spd_find(spd, change->old->index));
		break;
	case XSPD_CHANGE_FLUSH:
		for (pol = spd->by_index; pol && pol->type != change->type; pol = pol->hh.next)
			;
		check(pol);
		break;
	default:
		break;
	}
	return 0;
}

static void spd_check(struct xspd_spd *spd)
{
	uint32_t count[XSPD_DIR_MAX_] = {}, ties = 0, unmodelled = 0;
	struct xspd_pol *pol, *other;

	for (pol = spd->by_index; pol; pol = pol->hh.next) {
		check(pol->dir < XSPD_DIR_MAX_ && pol->type < XSPD_TYPE_MAX_);
		check(pol->tmpl.count <= XSPD_TMPL_MAX && pol->tmpl.required <= pol->tmpl.count);
		check(pol->pos && pol->pos < spd->next_pos);
		for (other = pol->hh.next; other; other = other->hh.next)
			check(pol->pos != other->pos && pol->index != other->index);
		count[pol->dir]++;
		ties += pol->tie;
		unmodelled += !!pol->unmodelled;
	}
	check(!memcmp(count, spd->count, sizeof(count)));
	check(ties == spd->ties && unmodelled == spd->unmodelled);
}

/* Ask for the very addresses of @pol: the reference must find it, or a better one. */
static void spd_ask(struct xspd_spd *spd, const struct xspd_pol *pol)
{
	struct xspd_flow flow = {.family = pol->sel.family, .dir = pol->dir};
	const struct xspd_pol **pols;
	struct xspd_ref ref;
	uint32_t unknown;
	size_t count;

	memcpy(flow.daddr, &pol->sel.daddr, pol->sel.family == AF_INET6 ? 16 : 4);
	memcpy(flow.saddr, &pol->sel.saddr, pol->sel.family == AF_INET6 ? 16 : 4);
	flow.dport = pol->sel.dport;
	flow.sport = pol->sel.sport;
	flow.proto = pol->sel.proto;
	flow.oif = pol->sel.ifindex;
	flow.mark = pol->mark;
	flow.if_id = pol->if_id;
	if (pol->mark & ~pol->mark_mask) { /* before 6.16: no flow has these bits */
		check(xspd_pol_match(pol, &flow, pol->dir, pol->type, &unknown) == XSPD_MISS_MARK);
		return;
	}
	check(!xspd_pol_match(pol, &flow, pol->dir, pol->type, &unknown) && !unknown);
	xspd_spd_lookup(spd, &flow, &ref);
	check(ref.pol || ref.verdict == XSPD_DEFER);
	check(ref.verdict != XSPD_DEFER || (!ref.pol && ref.reason >= XSPD_R_SHORT));
	flow.unknown = XSPD_UNKNOWN_MARK | XSPD_UNKNOWN_OIF | XSPD_UNKNOWN_PORTS;
	xspd_spd_lookup(spd, &flow, &ref);
	check(!xspd_spd_matches(spd, &flow, &pols, &count) && count);
	free(pols);
}

static void policy_apply(struct xspd_spd *spd, const struct xspd_event *event)
{
	const struct xspd_pol *pol = &event->pol;

	if (event->multi) {
		if (!spd->dumping)
			check(!xspd_spd_dump_begin(spd));
		check(!xspd_spd_dump_entry(spd, pol));
		return;
	}
	check(!xspd_spd_upsert(spd, pol));
	spd_ask(spd, xspd_spd_find(spd, pol->index));
}

static void event_apply(struct xspd_spd *spd, const struct xspd_event *event)
{
	struct xspd_spd_diff diff;

	switch (event->kind) {
	case XSPD_EVENT_POLICY:
		policy_apply(spd, event);
		break;
	case XSPD_EVENT_REMOVE:
		check(!xspd_spd_remove(spd, event->pol.index));
		break;
	case XSPD_EVENT_FLUSH:
		check(!xspd_spd_flush(spd, event->type));
		break;
	case XSPD_EVENT_DEFAULTS:
		check(!(event->defaults & ~event->defaults_known) && event->defaults < 8);
		check(!xspd_spd_set_defaults(spd, event->defaults));
		break;
	case XSPD_EVENT_DONE:
		if (event->error < 0)
			xspd_spd_dump_abort(spd);
		else if (spd->dumping)
			check(!xspd_spd_dump_end(spd, &diff));
		break;
	case XSPD_EVENT_ERROR: /* a rare message as a switch: numbers run out */
		if (spd->next_pos < UINT32_MAX - 100)
			spd->next_pos = UINT32_MAX - 3;
		break;
	default:
		break;
	}
}

/* Each message in memory of exactly its size. */
static void message_take(struct xspd_spd *spd, const struct nlmsghdr *nlh)
{
	struct nlmsghdr *copy = malloc(nlh->nlmsg_len);
	struct xspd_event event;

	check(copy);
	memcpy(copy, nlh, nlh->nlmsg_len);
	if (xspd_nl_decode(copy, &event) == 0)
		event_apply(spd, &event);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct xspd_spd *spd = xspd_spd_new();
	struct nlmsghdr *buf = malloc(size + 1), *nlh = buf;
	int len = size;

	check(spd && buf);
	spd->listener = listener_check;
	spd->ctx = spd;
	memcpy(buf, data, size);
	for (; xspd_nl_message_ok(nlh, len); nlh = mnl_nlmsg_next(nlh, &len))
		message_take(spd, nlh);
	spd_check(spd);
	xspd_spd_free(spd);
	free(buf);
	return 0;
}
