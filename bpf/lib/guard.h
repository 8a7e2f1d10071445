/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The guard: plaintext that leaves a device although an out policy wants it protected, or
 * wanted so a moment ago.  Policies that were deleted stay for that moment in partitions of
 * their own (XSPD_GONE_*), at the priority they had.
 */
#ifndef XSPD_BPF_GUARD_H
#define XSPD_BPF_GUARD_H

#include "act.h"

/* Whatever meets it leaves as ESP or AH; a small packet may leave IPComp as it came. */
static __always_inline bool xspd_guard_transforms(__u32 slot)
{
	const struct xspd_info *info = slot ? bpf_map_lookup_elem(&xspd_info, &slot) : NULL;

	if (!info || info->action != XSPD_ALLOW)
		return false;
	switch (info->tmpl_proto) {
	case IPPROTO_ESP:
	case IPPROTO_AH:
		return info->tmpl_required > 0;
	case IPPROTO_COMP:
		return info->tmpl_required > 1;
	}
	return false;
}

static __always_inline bool xspd_guard_port(const struct xspd_flow *flow, __u16 port)
{
	port = __builtin_bswap16(port);
	return flow->sport == port || flow->dport == port;
}

/* IKE, and ESP in UDP or TCP; an exempt port is a local one: here the source's. */
static __always_inline bool xspd_guard_exempt(const struct xspd_flow *flow)
{
	struct xspd_exempt key = {.dport = flow->sport, .proto = flow->proto};

	if (flow->proto == IPPROTO_UDP &&
	    (xspd_guard_port(flow, 500) || xspd_guard_port(flow, 4500)))
		return true;
	if (flow->proto == IPPROTO_TCP && xspd_guard_port(flow, 4500))
		return true;
	return bpf_map_lookup_elem(&xspd_exempt, &key);
}

/* What a link needs before anything can be protected: DHCP, neighbours, routers. */
static __always_inline bool xspd_guard_link(const struct xspd_flow *flow)
{
	const __u8 *daddr = (const void *)flow->daddr;
	__u16 type = __builtin_bswap16(flow->sport);

	if (xspd_is_multicast(flow))
		return true;
	if (flow->family == XSPD_INET)
		return !flow->saddr[0];
	if (daddr[0] == 0xfe && (daddr[1] & 0xc0) == 0x80)
		return true;
	if (!(flow->saddr[0] | flow->saddr[1] | flow->saddr[2] | flow->saddr[3]))
		return true;
	return flow->proto == IPPROTO_ICMPV6 && type >= 133 && type <= 137;
}

static __always_inline enum xspd_act xspd_guard_keep(const struct xspd_packet *pkt)
{
	if (xspd_env() & XSPD_ENV_SYSCTL)
		return XSPD_A_KEEP_SYSCTL;
	if (pkt->flow.frag)
		return XSPD_A_KEEP_FRAGMENT;
	if (pkt->icmp_error)
		return XSPD_A_KEEP_ICMP;
	if (xspd_guard_link(&pkt->flow))
		return XSPD_A_KEEP_LINK;
	return xspd_guard_exempt(&pkt->flow) ? XSPD_A_KEEP_EXEMPT : XSPD_A_NONE;
}

/* The policy of @type that the answer came from. */
static __always_inline __u32 xspd_guard_slot(const struct xspd_answer *answer, __u32 type)
{
	const struct xspd_info *info;
	__u32 slot = answer->slot;

	info = slot ? bpf_map_lookup_elem(&xspd_info, &slot) : NULL;
	if (info && info->type == type)
		return slot;
	return type == XSPD_MAIN ? answer->slot2 : 0;
}

/* Would @gone have been found before @now, were it still there? -1: nobody knows. */
static __always_inline int xspd_guard_before(__u32 gone, __u64 key, __u32 now)
{
	const struct xspd_policy *rival = now ? bpf_map_lookup_elem(&xspd_policy, &now) : NULL;
	const struct xspd_info *rival_info = now ? bpf_map_lookup_elem(&xspd_info, &now) : NULL;
	const struct xspd_info *info = bpf_map_lookup_elem(&xspd_info, &gone);

	if (!info || info->gone_until < bpf_ktime_get_coarse_ns())
		return 0;
	if (!rival || !rival_info)
		return 1;
	if (rival->priority != key >> 32)
		return key >> 32 < rival->priority;
	/* the same policy, of which an update has taken the templates */
	if (rival_info->index == info->index)
		return 1;
	if ((rival->flags | info->policy_flags) & XSPD_P_TIE)
		return -1;
	return (__u32)key < rival->pos;
}

/* The deleted policies of @type: *slot is the one that would have taken it. */
static __noinline int xspd_guard_gone(struct xspd_packet *pkt, __u32 type, __u32 *slot)
{
	struct xspd_best best = {};
	__u32 part;
	__u64 ref;

	ref = xspd_part_ref(&pkt->flow, XSPD_GONE_MAIN + type, XSPD_OUT, &part);
	if (!ref)
		return 0;
	xspd_best_init(&best);
	xspd_walk(&pkt->flow, &best, part, ref);
	if (xspd_best_doubt(&best))
		return -1;
	if (!best.slot)
		return 0;
	*slot = best.slot;
	return xspd_guard_before(best.slot, best.key, xspd_guard_slot(&pkt->answer, type));
}

static __always_inline enum xspd_act xspd_guard_lingers(struct xspd_packet *pkt, __u32 *slot)
{
	int sub, main;

	if (!pkt->linger)
		return XSPD_A_NONE;
	sub = xspd_guard_gone(pkt, XSPD_SUB, slot);
	if (sub > 0)
		return XSPD_A_LEAK_GONE;
	main = xspd_guard_gone(pkt, XSPD_MAIN, slot);
	if (main > 0)
		return XSPD_A_LEAK_GONE;
	return sub < 0 || main < 0 ? XSPD_A_KEEP_DOUBT : XSPD_A_NONE;
}

/* After the question: 1 to drop the packet. */
static __noinline int xspd_guard(struct xspd_packet *pkt)
{
	enum xspd_act act = XSPD_A_NONE, keep;
	__u32 slot = pkt->answer.slot;
	__u32 drop = pkt->mode & XSPD_MODE_DROP;

	switch (pkt->answer.reason) {
	case XSPD_R_PROTECT:
		act = XSPD_A_KEEP_OPTIONAL;
		if (xspd_guard_transforms(slot) || xspd_guard_transforms(pkt->answer.slot2))
			act = XSPD_A_LEAK;
		break;
	case XSPD_R_BYPASS:
	case XSPD_R_NO_POLICY:
		act = xspd_guard_lingers(pkt, &slot);
		break;
	default:
		break;
	}
	if (act == XSPD_A_NONE)
		return 0;
	keep = xspd_guard_keep(pkt);
	if (keep != XSPD_A_NONE)
		act = keep;
	if (act != XSPD_A_LEAK && act != XSPD_A_LEAK_GONE) {
		xspd_count_act(XSPD_HOOK_EGRESS, act, pkt->bytes);
		return 0;
	}
	if (drop)
		act += XSPD_A_DROP_LEAK - XSPD_A_LEAK;
	xspd_count_act(XSPD_HOOK_EGRESS, act, pkt->bytes);
	xspd_count_acted(slot);
	if (pkt->mode & XSPD_MODE_DRY_RUN) {
		xspd_sample_take(pkt, XSPD_S_WOULD, slot, act);
		return 0;
	}
	xspd_sample_take(pkt, drop ? XSPD_S_DROP : XSPD_S_LEAK, slot, act);
	return drop != 0;
}

#endif
