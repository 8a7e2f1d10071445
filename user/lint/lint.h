/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is wrong with an SPD, or will surprise somebody.  Pure: no I/O, no clock.
 * A finding is a fact about the policies given, never a guess: what cannot be
 * shown within the work allowed is not claimed.
 */
#ifndef XSPD_LINT_LINT_H
#define XSPD_LINT_LINT_H

#include "spd/spd.h"

enum xspd_lint_level {
	XSPD_LINT_INFO,
	XSPD_LINT_WARNING,
	XSPD_LINT_ERROR,
	XSPD_LINT_LEVEL_MAX_,
};

/* Names in text.c, in the same order. */
enum xspd_lint_id {
	XSPD_LINT_TIE,	     /* equal priorities, and the order is not certain */
	XSPD_LINT_AGE,	     /* equal priorities, told apart by age alone */
	XSPD_LINT_NEVER,     /* better ones cover it: the first of them, or all */
	XSPD_LINT_BYPASS,    /* a better one takes a part of a bypass */
	XSPD_LINT_V6,	     /* a default for IPv4, none for IPv6 */
	XSPD_LINT_OUT_ONLY,  /* protects what goes out, and nothing fits the answers */
	XSPD_LINT_IN_ONLY,   /* the reverse */
	XSPD_LINT_IN_ALL,    /* refuses all plaintext that arrives */
	XSPD_LINT_NDP,	     /* neighbour discovery falls under a policy */
	XSPD_LINT_FWD_BLOCK, /* forwarded traffic is blocked before out is asked */
	XSPD_LINT_TWIN,	     /* the same selector again, in other bits */
	XSPD_LINT_BITS,	     /* value bits outside a mask */
	XSPD_LINT_NO_SA,     /* no SA for its reqid */
	XSPD_LINT_ORPHAN,    /* ... and nobody who would make one */
	XSPD_LINT_ID_MAX_,
};

#define XSPD_LINT_NAMED 4

struct xspd_lint_finding {
	enum xspd_lint_id id;
	enum xspd_lint_level level;
	uint32_t count;				     /* policies concerned */
	const struct xspd_pol *pol[XSPD_LINT_NAMED]; /* the first of them; [0] is the subject */
	uint32_t detail; /* NEVER: 1 = all others together cover it; BITS: enum xspd_lint_bits */
};

enum xspd_lint_bits {
	XSPD_LINT_BITS_DST = 1,
	XSPD_LINT_BITS_SRC = 2,
	XSPD_LINT_BITS_DPORT = 4,
	XSPD_LINT_BITS_SPORT = 8,
	XSPD_LINT_BITS_MARK = 16,
	XSPD_LINT_BITS_PAD = 32,
};

struct xspd_lint_sa {
	uint32_t reqid;
};

enum xspd_lint_keyer { /* who answers an ACQUIRE */
		       XSPD_LINT_KEYER_UNKNOWN,
		       XSPD_LINT_KEYER_NONE,
		       XSPD_LINT_KEYER_SOME,
};

struct xspd_lint_input {
	const struct xspd_spd *spd;
	const struct xspd_lint_sa *sas;
	size_t sa_count;
	bool sas_known;
	enum xspd_lint_keyer keyer;
	bool no_ipv6; /* the host has no IPv6 */
};

struct xspd_lint_report {
	struct xspd_lint_finding *finding; /* by level, id, policy */
	size_t count, room;
	uint32_t level[XSPD_LINT_LEVEL_MAX_];
	bool incomplete; /* too many kinds of selectors: not all were compared */
};

/**
 * xspd_lint() - Look for everything above.
 * Return: 0 or -ENOMEM. Free with xspd_lint_drop().
 */
int xspd_lint(const struct xspd_lint_input *input, struct xspd_lint_report *ret);
void xspd_lint_drop(struct xspd_lint_report *report);

/* "never-wins", "warning"; numbers of a name, -1: there is none. */
const char *xspd_lint_id_name(enum xspd_lint_id id);
const char *xspd_lint_level_name(enum xspd_lint_level level);
int xspd_lint_id_find(const char *name);
int xspd_lint_level_find(const char *name);

/* One sentence without a full stop; it names policies by index. */
void xspd_lint_reason(const struct xspd_lint_finding *finding, char *buf, size_t size);
const char *xspd_lint_remedy(enum xspd_lint_id id);

#endif
