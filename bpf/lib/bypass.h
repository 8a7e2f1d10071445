/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Forwarding past the stack what the kernel is certain to forward in the clear.  Whatever is
 * not certain goes up, under a name of its own (enum xspd_act).
 */
#ifndef XSPD_BPF_BYPASS_H
#define XSPD_BPF_BYPASS_H

#include "act.h"

/* Source addresses that the kernel looks at twice, or refuses. */
static __always_inline bool xspd_source_odd(const struct xspd_flow *flow)
{
	const __u8 *saddr = (const void *)flow->saddr;

	if (flow->family == XSPD_INET)
		return saddr[0] == 0 || saddr[0] == 127 || saddr[0] >= 224;
	return saddr[0] == 0 || saddr[0] == 0xff || (saddr[0] == 0xfe && (saddr[1] & 0xc0) == 0x80);
}

/* Destinations that are no unicast address of another node. */
static __always_inline bool xspd_target_odd(const struct xspd_flow *flow)
{
	const __u8 *daddr = (const void *)flow->daddr;

	if (flow->family == XSPD_INET)
		return daddr[0] == 0 || daddr[0] == 127;
	return daddr[0] == 0 || (daddr[0] == 0xfe && (daddr[1] & 0xc0) == 0x80);
}

/* The kernel keeps to a route's MTU, but its FIB lookup for programs only to a locked one. */
static __always_inline bool xspd_route_narrow(const struct xspd_packet *pkt)
{
	const struct xspd_conf *conf;
	__u32 zero = 0, mtu;

	conf = bpf_map_lookup_elem(&xspd_conf, &zero);
	mtu = conf ? XSPD_READ(conf->route_mtu) : 1;
	return mtu && pkt->bytes > mtu;
}

/* Optional templates let plaintext in; going out they are applied wherever there is an SA. */
static __always_inline bool xspd_may_transform(__u32 slot)
{
	const struct xspd_info *info = slot ? bpf_map_lookup_elem(&xspd_info, &slot) : NULL;

	return info && info->tmpl_count;
}

static __always_inline bool xspd_leaves_plain(const struct xspd_packet *pkt)
{
	const struct xspd_known *known = &pkt->known;

	return !xspd_may_transform(known->slot[1]) && !xspd_may_transform(known->slot2[1]);
}

static __always_inline bool xspd_comes_back(void *ctx, const struct xspd_packet *pkt)
{
	if (pkt->fib && pkt->known.flags & XSPD_KNOWN_SOURCE)
		return pkt->known.flags & XSPD_KNOWN_FITS;
	return xspd_source_fits(ctx, pkt);
}

/* Why a plain packet is not forwarded here; XSPD_A_NONE: it is. */
static __always_inline enum xspd_act xspd_bypass_keep(void *ctx, struct xspd_packet *pkt)
{
	const struct xspd_moment *port;
	__u32 env = xspd_env();

	if (!xspd_leaves_plain(pkt))
		return XSPD_A_UP_VERDICT;
	if (env & XSPD_ENV_NETFILTER_ANY && !(pkt->mode & XSPD_MODE_NETFILTER))
		return XSPD_A_KEEP_NETFILTER;
	if (env & XSPD_ENV_SYSCTL)
		return XSPD_A_KEEP_SYSCTL;
	if (pkt->flow.frag)
		return XSPD_A_KEEP_FRAGMENT;
	if (pkt->source_route)
		return XSPD_A_KEEP_OPTIONS;
	if (pkt->icmp_error)
		return XSPD_A_KEEP_ICMP;
	if (pkt->ttl <= 1)
		return XSPD_A_KEEP_TTL;
	if (xspd_route_narrow(pkt) || xspd_source_odd(&pkt->flow) || xspd_target_odd(&pkt->flow) ||
	    !pkt->neighbour || pkt->flow.oif == pkt->ifindex || !xspd_comes_back(ctx, pkt))
		return XSPD_A_UP_FIB;
	port = xspd_moment(xspd_cpu_of(pkt), pkt->flow.oif, XSPD_HOOK_XDP);
	if (!(port->mode.flags & XSPD_MODE_BYPASS))
		return XSPD_A_UP_PORT;
	return XSPD_A_NONE;
}

