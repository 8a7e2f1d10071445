/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From a packet to the flow that XFRM looks up, as Linux 6.7 and later dissect
 * it (__xfrm_decode_session over the flow dissector, stopping at the first
 * encapsulation).  No map; one helper, for socket buffers.  Compiles natively
 * too, for the linear source.
 */
#ifndef XSPD_PARSE_H
#define XSPD_PARSE_H

#ifdef __bpf__
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#define XSPD_ROLLED _Pragma("clang loop unroll(disable)")
/* clang copies by single bytes what it cannot prove aligned; the kernel loads words anywhere */
#define XSPD_WORDS(p) __builtin_assume_aligned(p, 4)
#else
#include <stdbool.h>
#include <stddef.h>
#include <netinet/in.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
struct __sk_buff;
#define XSPD_ROLLED
#define XSPD_WORDS(p) (p)
#endif

#include "xspd/abi.h"

/*
 * IPv6 extension headers that are followed.  The kernel follows 15
 * (MAX_FLOW_DISSECT_HDRS); from here on it decides itself.
 */
#define XSPD_EXT_MAX 8

/* Bytes that are made linear before an skb is parsed: MAC, IP and the usual rest. */
#define XSPD_LINEAR 160

#define XSPD_MAC_LEN 6

/* Bits of xspd_meta.flags */
enum xspd_meta_flag {
	/*
	 * IPv4 options or an IPv6 routing header: may name another destination,
	 * which the kernel puts into the packet before the check if this one is local.
	 */
	XSPD_META_ROUTING = 1,
	XSPD_META_SINCE_6_7 = 2, /* kernels before 6.7 dissect this packet another way */
};

/* What is met on the way: for FIB lookups and ICMP errors. */
struct xspd_meta {
	__u32 l3;  /* offset of the IP header, as cursor->off counts */
	__u32 l4;  /* of what follows the headers that were followed */
	__u32 len; /* of the datagram, IP header included; with jumbo payloads an upper bound */
	__be32 flowinfo; /* IPv6: traffic class and flow label */
	__u8 tos;
	__u8 ttl;
	__u8 vlan; /* tags met in the packet's bytes */
	__u8 flags;
	__u16 vid; /* not 0: one of them names a VLAN, so that the packet is another device's */
	__u16 pad;
};

/*
 * Where bytes come from: a linear window, or an skb, whose offsets count from
 * the network header.  Set up with xspd_cursor_linear() or xspd_cursor_skb().
 */
struct xspd_cursor {
	const void *pos; /* linear window: the next byte */
	const void *end;
	struct __sk_buff *skb; /* NULL: linear window */
	__u32 off;	       /* of the next byte */
	__u32 limit;	       /* bytes from here on are not the packet's */
	bool gso;	       /* aggregated: the length in the IP header may be 0 */
	struct xspd_meta meta;
};

static __always_inline void xspd_cursor_linear(struct xspd_cursor *cur, const void *data,
					       const void *end)
{
	*cur = (struct xspd_cursor){.pos = data, .end = end};
	cur->limit = (__u32)((const char *)end - (const char *)data);
}

#ifdef __bpf__
/*
 * bpf_skb_load_bytes_relative() sees the linear part only, so headers in page
 * fragments are pulled first.  Invalidates packet pointers.  skb->len counts the
 * MAC header, whose length nobody tells: a datagram cut short by less than
 * that is not noticed here (the kernel drops it), unless a header is missing.
 */
static __always_inline void xspd_cursor_skb(struct xspd_cursor *cur, struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data;
	__u32 len = skb->len;
	__u32 want = len < XSPD_LINEAR ? len : XSPD_LINEAR;

	*cur = (struct xspd_cursor){.skb = skb, .limit = len};
	cur->gso = skb->gso_size != 0;
	if (data + want > (void *)(long)skb->data_end)
		bpf_skb_pull_data(skb, want);
}
#endif

/* Are @n more bytes part of the packet, by all that its headers have said so far? */
static __always_inline bool xspd_room(const struct xspd_cursor *cur, __u32 n)
{
	return cur->off + n <= cur->limit;
}

static __always_inline void xspd_skip(struct xspd_cursor *cur, __u32 n)
{
	if (!cur->skb)
		cur->pos += n;
	cur->off += n;
}

/* Copy @n (a constant) bytes and step over them, or -1.  The only bounds check there is. */
static __always_inline int xspd_load(struct xspd_cursor *cur, void *to, __u32 n)
{
	if (!xspd_room(cur, n))
		return -1;
	if (!cur->skb) {
		if (cur->pos + n > cur->end)
			return -1;
		__builtin_memcpy(to, XSPD_WORDS(cur->pos), n);
	}
#ifdef __bpf__
	if (cur->skb && bpf_skb_load_bytes_relative(cur->skb, cur->off, to, n, BPF_HDR_START_NET))
		return -1;
#endif
	xspd_skip(cur, n);
	return 0;
}

static __always_inline __u16 xspd_be16(__u16 v)
{
	return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? __builtin_bswap16(v) : v;
}

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
