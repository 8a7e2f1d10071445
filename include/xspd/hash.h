/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The masked-key hash: the one piece of arithmetic that user space (publishing)
 * and BPF (probing) must do alike.
 */
#ifndef XSPD_HASH_H
#define XSPD_HASH_H

#include "abi.h"

#define XSPD_HASH_K1 0x9e3779b97f4a7c15ull /* 2^64 / golden ratio */
#define XSPD_HASH_K2 0xd6e8feb86659fd93ull
#define XSPD_HASH_K3 0xff51afd7ed558ccdull /* MurmurHash3 finaliser */

/* The words of a flow, or of a policy's values, that a tuple masks. */
struct xspd_key {
	__u64 addr[4]; /* IPv4: addr[0] = the word saddr:daddr, the rest unused */
	__u32 ports;   /* sport:dport as they lie in memory */
	__u32 mark;
	__u32 oif;
	__u8 proto;
	__u8 v6;
	__u16 pad;
};

/* One round: multiply, then bring the well-mixed high half down. */
static inline __attribute__((always_inline)) __u64 xspd_mix(__u64 h, __u64 w)
{
	h = (h ^ w) * XSPD_HASH_K1;
	return h ^ (h >> 32);
}

static inline __attribute__((always_inline)) __u64
xspd_key_hash(const struct xspd_key *key, const struct xspd_tuple *tuple)
{
	__u64 rest = (__u64)(key->mark & tuple->mark_mask) << 32 | (key->ports & tuple->ports_mask);
	__u64 h = (__u64)tuple->seed * XSPD_HASH_K2;

	h ^= (__u64)(key->proto & tuple->proto_mask) << 56;
	if (tuple->dev)
		h ^= (__u64)key->oif * XSPD_HASH_K3;
	h = xspd_mix(h, key->addr[0] & tuple->dmask[0]);
	if (key->v6) {
		h = xspd_mix(h, key->addr[1] & tuple->dmask[1]);
		h = xspd_mix(h, key->addr[2] & tuple->smask[0]);
		h = xspd_mix(h, key->addr[3] & tuple->smask[1]);
	}
	h = xspd_mix(h, rest);
	h *= XSPD_HASH_K3;
	return h ^ (h >> 29);
}

/* The low half is the tag, never 0 and never XSPD_TAG_ANY; the high half picks the bucket. */
static inline __attribute__((always_inline)) __u32 xspd_hash_tag(__u64 hash)
{
	__u32 tag = (__u32)hash;

	if (tag == 0 || tag == XSPD_TAG_ANY)
		tag = 1;
	return tag;
}

static inline __attribute__((always_inline)) __u32 xspd_hash_bucket(__u64 hash, __u32 buckets)
{
	return (__u32)(((hash >> 32) * buckets) >> 32);
}

#endif
