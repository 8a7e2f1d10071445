/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The exact-flow cache: per CPU, direct-mapped, one line an IPv4 flow and two
 * an IPv6 flow.  An entry is everything the answer depended on, and counts only
 * while the generation it was looked up in lasts.
 *
 * History (the flow cache, the per-CPU bundle) says that a cache lives by its
 * misses: while too few lookups hit, only every eighth entry is in use.  Flows of
 * the others cost a hash, neither a look nor a store, and the eighth in use shows the
 * rate that all would have, since as many flows as before compete for each entry.
 *
 * Programs that share a CPU's entries all run with softirqs off: none is
 * interrupted by another half way through a store.
 */
#ifndef XSPD_BPF_CACHE_H
#define XSPD_BPF_CACHE_H

#include "maps.h"
#include "xspd/hash.h"

#define XSPD_CACHE_WINDOW 256 /* lookups after which the hit rate is judged */
#define XSPD_CACHE_STRIDE 8   /* while few hit: one entry out of so many is used */
#define XSPD_CACHE_WORTH  4   /* few: less than one lookup out of so many */

/* The words of a flow that answers hang on, beside the addresses. */
static __always_inline __u64 xspd_cache_ports_mark(const struct xspd_flow *flow)
{
	return (__u64)flow->mark << 32 | *(const __u32 *)&flow->dport;
}

static __always_inline __u64 xspd_cache_oif_ifid(const struct xspd_flow *flow)
{
	return (__u64)flow->if_id << 32 | flow->oif;
}

static __always_inline __u64 xspd_cache_rest(const struct xspd_flow *flow)
{
	return (__u64)flow->unknown << 32 | flow->family << 16 | flow->dir << 8 | flow->proto;
}

static __always_inline __u32 xspd_cache_nr(__u64 addr, const struct xspd_flow *flow)
{
	__u64 hash = addr * XSPD_HASH_K1 ^ xspd_cache_ports_mark(flow) * XSPD_HASH_K2;

	hash ^= (xspd_cache_oif_ifid(flow) ^ xspd_cache_rest(flow) << 20) * XSPD_HASH_K3;
	hash ^= hash >> 32;
	return bpf_get_smp_processor_id() * xspd_cache_size +
	       ((__u32)(hash * XSPD_HASH_K1 >> 32) & (xspd_cache_size - 1));
}

static __always_inline __u32 xspd_cache4_nr(const struct xspd_flow *flow)
{
	return xspd_cache_nr((__u64)flow->saddr[0] << 32 | flow->daddr[0], flow);
}

static __always_inline __u32 xspd_cache6_nr(const struct xspd_flow *flow)
{
	const __u64 *d = (const void *)flow->daddr, *s = (const void *)flow->saddr;

	return xspd_cache_nr(xspd_mix(xspd_mix(d[0] ^ s[0] * XSPD_HASH_K2, d[1]), s[1]), flow);
}

/* Is the entry out of use for now?  Noted, for xspd_cache_wants(). */
static __always_inline bool xspd_cache_skips(struct xspd_cache_cpu *cpu, __u32 nr)
{
	cpu->skip = cpu->sparing && nr & (xspd_cache_size - 1) & (XSPD_CACHE_STRIDE - 1);
	return cpu->skip;
}

static __always_inline bool xspd_cache4_is(const struct xspd_cache4 *entry,
					   const struct xspd_flow *flow, __u64 generation)
{
	return !((entry->generation ^ generation) |
		 (entry->addr ^ ((__u64)flow->saddr[0] << 32 | flow->daddr[0])) |
		 (entry->ports_mark ^ xspd_cache_ports_mark(flow)) |
		 (entry->oif_ifid ^ xspd_cache_oif_ifid(flow)) |
		 (entry->rest ^ xspd_cache_rest(flow)));
}

static __always_inline bool xspd_cache6_is(const struct xspd_cache6 *entry,
					   const struct xspd_flow *flow, __u64 generation)
{
	const __u64 *d = (const void *)flow->daddr, *s = (const void *)flow->saddr;

	return !((entry->generation ^ generation) | (entry->daddr[0] ^ d[0]) |
		 (entry->daddr[1] ^ d[1]) | (entry->saddr[0] ^ s[0]) | (entry->saddr[1] ^ s[1]) |
		 (entry->ports_mark ^ xspd_cache_ports_mark(flow)) |
		 (entry->oif_ifid ^ xspd_cache_oif_ifid(flow)) |
		 (entry->rest ^ xspd_cache_rest(flow)));
}

