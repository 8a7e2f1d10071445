/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One policy against one flow, and the best of several.  No map, no helper:
 * compiles natively too.
 */
#ifndef XSPD_BPF_MATCH_H
#define XSPD_BPF_MATCH_H

#include "xspd/abi.h"

/* Bits of xspd_best.state, beside those of enum xspd_unknown. */
enum {
	XSPD_BEST_MANY = 0x100, /* several certain matches at the best priority */
	XSPD_BEST_TIE = 0x200,	/* the order of one of them, or of the uncertain ones, is not */
	XSPD_BEST_UNMODELLED = 0x400, /* a policy matches that may win out of order */
	XSPD_BEST_CHAIN = 0x800,      /* a chain was not followed to its end */
	XSPD_BEST_ERROR = 0x1000,
	XSPD_BEST_IFIDS = 0x2000, /* the several matches are of different if_ids */
};

#define XSPD_KEY_NONE (~0ull)

/* What a walk through a partition has found so far. */
struct xspd_best {
	__u64 key;   /* priority << 32 | pos of the best certain match */
	__u64 maybe; /* the same of the best match that hangs on an unknown field */
	__u32 slot;  /* 0: no certain match */
	__u32 flags; /* of its policy */
	__u32 state;
	__u32 part;
	__u32 probes;
	__u32 lengths;		     /* of its prefixes */
	struct xspd_trie_val tuples; /* pruning: those that can match */
};

static inline __attribute__((always_inline)) void xspd_best_init(struct xspd_best *best)
{
	best->key = XSPD_KEY_NONE;
	best->maybe = XSPD_KEY_NONE;
	best->slot = 0;
	best->flags = 0;
	best->state = 0;
	best->probes = 0;
}

static inline __attribute__((always_inline)) __u32 xspd_mask32(__u32 word, __u32 bits)
{
	/* bits 1..31; big endian in memory */
	return word & __builtin_bswap32(0xffffffffu << (32 - bits));
}

/* Words of an IPv6 address under a prefix of @len bits: true if they agree. */
static inline __attribute__((always_inline)) int xspd_prefix6(const __be32 *a, const __be32 *b,
							      __u32 len)
{
#pragma unroll
	for (int i = 0; i < 4; i++) {
		__u32 diff = a[i] ^ b[i];

		if (len >= 32) {
			if (diff)
				return 0;
			len -= 32;
			continue;
		}
		return len == 0 || xspd_mask32(diff, len) == 0;
	}
	return 1;
}

/* __xfrm4_selector_match(), __xfrm6_selector_match() without mark: all certain fields agree. */
static inline __attribute__((always_inline)) int
xspd_selector_match(const struct xspd_policy *pol, const struct xspd_flow *flow, __u32 *hang)
{
	if (flow->family == XSPD_INET) {
		if ((pol->v4.daddr ^ flow->daddr[0]) & pol->v4.dmask ||
		    (pol->v4.saddr ^ flow->saddr[0]) & pol->v4.smask)
			return 0;
	} else if (!xspd_prefix6(flow->daddr, pol->v6.daddr, pol->dlen) ||
		   !xspd_prefix6(flow->saddr, pol->v6.saddr, pol->slen)) {
		return 0;
	}
	if (pol->proto && pol->proto != flow->proto)
		return 0;
	if (pol->dport_mask | pol->sport_mask) {
		if (flow->unknown & XSPD_UNKNOWN_PORTS)
			*hang |= XSPD_UNKNOWN_PORTS;
		else if ((flow->dport ^ pol->dport) & pol->dport_mask ||
			 (flow->sport ^ pol->sport) & pol->sport_mask)
			return 0;
	}
	if (pol->ifindex) {
		if (flow->unknown & XSPD_UNKNOWN_OIF)
			*hang |= XSPD_UNKNOWN_OIF;
		else if (pol->ifindex != flow->oif)
			return 0;
	}
	return 1;
}

static inline __attribute__((always_inline)) int
xspd_mark_match(__u32 mark, __u32 mask, const struct xspd_flow *flow, __u32 *hang)
{
	if (!(mask | mark))
		return 1;
	if (flow->unknown & XSPD_UNKNOWN_MARK) {
		*hang |= XSPD_UNKNOWN_MARK;
		return 1;
	}
	return (flow->mark & mask) == mark;
}

/* A policy matches, certainly (@hang 0) or depending on unknown fields. */
static inline __attribute__((always_inline)) void
xspd_best_take(struct xspd_best *best, const struct xspd_policy *pol, __u32 slot, __u32 hang)
{
	__u64 key = (__u64)pol->priority << 32 | pol->pos;
	__u32 tie = pol->flags & XSPD_P_TIE ? XSPD_BEST_TIE : 0;
	__u32 lengths = pol->dlen << 8 | pol->slen;

	if (pol->flags & XSPD_P_UNMODELLED) {
		best->state |= XSPD_BEST_UNMODELLED;
		return;
	}
	if (pol->flags & XSPD_P_MANY)
		tie |= XSPD_BEST_MANY;
	if (pol->flags & XSPD_P_IFIDS)
		tie |= XSPD_BEST_IFIDS;
	if (hang) {
		best->state |= hang | (tie & XSPD_BEST_TIE);
		if (key < best->maybe)
			best->maybe = key;
		return;
	}
	if (key >> 32 < best->key >> 32)
		best->state =
			(best->state & ~(XSPD_BEST_MANY | XSPD_BEST_TIE | XSPD_BEST_IFIDS)) | tie;
	else if (key >> 32 == best->key >> 32 && best->slot)
		best->state |=
			XSPD_BEST_MANY | tie |
			(pol->flags & XSPD_P_APART && lengths != best->lengths ? XSPD_BEST_TIE : 0);
	else if (best->slot)
		return;
	else
		best->state |= tie; /* priority 0xffffffff */
	if (key < best->key || !best->slot) {
		best->key = key;
		best->slot = slot;
		best->flags = pol->flags;
		best->lengths = lengths;
	}
}

/*
 * Why the best match cannot be named, XSPD_R_NONE if it can.  An uncertain match
 * matters when it would be looked at first; among equal priorities with a tie
 * nobody knows what is first.
 */
static inline __attribute__((always_inline)) enum xspd_reason
xspd_best_doubt(const struct xspd_best *best)
{
	__u32 state = best->state;

	if (state & XSPD_BEST_ERROR)
		return XSPD_R_ERROR;
	if (state & XSPD_BEST_CHAIN)
		return XSPD_R_CHAIN;
	if (state & XSPD_BEST_UNMODELLED)
		return XSPD_R_UNMODELLED;
	if (best->maybe != XSPD_KEY_NONE &&
	    (!best->slot || best->maybe < best->key || best->maybe >> 32 == best->key >> 32)) {
		if (state & XSPD_UNKNOWN_MARK)
			return XSPD_R_UNKNOWN_MARK;
		if (state & XSPD_UNKNOWN_OIF)
			return XSPD_R_UNKNOWN_OIF;
		return XSPD_R_UNKNOWN_PORTS;
	}
	if ((state & XSPD_BEST_MANY) && (state & (XSPD_BEST_TIE | XSPD_BEST_IFIDS)))
		return XSPD_R_TIE;
	return XSPD_R_NONE;
}

#endif
