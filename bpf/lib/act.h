/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Acting on the answers: dropping what the kernel is certain to drop, forwarding
 * what it is certain to forward in the clear, writing marks.  Whatever is not
 * certain is left to the kernel, under a name of its own (enum xspd_act).
 */
#ifndef XSPD_BPF_ACT_H
#define XSPD_BPF_ACT_H

#include "sample.h"

static __always_inline __u32 xspd_env(void)
{
	const struct xspd_conf *conf;
	__u32 zero = 0;

	conf = bpf_map_lookup_elem(&xspd_conf, &zero);
	return conf ? XSPD_READ(conf->env) : ~0u;
}

/* What the answer calls for in this direction, before any doubt about the packet. */
static __always_inline enum xspd_act xspd_drop_for(enum xspd_reason reason, enum xspd_dir dir)
{
	switch (reason) {
	case XSPD_R_BLOCK:
		return XSPD_A_DROP_BLOCK;
	case XSPD_R_DEFAULT_BLOCK:
		return XSPD_A_DROP_DEFAULT;
	case XSPD_R_PROTECT:
		/* going out it is transformed, coming in it should have been */
		return dir == XSPD_OUT ? XSPD_A_NONE : XSPD_A_DROP_PLAIN;
	default:
		return XSPD_A_NONE;
	}
}

/* Local traffic: only what TCP, UDP and ICMP check themselves, and no socket with its own policy.
 */
static __always_inline enum xspd_act xspd_keep_local(const struct xspd_flow *flow)
{
	struct xspd_exempt key = {.dport = flow->dport, .proto = flow->proto};

	switch (flow->proto) {
	case IPPROTO_UDP:
		if (flow->dport == __builtin_bswap16(500) || flow->dport == __builtin_bswap16(4500))
			return XSPD_A_KEEP_EXEMPT;
		break;
	case IPPROTO_TCP:
		break;
	case IPPROTO_ICMP:
		return flow->family == XSPD_INET ? XSPD_A_NONE : XSPD_A_KEEP_PROTO;
	case IPPROTO_ICMPV6:
		return flow->family == XSPD_INET6 ? XSPD_A_NONE : XSPD_A_KEEP_PROTO;
	default:
		return XSPD_A_KEEP_PROTO;
	}
	return bpf_map_lookup_elem(&xspd_exempt, &key) ? XSPD_A_KEEP_EXEMPT : XSPD_A_NONE;
}

/* What may make the kernel do otherwise. */
static __always_inline enum xspd_act xspd_keep_for(const struct xspd_packet *pkt, enum xspd_dir dir,
						   enum xspd_act drop)
{
	__u32 env = xspd_env();
	__u32 netfilter = XSPD_ENV_NETFILTER_PRE | (dir == XSPD_IN ? XSPD_ENV_NETFILTER_IN : 0);

	if (pkt->ifindex == XSPD_LOOPBACK)
		return XSPD_A_KEEP_LOOPBACK;
	if (env & XSPD_ENV_SYSCTL)
		return XSPD_A_KEEP_SYSCTL;
	if (env & netfilter && !(pkt->mode & XSPD_MODE_NETFILTER))
		return XSPD_A_KEEP_NETFILTER;
	if (pkt->flow.frag)
		return XSPD_A_KEEP_FRAGMENT;
	/* an error in options is answered before any check */
	if (pkt->source_route || pkt->ext)
		return XSPD_A_KEEP_OPTIONS;
	if (pkt->icmp_error)
		return XSPD_A_KEEP_ICMP;
	if (dir == XSPD_OUT && pkt->ttl <= 1)
		return XSPD_A_KEEP_TTL;
	if (drop == XSPD_A_DROP_PLAIN && pkt->secpath)
		return XSPD_A_KEEP_SECPATH;
	if (drop == XSPD_A_DROP_PLAIN && pkt->mode & XSPD_MODE_SECPATH)
		return XSPD_A_KEEP_GENERIC;
	return dir == XSPD_IN ? xspd_keep_local(&pkt->flow) : XSPD_A_NONE;
}

/* true: drop it now. */
static __noinline int xspd_enforce(void *ctx, struct xspd_packet *pkt)
{
	enum xspd_act act, keep;

	act = xspd_drop_for(pkt->answer.reason, pkt->flow.dir);
	if (act == XSPD_A_NONE)
		return 0;
	if (!(pkt->mode & XSPD_MODE_ENFORCE)) {
		if (act != XSPD_A_DROP_PLAIN)
			xspd_sample_take(pkt, XSPD_S_DENY, pkt->answer.slot, XSPD_A_NONE);
		return 0;
	}
	keep = xspd_keep_for(pkt, pkt->flow.dir, act);
	if (keep == XSPD_A_NONE && pkt->flow.dir == XSPD_IN && !xspd_has_default(ctx, pkt))
		keep = XSPD_A_KEEP_ROUTE;
	if (keep != XSPD_A_NONE) {
		xspd_count_act(pkt->hook, keep, pkt->bytes);
		if (act != XSPD_A_DROP_PLAIN)
			xspd_sample_take(pkt, XSPD_S_DENY, pkt->answer.slot, keep);
		return 0;
	}
	xspd_count_act(pkt->hook, act, pkt->bytes);
	if (pkt->answer.slot)
		xspd_count_acted(pkt->answer.slot);
	xspd_sample_take(pkt, pkt->mode & XSPD_MODE_DRY_RUN ? XSPD_S_WOULD : XSPD_S_DROP,
			 pkt->answer.slot, act);
	return !(pkt->mode & XSPD_MODE_DRY_RUN);
}

enum xspd_fate {
	XSPD_FATE_UP, /* the kernel goes on with it */
	XSPD_FATE_DROP,
	XSPD_FATE_PLAIN, /* forwarded, and plain both as fwd and as out */
};

