/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The mirror of the kernel's SPD, and its linear reference matcher.  Pure: no
 * I/O, no clock, knows neither netlink nor BPF.
 */
#ifndef XSPD_SPD_SPD_H
#define XSPD_SPD_SPD_H

#include "spd/policy.h"

enum xspd_change_kind {
	XSPD_CHANGE_NONE = 0,
	XSPD_CHANGE_ADD,      /* @pol is new */
	XSPD_CHANGE_REPLACE,  /* @pol took the place of @old, same index and identity */
	XSPD_CHANGE_REMOVE,   /* @old is out of the mirror */
	XSPD_CHANGE_FLUSH,    /* every policy of @type is to go: the callback runs before they are
				 freed */
	XSPD_CHANGE_DEFAULTS, /* spd->defaults changed */
	XSPD_CHANGE_RENUMBER, /* every pos changed: rebuild */
};

/*
 * Handed to the listener after the mirror has changed.  @old is a copy (its
 * hh is not linked anywhere) and dies with the call; @pol belongs to the mirror,
 * and @pol->slot/@pol->tuple are the listener's to set (REPLACE starts with old's).
 */
struct xspd_change {
	enum xspd_change_kind kind;
	struct xspd_pol *pol;
	const struct xspd_pol *old;
	uint8_t type; /* enum xspd_type, for FLUSH */
};

struct xspd_spd;
struct xspd_spd_item;
typedef int (*xspd_spd_listener)(void *ctx, const struct xspd_change *change);

/* What the last re-dump found different. */
struct xspd_spd_diff {
	uint32_t added, removed, modified;
};

struct xspd_spd {
	struct xspd_pol *by_index;     /* uthash head: HASH_ITER(hh, spd->by_index, pol, tmp) */
	uint32_t count[XSPD_DIR_MAX_]; /* per direction, all types and families: as GETSPDINFO
					  counts */
	uint32_t ties;		       /* policies with ->tie */
	uint32_t unmodelled;	       /* policies with ->unmodelled */
	uint32_t next_pos;	       /* of the next new or updated policy */
	uint32_t defaults;	       /* bit 1 << dir: default is block */
	uint32_t dump;		       /* number of the dump under way or last done */
	bool dumping;
	/*
	 * Linux before 6.12 knows an age only of those policies that its thresholds make inexact,
	 * and of changed thresholds nothing tells.  Certain are then only those that stand in one
	 * list whatever the thresholds: the same prefixes, without bits beyond them.
	 */
	bool old_order;
	bool suspecting;       /* from suspect_from on, events may have been missed: see dump.c */
	uint32_t suspect_from; /* a pos */
	bool quiet;	       /* a renumbering is to be told instead of each change */

	/* of the dump under way */
	struct xspd_spd_item *items; /* its entries */
	size_t item_count, item_room;
	uint32_t *gone; /* indexes that events removed since it began */
	size_t gone_count, gone_room;
	uint32_t flushed; /* bit 1 << type: flushed since it began */

	xspd_spd_listener listener; /* may be NULL; a negative return is passed on */
	void *ctx;
};

/**
 * xspd_spd_new() - An empty mirror. Free with xspd_spd_free().
 * Return: the mirror, or NULL with errno.
 */
struct xspd_spd *xspd_spd_new(void);
void xspd_spd_free(struct xspd_spd *spd);

/*
 * Events, in the order the kernel committed them.  @pol is copied; pos, tie,
 * slot and tuple are not read.  Each calls the listener at most once, but for an
 * index that has come to mean another policy: REMOVE, then ADD.
 * Return: 0, -ENOMEM, or the listener's negative return (the mirror has changed all the same).
 */
int xspd_spd_upsert(struct xspd_spd *spd, const struct xspd_pol *pol); /* NEWPOLICY, UPDPOLICY */
int xspd_spd_remove(struct xspd_spd *spd,
		    uint32_t index); /* DELPOLICY, hard POLEXPIRE; unknown index: 0 */
int xspd_spd_flush(struct xspd_spd *spd, uint8_t type);
int xspd_spd_set_defaults(struct xspd_spd *spd, uint32_t defaults);