/* IPv4 header checksum over a header without options: 0 if it is right. */
static __always_inline __u16 xspd_ip_sum(const struct iphdr *ip)
{
	const __u16 *word = (const void *)ip;
	__u32 sum = 0;

#pragma unroll
	for (int i = 0; i < 10; i++)
		sum += word[i];
	sum = (sum & 0xffff) + (sum >> 16);
	sum += sum >> 16;
	return ~sum;
}

/* A header that the kernel would forward, with nothing in it for every router to see. */
static __always_inline bool xspd_hop_fits(const void *data, const void *end,
					  const struct xspd_packet *pkt)
{
	if (pkt->flow.family == XSPD_INET) {
		const struct iphdr *ip = data + sizeof(struct ethhdr);

		return (const void *)(ip + 1) <= end && !xspd_ip_sum(ip);
	} else {
		const struct ipv6hdr *ip = data + sizeof(struct ethhdr);

		return (const void *)(ip + 1) <= end && ip->nexthdr != IPPROTO_HOPOPTS;
	}
}

/* One hop less; RFC 1624 for the checksum, as ip_decrease_ttl() does it. */
static __always_inline void xspd_hop(void *data, void *end, const struct xspd_packet *pkt)
{
	struct ipv6hdr *ip6 = data + sizeof(struct ethhdr);
	struct iphdr *ip = data + sizeof(struct ethhdr);
	__u32 check;

	if (pkt->flow.family == XSPD_INET && (void *)(ip + 1) <= end) {
		check = ip->check + __builtin_bswap16(0x0100);
		ip->check = check + (check >= 0xffff);
		ip->ttl--;
	} else if ((void *)(ip6 + 1) <= end) {
		ip6->hop_limit--;
	}
}

/* Forward a plain packet past the stack.  Whatever is unusual goes up untouched. */
static __always_inline int xspd_bypass(struct xdp_md *xdp, struct xspd_packet *pkt)
{
	enum xspd_act act = xspd_bypass_keep(xdp, pkt);
	void *data, *end;
	struct ethhdr *eth;
	int excess;

	if (act != XSPD_A_NONE)
		goto up;
	act = XSPD_A_UP_FIB;
	/* the kernel cuts off what pads the frame */
	excess = (int)(xdp->data_end - xdp->data) - (int)(sizeof(struct ethhdr) + pkt->bytes);
	data = (void *)(long)xdp->data;
	end = (void *)(long)xdp->data_end;
	eth = data;
	if (pkt->l3 != sizeof(struct ethhdr) || (void *)(eth + 1) > end ||
	    !xspd_mac_is(eth->h_dest, pkt->mac))
		goto up;
	if (!xspd_hop_fits(data, end, pkt))
		goto up;
	xspd_count_act(XSPD_HOOK_XDP, XSPD_A_FORWARDED, pkt->bytes);
	if (pkt->slot)
		xspd_count_acted(pkt->slot);
	if (pkt->mode & XSPD_MODE_DRY_RUN)
		return XDP_PASS;
	xspd_hop(data, end, pkt);
	__builtin_memcpy(eth->h_source, pkt->smac, sizeof(eth->h_source));
	__builtin_memcpy(eth->h_dest, pkt->dmac, sizeof(eth->h_dest));
	if (excess > 0)
		bpf_xdp_adjust_tail(xdp, -excess);
	return bpf_redirect(pkt->flow.oif, 0);
up:
	xspd_count_act(XSPD_HOOK_XDP, act, pkt->bytes);
	return XDP_PASS;
}

#endif
