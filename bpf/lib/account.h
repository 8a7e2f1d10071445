/* SPDX-License-Identifier: GPL-2.0-only */
/* Counting: per policy what was governed by it, per hook and reason how it was answered. */
#ifndef XSPD_BPF_ACCOUNT_H
#define XSPD_BPF_ACCOUNT_H

#include "maps.h"

/*
 * @now: CLOCK_MONOTONIC, coarse. @acted: it was acted on early because of this policy.
 * true: the first packet that it met on this CPU.
 */
static __always_inline bool xspd_count_policy(__u32 slot, __u32 bytes, __u64 now, bool acted)
{
	struct xspd_count *count = bpf_map_lookup_elem(&xspd_count, &slot);
	bool first;

	if (!count)
		return false;
	first = !count->packets;
	count->packets++;
	count->bytes += bytes;
	count->last = now;
	count->acted += acted;
	return first;
}

/* @asked: 1 + the direction, 0: there was no question. */
static __always_inline void xspd_count_asked(__u32 asked, enum xspd_hook hook,
					     enum xspd_reason reason, __u32 bytes)
{
	__u32 nr = (asked * XSPD_HOOK_MAX_ + hook) * XSPD_R_MAX_ + reason;
	struct xspd_stat *stat = bpf_map_lookup_elem(&xspd_stat, &nr);

	if (!stat)
		return;
	stat->packets++;
	stat->bytes += bytes;
}

static __always_inline void xspd_count_reason(enum xspd_hook hook, enum xspd_reason reason,
					      __u32 bytes)
{
	xspd_count_asked(0, hook, reason, bytes);
}

static __always_inline void xspd_count_act(enum xspd_hook hook, enum xspd_act act, __u32 bytes)
{
	__u32 nr = hook * XSPD_A_MAX_ + act;
	struct xspd_stat *stat = bpf_map_lookup_elem(&xspd_act, &nr);

	if (!stat)
		return;
	stat->packets++;
	stat->bytes += bytes;
}

/* The policy @slot was acted on early. */
static __always_inline void xspd_count_acted(__u32 slot)
{
	struct xspd_count *count = bpf_map_lookup_elem(&xspd_count, &slot);

	if (count)
		count->acted++;
}

#endif
