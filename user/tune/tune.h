/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a policy lookup costs the kernel: its own structures, rebuilt from the
 * policies, and the length of every list in them.  Pure: no I/O, no clock.
 *
 * The kernel keeps a policy in a hash of (dst, src), both cut to the thresholds of
 * hthresh4/6, if both its prefixes are at least that long.  Else it is in the bin of
 * its (direction, family, type, if_id): in a list of trees of addresses whose nodes never
 * nest (the shortest prefix takes in all below it), or in the bin's one list for what no
 * tree takes: prefixes below /16 (IPv4) and /48 (IPv6).
 */
#ifndef XSPD_TUNE_TUNE_H
#define XSPD_TUNE_TUNE_H

#include "spd/policy.h"

/* hthresh4 and hthresh6; local is src of out, dst of in and fwd. */
struct xspd_tune_bits {
	uint8_t lbits4, rbits4, lbits6, rbits6;
};

#define XSPD_TUNE_SIZES 5
/* Policies (or nodes) that the costs below are given for; between them they are interpolated. */
extern const double xspd_tune_sizes[XSPD_TUNE_SIZES];

/* What the steps of a lookup cost a machine, in ns, when traffic meets so many policies. */
struct xspd_tune_costs {
	double base;			/* of any lookup, in an SPD that is not empty */
	double hit;			/* of one that finds a policy, besides */
	double hit6;			/* the same of IPv6 */
	double walk[XSPD_TUNE_SIZES];	/* one more policy in a list */
	double host[XSPD_TUNE_SIZES];	/* one policy found by hash */
	double tree[XSPD_TUNE_SIZES];	/* one policy found in a tree of that many nodes */
	double insert[XSPD_TUNE_SIZES]; /* one policy passed in a list by one being inserted */
	double rebuild;			/* a policy moved, lists aside */
	bool sub_policy;		/* the kernel asks for sub policies first */
};

/* Measured where the README's numbers were. */
extern const struct xspd_tune_costs xspd_tune_costs_builtin;

/* Tables: @n policies, interpolated. */
double xspd_tune_cost(const double table[XSPD_TUNE_SIZES], double n);

enum xspd_tune_place {
	XSPD_TUNE_HASH, /* the hash of addresses */
	XSPD_TUNE_BOTH, /* trees of both addresses */
	XSPD_TUNE_SRC,	/* the tree of sources: any destination */
	XSPD_TUNE_DST,	/* the tree of destinations: any source */
	XSPD_TUNE_ANY,	/* the bin's one list */
};

/* Why so many policies are in one list. */
enum xspd_tune_cause {
	XSPD_TUNE_COVER,  /* a short prefix takes in the others */
	XSPD_TUNE_MARKS,  /* same addresses, told apart by marks */
	XSPD_TUNE_PORTS,  /* same addresses, told apart by protocol or ports */
	XSPD_TUNE_SHORT,  /* prefixes too short for a tree */
	XSPD_TUNE_COARSE, /* thresholds too low: many address pairs in one bucket */
};

#define XSPD_TUNE_NAMED 4

/* A long list. */
struct xspd_tune_cliff {
	enum xspd_tune_place place;
	enum xspd_tune_cause cause;
	uint8_t dir;
	uint8_t family;
	uint32_t length;
	double ns;	 /* of walking it to its end */
	double ns_after; /* of the lists its policies are in with the thresholds found, on average
			  */
	uint32_t list;	 /* the model's */
	bool src;	 /* COVER: by its source */
	uint32_t named;	 /* policies that cause it; the first of them are in name[] */
	const struct xspd_pol *name[XSPD_TUNE_NAMED];
};

/* One direction and family. */
struct xspd_tune_side {
	uint32_t policies;
	uint32_t lists;	  /* not empty, hash buckets among them */
	uint32_t longest; /* of them */
	uint32_t hashed;  /* policies in the hash */
	double expected;  /* ns of a lookup, each policy hit as often as any other */
	double worst;	  /* ns of one that meets the longest lists and finds nothing */
};

#define XSPD_TUNE_CLIFFS 32

struct xspd_tune_result {
	struct xspd_tune_bits bits;
	struct xspd_tune_side side[XSPD_DIR_MAX_][2]; /* [][1]: IPv6 */
	double expected;			      /* over all policies */
	double stall; /* ns that a rebuild to these thresholds keeps the kernel's lock */
	uint32_t cliffs, cliffs_all;
	struct xspd_tune_cliff cliff[XSPD_TUNE_CLIFFS]; /* dearest first */
};

struct xspd_tune;

/**
 * xspd_tune_new() - Prepare @count policies, which must outlive the model.
 * @now: thresholds in force: what is in the trees now shapes them after a rebuild, too.
 *
 * Return: 0 or -ENOMEM. Free with xspd_tune_free().
 */
int xspd_tune_new(struct xspd_tune **ret, const struct xspd_pol *const *pols, size_t count,
		  const struct xspd_tune_bits *now, const struct xspd_tune_costs *costs);
void xspd_tune_free(struct xspd_tune *tune);

/* What lookups cost under @bits. */
void xspd_tune_predict(struct xspd_tune *tune, const struct xspd_tune_bits *bits,
		       struct xspd_tune_result *ret);

/* The cheapest thresholds; @now again unless there are clearly cheaper ones. */
void xspd_tune_search(struct xspd_tune *tune, const struct xspd_tune_bits *now,
		      struct xspd_tune_bits *ret);

/* Predict both; @now->bits is given, and its cliffs' ns_after is filled in. */
void xspd_tune_compare(struct xspd_tune *tune, struct xspd_tune_result *now,
		       const struct xspd_tune_bits *bits, struct xspd_tune_result *ret);

#endif
