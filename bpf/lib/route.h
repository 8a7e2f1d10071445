/* SPDX-License-Identifier: GPL-2.0-only */
/* Asking the FIB where a packet goes, and whether an earlier answer still stands. */
#ifndef XSPD_BPF_ROUTE_H
#define XSPD_BPF_ROUTE_H

#include "packet.h"

enum xspd_route {
	XSPD_ROUTE_LOCAL,
	XSPD_ROUTE_FORWARD,
	XSPD_ROUTE_NONE,
};

#define XSPD_FIB_KNOWN (1ull << 32)

/* Linux 6.2 or later; asked for by programs only that are not loaded before. */
extern void *bpf_cast_to_kern_ctx(void *ctx) __ksym __weak;

/*
 * The generation of the IPv4 FIB: the kernel's own cached routes hold as long as it does.
 * 0 where the device does not forward, which is no route's doing.
 */
static __always_inline __u64 xspd_fib_of(struct net_device *dev)
{
	struct in_device *in = dev->ip_ptr;

	if (!in || !in->cnf.data[0])
		return 0;
	return XSPD_FIB_KNOWN | (__u32)dev->nd_net.net->ipv4.rt_genid.counter;
}

static __always_inline __u64 xspd_fib_xdp(struct xdp_md *ctx)
{
	struct xdp_buff *xdp = bpf_cast_to_kern_ctx(ctx);

	return xspd_fib_of(xdp->rxq->dev);
}

static __always_inline __u64 xspd_fib_skb(struct __sk_buff *ctx)
{
	struct sk_buff *skb = bpf_cast_to_kern_ctx(ctx);

	return xspd_fib_of(skb->dev);
}

/* Rules may route by ports: those that the kernel's dissector finds where routes are looked up. */
static __always_inline bool xspd_rule_ports(const struct xspd_flow *flow)
{
	switch (flow->proto) {
	case IPPROTO_TCP:
	case IPPROTO_UDP:
	case IPPROTO_UDPLITE:
	case IPPROTO_SCTP:
		return true;
	}
	return false;
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
	if (xspd_rule_ports(&pkt->flow)) {
		fib.sport = pkt->flow.sport;
		fib.dport = pkt->flow.dport;
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

/*
 * The way back leads to where the packet came from: what rp_filter asks at its strictest, and what
 * keeps our own addresses from being used by others.
 */
static __noinline int xspd_source_fits(void *ctx, const struct xspd_packet *pkt)
{
	struct bpf_fib_lookup fib = {
		.family = XSPD_INET,
		.l4_protocol = pkt->flow.proto,
		.ifindex = pkt->ifindex,
		.ipv4_src = pkt->flow.daddr[0],
		.ipv4_dst = pkt->flow.saddr[0],
	};
	long ret;

	if (pkt->flow.family != XSPD_INET)
		return 1;
	if (xspd_rule_ports(&pkt->flow)) {
		fib.sport = pkt->flow.dport;
		fib.dport = pkt->flow.sport;
	}
	ret = bpf_fib_lookup(ctx, &fib, sizeof(fib), 0);
	return (ret == BPF_FIB_LKUP_RET_SUCCESS || ret == BPF_FIB_LKUP_RET_NO_NEIGH) &&
	       fib.ifindex == pkt->ifindex;
}

#endif
