/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The exact-flow cache: per CPU, one line an IPv4 flow and two an IPv6 flow, two neighbours
 * to choose from for each.  An entry is everything that what is known depended on, and
 * counts only while the generation it was looked up in lasts.
 *
 * History (the flow cache, the per-CPU bundle) says that a cache lives by its
 * misses: while too few lookups hit, only every eighth pair is in use.  Flows of
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
#define XSPD_CACHE_STRIDE 8   /* while few hit: one pair out of so many is used */
#define XSPD_CACHE_WORTH  4   /* few: less than one lookup out of so many */

/* What was asked: an enum xspd_dir, or all about a packet received. */
#define XSPD_CACHE_RECEIVED (XSPD_STEER + 1)

/* What an entry is found by, beside the flow's addresses, ports and mark. */
struct xspd_place {
	__u32 nr;
	__u32 where;
	__u32 rest;
};

static __always_inline __u64 xspd_cache_ports_mark(const struct xspd_flow *flow)
{
	return (__u64)flow->mark << 32 | *(const __u32 *)&flow->dport;
}

static __always_inline __u64 xspd_cache_addr(const struct xspd_flow *flow)
{
	const __u64 *d = (const void *)flow->daddr, *s = (const void *)flow->saddr;

	if (flow->family == XSPD_INET)
		return (__u64)flow->saddr[0] << 32 | flow->daddr[0];
	return xspd_mix(xspd_mix(d[0] ^ s[0] * XSPD_HASH_K2, d[1]), s[1]);
}

static __always_inline struct xspd_place xspd_cache_place(const struct xspd_flow *flow, __u32 asked,
							  __u32 where, __u8 tos)
{
	__u32 rest = tos << 24 | flow->unknown << 16 | asked << 8 | flow->proto;
	__u64 hash = xspd_cache_addr(flow) * XSPD_HASH_K1;

	hash ^= xspd_cache_ports_mark(flow) * XSPD_HASH_K2;
	hash ^= ((__u64)where << 32 | rest) * XSPD_HASH_K3;
	hash ^= hash >> 32;
	hash = hash * XSPD_HASH_K1 >> 32 & (xspd_cache_size - 1);
	return (struct xspd_place){
		.nr = bpf_get_smp_processor_id() * xspd_cache_size + (__u32)hash,
		.where = where,
		.rest = rest,
	};
}

/* Is the pair out of use for now?  Noted, for xspd_cache_wants(). */
static __always_inline bool xspd_cache_skips(struct xspd_cache_cpu *cpu, __u32 nr)
{
	cpu->skip = cpu->sparing && nr >> 1 & (XSPD_CACHE_STRIDE - 1);
	return cpu->skip;
}

static __always_inline bool xspd_cache4_is(const struct xspd_cache4 *entry,
					   const struct xspd_flow *flow,
					   const struct xspd_place *place, __u64 generation)
{
	return !((entry->generation ^ generation) |
		 (entry->addr ^ ((__u64)flow->saddr[0] << 32 | flow->daddr[0])) |
		 (entry->ports_mark ^ xspd_cache_ports_mark(flow)) | (entry->where ^ place->where) |
		 (entry->rest ^ place->rest));
}

