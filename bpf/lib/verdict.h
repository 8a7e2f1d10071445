/* SPDX-License-Identifier: GPL-2.0-only */
/* From a packet at a hook to the questions that the kernel will ask about it. */
#ifndef XSPD_BPF_VERDICT_H
#define XSPD_BPF_VERDICT_H

#include "account.h"
#include "classify.h"
#include "parse.h"

#define XSPD_LOOPBACK                                                                              \
	1 /* ifindex of lo in every namespace: flowi_oif of what is delivered locally */

/* A packet as a hook sees it, and what has been found out about it. */
struct xspd_packet {
	struct xspd_flow flow;
	struct xspd_answer answer; /* to the last question */
	__be32 flowinfo;
	__u32 bytes; /* of the datagram */
	__u32 ifindex;
	__u32 mode; /* enum xspd_mode_flag of this hook */
	__u32 l3;   /* XDP: offset of the IP header */
	__u8 tos;
	__u8 ttl;
	bool source_route; /* IPv4 options or an IPv6 routing header */
	bool ext;	   /* any IPv6 extension header */
	bool icmp_error;
	bool secpath;	/* it came out of IPsec */
	bool neighbour; /* the FIB lookup gave smac and dmac */
	__u8 hook;	/* enum xspd_hook */
	__u8 mac[6];	/* of the device, as its mode says */
	__u8 smac[6];
	__u8 dmac[6];
	__u16 linger; /* seconds, of its mode */
};

/*
 * One a CPU: too large for the stack, which older verifiers add up over all
 * calls.  A CPU runs one hook at a time.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xspd_packet);
} xspd_packets SEC(".maps");

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
	pkt->ttl = cur->meta.ttl;
	pkt->l3 = cur->meta.l3;
	pkt->source_route = cur->meta.flags & XSPD_META_ROUTING;
	pkt->ext = pkt->flow.family == XSPD_INET6 &&
		   cur->meta.l4 - cur->meta.l3 != sizeof(struct ipv6hdr);
	pkt->icmp_error = xspd_is_icmp_error(&pkt->flow);
	/* conntrack may put the ports of fragments back before XFRM looks */
	if (pkt->flow.frag)
		pkt->flow.unknown |= XSPD_UNKNOWN_PORTS;
	return XSPD_R_NONE;
}

/* A fresh record, with what the device's mode asks for. */
static __always_inline struct xspd_packet *xspd_packet_new(__u32 ifindex, enum xspd_hook hook)
{
	struct xspd_mode_key key = {.ifindex = ifindex, .hook = hook};
	const struct xspd_mode *mode = bpf_map_lookup_elem(&xspd_mode, &key);
	struct xspd_packet *pkt;
	__u32 zero = 0;

	pkt = bpf_map_lookup_elem(&xspd_packets, &zero);
	if (!pkt)
		return NULL;
	__builtin_memset(pkt, 0, sizeof(*pkt));
	pkt->hook = hook;
	pkt->ifindex = ifindex;
	if (mode) {
		pkt->mode = mode->flags;
		pkt->linger = mode->linger;
		__builtin_memcpy(pkt->mac, mode->mac, sizeof(pkt->mac));
	}
	return pkt;
}

static __noinline int xspd_packet_skb(struct __sk_buff *skb, struct xspd_packet *pkt)
{
	struct xspd_cursor cur;

	pkt->bytes = skb->len;
	pkt->flow.mark = skb->mark;
	/* the VLAN's device gets it, or has sent it: it is seen there */
	if (skb->vlan_present && skb->vlan_tci & 0xfff)
		return XSPD_R_NO_ROUTE;
	xspd_cursor_skb(&cur, skb);
	return xspd_packet_done(pkt, &cur, xspd_parse_ip(&cur, skb->protocol, &pkt->flow));
}

static __always_inline bool xspd_mac_is(const __u8 *a, const __u8 *b)
{
	return a[0] == b[0] && a[1] == b[1] && a[2] == b[2] && a[3] == b[3] && a[4] == b[4] &&
	       a[5] == b[5];
}

/*
 * A frame to another address than the device's: another node's, or that of a device on
 * top of this one (macvlan, bridge), where it is routed by other rules. Known with a mode only.
 */
static __always_inline bool xspd_for_others(void *data, void *end, const struct xspd_packet *pkt)
{
	static const __u8 none[6];
	struct ethhdr *eth = data;

	return pkt->mode && (void *)(eth + 1) <= end && !xspd_mac_is(pkt->mac, none) &&
	       !xspd_mac_is(eth->h_dest, pkt->mac);
}

