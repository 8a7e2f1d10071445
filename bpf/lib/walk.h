/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The best policy of one partition: its tuples in turn, of each one bucket, of that a chain.
 *
 * The large steps are global functions: the verifier checks each of them once, whoever calls
 * them, so that their loops do not multiply.
 */
#ifndef XSPD_BPF_WALK_H
#define XSPD_BPF_WALK_H

#include "maps.h"
#include "match.h"
#include "xspd/hash.h"

#define XSPD_CHAIN_MAX 255 /* policies followed under one masked key */

#define XSPD_READ(x) (*(volatile typeof(x) *)&(x))

/* Over all if_ids: is another match of the best priority of another if_id? */
static __always_inline void xspd_ifids_note(struct xspd_best *best, const struct xspd_policy *pol,
					    __u32 slot)
{
	const struct xspd_info *a, *b;
	__u32 held = best->slot; /* a key in memory of the caller's is refused by Linux 6.1 */

	if (!best->slot || pol->priority != best->key >> 32)
		return;
	a = bpf_map_lookup_elem(&xspd_info, &slot);
	b = bpf_map_lookup_elem(&xspd_info, &held);
	if (!a || !b || a->if_id != b->if_id)
		best->state |= XSPD_BEST_IFIDS;
}

/* Compare one policy with the flow.  Returns the slot of the next in its chain. */
__noinline __u32 xspd_compare(const struct xspd_flow *flow, struct xspd_best *best, __u32 slot)
{
	const struct xspd_policy *pol;
	__u32 hang = 0;
	int hit = 1;

	if (!flow || !best)
		return 0;
	pol = bpf_map_lookup_elem(&xspd_policy, &slot);
	if (!pol) {
		best->state |= XSPD_BEST_ERROR;
		return 0;
	}
	/* priorities ascend along the chain: nothing better follows */
	if (best->slot && pol->priority > best->key >> 32)
		return 0;
	if (pol->part != best->part || !xspd_selector_match(pol, flow, &hang))
		return XSPD_READ(pol->next);
	if (flow->family == XSPD_INET) {
		hit = xspd_mark_match(pol->v4.mark, pol->v4.mark_mask, flow, &hang);
	} else if (pol->flags & XSPD_P_MARK) {
		const struct xspd_info *info = bpf_map_lookup_elem(&xspd_info, &slot);

		hit = info && xspd_mark_match(info->mark, info->mark_mask, flow, &hang);
	}
	if (!hit)
		return XSPD_READ(pol->next);
	if (XSPD_PART_STEERS(best->part) && !hang)
		xspd_ifids_note(best, pol, slot);
	xspd_best_take(best, pol, slot, hang);
	return XSPD_READ(pol->next);
}

/* The rest of a chain, after its first policy. */
__noinline int xspd_chain(const struct xspd_flow *flow, struct xspd_best *best, __u32 slot)
{
	for (int i = 0; i < XSPD_CHAIN_MAX; i++) {
		slot = xspd_compare(flow, best, slot);
		if (!slot)
			return 0;
	}
	if (best)
		best->state |= XSPD_BEST_CHAIN;
	return 0;
}

/*
 * Asked for INET, not for INET6: where the family is known to be one value, Linux 6.1 sees
 * that the words IPv4 leaves alone are not read.  With the other question it follows an IPv4
 * flow there too: "invalid read from stack R10 off=-40 size=8".
 */
static __always_inline void xspd_key_set(struct xspd_key *key, const struct xspd_flow *flow)
{
	key->v6 = flow->family != XSPD_INET;
	if (key->v6) {
		const __u64 *d = (const void *)flow->daddr, *s = (const void *)flow->saddr;

		key->addr[0] = d[0];
		key->addr[1] = d[1];
		key->addr[2] = s[0];
		key->addr[3] = s[1];
	} else {
		key->addr[0] = (__u64)flow->saddr[0] << 32 | flow->daddr[0];
	}
	key->ports = *(const __u32 *)&flow->dport;
	key->mark = flow->mark;
	key->oif = flow->oif;
	key->proto = flow->proto;
}

/* Which fields of the tuple's key are unknown in this flow. */
static __always_inline __u32 xspd_tuple_hang(const struct xspd_tuple *tuple, __u32 unknown)
{
	__u32 hang = 0;

	if (tuple->ports_mask)
		hang |= unknown & XSPD_UNKNOWN_PORTS;
	if (tuple->mark_mask)
		hang |= unknown & XSPD_UNKNOWN_MARK;
	if (tuple->dev)
		hang |= unknown & XSPD_UNKNOWN_OIF;
	return hang;
}

