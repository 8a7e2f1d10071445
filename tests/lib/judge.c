// SPDX-License-Identifier: GPL-2.0-only
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "lib/judge.h"
#include "reason.h"
#include "util.h"

#define JUDGE_PRINTED 5

static void print_policy(const struct xspd_pol *pol)
{
	char src[INET6_ADDRSTRLEN], dst[INET6_ADDRSTRLEN];
	const struct xfrm_selector *sel = &pol->sel;

	inet_ntop(sel->family, &sel->saddr, src, sizeof(src));
	inet_ntop(sel->family, &sel->daddr, dst, sizeof(dst));
	printf("    reqid %u %s %s src %s/%u dst %s/%u proto %u sport %u/%#x dport %u/%#x dev %d "
	       "mark "
	       "%#x/%#x if_id %u priority %u pos %u%s\n",
	       pol->tmpl.reqid, xspd_dir_name(pol->dir), pol->type ? "sub" : "main", src,
	       sel->prefixlen_s, dst, sel->prefixlen_d, sel->proto, ntohs(sel->sport),
	       ntohs(sel->sport_mask), ntohs(sel->dport), ntohs(sel->dport_mask), sel->ifindex,
	       pol->mark, pol->mark_mask, pol->if_id, pol->priority, pol->pos,
	       pol->tie ? " tie" : "");
}

static void print_flow(const struct xspd_flow *flow)
{
	char src[INET6_ADDRSTRLEN], dst[INET6_ADDRSTRLEN];

	inet_ntop(flow->family, flow->saddr, src, sizeof(src));
	inet_ntop(flow->family, flow->daddr, dst, sizeof(dst));
	printf("  %s src %s dst %s proto %u sport %u dport %u dev %u mark %#x if_id %u\n",
	       xspd_dir_name(flow->dir), src, dst, flow->proto, ntohs(flow->sport),
	       ntohs(flow->dport), flow->oif, flow->mark, flow->if_id);
}