/* Optional templates let plaintext in; going out they are applied wherever there is an SA. */
static __always_inline bool xspd_may_transform(__u32 slot)
{
	const struct xspd_info *info = slot ? bpf_map_lookup_elem(&xspd_info, &slot) : NULL;

	return info && info->tmpl_count;
}

static __always_inline bool xspd_leaves_plain(const struct xspd_packet *pkt)
{
	const struct xspd_answer *answer = &pkt->answer;

	if (answer->verdict != XSPD_PLAIN)
		return false;
	return !(pkt->mode & XSPD_MODE_BYPASS) ||
	       (!xspd_may_transform(answer->slot) && !xspd_may_transform(answer->slot2));
}

/*
 * Received: what is for us is asked as in; what goes on, as fwd and as out.  A packet
 * that goes up is counted and left alone.
 */
static __always_inline enum xspd_fate xspd_receive(void *ctx, struct xspd_packet *pkt)
{
	enum xspd_reason reason = XSPD_R_NONE;
	bool plain;
	int route;

	if (xspd_is_multicast(&pkt->flow)) {
		xspd_count_reason(pkt->hook, XSPD_R_MULTICAST, pkt->bytes);
		return XSPD_FATE_UP;
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
		return XSPD_FATE_UP;
	}
	if (route == XSPD_ROUTE_LOCAL) {
		xspd_observe(pkt, XSPD_IN);
		return xspd_enforce(ctx, pkt) ? XSPD_FATE_DROP : XSPD_FATE_UP;
	}
	/* rules may route by mark, which the FIB lookup did not see */
	if (pkt->flow.mark)
		pkt->flow.unknown |= XSPD_UNKNOWN_OIF;
	xspd_observe(pkt, XSPD_FWD);
	if (xspd_enforce(ctx, pkt))
		return XSPD_FATE_DROP;
	/* the kernel drops it there, and never asks for the way out */
	if (pkt->answer.verdict == XSPD_DENY)
		return XSPD_FATE_UP;
	plain = pkt->answer.verdict == XSPD_PLAIN;
	xspd_observe(pkt, XSPD_OUT);
	if (xspd_enforce(ctx, pkt))
		return XSPD_FATE_DROP;
	return plain && xspd_leaves_plain(pkt) ? XSPD_FATE_PLAIN : XSPD_FATE_UP;
}

/* What the operator has set for the policy of the last answer, by its index, else by its reqid. */
static __always_inline const struct xspd_mark *xspd_mark_find(__u32 slot)
{
	const struct xspd_info *info = bpf_map_lookup_elem(&xspd_info, &slot);
	struct xspd_mark_key key = {.kind = XSPD_MARK_INDEX};
	const struct xspd_mark *mark;

	if (!slot || !info)
		return NULL;
	key.value = info->index;
	mark = bpf_map_lookup_elem(&xspd_mark, &key);
	if (mark || !info->tmpl_count)
		return mark;
	key.kind = XSPD_MARK_REQID;
	key.value = info->reqid;
	return bpf_map_lookup_elem(&xspd_mark, &key);
}

static __noinline int xspd_mark_skb(struct __sk_buff *skb, struct xspd_packet *pkt)
{
	const struct xspd_mark *mark;

	if (!(pkt->mode & XSPD_MODE_MARK))
		return 0;
	mark = xspd_mark_find(pkt->answer.slot);
	if (!mark)
		return 0;
	xspd_count_act(pkt->hook, XSPD_A_MARKED, pkt->bytes);
	xspd_count_acted(pkt->answer.slot);
	if (pkt->mode & XSPD_MODE_DRY_RUN)
		return 0;
	if (mark->set & XSPD_MARK_MARK)
		skb->mark = (skb->mark & ~mark->mark_mask) | mark->mark;
	if (mark->set & XSPD_MARK_PRIORITY)
		skb->priority = mark->priority;
	if (mark->set & XSPD_MARK_CLASSID)
		skb->tc_classid = mark->classid;
	return 0;
}

/* --- bypass ------------------------------------------------------------------- */

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

/*
 * The way back leads to where the packet came from: what rp_filter asks at its strictest, and what
 * keeps our own addresses from being used by others.
 */
static __noinline int xspd_source_fits(void *ctx, const struct xspd_packet *pkt)
{
	struct bpf_fib_lookup fib = {
		.family = XSPD_INET,
		.ifindex = pkt->ifindex,
		.ipv4_src = pkt->flow.daddr[0],
		.ipv4_dst = pkt->flow.saddr[0],
	};
	long ret;

	if (pkt->flow.family != XSPD_INET)
		return 1;
	ret = bpf_fib_lookup(ctx, &fib, sizeof(fib), 0);
	return (ret == BPF_FIB_LKUP_RET_SUCCESS || ret == BPF_FIB_LKUP_RET_NO_NEIGH) &&
	       fib.ifindex == pkt->ifindex;
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

/* Why a plain packet is not forwarded here; XSPD_A_NONE: it is. */
static __always_inline enum xspd_act xspd_bypass_keep(void *ctx, const struct xspd_packet *pkt)
{
	struct xspd_mode_key port = {.ifindex = pkt->flow.oif, .hook = XSPD_HOOK_XDP};
	const struct xspd_mode *mode;
	__u32 env = xspd_env();

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
	    !pkt->neighbour || pkt->flow.oif == pkt->ifindex || !xspd_source_fits(ctx, pkt))
		return XSPD_A_UP_FIB;
	mode = bpf_map_lookup_elem(&xspd_mode, &port);
	if (!mode || !(mode->flags & XSPD_MODE_BYPASS))
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
	if (pkt->answer.slot)
		xspd_count_acted(pkt->answer.slot);
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
