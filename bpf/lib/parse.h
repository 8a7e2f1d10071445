/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From a packet to the flow that XFRM looks up, as Linux 6.7 and later dissect
 * it (__xfrm_decode_session over the flow dissector, stopping at the first
 * encapsulation).  No map, no helper but the cursor's.  Compiles natively too.
 */
#ifndef XSPD_PARSE_H
#define XSPD_PARSE_H

#include "cursor.h"

#ifdef __bpf__
#define XSPD_ROLLED _Pragma("clang loop unroll(disable)")
#else
#define XSPD_ROLLED
#endif

/*
 * IPv6 extension headers that are followed.  The kernel follows 15
 * (MAX_FLOW_DISSECT_HDRS); from here on it decides itself.
 */
#define XSPD_EXT_MAX 8

#define XSPD_MAC_LEN 6

#define XSPD_GRE_CSUM	   0x8000
#define XSPD_GRE_ROUTING   0x4000
#define XSPD_GRE_KEY	   0x2000
#define XSPD_GRE_VERSION   0x0007
#define XSPD_GRE_PROTO_PPP 0x880b

/*
 * GRE: the key, halved.  Version 1 is PPTP, where only the call id counts.  A key
 * that is cut off, source routing and other versions: no key.
 */
static __always_inline enum xspd_reason xspd_parse_gre(struct xspd_cursor *cur, __be16 ports[2])
{
	bool whole = xspd_room(cur, 12);
	__be16 word[2];
	__u16 bits;

	if (!xspd_room(cur, sizeof(word)))
		return XSPD_R_NONE;
	if (xspd_load(cur, word, sizeof(word)))
		return XSPD_R_SHORT;
	bits = xspd_be16(word[0]);
	if (!(bits & XSPD_GRE_KEY))
		return XSPD_R_NONE;
	if (!whole || (bits & (XSPD_GRE_ROUTING | XSPD_GRE_VERSION)))
		cur->meta.flags |= XSPD_META_SINCE_6_7;
	if ((bits & XSPD_GRE_ROUTING) || (bits & XSPD_GRE_VERSION) > 1)
		return XSPD_R_NONE;
	if ((bits & XSPD_GRE_VERSION) && xspd_be16(word[1]) != XSPD_GRE_PROTO_PPP)
		return XSPD_R_NONE;
	if (bits & XSPD_GRE_CSUM)
		xspd_skip(cur, 4);
	if (!xspd_room(cur, sizeof(word)))
		return XSPD_R_NONE;
	if (xspd_load(cur, word, sizeof(word)))
		return XSPD_R_SHORT;
	if (!(bits & XSPD_GRE_VERSION))
		ports[0] = word[0];
	ports[1] = word[1];
	return XSPD_R_NONE;
}

/*
 * Source and destination "port" of an unfragmented packet.  What the datagram
 * has no room for stays 0; what it claims to hold and does not is SHORT.
 */
static __always_inline enum xspd_reason xspd_parse_ports(struct xspd_cursor *cur, __u8 proto,
							 enum xspd_family family, __be16 ports[2])
{
	__u8 type_code[2];

	switch (proto) {
	case IPPROTO_TCP:
	case IPPROTO_UDP:
	case IPPROTO_SCTP:
	case IPPROTO_UDPLITE:
		if (xspd_room(cur, 4) && xspd_load(cur, ports, 4))
			return XSPD_R_SHORT;
		return XSPD_R_NONE;
	case IPPROTO_GRE:
		return xspd_parse_gre(cur, ports);
	case IPPROTO_MH:
		cur->meta.flags |= XSPD_META_SINCE_6_7;
		return XSPD_R_NONE;
	}
	if (proto != (family == XSPD_INET ? IPPROTO_ICMP : IPPROTO_ICMPV6))
		return XSPD_R_NONE;
	/* the dissector wants all eight bytes of the ICMP header before it reads two */
	if (!xspd_room(cur, 8)) {
		cur->meta.flags |= XSPD_META_SINCE_6_7;
		return XSPD_R_NONE;
	}
	if (xspd_load(cur, type_code, sizeof(type_code)))
		return XSPD_R_SHORT;
	ports[0] = xspd_be16(type_code[0]);
	ports[1] = xspd_be16(type_code[1]);
	return XSPD_R_NONE;
}

/* What both families share. */
static __always_inline enum xspd_reason xspd_parse_l4(struct xspd_cursor *cur, __u8 proto,
						      struct xspd_flow *flow)
{
	enum xspd_reason reason = XSPD_R_NONE;
	__be16 ports[2] = {};

	cur->meta.l4 = cur->off;
	if (flow->frag == XSPD_FRAG_NONE)
		reason = xspd_parse_ports(cur, proto, flow->family, ports);
	flow->proto = proto;
	flow->sport = ports[0];
	flow->dport = ports[1];
	return reason;
}

