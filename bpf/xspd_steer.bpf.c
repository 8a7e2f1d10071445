// SPDX-License-Identifier: GPL-2.0-only
/*
 * Steering by if_id: an object of its own, loaded while a device steers.  It shares the maps of the
 * set it is loaded with, and leaves the setting to xspd_if_id.bpf.c.
 */
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "lib/maps.h"
#include "lib/sample.h"
#include "lib/verdict.h"

char LICENSE[] SEC("license") = "GPL";

#define DST_METADATA 0x80	/* include/net/dst.h */
#define SKB_DST_PTRMASK (~1ul)	/* include/linux/skbuff.h */

/*
 * The kernel keeps the if_id in one place per CPU until the device takes the packet: with a
 * qdisc between, another packet's could have been put there.
 */
static __always_inline bool xspd_queued(const struct sk_buff *skb)
{
	return skb->dev->qdisc->enqueue != NULL;
}

/* As skb_metadata_dst(): what bpf_skb_set_xfrm_info() does not replace. */
static __always_inline bool xspd_has_metadata(const struct sk_buff *skb)
{
	const struct dst_entry *dst = (void *)(skb->_skb_refdst & SKB_DST_PTRMASK);

	return dst && BPF_CORE_READ(dst, flags) & DST_METADATA;
}

/* The if_id of the last answer's policy goes to cb[0]; or why it will not be set. */
static __noinline int xspd_steer(struct __sk_buff *ctx, struct xspd_packet *pkt)
{
	const struct xspd_info *info = bpf_map_lookup_elem(&xspd_info, &pkt->answer.slot);
	const struct sk_buff *skb = bpf_cast_to_kern_ctx(ctx);

	if (!pkt->answer.slot || !info)
		return XSPD_A_UNSTEERED;
	if (xspd_queued(skb))
		return XSPD_A_KEEP_QUEUE;
	if (xspd_has_metadata(skb))
		return XSPD_A_KEEP_METADATA;
	ctx->cb[0] = info->if_id;
	/* of several policies of one if_id it may not be known which it is */
	pkt->answer.slot = pkt->answer.reason == XSPD_R_TIE ? 0 : info->alias;
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
	if (act == XSPD_A_STEERED && !(pkt->mode & XSPD_MODE_DRY_RUN)) {
		bpf_tail_call(ctx, &xspd_jump_tc, XSPD_JUMP_IF_ID);
		act = XSPD_A_UNSTEERED; /* it is not there */
	}
	xspd_count_act(XSPD_HOOK_EGRESS, act, pkt->bytes);
	return TC_ACT_UNSPEC;
}
