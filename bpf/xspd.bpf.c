// SPDX-License-Identifier: GPL-2.0-only
/* The programs: what is attached, what it jumps to, and what user space runs by hand. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "lib/maps.h"
#include "lib/act.h"
#include "lib/bench.h"
#include "lib/bypass.h"
#include "lib/classify.h"
#include "lib/guard.h"

char LICENSE[] SEC("license") = "GPL";

/*
 * What is attached: stable, pinned once, followed by every swap of the set.  An
 * empty slot lets the packet go on.
 */
SEC("tc")
int xspd_tc_in(struct __sk_buff *ctx)
{
	bpf_tail_call(ctx, &xspd_jump_tc, XSPD_JUMP_IN);
	return TC_ACT_UNSPEC;
}

SEC("tc")
int xspd_tc_out(struct __sk_buff *ctx)
{
	bpf_tail_call(ctx, &xspd_jump_tc, XSPD_JUMP_OUT);
	return TC_ACT_UNSPEC;
}

SEC("xdp")
int xspd_xdp(struct xdp_md *ctx)
{
	bpf_tail_call(ctx, &xspd_jump_xdp, XSPD_JUMP_XDP);
	return XDP_PASS;
}

/* Did it come out of IPsec?  A function for the sake of the stack. */
static __noinline int xspd_has_secpath(struct __sk_buff *ctx)
{
	struct bpf_xfrm_state state;

	return !bpf_skb_get_xfrm_state(ctx, 0, &state, sizeof(state), 0);
}

/* What they jump to.  @fib: whether this kernel tells the generation of its FIB. */
static __always_inline int xspd_ingress(struct __sk_buff *ctx, bool fib)
{
	struct xspd_packet *pkt = xspd_packet_new(ctx->ifindex, XSPD_HOOK_INGRESS);
	enum xspd_reason reason;

	if (!pkt)
		return TC_ACT_UNSPEC;
	reason = xspd_packet_skb(ctx, pkt);
	if (!reason && ctx->pkt_type == PACKET_OTHERHOST)
		reason = XSPD_R_NO_ROUTE;
	if (reason) {
		xspd_count_reason(XSPD_HOOK_INGRESS, reason, pkt->bytes);
		return TC_ACT_UNSPEC;
	}
	if (pkt->mode & XSPD_MODE_ENFORCE)
		pkt->secpath = xspd_has_secpath(ctx);
	pkt->fib = fib ? xspd_fib_skb(ctx) : 0;
	if (xspd_receive(ctx, pkt) == XSPD_FATE_DROP)
		return TC_ACT_SHOT;
	xspd_mark_skb(ctx, pkt);
	return TC_ACT_UNSPEC;
}

SEC("tc")
int xspd_do_in(struct __sk_buff *ctx)
{
	return xspd_ingress(ctx, true);
}

SEC("tc")
int xspd_old_in(struct __sk_buff *ctx)
{
	return xspd_ingress(ctx, false);
}

SEC("tc")
int xspd_do_out(struct __sk_buff *ctx)
{
	struct xspd_packet *pkt = xspd_packet_new(ctx->ifindex, XSPD_HOOK_EGRESS);
	enum xspd_reason reason;

	if (!pkt)
		return TC_ACT_UNSPEC;
	if (pkt->mode & XSPD_MODE_STEER) {
		bpf_tail_call(ctx, &xspd_jump_tc, XSPD_JUMP_STEER);
		/* not there yet, or not any more */
		xspd_count_reason(XSPD_HOOK_EGRESS, XSPD_R_DOUBT, ctx->len);
		xspd_count_act(XSPD_HOOK_EGRESS, XSPD_A_UNSTEERED, ctx->len);
		return TC_ACT_UNSPEC;
	}
	reason = xspd_packet_skb(ctx, pkt);
	/* perhaps what a policy has made of another packet: never looked up itself */
	if (!reason && xspd_is_ipsec(&pkt->flow))
		reason = XSPD_R_ESP;
	if (reason) {
		xspd_count_reason(XSPD_HOOK_EGRESS, reason, pkt->bytes);
		return TC_ACT_UNSPEC;
	}
	/* IPv6 sockets that are not bound are looked up without a device */
	if (pkt->flow.family == XSPD_INET6 && !ctx->ingress_ifindex)
		pkt->flow.unknown |= XSPD_UNKNOWN_OIF;
	pkt->flow.oif = ctx->ifindex;
	/* netfilter may have set another mark since the kernel looked */
	if (pkt->mode & XSPD_MODE_GUARD && !(pkt->mode & XSPD_MODE_NETFILTER) &&
	    xspd_env() & XSPD_ENV_NETFILTER_ANY)
		pkt->flow.unknown |= XSPD_UNKNOWN_MARK;
	xspd_observe_out(pkt);
	if (pkt->mode & XSPD_MODE_GUARD && xspd_guard(pkt))
		return TC_ACT_SHOT;
	xspd_mark_skb(ctx, pkt);
	return TC_ACT_UNSPEC;
}