/*
 * A dump is bracketed by begin and end; entries come newest first, as the
 * kernel lists them; events may come in between, and win over the dump
 * ("touched").  end() assigns pos to what is new, marks suspected ties
 * (a lower kernel index dumped as newer at one priority of one
 * partition), removes what the dump did not show, and tells the listener of
 * each difference (additions first, then changes, removals last).  Entries that differ in nothing
 * but order get the dump's order.  abort() forgets the entries and changes nothing.
 *
 * begin() belongs before the first event that follows a loss, also when the
 * request is sent later: from it on, new policies are suspect too.  Before
 * end(), apply the events that are already queued.  end() goes on after a
 * failing listener and returns the first failure.
 */
int xspd_spd_dump_begin(struct xspd_spd *spd);
int xspd_spd_dump_entry(struct xspd_spd *spd, const struct xspd_pol *pol);
int xspd_spd_dump_end(struct xspd_spd *spd, struct xspd_spd_diff *ret);
void xspd_spd_dump_abort(struct xspd_spd *spd);

struct xspd_pol *xspd_spd_find(const struct xspd_spd *spd, uint32_t index);
/* By identity (dir, type, if_id, mark as given, raw selector bytes). O(n). */
struct xspd_pol *xspd_spd_find_identity(const struct xspd_spd *spd, const struct xspd_pol *key);

/* The field that kept a policy from matching a flow, in the order the kernel compares. */
enum xspd_miss {
	XSPD_MISS_NOT = 0, /* it matches */
	XSPD_MISS_FAMILY,
	XSPD_MISS_DIR,
	XSPD_MISS_TYPE,
	XSPD_MISS_IF_ID,
	XSPD_MISS_MARK,
	XSPD_MISS_DADDR,
	XSPD_MISS_SADDR,
	XSPD_MISS_DPORT,
	XSPD_MISS_SPORT,
	XSPD_MISS_PROTO,
	XSPD_MISS_OIF,
	XSPD_MISS_MAX_,
};

/*
 * xfrm_policy_match() and __xfrm4/6_selector_match() in the kernel's words: the
 * first field that fails.  @dir and @type are given apart since sub/main rules
 * ask other partitions than flow->dir.  Fields in flow->unknown never fail; for them
 * *@ret_unknown gets the enum xspd_unknown bits on which the match hangs (0: certain).
 */
enum xspd_miss xspd_pol_match(const struct xspd_pol *pol, const struct xspd_flow *flow, uint8_t dir,
			      uint8_t type, uint32_t *ret_unknown);

/* "mark", "dst", ... as ip xfrm policy calls the field. */
const char *xspd_miss_name(enum xspd_miss miss);

/* true if @a is looked at before @b: (priority, pos). */
bool xspd_pol_before(const struct xspd_pol *a, const struct xspd_pol *b);

/*
 * The reference answer: a linear scan by the rules of xfrm_policy_lookup()
 * (sub before main; after a sub hit, main is asked too, in and fwd in
 * direction in).  ret->pol/pol2 are NULL where no policy was found.
 */
struct xspd_ref {
	const struct xspd_pol *pol;
	const struct xspd_pol *pol2;
	enum xspd_verdict verdict;
	enum xspd_reason reason;
};
void xspd_spd_lookup(const struct xspd_spd *spd, const struct xspd_flow *flow,
		     struct xspd_ref *ret);

/*
 * The tunnel for a flow: the if_id of the best out policy over all if_ids but 0, as a linear scan
 * finds it, sub before main.  flow->dir, ->if_id and ->oif are not looked at: an xfrm interface
 * asks without a device.  if_id is 0 where there is none for certain; where several policies of
 * the one if_id are best, and which of them is not certain, reason is XSPD_R_TIE and pol NULL.
 */
struct xspd_steer_ref {
	const struct xspd_pol *pol;
	uint32_t if_id;
	uint32_t best; /* policies that match at the best priority */
	enum xspd_reason reason;
};
void xspd_spd_steer(const struct xspd_spd *spd, const struct xspd_flow *flow,
		    struct xspd_steer_ref *ret);

/* What it is for a flow of @dir that @pol alone governs, or nothing does (NULL). */
void xspd_spd_answer(const struct xspd_spd *spd, uint8_t dir, const struct xspd_pol *pol,
		     struct xspd_ref *ret);

/* Every policy of the asked partitions that matches, best first; sub before main. Caller frees
 * *ret. */
int xspd_spd_matches(const struct xspd_spd *spd, const struct xspd_flow *flow,
		     const struct xspd_pol ***ret, size_t *ret_count);

#endif