#define XSPD_IP_MF     0x2000
#define XSPD_IP_OFFSET 0x1fff

static __always_inline enum xspd_reason xspd_parse_ip4(struct xspd_cursor *cur,
						       struct xspd_flow *flow, __u8 *ret_proto)
{
	__u32 start = cur->off;
	struct iphdr ip;
	__u32 head, len;
	__u16 frag;

	if (xspd_load(cur, &ip, sizeof(ip)))
		return XSPD_R_SHORT;
	head = (*(const __u8 *)&ip & 0xf) * 4;
	if (*(const __u8 *)&ip >> 4 != 4 || head < sizeof(ip))
		return XSPD_R_HEADER;
	len = xspd_be16(ip.tot_len);
	if (!len && cur->gso && ip.protocol == IPPROTO_TCP)
		len = cur->limit - start;
	if (len < head || start + len > cur->limit)
		return XSPD_R_HEADER;

	/* the kernel trims what pads the frame */
	cur->limit = start + len;
	xspd_skip(cur, head - sizeof(ip));
	cur->meta.len = len;
	cur->meta.tos = ip.tos;
	cur->meta.ttl = ip.ttl;
	if (head > sizeof(ip))
		cur->meta.flags |= XSPD_META_ROUTING;

	__builtin_memset(flow->daddr, 0, sizeof(flow->daddr));
	__builtin_memset(flow->saddr, 0, sizeof(flow->saddr));
	flow->daddr[0] = ip.daddr;
	flow->saddr[0] = ip.saddr;
	flow->family = XSPD_INET;
	frag = xspd_be16(ip.frag_off);
	flow->frag = frag & XSPD_IP_OFFSET ? XSPD_FRAG_LATER
		     : frag & XSPD_IP_MF   ? XSPD_FRAG_FIRST
					   : XSPD_FRAG_NONE;
	*ret_proto = ip.protocol;
	return XSPD_R_NONE;
}

static __always_inline bool xspd_is_ext(__u8 proto)
{
	return proto == IPPROTO_HOPOPTS || proto == IPPROTO_ROUTING || proto == IPPROTO_DSTOPTS;
}

/*
 * Step over hop-by-hop, routing and destination options, in any order; @proto
 * becomes the number of what follows.  A header that the datagram has no room
 * for is itself what follows.
 *
 * Tested at the bottom: older kernels (6.1; not 6.12) accept a loop only if a jump closes it.
 * When the test was at the top, clang let the last instruction of the body run into it:
 * "back-edge from insn 493 to 494".
 */
static __always_inline enum xspd_reason xspd_parse_ext(struct xspd_cursor *cur, __u8 *proto)
{
	__u8 opt[2];
	int i = 0;

	if (!xspd_is_ext(*proto))
		return XSPD_R_NONE;
	XSPD_ROLLED
	do {
		if (i++ == XSPD_EXT_MAX)
			return XSPD_R_HEADER;
		cur->meta.flags |= XSPD_META_SINCE_6_7;
		if (*proto == IPPROTO_ROUTING)
			cur->meta.flags |= XSPD_META_ROUTING;
		if (!xspd_room(cur, sizeof(opt)))
			return XSPD_R_NONE;
		if (xspd_load(cur, opt, sizeof(opt)))
			return XSPD_R_SHORT;
		*proto = opt[0];
		xspd_skip(cur, opt[1] * 8 + 6);
	} while (xspd_is_ext(*proto));
	return XSPD_R_NONE;
}

/*
 * At a fragment header.  The kernel stops there, unless conntrack reassembles
 * first; then it goes on through options that the fragments hold, so that the
 * protocol cannot be known here.
 */
static __always_inline enum xspd_reason xspd_parse_frag6(struct xspd_cursor *cur, __u8 *proto,
							 struct xspd_flow *flow)
{
	__u8 head[8];

	cur->meta.flags |= XSPD_META_SINCE_6_7;
	if (!xspd_room(cur, sizeof(head)))
		return XSPD_R_NONE;
	if (xspd_load(cur, head, sizeof(head)))
		return XSPD_R_SHORT;
	*proto = head[0];
	flow->frag = head[2] || head[3] & 0xf8 ? XSPD_FRAG_LATER : XSPD_FRAG_FIRST;
	return xspd_is_ext(*proto) || *proto == IPPROTO_FRAGMENT ? XSPD_R_HEADER : XSPD_R_NONE;
}

