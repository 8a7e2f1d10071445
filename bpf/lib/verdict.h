/* SPDX-License-Identifier: GPL-2.0-only */
/* From a packet at a hook to the questions that the kernel will ask about it. */
#ifndef XSPD_BPF_VERDICT_H
#define XSPD_BPF_VERDICT_H

#include "account.h"
#include "classify.h"
#include "parse.h"

#define XSPD_LOOPBACK                                                                              \
	1 /* ifindex of lo in every namespace: flowi_oif of what is delivered locally */

/* A packet as a hook sees it. */
struct xspd_packet {
	struct xspd_flow flow;
	__be32 flowinfo;
	__u32 bytes; /* of the datagram */
	__u32 ifindex;
	__u8 tos;
	bool source_route;
	bool icmp_error;
	__u8 hook; /* enum xspd_hook */
};

enum xspd_route {
	XSPD_ROUTE_LOCAL,
	XSPD_ROUTE_FORWARD,
	XSPD_ROUTE_NONE,
};

/* Types whose quoted packet the kernel looks up when the error itself has no policy (SEMANTICS 4).
 */
static __always_inline bool xspd_is_icmp_error(const struct xspd_flow *flow)
{
	__u16 type = __builtin_bswap16(flow->sport);

	if (flow->family == XSPD_INET)
		return flow->proto == IPPROTO_ICMP && (type == 3 || type == 11);
	return flow->proto == IPPROTO_ICMPV6 && (type == 1 || type == 2 || type == 3);
}

/* Headers of which the kernel's handlers may skip the check, or which come out of IPsec. */
static __always_inline bool xspd_is_ipsec(const struct xspd_flow *flow)
{
	return flow->proto == IPPROTO_ESP || flow->proto == IPPROTO_AH ||
	       flow->proto == IPPROTO_COMP;
}

static __always_inline bool xspd_is_multicast(const struct xspd_flow *flow)
{
	const __u8 *daddr = (const void *)flow->daddr;

	if (flow->family == XSPD_INET)
		return daddr[0] >= 224;
	return daddr[0] == 0xff;
}

static __always_inline enum xspd_reason
xspd_packet_done(struct xspd_packet *pkt, const struct xspd_cursor *cur, enum xspd_reason reason)
{
	if (reason)
		return reason;
	if (cur->meta.flags & XSPD_META_SINCE_6_7 && !xspd_dissector)
		return XSPD_R_HEADER;
	if (cur->meta.vid)
		return XSPD_R_NO_ROUTE;
	pkt->flowinfo = cur->meta.flowinfo;
	pkt->bytes = cur->meta.len;
	pkt->tos = cur->meta.tos;
	pkt->source_route = cur->meta.flags & XSPD_META_ROUTING;
	pkt->icmp_error = xspd_is_icmp_error(&pkt->flow);
	/* conntrack may put the ports of fragments back before XFRM looks */
	if (pkt->flow.frag)
		pkt->flow.unknown |= XSPD_UNKNOWN_PORTS;
	return XSPD_R_NONE;
}

static __noinline int xspd_packet_skb(struct __sk_buff *skb, struct xspd_packet *pkt)
{
	struct xspd_cursor cur;

	pkt->bytes = skb->len;
	pkt->ifindex = skb->ifindex;
	pkt->flow.mark = skb->mark;
	/* the VLAN's device gets it, or has sent it: it is seen there */
	if (skb->vlan_present && skb->vlan_tci & 0xfff)
		return XSPD_R_NO_ROUTE;
	xspd_cursor_skb(&cur, skb);
	return xspd_packet_done(pkt, &cur, xspd_parse_ip(&cur, skb->protocol, &pkt->flow));
}

static __noinline int xspd_packet_xdp(struct xdp_md *xdp, struct xspd_packet *pkt)
{
	void *data = (void *)(long)xdp->data, *end = (void *)(long)xdp->data_end;
	struct xspd_cursor cur;

	pkt->bytes = end - data;
	pkt->ifindex = xdp->ingress_ifindex;
	pkt->flow.unknown = XSPD_UNKNOWN_MARK;
	xspd_cursor_linear(&cur, data, end);
	return xspd_packet_done(pkt, &cur, xspd_parse_eth(&cur, &pkt->flow));
}

