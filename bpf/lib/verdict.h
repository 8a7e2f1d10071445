/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From a packet at a hook to the questions that the kernel will ask about it, and their
 * answers.  What is remembered of a flow is the whole of it: the route and all answers, found
 * in one place.
 */
#ifndef XSPD_BPF_VERDICT_H
#define XSPD_BPF_VERDICT_H

#include "classify.h"
#include "packet.h"
#include "route.h"
#include "sample.h"

/* Ask in one direction: the answer becomes number @nr of what is known. */
static __always_inline void xspd_ask(struct xspd_packet *pkt, enum xspd_dir dir, int nr,
				     __u32 cached)
{
	struct xspd_answer *answer = &pkt->answer;
	struct xspd_known *known = &pkt->known;

	pkt->flow.dir = dir;
	xspd_classify(&pkt->flow, answer, cached);
	/* an error that no policy takes is judged by the packet it quotes */
	if (pkt->icmp_error && dir != XSPD_IN &&
	    (answer->reason == XSPD_R_NO_POLICY || answer->reason == XSPD_R_DEFAULT_BLOCK ||
	     (dir == XSPD_OUT && answer->reason == XSPD_R_BYPASS))) {
		answer->reason = XSPD_R_ICMP_ERROR;
		answer->verdict = XSPD_DEFER;
		answer->slot = 0;
		answer->slot2 = 0;
	}
	known->slot[nr] = answer->slot;
	known->slot2[nr] = answer->slot2;
	known->reason[nr] = answer->reason;
}

/* Answer number @nr, in direction @dir, is what governs it. */
static __always_inline void xspd_take_known(struct xspd_packet *pkt, enum xspd_dir dir, int nr)
{
	pkt->flow.dir = dir;
	pkt->slot = pkt->known.slot[nr];
	pkt->reason = pkt->known.reason[nr];
}

static __always_inline void xspd_count_known(struct xspd_packet *pkt, int nr, bool acted)
{
	const struct xspd_known *known = &pkt->known;
	__u32 slot = known->slot[nr], slot2 = known->slot2[nr];

	xspd_count_asked(1 + pkt->flow.dir, pkt->hook, known->reason[nr], pkt->bytes);
	if (slot && xspd_count_policy(slot, pkt->bytes, pkt->now, acted))
		xspd_sample_first(pkt, slot);
	if (slot2 && xspd_count_policy(slot2, pkt->bytes, pkt->now, false))
		xspd_sample_first(pkt, slot2);
}

/* Sent: one question. */
static __noinline int xspd_observe_out(struct xspd_packet *pkt)
{
	xspd_ask(pkt, XSPD_OUT, 0, 1);
	xspd_take_known(pkt, XSPD_OUT, 0);
	xspd_count_known(pkt, 0, false);
	return 0;
}

/* Remember it, unless the policies have changed meanwhile. */
static __always_inline void xspd_keep_known(const struct xspd_packet *pkt)
{
	const struct xspd_known *known = &pkt->known;
	const struct xspd_conf *conf;
	__u32 zero = 0;

	conf = bpf_map_lookup_elem(&xspd_conf, &zero);
	barrier();
	if (pkt->keep && conf && XSPD_READ(conf->generation) == pkt->generation &&
	    xspd_reason_lasts(known->reason[0]) && xspd_reason_lasts(known->reason[1]) &&
	    xspd_cache_wants())
		xspd_cache_put(&pkt->flow, &pkt->place, pkt->generation, known);
}

/* A routed packet of which nothing is known: all that the kernel will ask about it. */
static __noinline int xspd_ask_all(void *ctx, struct xspd_packet *pkt)
{
	struct xspd_known *known = &pkt->known;
	bool forward = known->route == XSPD_ROUTE_FORWARD;

	known->slot[1] = 0;
	known->slot2[1] = 0;
	known->reason[1] = XSPD_R_NONE;
	known->oif = pkt->flow.oif;
	known->fib = pkt->fib;
	known->flags = pkt->fib ? XSPD_KNOWN_FIB : 0;
	if (pkt->mode & XSPD_MODE_BYPASS && pkt->fib) {
		known->flags |= XSPD_KNOWN_SOURCE;
		if (forward && xspd_source_fits(ctx, pkt))
			known->flags |= XSPD_KNOWN_FITS;
	}
	/* a rule that routes by mark may be newer than route_rules */
	if (forward && pkt->flow.mark)
		pkt->flow.unknown |= XSPD_UNKNOWN_OIF;
	xspd_ask(pkt, forward ? XSPD_FWD : XSPD_IN, 0, 0);
	/* what is denied is dropped there, and the way out never asked for */
	if (forward && xspd_reason_verdict(known->reason[0]) != XSPD_DENY)
		xspd_ask(pkt, XSPD_OUT, 1, 0);
	xspd_keep_known(pkt);
	return 0;
}