static __always_inline void xspd_cached_get(const struct xspd_cached *cached,
					    struct xspd_answer *answer)
{
	answer->slot = cached->slot;
	answer->slot2 = cached->slot2;
	answer->reason = cached->reason;
	answer->tuples = 0;
}

static __always_inline void xspd_cached_set(struct xspd_cached *cached,
					    const struct xspd_answer *answer,
					    enum xspd_reason reason)
{
	cached->slot = answer->slot;
	cached->slot2 = answer->slot2;
	cached->reason = reason;
	cached->tuples = answer->tuples;
}

/* One more lookup: judge the rate at the end of each window. */
static __always_inline void xspd_cache_note(struct xspd_cache_cpu *cpu, bool hit)
{
	if (hit) {
		cpu->hits++;
		cpu->window_hits++;
	} else {
		cpu->misses++;
	}
	if (++cpu->window < XSPD_CACHE_WINDOW)
		return;
	cpu->sparing = cpu->window_hits < XSPD_CACHE_WINDOW / XSPD_CACHE_WORTH;
	cpu->window_hits = 0;
	cpu->window = 0;
}

/* The answer of this generation, if it is remembered. */
static __always_inline bool xspd_cache_find(const struct xspd_flow *flow, __u64 generation,
					    struct xspd_answer *answer)
{
	struct xspd_cache_cpu *cpu;
	__u32 zero = 0;
	bool hit = false;

	if (!xspd_cache_size)
		return false;
	cpu = bpf_map_lookup_elem(&xspd_cache_cpu, &zero);
	if (!cpu)
		return false;
	if (flow->family == XSPD_INET) {
		__u32 nr = xspd_cache4_nr(flow);
		const struct xspd_cache4 *entry;

		if (xspd_cache_skips(cpu, nr))
			return false;
		entry = bpf_map_lookup_elem(&xspd_cache, &nr);
		hit = entry && xspd_cache4_is(entry, flow, generation);
		if (hit)
			xspd_cached_get(&entry->answer, answer);
	} else {
		__u32 nr = xspd_cache6_nr(flow);
		const struct xspd_cache6 *entry;

		if (xspd_cache_skips(cpu, nr))
			return false;
		entry = bpf_map_lookup_elem(&xspd_cache6, &nr);
		hit = entry && xspd_cache6_is(entry, flow, generation);
		if (hit)
			xspd_cached_get(&entry->answer, answer);
	}
	xspd_cache_note(cpu, hit);
	return hit;
}

/* Is this miss one to remember? */
static __always_inline bool xspd_cache_wants(void)
{
	struct xspd_cache_cpu *cpu;
	__u32 zero = 0;

	if (!xspd_cache_size)
		return false;
	cpu = bpf_map_lookup_elem(&xspd_cache_cpu, &zero);
	if (!cpu)
		return false;
	return !cpu->skip;
}

static __always_inline void xspd_cache_put(const struct xspd_flow *flow, __u64 generation,
					   const struct xspd_answer *answer,
					   enum xspd_reason reason)
{
	if (flow->family == XSPD_INET) {
		__u32 nr = xspd_cache4_nr(flow);
		struct xspd_cache4 *entry = bpf_map_lookup_elem(&xspd_cache, &nr);

		if (!entry)
			return;
		entry->addr = (__u64)flow->saddr[0] << 32 | flow->daddr[0];
		entry->ports_mark = xspd_cache_ports_mark(flow);
		entry->oif_ifid = xspd_cache_oif_ifid(flow);
		entry->rest = xspd_cache_rest(flow);
		xspd_cached_set(&entry->answer, answer, reason);
		entry->generation = generation;
	} else {
		const __u64 *d = (const void *)flow->daddr, *s = (const void *)flow->saddr;
		__u32 nr = xspd_cache6_nr(flow);
		struct xspd_cache6 *entry = bpf_map_lookup_elem(&xspd_cache6, &nr);

		if (!entry)
			return;
		entry->daddr[0] = d[0];
		entry->daddr[1] = d[1];
		entry->saddr[0] = s[0];
		entry->saddr[1] = s[1];
		entry->ports_mark = xspd_cache_ports_mark(flow);
		entry->oif_ifid = xspd_cache_oif_ifid(flow);
		entry->rest = xspd_cache_rest(flow);
		xspd_cached_set(&entry->answer, answer, reason);
		entry->generation = generation;
	}
}

#endif