static __always_inline int xspd_frame_in(struct xdp_md *ctx, bool fib)
{
	struct xspd_packet *pkt = xspd_packet_new(ctx->ingress_ifindex, XSPD_HOOK_XDP);
	enum xspd_reason reason;
	enum xspd_fate fate;

	if (!pkt)
		return XDP_PASS;
	reason = xspd_packet_xdp(ctx, pkt);
	if (reason) {
		xspd_count_reason(XSPD_HOOK_XDP, reason, pkt->bytes);
		return XDP_PASS;
	}
	pkt->fib = fib ? xspd_fib_xdp(ctx) : 0;
	fate = xspd_receive(ctx, pkt);
	if (fate == XSPD_FATE_DROP)
		return XDP_DROP;
	if (!(pkt->mode & XSPD_MODE_BYPASS))
		return XDP_PASS;
	if (fate == XSPD_FATE_PLAIN)
		return xspd_bypass(ctx, pkt);
	xspd_count_act(XSPD_HOOK_XDP, XSPD_A_UP_VERDICT, pkt->bytes);
	return XDP_PASS;
}

SEC("xdp")
int xspd_do_xdp(struct xdp_md *ctx)
{
	return xspd_frame_in(ctx, true);
}

SEC("xdp")
int xspd_old_xdp(struct xdp_md *ctx)
{
	return xspd_frame_in(ctx, false);
}

/* One flow of those that the CLI asks about; 0 if there is none at @nr. */
static __always_inline int xspd_query_one(struct __sk_buff *ctx, __u32 nr)
{
	struct xspd_query *query = (struct xspd_query *)(long)ctx->data + nr;
	struct xspd_answer answer = {};
	const struct xspd_info *info;
	struct xspd_flow flow;
	__u32 if_id = 0;

	if ((void *)(query + 1) > (void *)(long)ctx->data_end)
		return 0;
	__builtin_memcpy(&flow, &query->flow, sizeof(flow));
	xspd_classify(&flow, &answer, 0);
	info = bpf_map_lookup_elem(&xspd_info, &answer.slot);
	if (info && flow.dir == XSPD_STEER) {
		if_id = info->if_id;
		answer.slot = answer.reason == XSPD_R_TIE ? 0 : info->alias;
		info = bpf_map_lookup_elem(&xspd_info, &answer.slot);
	}
	if (info)
		answer.index = info->index;
	info = bpf_map_lookup_elem(&xspd_info, &answer.slot2);
	if (info)
		answer.index2 = info->index;
	if (if_id)
		answer.index2 = if_id;
	__builtin_memcpy(&query->answer, &answer, sizeof(answer));
	return 1;
}

/* Flows asked by `xspd lookup` through BPF_PROG_TEST_RUN. */
SEC("tc")
int xspd_query(struct __sk_buff *ctx)
{
	__u32 nr;

	for (nr = 0; nr < XSPD_QUERY_MAX; nr++)
		if (!xspd_query_one(ctx, nr))
			break;
	return nr ? TC_ACT_OK : TC_ACT_SHOT;
}

/* The next flow of the batch in xspd_flows; run with repeat. */
static __always_inline const struct xspd_flow *xspd_ask_flow(struct xspd_answer **answer)
{
	__u32 nr = xspd_ask_next;

	xspd_ask_next = nr + 1 < xspd_ask_count ? nr + 1 : 0;
	*answer = bpf_map_lookup_elem(&xspd_answers, &nr);
	return bpf_map_lookup_elem(&xspd_flows, &nr);
}

SEC("tc")
int xspd_bench(struct __sk_buff *ctx)
{
	struct xspd_answer *answer;
	const struct xspd_flow *flow = xspd_ask_flow(&answer);

	if (flow && answer)
		xspd_classify(flow, answer, 1);
	return TC_ACT_OK;
}

/* The same without the lookup: what the loop itself costs. */
SEC("tc")
int xspd_null(struct __sk_buff *ctx)
{
	struct xspd_answer *answer;
	const struct xspd_flow *flow = xspd_ask_flow(&answer);

	if (flow && answer)
		answer->slot = flow->daddr[0];
	return TC_ACT_OK;
}

/* The next frame of `xspd bench path`, on its way; run with live frames. */
SEC("xdp")
int xspd_frame(struct xdp_md *ctx)
{
	return xspd_frame_make(ctx);
}

/* Where those frames end. */
SEC("xdp")
int xspd_sink(struct xdp_md *ctx)
{
	return xspd_frame_count(ctx);
}
