/* SPDX-License-Identifier: GPL-2.0-only */
/* A packet as the hooks take it up: its flow, and what else is asked of its headers. */
#ifndef XSPD_BPF_PACKET_H
#define XSPD_BPF_PACKET_H

#include "cache.h"
#include "maps.h"
#include "parse.h"

/* ifindex of lo in every namespace: flowi_oif of what is delivered locally */
#define XSPD_LOOPBACK 1

/*
 * A packet as a hook sees it, and what has been found out about it.  What is written for every
 * packet comes first.
 */
struct xspd_packet {
	struct xspd_flow flow;
	struct xspd_known known; /* what was remembered of the flow, or is to be */
	__u32 bytes;		 /* of the datagram */
	__u64 generation;	 /* of the SPD's, in which it is known */
	__u64 fib;		 /* XSPD_FIB_KNOWN and the generation of the FIB, or 0 */
	__u64 now;		 /* CLOCK_MONOTONIC, coarse */
	struct xspd_place place; /* in the cache */
	__u32 slot;		 /* of the last answer */
	__u32 ifindex;
	__u32 mode; /* enum xspd_mode_flag of this hook */
	__u32 l3;   /* XDP: offset of the IP header */
	__be32 flowinfo;
	__u8 tos;
	__u8 ttl;
	bool source_route; /* IPv4 options or an IPv6 routing header */
	bool ext;	   /* any IPv6 extension header */
	bool icmp_error;
	bool secpath;	/* it came out of IPsec */
	bool keep;	/* what comes to be known may be remembered */
	bool neighbour; /* the FIB lookup gave smac and dmac */
	__u8 hook;	/* enum xspd_hook */
	__u8 mac[6];	/* of the device, as its mode says */
	__u8 smac[6];
	__u8 dmac[6];
	__u8 reason;  /* of the last answer: enum xspd_reason */
	__u16 linger; /* seconds, of its mode */
	__u8 pad[2];
	struct xspd_answer answer; /* to the last question that was not remembered */
};

/*
 * What changes by the tick, or seldom: read once a tick and CPU.  A mode that an operator sets
 * is followed from the next tick on.
 */
struct xspd_moment {
	__u64 tick;
	__u64 now;
	struct xspd_mode_key key;
	struct xspd_mode mode;
	__u32 pad;
};

#define XSPD_MOMENTS 8

/* Found in one lookup. */
struct xspd_cpu {
	struct xspd_packet packet; /* first: xspd_cpu_of() */
	struct xspd_moment moment[XSPD_MOMENTS];
};

/*
 * One a CPU: too large for the stack, which older verifiers add up over all
 * calls.  A CPU runs one hook at a time.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xspd_cpu);
} xspd_cpus SEC(".maps");

/* Types whose quoted packet the kernel looks up when the error itself has no policy. */
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

/* The record that it is part of. */
static __always_inline struct xspd_cpu *xspd_cpu_of(struct xspd_packet *pkt)
{
	return (struct xspd_cpu *)pkt;
}

/* The mode of a device's hook, flags 0: it has none.  The time is in it too. */
static __always_inline const struct xspd_moment *xspd_moment(struct xspd_cpu *cpu, __u32 ifindex,
							     enum xspd_hook hook)
{
	struct xspd_moment *moment = &cpu->moment[(ifindex * XSPD_HOOK_MAX_ + hook) % XSPD_MOMENTS];
	const struct xspd_mode none = {}, *mode;
	__u64 tick = bpf_jiffies64();

	if (moment->tick == tick && moment->key.ifindex == ifindex && moment->key.hook == hook)
		return moment;
	moment->key.ifindex = ifindex;
	moment->key.hook = hook;
	mode = bpf_map_lookup_elem(&xspd_mode, &moment->key);
	moment->mode = mode ? *mode : none;
	moment->now = bpf_ktime_get_coarse_ns();
	moment->tick = tick;
	return moment;
}

/* A fresh record, with what the device's mode asks for. */
static __always_inline struct xspd_packet *xspd_packet_new(__u32 ifindex, enum xspd_hook hook)
{
	const struct xspd_moment *moment;
	struct xspd_packet *pkt;
	struct xspd_cpu *cpu;
	__u32 zero = 0;

	cpu = bpf_map_lookup_elem(&xspd_cpus, &zero);
	if (!cpu)
		return NULL;
	moment = xspd_moment(cpu, ifindex, hook);
	pkt = &cpu->packet;
	/* the rest is written before it is read */
	__builtin_memset(&pkt->flow, 0, sizeof(pkt->flow));
	pkt->hook = hook;
	pkt->ifindex = ifindex;
	pkt->now = moment->now;
	pkt->mode = moment->mode.flags;
	pkt->linger = moment->mode.linger;
	__builtin_memcpy(pkt->mac, moment->mode.mac, sizeof(pkt->mac));
	pkt->secpath = false;
	pkt->neighbour = false;
	pkt->slot = 0;
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

#endif