/* Is the flow remembered, of the present policies and the present IPv4 FIB? */
static __always_inline bool xspd_remembered(struct xspd_packet *pkt, const struct xspd_conf *conf)
{
	bool v4 = pkt->flow.family == XSPD_INET;
	const struct xspd_known *known;

	pkt->generation = XSPD_READ(conf->generation);
	pkt->keep = xspd_cache_size && !xspd_conf_doubt(conf, pkt->now) && !(pkt->generation & 1);
	/* among several next hops neighbours and idle times decide too */
	if (!v4 || XSPD_READ(conf->route_many))
		pkt->fib = 0;
	if (!pkt->keep)
		return false;
	pkt->place =
		xspd_cache_place(&pkt->flow, XSPD_CACHE_RECEIVED, pkt->ifindex, v4 ? pkt->tos : 0);
	known = xspd_cache_find(&pkt->flow, &pkt->place, pkt->generation);
	if (!known)
		return false;
	pkt->known = *known;
	return !pkt->fib ||
	       (pkt->known.flags & XSPD_KNOWN_FIB && pkt->known.fib == (__u32)pkt->fib);
}

/* Does the FIB, asked anew, say what is remembered?  pkt->known.route is what it says. */
static __always_inline bool xspd_routed_as_known(void *ctx, struct xspd_packet *pkt)
{
	__u8 route = xspd_route(ctx, pkt), was = pkt->known.route;

	pkt->known.route = route;
	return route == was && pkt->flow.oif == pkt->known.oif;
}

/* The FIB is asked without the mark: it may deliver what a rule forwards, or the reverse. */
static __always_inline bool xspd_rules_hide(const struct xspd_packet *pkt, __u32 rules)
{
	return rules && (rules != XSPD_RULES_MARK || pkt->flow.mark ||
			 pkt->flow.unknown & XSPD_UNKNOWN_MARK);
}

/*
 * What there is to know of a packet received: pkt->known.  To forward it takes a neighbour,
 * whom only the FIB lookup knows.
 * Return: XSPD_R_NONE, or why the kernel will not ask, or not what we can.
 */
static __always_inline enum xspd_reason xspd_find_out(void *ctx, struct xspd_packet *pkt)
{
	const struct xspd_conf *conf;
	__u32 zero = 0;
	bool known;

	conf = bpf_map_lookup_elem(&xspd_conf, &zero);
	if (!conf)
		return XSPD_R_ERROR;
	if (xspd_is_multicast(&pkt->flow))
		return XSPD_R_MULTICAST;
	if (xspd_rules_hide(pkt, XSPD_READ(conf->route_rules)))
		return XSPD_R_NO_ROUTE;
	known = xspd_remembered(pkt, conf);
	if (!known || !pkt->fib || pkt->mode & XSPD_MODE_BYPASS)
		known = xspd_routed_as_known(ctx, pkt) && known;
	if (pkt->fib && pkt->mode & XSPD_MODE_BYPASS && !(pkt->known.flags & XSPD_KNOWN_SOURCE))
		known = false;
	if (pkt->known.route == XSPD_ROUTE_NONE)
		return XSPD_R_NO_ROUTE;
	if (pkt->known.route == XSPD_ROUTE_LOCAL && pkt->source_route)
		return XSPD_R_HEADER;
	if (pkt->known.route == XSPD_ROUTE_LOCAL && xspd_is_ipsec(&pkt->flow))
		return XSPD_R_ESP;
	if (!known)
		xspd_ask_all(ctx, pkt);
	return XSPD_R_NONE;
}

#endif
