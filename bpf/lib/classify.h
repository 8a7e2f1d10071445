/* SPDX-License-Identifier: GPL-2.0-only */
/* Which policy governs a flow: xfrm_policy_lookup() over the maps. */
#ifndef XSPD_BPF_CLASSIFY_H
#define XSPD_BPF_CLASSIFY_H

#include "cache.h"
#include "walk.h"

#define XSPD_ATTEMPTS 16 /* lookups begun anew because the SPD changed meanwhile */

/* Number of a partition with an if_id, 0: there is none.  A function for the sake of the stack. */
static __noinline __u32 xspd_part_of_ifid(const struct xspd_flow *flow, __u32 type, __u32 dir)
{
	struct xspd_ifid_key key = {
		.if_id = flow->if_id,
		.dir = dir,
		.type = type,
		.family = flow->family,
	};
	const __u32 *found = bpf_map_lookup_elem(&xspd_ifid, &key);

	return found ? *found : 0;
}

/* The tuple list of a partition and its number; 0: it holds no policy. */
static __always_inline __u64 xspd_part_ref(const struct xspd_flow *flow, enum xspd_type type,
					   enum xspd_dir dir, __u32 *nr)
{
	const struct xspd_part *part;

	*nr = XSPD_PART_FIXED(type, dir, flow->family == XSPD_INET6);
	if (flow->if_id) {
		*nr = xspd_part_of_ifid(flow, type, dir);
		if (!*nr)
			return 0;
	}
	part = bpf_map_lookup_elem(&xspd_part, nr);
	return part ? XSPD_READ(part->ref) : 0;
}

/* xfrm_policy_lookup_bytype(): the policy and what it says, or why not. */
static __always_inline enum xspd_reason xspd_lookup_type(const struct xspd_flow *flow,
							 struct xspd_best *best,
							 enum xspd_type type, enum xspd_dir dir)
{
	enum xspd_reason doubt;
	__u32 part;
	__u64 ref;

	best->slot = 0;
	best->probes = 0;
	ref = xspd_part_ref(flow, type, dir, &part);
	if (!ref)
		return XSPD_R_NO_POLICY;
	xspd_best_init(best);
	xspd_walk(flow, best, part, ref);
	doubt = xspd_best_doubt(best);
	/* which of several policies of one if_id it is does not matter to who asks for the if_id */
	if (dir == XSPD_STEER && (doubt != XSPD_R_TIE || best->state & XSPD_BEST_IFIDS) && doubt)
		best->slot = 0;
	if (doubt)
		return doubt;
	if (!best->slot)
		return XSPD_R_NO_POLICY;
	if (best->flags & XSPD_P_BLOCK)
		return XSPD_R_BLOCK;
	return best->flags & XSPD_P_PROTECT ? XSPD_R_PROTECT : XSPD_R_BYPASS;
}

static __always_inline enum xspd_verdict xspd_reason_verdict(enum xspd_reason reason)
{
	switch (reason) {
	case XSPD_R_BYPASS:
	case XSPD_R_NO_POLICY:
		return XSPD_PLAIN;
	case XSPD_R_PROTECT:
		return XSPD_PROTECT;
	case XSPD_R_BLOCK:
	case XSPD_R_DEFAULT_BLOCK:
		return XSPD_DENY;
	default:
		return XSPD_DEFER;
	}
}

/*
 * Sub policies first; what they find is joined by the main policies (xfrm_policy_lookup,
 * __xfrm_policy_check): on receive always and in direction in, on output only after an allow.
 */
__noinline int xspd_lookup(const struct xspd_flow *flow, struct xspd_answer *answer, __u32 defaults)
{
	enum xspd_reason sub, main;
	struct xspd_best best = {};
	enum xspd_dir dir;

	if (!flow || !answer)
		return XSPD_R_ERROR;
	dir = flow->dir;
	answer->slot2 = 0;
	sub = xspd_lookup_type(flow, &best, XSPD_SUB, dir);
	answer->slot = best.slot;
	answer->tuples = best.probes;
	if (sub != XSPD_R_NO_POLICY) {
		if (sub > XSPD_R_DEFAULT_BLOCK || (sub == XSPD_R_BLOCK && dir == XSPD_OUT) ||
		    dir == XSPD_STEER)
			return sub;
		if (dir == XSPD_FWD)
			dir = XSPD_IN;
	}
	main = xspd_lookup_type(flow, &best, XSPD_MAIN, dir);
	answer->tuples += best.probes;
	if (sub == XSPD_R_NO_POLICY) {
		answer->slot = best.slot;
		if (main == XSPD_R_NO_POLICY && defaults & 1u << dir)
			return XSPD_R_DEFAULT_BLOCK;
		return main;
	}
	if (main > XSPD_R_DEFAULT_BLOCK)
		return main;
	answer->slot2 = best.slot;
	if (sub == XSPD_R_BLOCK || main == XSPD_R_BLOCK)
		return XSPD_R_BLOCK;
	if (sub == XSPD_R_PROTECT || main == XSPD_R_PROTECT)
		return XSPD_R_PROTECT;
	return XSPD_R_BYPASS;
}

