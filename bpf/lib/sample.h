/* SPDX-License-Identifier: GPL-2.0-only */
/* Single packets worth telling of: so many a second, the others are counted. */
#ifndef XSPD_BPF_SAMPLE_H
#define XSPD_BPF_SAMPLE_H

#include "account.h"
#include "packet.h"

#define XSPD_SECOND 1000000000ull

/* 1: this CPU has told enough in this second. */
static __always_inline int xspd_sample_spare(struct xspd_sampler *sampler, __u64 now)
{
	if (now - sampler->since >= XSPD_SECOND) {
		sampler->since = now;
		sampler->count = 0;
	}
	if (sampler->count < xspd_samples) {
		sampler->count++;
		return 0;
	}
	sampler->missed++;
	return 1;
}

static __always_inline void xspd_sample_fill(struct xspd_sample *sample,
					     const struct xspd_packet *pkt, __u64 now, __u32 slot)
{
	const struct xspd_info *info = bpf_map_lookup_elem(&xspd_info, &slot);

	sample->seq = 0;
	sample->time = now;
	__builtin_memcpy(sample->daddr, pkt->flow.daddr, sizeof(sample->daddr));
	__builtin_memcpy(sample->saddr, pkt->flow.saddr, sizeof(sample->saddr));
	sample->dport = pkt->flow.dport;
	sample->sport = pkt->flow.sport;
	sample->mark = pkt->flow.mark;
	sample->ifindex = pkt->ifindex;
	sample->slot = slot;
	sample->index = slot && info ? info->index : 0;
	sample->bytes = pkt->bytes;
	sample->proto = pkt->flow.proto;
	sample->family = pkt->flow.family;
	sample->dir = pkt->flow.dir;
	sample->frag = pkt->flow.frag;
	sample->hook = pkt->hook;
	sample->reason = pkt->reason;
}

static __noinline int xspd_sample_take(const struct xspd_packet *pkt, __u32 kind, __u32 slot,
				       __u32 act)
{
	struct xspd_sampler *sampler;
	struct xspd_sample *sample;
	__u32 zero = 0;

	/* a flood is all spare: the exact time, which is dear in a guest, is for what is told */
	sampler = bpf_map_lookup_elem(&xspd_sampler, &zero);
	if (!sampler || xspd_sample_spare(sampler, bpf_ktime_get_coarse_ns()))
		return 0;
	sample = bpf_ringbuf_reserve(&xspd_ring, sizeof(*sample), 0);
	if (!sample) {
		sampler->missed++;
		return 0;
	}
	xspd_sample_fill(sample, pkt, bpf_ktime_get_ns(), slot);
	sample->act = act;
	sample->kind = kind;
	sample->missed = sampler->missed;
	sampler->missed = 0;
	bpf_ringbuf_submit(sample, 0);
	return 0;
}

/* No packet has met it on this CPU; on any other?  One of them alone tells. */
static __always_inline void xspd_sample_first(const struct xspd_packet *pkt, __u32 slot)
{
	struct xspd_info *info = bpf_map_lookup_elem(&xspd_info, &slot);

	if (info && !info->hit && !__sync_lock_test_and_set(&info->hit, 1))
		xspd_sample_take(pkt, XSPD_S_FIRST, slot, XSPD_A_NONE);
}

#endif
