// SPDX-License-Identifier: GPL-2.0-only
/*
 * For `xspd verify`, where the kernel lets programs look into it: every policy that the kernel
 * finds for a flow of its own, against the one that the maps name for it.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#include "lib/classify.h"

char LICENSE[] SEC("license") = "GPL";

#define XSPD_DIFFER_MAX 8
#define XSPD_BLOCKS	0x80000000u /* beside an index, which counts up from 8 */

const volatile __u32 xspd_netns; /* inode of the namespace to look at */

__u64 xspd_same, xspd_open, xspd_differ;
/* Of the first that differ. */
struct xspd_flow xspd_differ_flow[XSPD_DIFFER_MAX];
__u32 xspd_differ_kernel[XSPD_DIFFER_MAX], xspd_differ_ours[XSPD_DIFFER_MAX];

/* The kernel's own types, as far as they are read here. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct flowi_common {
	int flowic_oif;
	__u32 flowic_mark;
	__u8 flowic_proto;
};
union flowi_uli {
	__be32 gre_key;
};
struct flowi4 {
	struct flowi_common __fl_common;
	__be32 saddr;
	__be32 daddr;
	union flowi_uli uli;
};
struct flowi6 {
	struct flowi_common __fl_common;
	struct in6_addr daddr;
	struct in6_addr saddr;
	union flowi_uli uli;
};
struct flowi {
	union {
		struct flowi_common __fl_common;
		struct flowi4 ip4;
		struct flowi6 ip6;
	} u;
};
struct xfrm_policy {
	__u32 index;
	__u8 action;
};
#pragma clang attribute pop

/* Ports, type and code, or key: xfrm_flowi_sport(), xfrm_flowi_dport(). */
static __always_inline void xspd_uli_read(struct xspd_flow *flow, __be32 uli)
{
	const __u8 *byte = (const void *)&uli;

	switch (flow->proto) {
	case IPPROTO_TCP:
	case IPPROTO_UDP:
	case IPPROTO_UDPLITE:
	case IPPROTO_SCTP:
		flow->dport = uli;
		flow->sport = uli >> 16;
		break;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		flow->sport = __builtin_bswap16(byte[0]);
		flow->dport = __builtin_bswap16(byte[1]);
		break;
	case IPPROTO_MH:
		flow->sport = __builtin_bswap16(byte[0]);
		break;
	case IPPROTO_GRE:
		flow->sport = uli;
		flow->dport = uli >> 16;
		break;
	}
}

static __always_inline void xspd_flowi_read(struct xspd_flow *flow, const struct flowi *fl)
{
	__be32 uli;

	flow->mark = BPF_CORE_READ(fl, u.__fl_common.flowic_mark);
	flow->oif = BPF_CORE_READ(fl, u.__fl_common.flowic_oif);
	flow->proto = BPF_CORE_READ(fl, u.__fl_common.flowic_proto);
	if (flow->family == XSPD_INET) {
		flow->daddr[0] = BPF_CORE_READ(fl, u.ip4.daddr);
		flow->saddr[0] = BPF_CORE_READ(fl, u.ip4.saddr);
		uli = BPF_CORE_READ(fl, u.ip4.uli.gre_key);
	} else {
		bpf_core_read(flow->daddr, sizeof(flow->daddr), &fl->u.ip6.daddr);
		bpf_core_read(flow->saddr, sizeof(flow->saddr), &fl->u.ip6.saddr);
		uli = BPF_CORE_READ(fl, u.ip6.uli.gre_key);
	}
	xspd_uli_read(flow, uli);
}

/* The policy that the maps name, as the kernel's is told; false: they leave it to the kernel. */
static __always_inline bool xspd_named(const struct xspd_flow *flow, enum xspd_type type,
				       __u32 *index)
{
	const struct xspd_conf *conf;
	const struct xspd_info *info;
	struct xspd_best best = {};
	enum xspd_reason reason;
	__u64 generation;
	__u32 zero = 0;

	conf = bpf_map_lookup_elem(&xspd_conf, &zero);
	if (!conf || XSPD_READ(conf->doubt) || XSPD_READ(conf->lease_until) < bpf_ktime_get_ns())
		return false;
	generation = XSPD_READ(conf->generation);
	reason = xspd_lookup_type(flow, &best, type, flow->dir);
	if (reason > XSPD_R_DEFAULT_BLOCK)
		return false;
	*index = 0;
	if (best.slot) {
		info = bpf_map_lookup_elem(&xspd_info, &best.slot);
		if (info)
			*index = info->index | (info->action == XSPD_BLOCK) * XSPD_BLOCKS;
	}
	barrier();
	return !(generation & 1) && XSPD_READ(conf->generation) == generation;
}

static __always_inline void xspd_tell_differ(const struct xspd_flow *flow, __u32 kernel, __u32 ours)
{
	__u64 nr = __sync_fetch_and_add(&xspd_differ, 1);

	if (nr >= XSPD_DIFFER_MAX)
		return;
	__builtin_memcpy(&xspd_differ_flow[nr], flow, sizeof(*flow));
	xspd_differ_kernel[nr] = kernel;
	xspd_differ_ours[nr] = ours;
}

SEC("fexit/xfrm_policy_lookup_bytype")
int BPF_PROG(xspd_looked_up, struct net *net, __u8 type, const struct flowi *fl, __u16 family,
	     __u8 dir, __u32 if_id, struct xfrm_policy *pol)
{
	struct xspd_flow flow = {.family = family, .dir = dir, .if_id = if_id};
	__u32 kernel = 0, ours = 0;

	/* an error comes as a pointer to the last page */
	if (BPF_CORE_READ(net, ns.inum) != xspd_netns || dir >= XSPD_DIR_MAX_ ||
	    type >= XSPD_TYPE_MAX_ || (unsigned long)pol > -4096ul)
		return 0;
	if (pol)
		kernel = BPF_CORE_READ(pol, index) |
			 (BPF_CORE_READ(pol, action) == XSPD_BLOCK) * XSPD_BLOCKS;
	xspd_flowi_read(&flow, fl);
	if (!xspd_named(&flow, type, &ours))
		__sync_fetch_and_add(&xspd_open, 1);
	else if (ours == kernel)
		__sync_fetch_and_add(&xspd_same, 1);
	else
		xspd_tell_differ(&flow, kernel, ours);
	return 0;
}
