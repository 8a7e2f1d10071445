// SPDX-License-Identifier: GPL-2.0-only
/*
 * Steering by if_id: an object of its own, for kernels that can set one (Linux 6.2 and later, with
 * the module xfrm_interface).  It shares the maps of the set it is loaded with.
 */
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "lib/maps.h"
#include "lib/sample.h"
#include "lib/verdict.h"

char LICENSE[] SEC("license") = "GPL";

struct bpf_xfrm_info {
	__u32 if_id;
	int link; /* flowi_oif of the kernel's lookup */
};

extern int bpf_skb_set_xfrm_info(struct __sk_buff *skb, const struct bpf_xfrm_info *from) __ksym;

/*
 * The kernel keeps the if_id in one place per CPU until the device takes the packet: with a
 * qdisc between, another packet's could have been put there.
 */
static __always_inline bool xspd_queued(struct __sk_buff *ctx)
{
	const struct sk_buff *skb = bpf_cast_to_kern_ctx(ctx);

	return skb->dev->qdisc->enqueue != NULL;
}

/* The if_id of the last answer's policy, set; or why it was not. */
static __noinline int xspd_steer(struct __sk_buff *ctx, struct xspd_packet *pkt)
{
	const struct xspd_info *info = bpf_map_lookup_elem(&xspd_info, &pkt->answer.slot);
	struct bpf_xfrm_info to = {};

	if (!pkt->answer.slot || !info)
		return XSPD_A_UNSTEERED;
	if (xspd_queued(ctx))
		return XSPD_A_KEEP_QUEUE;
	to.if_id = info->if_id;
	/* of several policies of one if_id it may not be known which it is */
	pkt->answer.slot = pkt->answer.reason == XSPD_R_TIE ? 0 : info->alias;
	if (!(pkt->mode & XSPD_MODE_DRY_RUN) && bpf_skb_set_xfrm_info(ctx, &to))
		return XSPD_A_KEEP_METADATA;
	return XSPD_A_STEERED;
}

/* The device will look up this very packet: nothing between here and there changes it. */
static __always_inline void xspd_steer_ask(struct xspd_packet *pkt)
{
	pkt->flow.dir = XSPD_STEER;
	pkt->flow.unknown = 0;
	pkt->flow.oif = 0;
	xspd_classify(&pkt->flow, &pkt->answer, 1);
}

SEC("tc")
int xspd_do_steer(struct __sk_buff *ctx)
{
	struct xspd_packet *pkt = xspd_packet_new(ctx->ifindex, XSPD_HOOK_EGRESS);
	enum xspd_act act = XSPD_A_UNSTEERED;

	if (!pkt)
		return TC_ACT_UNSPEC;
	pkt->answer.reason = xspd_packet_skb(ctx, pkt);
	if (!pkt->answer.reason) {
		xspd_steer_ask(pkt);
		act = xspd_steer(ctx, pkt);
	}
	if (act != XSPD_A_STEERED)
		pkt->answer.slot = 0;
	else if (pkt->answer.slot)
		xspd_count_acted(pkt->answer.slot);
	xspd_count_asked(1 + XSPD_OUT, XSPD_HOOK_EGRESS, pkt->answer.reason, pkt->bytes);
	pkt->reason = pkt->answer.reason;
	if (pkt->answer.slot && xspd_count_policy(pkt->answer.slot, pkt->bytes, pkt->now, false))
		xspd_sample_first(pkt, pkt->answer.slot);
	xspd_count_act(XSPD_HOOK_EGRESS, act, pkt->bytes);
	return TC_ACT_UNSPEC;
}