/* May the answer stand as long as the generation does? */
static __always_inline bool xspd_reason_lasts(enum xspd_reason reason)
{
	return reason != XSPD_R_BUSY && reason != XSPD_R_DOUBT && reason != XSPD_R_LEASE &&
	       reason != XSPD_R_ERROR;
}

/* Why nothing may be answered at all just now. */
static __always_inline enum xspd_reason xspd_conf_doubt(const struct xspd_conf *conf, __u64 now)
{
	if (XSPD_READ(conf->doubt))
		return XSPD_R_DOUBT;
	return XSPD_READ(conf->lease_until) < now ? XSPD_R_LEASE : XSPD_R_NONE;
}

/* 1: the answer of this generation is remembered.  A function for the sake of the stack. */
static __noinline int xspd_recall(const struct xspd_flow *flow, struct xspd_place *place,
				  __u64 generation, struct xspd_answer *answer)
{
	const struct xspd_known *known;

	*place = xspd_cache_place(flow, flow->dir, flow->if_id, 0);
	known = xspd_cache_find(flow, place, generation);
	if (!known || known->oif != flow->oif)
		return 0;
	answer->slot = known->slot[0];
	answer->slot2 = known->slot2[0];
	answer->reason = known->reason[0];
	return 1;
}

/* A function for the sake of the stack. */
static __noinline int xspd_remember(const struct xspd_flow *flow, const struct xspd_place *place,
				    __u64 generation, const struct xspd_answer *answer,
				    __u32 reason)
{
	struct xspd_known known = {.oif = flow->oif};

	known.slot[0] = answer->slot;
	known.slot2[0] = answer->slot2;
	known.reason[0] = reason;
	xspd_cache_put(flow, place, generation, &known);
	return 0;
}

/*
 * The answer for a flow.  It is taken only if nothing was published while it was
 * looked for: each single change is visible in one store, but a walk that lasts over
 * two of them could miss a policy added by the first in favour of one removed by the second.
 */
__noinline int xspd_classify(const struct xspd_flow *flow, struct xspd_answer *answer, __u32 cached)
{
	const struct xspd_conf *conf;
	enum xspd_reason reason = XSPD_R_BUSY;
	struct xspd_place place = {};
	__u64 generation = 0;
	__u32 zero = 0;

	if (!flow || !answer)
		return 0;
	conf = bpf_map_lookup_elem(&xspd_conf, &zero);
	if (!conf)
		return 0;
	answer->slot = 0;
	answer->slot2 = 0;
	answer->tuples = 0;
	reason = xspd_conf_doubt(conf, bpf_ktime_get_coarse_ns());
	if (reason)
		goto out;
	if (flow->dir >= XSPD_DIR_MAX_ && !(xspd_steers && flow->dir == XSPD_STEER)) {
		reason = XSPD_R_ERROR;
		goto out;
	}
	cached = cached && xspd_cache_size;
	for (int i = 0; i < XSPD_ATTEMPTS; i++) {
		reason = XSPD_R_BUSY;
		generation = XSPD_READ(conf->generation);
		if (generation & 1)
			continue;
		if (cached && !i && xspd_recall(flow, &place, generation, answer)) {
			reason = answer->reason;
			goto out;
		}
		reason = xspd_lookup(flow, answer, XSPD_READ(conf->defaults));
		barrier();
		if (XSPD_READ(conf->generation) == generation) {
			if (cached && !i && xspd_cache_wants())
				xspd_remember(flow, &place, generation, answer, reason);
			break;
		}
		reason = XSPD_R_BUSY;
	}
out:
	answer->generation_lo = generation;
	answer->reason = reason;
	answer->verdict = xspd_reason_verdict(reason);
	if (answer->verdict == XSPD_DEFER && !(flow->dir == XSPD_STEER && reason == XSPD_R_TIE)) {
		answer->slot = 0;
		answer->slot2 = 0;
	}
	return 0;
}

#endif