/* Is it for us or for another, and through which device: flow->oif. */
static __noinline int xspd_route(void *ctx, struct xspd_packet *pkt)
{
	struct bpf_fib_lookup fib = {
		.family = pkt->flow.family,
		.l4_protocol = pkt->flow.proto,
		.ifindex = pkt->ifindex,
	};

	if (pkt->flow.family == XSPD_INET) {
		fib.tos = pkt->tos;
		fib.ipv4_src = pkt->flow.saddr[0];
		fib.ipv4_dst = pkt->flow.daddr[0];
	} else {
		fib.flowinfo = pkt->flowinfo;
		__builtin_memcpy(fib.ipv6_src, pkt->flow.saddr, sizeof(fib.ipv6_src));
		__builtin_memcpy(fib.ipv6_dst, pkt->flow.daddr, sizeof(fib.ipv6_dst));
	}
	switch (bpf_fib_lookup(ctx, &fib, sizeof(fib), 0)) {
	case BPF_FIB_LKUP_RET_SUCCESS:
	case BPF_FIB_LKUP_RET_NO_NEIGH:
		pkt->flow.oif = fib.ifindex;
		return XSPD_ROUTE_FORWARD;
	case BPF_FIB_LKUP_RET_NOT_FWDED:
		pkt->flow.oif = XSPD_LOOPBACK;
		return XSPD_ROUTE_LOCAL;
	default:
		return XSPD_ROUTE_NONE;
	}
}

/* Ask in one direction, and count what comes of it. */
static __noinline int xspd_observe(struct xspd_packet *pkt, __u32 dir)
{
	struct xspd_answer answer = {};

	pkt->flow.dir = dir;
	xspd_classify(&pkt->flow, &answer, 1);
	/* an error that no policy takes is judged by the packet it quotes */
	if (pkt->icmp_error && dir != XSPD_IN &&
	    (answer.reason == XSPD_R_NO_POLICY || answer.reason == XSPD_R_DEFAULT_BLOCK ||
	     (dir == XSPD_OUT && answer.reason == XSPD_R_BYPASS))) {
		answer.reason = XSPD_R_ICMP_ERROR;
		answer.slot = 0;
		answer.slot2 = 0;
	}
	xspd_count_answer(pkt->hook, &answer, pkt->bytes);
	return 0;
}

/* Received: what is for us is asked as in; what goes on, as fwd and as out. */
static __always_inline int xspd_receive(void *ctx, struct xspd_packet *pkt)
{
	enum xspd_reason reason = XSPD_R_NONE;
	int route;

	if (xspd_is_multicast(&pkt->flow)) {
		xspd_count_reason(pkt->hook, XSPD_R_MULTICAST, pkt->bytes);
		return 0;
	}
	route = xspd_route(ctx, pkt);
	if (route == XSPD_ROUTE_NONE)
		reason = XSPD_R_NO_ROUTE;
	else if (route == XSPD_ROUTE_LOCAL && pkt->source_route)
		reason = XSPD_R_HEADER;
	else if (route == XSPD_ROUTE_LOCAL && xspd_is_ipsec(&pkt->flow))
		reason = XSPD_R_ESP;
	if (reason) {
		xspd_count_reason(pkt->hook, reason, pkt->bytes);
		return 0;
	}
	if (route == XSPD_ROUTE_LOCAL)
		return xspd_observe(pkt, XSPD_IN);
	/* rules may route by mark, which the FIB lookup did not see */
	if (pkt->flow.mark)
		pkt->flow.unknown |= XSPD_UNKNOWN_OIF;
	xspd_observe(pkt, XSPD_FWD);
	return xspd_observe(pkt, XSPD_OUT);
}

#endif