/* The tuples that can match below the longest known prefixes of both addresses. */
static __always_inline void xspd_prune(const struct xspd_flow *flow, struct xspd_best *best)
{
	__u32 bits = flow->family == XSPD_INET ? 64 : 160;
	struct xspd_trie_key key = {.prefixlen = bits, .part = __builtin_bswap32(best->part)};
	const struct xspd_trie_val *dst, *src;

	__builtin_memcpy(key.addr, flow->daddr, sizeof(key.addr));
	dst = bpf_map_lookup_elem(&xspd_dst, &key);
	__builtin_memcpy(key.addr, flow->saddr, sizeof(key.addr));
	src = bpf_map_lookup_elem(&xspd_src, &key);
	for (int i = 0; i < XSPD_TUPLES / 64; i++)
		best->tuples.tuples[i] = dst && src ? dst->tuples[i] & src->tuples[i] : 0;
}

static __always_inline int xspd_pruned(const struct xspd_best *best, const struct xspd_tuple *tuple)
{
	__u32 word = (tuple->id >> 6) & (XSPD_TUPLES / 64 - 1);

	return !(best->tuples.tuples[word] >> (tuple->id & 63) & 1);
}

/* One bucket: seven tags, and the overflow entry that fits every key. */
static __always_inline void xspd_probe(const struct xspd_flow *flow, struct xspd_best *best,
				       const struct xspd_tuple *tuple)
{
	const __u64 *entry;
	struct xspd_key key;
	__u32 nr, tag;
	__u64 hash;

	xspd_key_set(&key, flow);
	hash = xspd_key_hash(&key, tuple);
	nr = xspd_hash_bucket(hash, xspd_buckets);
	tag = xspd_hash_tag(hash);
	entry = bpf_map_lookup_elem(&xspd_bucket, &nr);
	if (!entry) {
		best->state |= XSPD_BEST_ERROR;
		return;
	}
	best->probes++;
#pragma unroll
	for (int i = 0; i < XSPD_BUCKET_ENTRIES; i++) {
		/* tag and slot are published in one store and read in one load */
		__u64 e = XSPD_READ(entry[i]);
		__u32 next;

		if ((__u32)e != tag && (i < XSPD_BUCKET_ENTRIES - 1 || (__u32)e != XSPD_TAG_ANY))
			continue;
		next = xspd_compare(flow, best, e >> 32);
		if (next)
			xspd_chain(flow, best, next);
	}
}

/* One tuple.  Returns 1 when neither it nor those behind it can hold a better policy. */
__noinline int xspd_visit(const struct xspd_flow *flow, struct xspd_best *best, __u32 nr,
			  __u32 flags)
{
	const struct xspd_tuple *tuple;
	__u32 hang;

	if (!flow || !best)
		return 1;
	tuple = bpf_map_lookup_elem(&xspd_list, &nr);
	if (!tuple) {
		best->state |= XSPD_BEST_ERROR;
		return 1;
	}
	if (best->slot) {
		/* with ties about, all equal priorities must be seen */
		if (flags & XSPD_PART_TIES ? tuple->best >> 32 > best->key >> 32
					   : tuple->best > best->key)
			return 1;
	}
	if (flags & XSPD_PART_PRUNE && xspd_pruned(best, tuple))
		return 0;
	hang = xspd_tuple_hang(tuple, flow->unknown);
	if (hang) {
		best->state |= hang;
		if (tuple->best < best->maybe)
			best->maybe = tuple->best;
		return 0;
	}
	xspd_probe(flow, best, tuple);
	return 0;
}

/* Walk the partition's tuples, best first, until no better policy can follow. */
__noinline int xspd_walk(const struct xspd_flow *flow, struct xspd_best *best, __u32 part,
			 __u64 ref)
{
	__u32 first, count;

	if (!flow || !best)
		return 0;
	if (ref & XSPD_PART_DEFER) {
		best->state |= XSPD_BEST_CHAIN;
		return 0;
	}
	first = ref >> 32;
	count = ref >> 16 & 0xffff;
	best->part = part;
	if (ref & XSPD_PART_PRUNE)
		xspd_prune(flow, best);
	for (__u32 i = 0; i < XSPD_TUPLES; i++)
		if (i >= count || xspd_visit(flow, best, first + i, ref & 0xffff))
			break;
	return 0;
}

#endif
