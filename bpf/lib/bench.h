/* SPDX-License-Identifier: GPL-2.0-only */
/* What `xspd bench path` needs at either end: frames made in the kernel, and counted there. */
#ifndef XSPD_BPF_BENCH_H
#define XSPD_BPF_BENCH_H

#include "bypass.h"

XSPD_ARRAY(xspd_source, struct xspd_source, 1);
XSPD_PERCPU(xspd_sunk, struct xspd_stat, 1);

#define XSPD_FRAME_HEADERS (sizeof(struct ethhdr) + sizeof(struct iphdr) + 8)

/*
 * Pages come back as the gateway left them, so all of the headers are written
 * anew. A UDP checksum of 0 is none.
 */
static __always_inline void xspd_frame_fill(void *data, __u32 bytes,
					    const struct xspd_source *source,
					    const struct xspd_flow *flow)
{
	struct ethhdr *eth = data;
	struct iphdr *ip = data + sizeof(*eth);
	__be16 *udp = (void *)(ip + 1);

	__builtin_memcpy(eth, source->macs, sizeof(source->macs));
	eth->h_proto = __builtin_bswap16(ETH_P_IP);
	__builtin_memset(ip, 0, sizeof(*ip));
	*(__u8 *)ip = 0x45;
	ip->tot_len = __builtin_bswap16(bytes - sizeof(*eth));
	ip->ttl = 64;
	ip->protocol = IPPROTO_UDP;
	ip->saddr = flow->saddr[0];
	ip->daddr = flow->daddr[0];
	ip->check = xspd_ip_sum(ip);
	udp[0] = flow->sport;
	udp[1] = flow->dport;
	udp[2] = __builtin_bswap16(bytes - sizeof(*eth) - sizeof(*ip));
	udp[3] = 0;
}

static __always_inline int xspd_frame_make(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct xspd_source *source;
	const struct xspd_flow *flow;
	__u32 zero = 0, nr;

	source = bpf_map_lookup_elem(&xspd_source, &zero);
	if (!source || data + XSPD_FRAME_HEADERS > end)
		return XDP_ABORTED;
	nr = source->next;
	source->next = nr + 1 < source->count ? nr + 1 : 0;
	flow = bpf_map_lookup_elem(&xspd_flows, &nr);
	if (!flow)
		return XDP_ABORTED;
	xspd_frame_fill(data, end - data, source, flow);
	return bpf_redirect(source->ifindex, 0);
}

static __always_inline int xspd_frame_count(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct xspd_stat *sunk = bpf_map_lookup_elem(&xspd_sunk, &zero);
	struct ethhdr *eth = (void *)(long)ctx->data;

	if (!sunk || (void *)(eth + 1) > (void *)(long)ctx->data_end)
		return XDP_ABORTED;
	/* whatever else hosts say to each other goes on */
	if (eth->h_proto != __builtin_bswap16(ETH_P_IP))
		return XDP_PASS;
	sunk->packets++;
	sunk->bytes += ctx->data_end - ctx->data;
	return XDP_DROP;
}

#endif