static __noinline int xspd_packet_xdp(struct xdp_md *xdp, struct xspd_packet *pkt)
{
	void *data = (void *)(long)xdp->data, *end = (void *)(long)xdp->data_end;
	struct xspd_cursor cur;

	pkt->bytes = end - data;
	if (xspd_for_others(data, end, pkt))
		return XSPD_R_NO_ROUTE;
	pkt->flow.unknown = XSPD_UNKNOWN_MARK;
	xspd_cursor_linear(&cur, data, end);
	return xspd_packet_done(pkt, &cur, xspd_parse_eth(&cur, &pkt->flow));
}

/*
 * What the FIB lookup does not forward is for us, or has no route at all, which it does
 * not tell apart. With a default route it is for us; an address that nobody routes finds one.
 */
static __noinline int xspd_has_default(void *ctx, const struct xspd_packet *pkt)
{
	struct bpf_fib_lookup fib = {
		.family = pkt->flow.family,
		.l4_protocol = pkt->flow.proto,
		.ifindex = pkt->ifindex,
	};
	const __u8 *daddr = (const void *)pkt->flow.daddr;
	long ret;

	if (pkt->flow.family == XSPD_INET) {
		fib.tos = pkt->tos;
		fib.ipv4_src = pkt->flow.saddr[0];
		fib.ipv4_dst = __builtin_bswap32(0xf0000001); /* 240.0.0.1 */
	} else if (daddr[0] == 0xfe && (daddr[1] & 0xc0) == 0x80) {
		/* link-local: never by a default route */
		return 0;
	} else {
		fib.flowinfo = pkt->flowinfo;
		__builtin_memcpy(fib.ipv6_src, pkt->flow.saddr, sizeof(fib.ipv6_src));
		fib.ipv6_dst[0] = __builtin_bswap32(0x3fffffff); /* 3fff:ffff::1 */
		fib.ipv6_dst[3] = __builtin_bswap32(1);
	}
	ret = bpf_fib_lookup(ctx, &fib, sizeof(fib), 0);
	return ret == BPF_FIB_LKUP_RET_SUCCESS || ret == BPF_FIB_LKUP_RET_NO_NEIGH;
}

/* Is it for us or for another, and through which device: flow->oif. */
static __noinline int xspd_route(void *ctx, struct xspd_packet *pkt)
{
	struct bpf_fib_lookup fib = {
		.family = pkt->flow.family,
		.l4_protocol = pkt->flow.proto,
		.ifindex = pkt->ifindex,
	};
	long ret;

	if (pkt->flow.family == XSPD_INET) {
		fib.tos = pkt->tos;
		fib.ipv4_src = pkt->flow.saddr[0];
		fib.ipv4_dst = pkt->flow.daddr[0];
	} else {
		fib.flowinfo = pkt->flowinfo;
		__builtin_memcpy(fib.ipv6_src, pkt->flow.saddr, sizeof(fib.ipv6_src));
		__builtin_memcpy(fib.ipv6_dst, pkt->flow.daddr, sizeof(fib.ipv6_dst));
	}
	/* with a length, the route's MTU is looked at too; what exceeds it gets no device then */
	if (pkt->mode & XSPD_MODE_BYPASS)
		fib.tot_len = pkt->bytes;
	ret = bpf_fib_lookup(ctx, &fib, sizeof(fib), 0);
	if (ret == BPF_FIB_LKUP_RET_FRAG_NEEDED && fib.tot_len) {
		fib.tot_len = 0;
		fib.ifindex = pkt->ifindex;
		ret = bpf_fib_lookup(ctx, &fib, sizeof(fib), 0);
		if (ret == BPF_FIB_LKUP_RET_SUCCESS)
			ret = BPF_FIB_LKUP_RET_NO_NEIGH;
	}
	switch (ret) {
	case BPF_FIB_LKUP_RET_SUCCESS:
		pkt->neighbour = true;
		__builtin_memcpy(pkt->smac, fib.smac, sizeof(pkt->smac));
		__builtin_memcpy(pkt->dmac, fib.dmac, sizeof(pkt->dmac));
		pkt->flow.oif = fib.ifindex;
		return XSPD_ROUTE_FORWARD;
	case BPF_FIB_LKUP_RET_NO_NEIGH:
	case BPF_FIB_LKUP_RET_FRAG_NEEDED:
		pkt->flow.oif = fib.ifindex;
		return XSPD_ROUTE_FORWARD;
	case BPF_FIB_LKUP_RET_NOT_FWDED:
		pkt->flow.oif = XSPD_LOOPBACK;
		return XSPD_ROUTE_LOCAL;
	default:
		return XSPD_ROUTE_NONE;
	}
}

#endif
