/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Acting on the answers: dropping what the kernel is certain to drop, writing marks.
 * Whatever is not certain is left to the kernel, under a name of its own (enum xspd_act).
 */
#ifndef XSPD_BPF_ACT_H
#define XSPD_BPF_ACT_H

#include "verdict.h"

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

/* The last answer calls for @act: 1 if that is certain.  Counted and told of, either way. */
static __noinline int xspd_enforce(void *ctx, struct xspd_packet *pkt, __u32 act)
{
	enum xspd_act keep = XSPD_A_NONE;
	bool enforce = pkt->mode & XSPD_MODE_ENFORCE;

	if (enforce)
		keep = xspd_keep_for(pkt, pkt->flow.dir, act);
	if (enforce && keep == XSPD_A_NONE && pkt->flow.dir == XSPD_IN &&
	    !xspd_has_default(ctx, pkt))
		keep = XSPD_A_KEEP_ROUTE;
	if (enforce && keep == XSPD_A_NONE) {
		xspd_count_act(pkt->hook, act, pkt->bytes);
		xspd_sample_take(pkt, pkt->mode & XSPD_MODE_DRY_RUN ? XSPD_S_WOULD : XSPD_S_DROP,
				 pkt->slot, act);
		return 1;
	}
	if (keep != XSPD_A_NONE)
		xspd_count_act(pkt->hook, keep, pkt->bytes);
	if (act != XSPD_A_DROP_PLAIN)
		xspd_sample_take(pkt, XSPD_S_DENY, pkt->slot, keep);
	return 0;
}

/* Count what answer number @nr comes to.  true: drop it now. */
static __always_inline bool xspd_settle(void *ctx, struct xspd_packet *pkt, enum xspd_dir dir,
					int nr)
{
	enum xspd_act act = xspd_drop_for(pkt->known.reason[nr], dir);
	bool acted;

	xspd_take_known(pkt, dir, nr);
	acted = act != XSPD_A_NONE && xspd_enforce(ctx, pkt, act);
	xspd_count_known(pkt, nr, acted);
	return acted && !(pkt->mode & XSPD_MODE_DRY_RUN);
}

enum xspd_fate {
	XSPD_FATE_UP, /* the kernel goes on with it */
	XSPD_FATE_DROP,
	XSPD_FATE_PLAIN, /* forwarded, and plain both as fwd and as out */
};

/*
 * Received: what is for us is asked as in; what goes on, as fwd and as out.  A packet
 * that goes up is counted and left alone.
 */
static __always_inline enum xspd_fate xspd_receive(void *ctx, struct xspd_packet *pkt)
{
	enum xspd_reason reason = xspd_find_out(ctx, pkt);
	enum xspd_verdict fwd;

	if (reason) {
		xspd_count_reason(pkt->hook, reason, pkt->bytes);
		return XSPD_FATE_UP;
	}
	if (pkt->known.route == XSPD_ROUTE_LOCAL)
		return xspd_settle(ctx, pkt, XSPD_IN, 0) ? XSPD_FATE_DROP : XSPD_FATE_UP;
	if (xspd_settle(ctx, pkt, XSPD_FWD, 0))
		return XSPD_FATE_DROP;
	fwd = xspd_reason_verdict(pkt->known.reason[0]);
	/* the kernel drops it there, and never asks for the way out */
	if (fwd == XSPD_DENY)
		return XSPD_FATE_UP;
	if (xspd_settle(ctx, pkt, XSPD_OUT, 1))
		return XSPD_FATE_DROP;
	return fwd == XSPD_PLAIN && xspd_reason_verdict(pkt->known.reason[1]) == XSPD_PLAIN
		       ? XSPD_FATE_PLAIN
		       : XSPD_FATE_UP;
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
	mark = xspd_mark_find(pkt->slot);
	if (!mark)
		return 0;
	xspd_count_act(pkt->hook, XSPD_A_MARKED, pkt->bytes);
	xspd_count_acted(pkt->slot);
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

#endif
