/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's lists, as the model keeps them; shared by the files of tune/. */
#ifndef XSPD_TUNE_LAYOUT_H
#define XSPD_TUNE_LAYOUT_H

#include "tune/tune.h"

#define XSPD_TUNE_NONE 0xffffffffu

typedef unsigned __int128 xspd_u128;

/* A policy; they are numbered in the order in which lists keep them. */
struct xspd_tune_item {
	xspd_u128 d, s; /* cut to the prefix; the first bit of an address is the highest */
	const struct xspd_pol *pol;
	uint32_t bin;
	uint8_t dlen, slen;
	uint8_t side; /* dir * 2 + IPv6 */
	bool any_d, any_s;
	bool was_hashed; /* with the thresholds in force */

	/* of the layout */
	uint32_t list; /* XSPD_TUNE_NONE until it is in one */
	uint32_t rank; /* its place there, from 0 */
	uint32_t node; /* its destination's, XSPD_TUNE_NONE: of none */
};

/* What a tree keeps for one prefix. */
struct xspd_tune_node {
	xspd_u128 addr;
	uint8_t len;
	uint32_t list;	/* of the policies that end here */
	uint32_t cover; /* the first policy with this very prefix, and how many there are */
	uint32_t covers;
	uint32_t sub; /* a destination's: first node of its tree of sources */
	uint32_t subs;
};

struct xspd_tune_list {
	enum xspd_tune_place place;
	uint8_t side;
	uint32_t node;	/* destination's or source's */
	uint32_t node2; /* BOTH: the source's */
	uint32_t length;
	uint32_t at; /* of its members */
};

/* One (direction, family, type, if_id). */
struct xspd_tune_bin {
	uint8_t side, type;
	uint32_t if_id;
	uint32_t any;	  /* list, XSPD_TUNE_NONE: empty */
	uint32_t d, dsts; /* nodes */
	uint32_t s, srcs;
};

/* A slot of the hash, keyed by side and both addresses cut to the thresholds. */
struct xspd_tune_bucket {
	xspd_u128 d, s;
	uint32_t list; /* + 1; 0: free */
	uint8_t side;
};

struct xspd_tune {
	struct xspd_tune_item *item;
	uint32_t count;
	uint32_t *by_d, *by_s; /* by bin, address, prefix length */
	struct xspd_tune_bin *bin;
	uint32_t bins;
	struct xspd_tune_costs costs;
	struct xspd_tune_bits now;

	/* of the layout */
	struct xspd_tune_bits bits;
	struct xspd_tune_node *node;
	uint32_t nodes;
	struct xspd_tune_list *list;
	uint32_t lists;
	uint32_t *member; /* items, list by list */
	uint32_t *sorted; /* scratch */
	uint32_t *before; /* each item's list in an earlier layout */
	struct xspd_tune_bucket *bucket;
	uint32_t mask; /* of buckets */
	uint32_t hashed[XSPD_DIR_MAX_];
	uint32_t directed[XSPD_DIR_MAX_]; /* policies */
};

static inline xspd_u128 xspd_tune_cut(xspd_u128 addr, unsigned int len)
{
	return len ? addr & (~(xspd_u128)0 << (128 - len)) : 0;
}

/* Prefix lengths from which on @side's policies are hashed. */
void xspd_tune_thresholds(const struct xspd_tune_bits *bits, uint8_t side, uint8_t *ret_d,
			  uint8_t *ret_s);

/* layout.c: put every policy into its list as a rebuild to @bits would. */
void xspd_tune_layout(struct xspd_tune *tune, const struct xspd_tune_bits *bits);

/* The bucket's list, the node over an address in nodes [@first, @first + @count). Or none. */
uint32_t xspd_tune_hash_find(const struct xspd_tune *tune, uint8_t side, xspd_u128 d, xspd_u128 s);
uint32_t xspd_tune_node_find(const struct xspd_tune *tune, uint32_t first, uint32_t count,
			     xspd_u128 addr);

/* Other policies that share a bucket by chance, on average. */
double xspd_tune_collisions(const struct xspd_tune *tune, unsigned int dir);

/* cliff.c: the long lists of the layout at hand. */
void xspd_tune_cliffs(const struct xspd_tune *tune, struct xspd_tune_result *ret);

/* predict.c: of what lists cost on @side. */
double xspd_tune_walk(const struct xspd_tune *tune, const struct xspd_tune_list *list,
		      uint32_t policies);

#endif