static __always_inline bool xspd_cache6_is(const struct xspd_cache6 *entry,
					   const struct xspd_flow *flow,
					   const struct xspd_place *place, __u64 generation)
{
	const __u64 *d = (const void *)flow->daddr, *s = (const void *)flow->saddr;

	return !((entry->generation ^ generation) | (entry->daddr[0] ^ d[0]) |
		 (entry->daddr[1] ^ d[1]) | (entry->saddr[0] ^ s[0]) | (entry->saddr[1] ^ s[1]) |
		 (entry->ports_mark ^ xspd_cache_ports_mark(flow)) | (entry->where ^ place->where) |
		 (entry->rest ^ place->rest));
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

static __always_inline const struct xspd_known *xspd_cache4_find(const struct xspd_flow *flow,
								 struct xspd_place *place,
								 __u64 generation, __u32 turn)
{
	const struct xspd_cache4 *a = bpf_map_lookup_elem(&xspd_cache, &place->nr);
	__u32 other = place->nr ^ (xspd_cache_size > 1);
	const struct xspd_cache4 *b;

	if (a && xspd_cache4_is(a, flow, place, generation))
		return &a->known;
	b = bpf_map_lookup_elem(&xspd_cache, &other);
	if (!a || !b)
		return NULL;
	if (xspd_cache4_is(b, flow, place, generation))
		return &b->known;
	if (a->generation == generation && (b->generation != generation || turn & 1))
		place->nr = other;
	return NULL;
}

static __always_inline const struct xspd_known *xspd_cache6_find(const struct xspd_flow *flow,
								 struct xspd_place *place,
								 __u64 generation, __u32 turn)
{
	const struct xspd_cache6 *a = bpf_map_lookup_elem(&xspd_cache6, &place->nr);
	__u32 other = place->nr ^ (xspd_cache_size > 1);
	const struct xspd_cache6 *b;

	if (a && xspd_cache6_is(a, flow, place, generation))
		return &a->known;
	b = bpf_map_lookup_elem(&xspd_cache6, &other);
	if (!a || !b)
		return NULL;
	if (xspd_cache6_is(b, flow, place, generation))
		return &b->known;
	if (a->generation == generation && (b->generation != generation || turn & 1))
		place->nr = other;
	return NULL;
}

/*
 * What is remembered in this generation, if anything is.  If not, @place becomes
 * that of the neighbour to be replaced: one of the past, else either in turn.
 */
static __always_inline const struct xspd_known *
xspd_cache_find(const struct xspd_flow *flow, struct xspd_place *place, __u64 generation)
{
	const struct xspd_known *known;
	struct xspd_cache_cpu *cpu;
	__u32 zero = 0;

	cpu = bpf_map_lookup_elem(&xspd_cache_cpu, &zero);
	if (!cpu || xspd_cache_skips(cpu, place->nr))
		return NULL;
	if (flow->family == XSPD_INET)
		known = xspd_cache4_find(flow, place, generation, cpu->window);
	else
		known = xspd_cache6_find(flow, place, generation, cpu->window);
	xspd_cache_note(cpu, known != NULL);
	return known;
}

/* Is this miss one to remember? */
static __always_inline bool xspd_cache_wants(void)
{
	struct xspd_cache_cpu *cpu;
	__u32 zero = 0;

	if (!xspd_cache_size)
		return false;
	cpu = bpf_map_lookup_elem(&xspd_cache_cpu, &zero);
	return cpu && !cpu->skip;
}

static __always_inline void xspd_cache_put(const struct xspd_flow *flow,
					   const struct xspd_place *place, __u64 generation,
					   const struct xspd_known *known)
{
	if (flow->family == XSPD_INET) {
		struct xspd_cache4 *entry = bpf_map_lookup_elem(&xspd_cache, &place->nr);

		if (!entry)
			return;
		entry->addr = (__u64)flow->saddr[0] << 32 | flow->daddr[0];
		entry->ports_mark = xspd_cache_ports_mark(flow);
		entry->where = place->where;
		entry->rest = place->rest;
		entry->known = *known;
		entry->generation = generation;
	} else {
		const __u64 *d = (const void *)flow->daddr, *s = (const void *)flow->saddr;
		struct xspd_cache6 *entry = bpf_map_lookup_elem(&xspd_cache6, &place->nr);

		if (!entry)
			return;
		entry->daddr[0] = d[0];
		entry->daddr[1] = d[1];
		entry->saddr[0] = s[0];
		entry->saddr[1] = s[1];
		entry->ports_mark = xspd_cache_ports_mark(flow);
		entry->where = place->where;
		entry->rest = place->rest;
		entry->known = *known;
		entry->generation = generation;
	}
}

#endif