void judge_wrong(struct judge *judge, const struct xspd_flow *flow, const char *fmt, ...)
{
	const struct xspd_pol **match = NULL;
	size_t count = 0;
	va_list ap;

	if (judge->wrong++ >= JUDGE_PRINTED)
		return;
	printf("WRONG: ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	print_flow(flow);
	if (xspd_spd_matches(judge->mirror->spd, flow, &match, &count) == 0)
		for (size_t i = 0; i < count && i < 8; i++)
			print_policy(match[i]);
	free(match);
	fflush(stdout);
}

/* --- the program against the reference ----------------------------------------- */

/* Only the query program knows indexes; the batched one says slots. */
static const struct xspd_pol **slots_map(const struct mirror *mirror, uint32_t *ret_end)
{
	const struct xspd_pol **map;
	struct xspd_pol *pol, *next;
	uint32_t end = 1;

	HASH_ITER (hh, mirror->spd->by_index, pol, next)
		end = pol->slot >= end ? pol->slot + 1 : end;
	map = calloc(end, sizeof(*map));
	if (!map)
		return NULL;
	HASH_ITER (hh, mirror->spd->by_index, pol, next)
		map[pol->slot] = pol;
	map[0] = NULL; /* none, and what is not published */
	*ret_end = end;
	return map;
}

static bool slot_is(const struct xspd_pol *const *map, uint32_t end, uint32_t slot,
		    const struct xspd_pol *pol)
{
	return slot < end && map[slot] == pol;
}

static bool same_answer(const struct xspd_ref *ref, const struct xspd_answer *answer,
			const struct xspd_pol *const *map, uint32_t end)
{
	if (ref->verdict != answer->verdict || ref->reason != answer->reason)
		return false;
	if (ref->verdict == XSPD_DEFER)
		return true;
	return slot_is(map, end, answer->slot, ref->pol) &&
	       slot_is(map, end, answer->slot2, ref->pol2);
}

static void program_compare(struct judge *judge, const struct xspd_flow *flow,
			    const struct xspd_ref *ref, const struct xspd_answer *answer,
			    const struct xspd_pol *const *map, uint32_t end)
{
	const struct xspd_pol *pol = answer->slot < end ? map[answer->slot] : NULL;

	judge->tuples += answer->tuples;
	if (same_answer(ref, answer, map, end))
		return;
	judge_wrong(judge, flow,
		    "the program says %s/%s (slot %u, reqid %u), the reference %s/%s (%u)",
		    xspd_verdict_name(answer->verdict), xspd_reason_name(answer->reason),
		    answer->slot, pol ? pol->tmpl.reqid : 0, xspd_verdict_name(ref->verdict),
		    xspd_reason_name(ref->reason), ref->pol ? ref->pol->tmpl.reqid : 0);
}

static int judge_refs(struct judge *judge, const struct xspd_flow *flows, size_t count,
		      struct xspd_answer *answers, struct xspd_ref *refs)
{
	xspd_autofree const struct xspd_pol **map = NULL;
	uint32_t end = 0;
	int err;

	if (!judge->no_program) {
		mirror_beat(judge->mirror);
		map = slots_map(judge->mirror, &end);
		if (!map)
			return -ENOMEM;
		err = xspd_plane_ask(judge->mirror->plane, flows, (uint32_t)count, answers, NULL);
		if (err)
			return err;
	}
	for (size_t i = 0; i < count; i++) {
		refs[i] = (struct xspd_ref){};
		xspd_spd_lookup(judge->mirror->spd, &flows[i], &refs[i]);
		if (!judge->no_program)
			program_compare(judge, &flows[i], &refs[i], &answers[i], map, end);
		judge->named += refs[i].pol != NULL;
	}
	judge->probes += count;
	return 0;
}

int judge_program(struct judge *judge, const struct xspd_flow *flows, size_t count,
		  struct xspd_answer *answers)
{
	xspd_autofree struct xspd_ref *refs = calloc(count, sizeof(*refs));

	return refs ? judge_refs(judge, flows, count, answers, refs) : -ENOMEM;
}

/* --- the kernel ------------------------------------------------------------------ */

struct asked {
	struct oracle_probe probe[3 * JUDGE_FLOWS];
	uint32_t flow[3 * JUDGE_FLOWS]; /* whose question it is */
	size_t count;
};

static void ask_put(struct asked *asked, const struct xspd_flow *flows, size_t at, uint8_t dir,
		    uint8_t type, const struct xspd_pol *pol)
{
	asked->flow[asked->count] = (uint32_t)at;
	asked->probe[asked->count++] = (struct oracle_probe){
		.flow = &flows[at],
		.reqid = pol ? pol->tmpl.reqid : 0,
		.dir = dir,
		.type = type,
	};
}

/* Sub policies first; if one is found (on the way out: and allows), main is asked as well. */
static void ask_about(struct asked *asked, const struct xspd_flow *flows, size_t at,
		      const struct xspd_ref *ref)
{
	uint8_t dir = flows[at].dir;

	if (ref->pol && ref->pol->type == XSPD_SUB) {
		ask_put(asked, flows, at, dir, XSPD_SUB, ref->pol);
		if (dir == XSPD_OUT && ref->pol->action == XSPD_BLOCK)
			return;
		ask_put(asked, flows, at, dir == XSPD_OUT ? XSPD_OUT : XSPD_IN, XSPD_MAIN,
			ref->pol2);
		return;
	}
	ask_put(asked, flows, at, dir, XSPD_SUB, NULL);
	ask_put(asked, flows, at, dir, XSPD_MAIN, ref->pol);
}

size_t judge_tied(const struct xspd_pol *const *match, size_t count, bool *ret_tie)
{
	size_t best = 0;

	*ret_tie = false;
	for (; best < count && match[best]->priority == match[0]->priority &&
	       match[best]->type == match[0]->type && match[best]->dir == match[0]->dir;
	     best++)
		*ret_tie |= match[best]->tie ||
			    (match[best]->apart &&
			     (match[best]->sel.prefixlen_s != match[0]->sel.prefixlen_s ||
			      match[best]->sel.prefixlen_d != match[0]->sel.prefixlen_d));
	*ret_tie &= best >= 2;
	return best;
}

/* A tie is real, and the kernel names one of those that are tied. */
static int judge_tie(struct judge *judge, const struct xspd_flow *flow)
{
	xspd_autofree const struct xspd_pol **match = NULL;
	struct oracle_probe probe = {.flow = flow};
	size_t count = 0, subs = 0, from = 0, best, i;
	bool tie;
	int err;

	judge->deferred++;
	err = xspd_spd_matches(judge->mirror->spd, flow, &match, &count);
	if (err)
		return err;
	while (subs < count && match[subs]->type == XSPD_SUB)
		subs++;
	best = judge_tied(match, subs, &tie);
	if (!tie) {
		from = subs;
		best = judge_tied(match + from, count - from, &tie);
	}
	if (!tie) {
		judge_wrong(judge, flow, "deferred without a tie");
		return 0;
	}
	for (i = from; i < from + best; i++) {
		probe.dir = match[i]->dir;
		probe.type = match[i]->type;
		probe.reqid = match[i]->tmpl.reqid;
		err = oracle_ask(judge->oracle, &probe, 1);
		if (err || probe.err == 0)
			return err;
	}
	judge_wrong(judge, flow, "the kernel names none of the tied policies");
	return 0;
}

static int judge_kernel(struct judge *judge, const struct xspd_flow *flows, size_t count,
			const struct xspd_ref *refs, struct asked *asked)
{
	int err = 0;

	asked->count = 0;
	for (size_t i = 0; i < count && !err; i++) {
		if (refs[i].verdict != XSPD_DEFER)
			ask_about(asked, flows, i, &refs[i]);
		else if (refs[i].reason == XSPD_R_TIE)
			err = judge_tie(judge, &flows[i]);
		else
			judge_wrong(judge, &flows[i], "deferred: %s",
				    xspd_reason_name(refs[i].reason));
	}
	if (!err)
		err = oracle_ask(judge->oracle, asked->probe, asked->count);
	judge->kernel += asked->count;
	for (size_t i = 0; i < asked->count && !err; i++)
		if (asked->probe[i].err)
			judge_wrong(judge, asked->probe[i].flow,
				    "not %u, says the kernel (%s %s: %s)", asked->probe[i].reqid,
				    xspd_dir_name(asked->probe[i].dir),
				    asked->probe[i].type ? "sub" : "main",
				    asked->probe[i].err == -ENOENT ? "none" : "another");
	return err;
}

int judge_flows(struct judge *judge, const struct xspd_flow *flows, size_t count)
{
	xspd_autofree struct xspd_answer *answers = calloc(count, sizeof(*answers));
	xspd_autofree struct xspd_ref *refs = calloc(count, sizeof(*refs));
	xspd_autofree struct asked *asked = malloc(sizeof(*asked));
	int err;

	if (!answers || !refs || !asked)
		return -ENOMEM;
	err = judge_refs(judge, flows, count, answers, refs);
	return err ? err : judge_kernel(judge, flows, count, refs, asked);
}

/* The same for what is sent; @index and @err are the kernel's answer. No sub policies. */
static int judge_tie_sent(struct judge *judge, const struct xspd_flow *flow, uint32_t index,
			  int err)
{
	xspd_autofree const struct xspd_pol **match = NULL;
	size_t count = 0, best;
	bool tie;

	judge->deferred++;
	if (xspd_spd_matches(judge->mirror->spd, flow, &match, &count))
		return -ENOMEM;
	best = judge_tied(match, count, &tie);
	if (!tie)
		judge_wrong(judge, flow, "deferred without a tie");
	for (size_t i = 0; i < best; i++)
		if (err ? match[i]->action == XSPD_BLOCK : match[i]->index == index)
			return 0;
	judge_wrong(judge, flow, "the kernel names none of the tied policies, but %u", index);
	return 0;
}

static int judge_one_sent(struct judge *judge, const struct xspd_flow *flow,
			  const struct xspd_ref *ref)
{
	uint32_t index = 0;
	int err;

	if (ref->verdict == XSPD_DEFER && ref->reason != XSPD_R_TIE) {
		judge_wrong(judge, flow, "deferred: %s", xspd_reason_name(ref->reason));
		return 0;
	}
	err = oracle_send(judge->oracle, flow, &index);
	judge->kernel++;
	if (err && err != -EPERM) {
		judge_wrong(judge, flow, "cannot be sent: %s", strerror(-err));
		return err;
	}
	if (ref->verdict == XSPD_DEFER)
		return judge_tie_sent(judge, flow, index, err);
	if ((err == -EPERM) != (ref->verdict == XSPD_DENY))
		judge_wrong(judge, flow, "not %s, says the kernel (%s)",
			    xspd_verdict_name(ref->verdict), err ? "EPERM" : "no EPERM");
	else if (!err && index != (ref->pol ? ref->pol->index : 0))
		judge_wrong(judge, flow, "not index %u, says the kernel (%u)",
			    ref->pol ? ref->pol->index : 0, index);
	return 0;
}

int judge_sent(struct judge *judge, const struct xspd_flow *flows, size_t count)
{
	xspd_autofree struct xspd_answer *answers = calloc(count, sizeof(*answers));
	xspd_autofree struct xspd_ref *refs = calloc(count, sizeof(*refs));
	int err;

	if (!answers || !refs)
		return -ENOMEM;
	err = judge_refs(judge, flows, count, answers, refs);
	for (size_t i = 0; i < count && !err; i++)
		err = judge_one_sent(judge, &flows[i], &refs[i]);
	return err ? err : oracle_flush_states(judge->oracle);
}

void judge_report(const struct judge *judge, const char *name)
{
	printf("%s: %" PRIu64 " probes (%" PRIu64 " questions to the kernel), %" PRIu64
	       " named a policy, %" PRIu64 " deferred for a tie, %" PRIu64
	       " wrong; %.1f tuples a probe\n",
	       name, judge->probes, judge->kernel, judge->named, judge->deferred, judge->wrong,
	       judge->probes ? (double)judge->tuples / (double)judge->probes : 0);
	fflush(stdout);
}
