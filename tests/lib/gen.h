/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Random policies and flows, made to meet: few address bits, few priorities, so
 * that prefixes nest, selectors overlap and priorities tie.  The same seed gives
 * the same run.
 */
#ifndef XSPD_TESTS_LIB_GEN_H
#define XSPD_TESTS_LIB_GEN_H

#include "spd/policy.h"

struct gen {
	uint64_t state;
	uint32_t next_reqid; /* each policy gets one of its own */
	uint32_t devs[3];    /* for sel.ifindex, 0: none */
	/* what policies may have; per cent */
	uint8_t sub, mark, dev, if_id, block, user;
	int dir;	 /* enum xspd_dir, -1: any */
	bool optional;	 /* every template is an optional one */
	bool flow_marks; /* flows have marks too */
};

/* Seed from XSPD_SEED if it is set, else @seed; the seed in use is printed. */
void gen_init(struct gen *gen, const char *name, uint64_t seed);

uint32_t gen_next(struct gen *gen);
uint32_t gen_below(struct gen *gen, uint32_t end);
bool gen_chance(struct gen *gen, uint32_t percent);

/* A policy as it is to be sent: index 0, a transport template with a reqid of its own. */
void gen_policy(struct gen *gen, struct xspd_pol *ret);
uint32_t gen_priority(struct gen *gen);

/*
 * A flow that @src and @dst (may be the same, NULL: any) match or nearly match: addresses of one,
 * now and then a bit flipped.  mark stays 0 without gen->flow_marks.  Its fields are ones
 * that a packet can have: no ports without a protocol that has some, ICMP type and code in a byte.
 */
void gen_flow(struct gen *gen, const struct xspd_pol *src, const struct xspd_pol *dst,
	      struct xspd_flow *ret);

#endif