/* Cut the window to the payload length.  0 is no bound for jumbograms and aggregates only. */
static __always_inline enum xspd_reason xspd_bound_ip6(struct xspd_cursor *cur,
						       const struct ipv6hdr *ip)
{
	__u32 len = xspd_be16(ip->payload_len);

	cur->meta.len = cur->limit - cur->meta.l3;
	if (!len && (ip->nexthdr == IPPROTO_HOPOPTS || (cur->gso && ip->nexthdr == IPPROTO_TCP)))
		return XSPD_R_NONE;
	if (!xspd_room(cur, len))
		return XSPD_R_HEADER;
	cur->limit = cur->off + len;
	cur->meta.len = sizeof(*ip) + len;
	return XSPD_R_NONE;
}

static __always_inline enum xspd_reason xspd_parse_ip6(struct xspd_cursor *cur,
						       struct xspd_flow *flow, __u8 *ret_proto)
{
	enum xspd_reason reason;
	struct ipv6hdr ip;
	__be32 first;

	if (xspd_load(cur, &ip, sizeof(ip)))
		return XSPD_R_SHORT;
	if (*(const __u8 *)&ip >> 4 != 6)
		return XSPD_R_HEADER;
	reason = xspd_bound_ip6(cur, &ip);
	if (reason)
		return reason;

	__builtin_memcpy(&first, &ip, sizeof(first));
	cur->meta.flowinfo = first;
	((__u8 *)&cur->meta.flowinfo)[0] &= 0x0f;
	cur->meta.tos = ((const __u8 *)&ip)[0] << 4 | ((const __u8 *)&ip)[1] >> 4;
	cur->meta.ttl = ip.hop_limit;

	__builtin_memcpy(flow->daddr, &ip.daddr, sizeof(flow->daddr));
	__builtin_memcpy(flow->saddr, &ip.saddr, sizeof(flow->saddr));
	flow->family = XSPD_INET6;
	flow->frag = XSPD_FRAG_NONE;
	*ret_proto = ip.nexthdr;
	reason = xspd_parse_ext(cur, ret_proto);
	if (!reason && *ret_proto == IPPROTO_FRAGMENT)
		reason = xspd_parse_frag6(cur, ret_proto, flow);
	if (!xspd_room(cur, 2))
		cur->meta.flags |= XSPD_META_SINCE_6_7;
	return reason;
}

static __always_inline bool xspd_is_vlan(__be16 ethertype)
{
	return ethertype == xspd_be16(ETH_P_8021Q) || ethertype == xspd_be16(ETH_P_8021AD);
}

/* A VLAN tag: TCI, and the ethertype of what follows. */
static __always_inline int xspd_parse_tag(struct xspd_cursor *cur, __be16 *ethertype)
{
	__be16 tag[2];

	if (xspd_load(cur, tag, sizeof(tag)))
		return -1;
	cur->meta.vlan++;
	cur->meta.vid |= xspd_be16(tag[0]) & 0xfff;
	*ethertype = tag[1];
	return 0;
}

/**
 * xspd_parse_ip() - Fill daddr, saddr, family, proto, sport, dport and frag of @flow.
 * @cur: at the network header, or, if @ethertype is a VLAN's, at the tag (TCI, next ethertype).
 * @flow: the other fields are the caller's and stay as they are.
 *
 * Fragments get ports 0: what XFRM sees unless conntrack reassembles, so the
 * caller adds XSPD_UNKNOWN_PORTS where that may happen.  cur->meta is filled too.
 *
 * Return: XSPD_R_NONE, or why there is no flow: XSPD_R_SHORT, _NOT_IP, _HEADER.
 */
static __always_inline enum xspd_reason xspd_parse_ip(struct xspd_cursor *cur, __be16 ethertype,
						      struct xspd_flow *flow)
{
	enum xspd_reason reason;
	__u8 proto = 0;

	if (xspd_is_vlan(ethertype) && xspd_parse_tag(cur, &ethertype))
		return XSPD_R_SHORT;
	if (xspd_is_vlan(ethertype) && xspd_parse_tag(cur, &ethertype))
		return XSPD_R_SHORT;
	cur->meta.l3 = cur->off;
	if (ethertype == xspd_be16(ETH_P_IP))
		reason = xspd_parse_ip4(cur, flow, &proto);
	else if (ethertype == xspd_be16(ETH_P_IPV6))
		reason = xspd_parse_ip6(cur, flow, &proto);
	else
		reason = xspd_is_vlan(ethertype) ? XSPD_R_HEADER : XSPD_R_NOT_IP;
	return reason ?: xspd_parse_l4(cur, proto, flow);
}

/* xspd_parse_eth() - The same, from an Ethernet header on. */
static __always_inline enum xspd_reason xspd_parse_eth(struct xspd_cursor *cur,
						       struct xspd_flow *flow)
{
	__be16 ethertype;

	xspd_skip(cur, 2 * XSPD_MAC_LEN);
	if (xspd_load(cur, &ethertype, sizeof(ethertype)))
		return XSPD_R_SHORT;
	return xspd_parse_ip(cur, ethertype, flow);
}

#endif
