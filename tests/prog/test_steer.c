// SPDX-License-Identifier: GPL-2.0-only
/* Policies over all if_ids: the program names the tunnel that a linear scan over the mirror names.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "lib/casefile.h"
#include "lib/gen.h"
#include "lib/mirror.h"
#include "reason.h"
#include "util.h"

static struct mirror *mirror;
static struct gen gen;

static void begin(struct xspd_plane_opts opts)
{
	opts.lease_ms = 60000;
	opts.steer = true;
	cr_assert_eq(mirror_new(&mirror, 0, &opts), 0, "needs root");
	mirror->spd->old_order = false; /* whatever kernel this is */
}

static uint32_t add(const char *words)
{
	return mirror_add(mirror, case_pol(words));
}

static struct xspd_answer ask(struct xspd_flow flow)
{
	struct xspd_answer answer = {};

	flow.dir = XSPD_STEER;
	flow.if_id = 0;
	flow.oif = 0;
	cr_assert_eq(xspd_plane_query(mirror->plane, &flow, &answer), 0);
	return answer;
}

static void expect_at(int line, const char *words, uint32_t index, uint32_t if_id,
		      enum xspd_reason reason)
{
	struct xspd_answer answer = ask(case_flow(words));

	cr_expect(answer.index == index && answer.index2 == if_id && answer.reason == reason,
		  "line %d: index %u if_id %u %s", line, answer.index, answer.index2,
		  xspd_reason_name(answer.reason));
}
#define expect(...) expect_at(__LINE__, __VA_ARGS__)

#define UDP "proto udp sport 1000 dport 53"
#define F4  "dir out src 10.1.0.1 dst 10.2.0.1 " UDP
#define F6  "dir out src 2001:db8:1::1 dst 2001:db8:2::1 " UDP
#define NET "dir out src 10.1.0.0/16 dst 10.2.0.0/16 "

Test(steer, best_of_all_if_ids)
{
	uint32_t wide, net, host, six;

	begin((struct xspd_plane_opts){.capacity = 64});
	expect(F4, 0, 0, XSPD_R_NO_POLICY);
	/* no tunnel is named by if_id 0, none is asked for in another direction */
	add(NET "priority 1 action block");
	add("dir fwd src 0.0.0.0/0 dst 0.0.0.0/0 priority 1 action block if_id 9");
	add("dir in src 0.0.0.0/0 dst 0.0.0.0/0 priority 1 action block if_id 9");
	/* an xfrm interface asks without a device */
	add(NET "priority 1 action block if_id 9 dev lo");
	expect(F4, 0, 0, XSPD_R_NO_POLICY);
	wide = add("dir out src 0.0.0.0/0 dst 0.0.0.0/0 priority 30 action allow tmpl reqid 1 "
		   "if_id 5");
	expect(F4, wide, 5, XSPD_R_PROTECT);
	net = add(NET "priority 20 action allow tmpl reqid 1 if_id 4294967295");
	expect(F4, net, 0xffffffff, XSPD_R_PROTECT);
	expect("dir out src 10.1.0.1 dst 10.3.0.1 " UDP, wide, 5, XSPD_R_PROTECT);
	host = add("dir out src 10.1.0.1/32 dst 10.2.0.1/32 mark 0x1/0x1 priority 10 action block "
		   "if_id 7");
	expect(F4, net, 0xffffffff, XSPD_R_PROTECT);
	expect(F4 " mark 0x3", host, 7, XSPD_R_BLOCK);
	expect(F6, 0, 0, XSPD_R_NO_POLICY);
	six = add("dir out src ::/0 dst 2001:db8:2::/48 mark 0x0/0x2 priority 10 action allow "
		  "if_id 8");
	expect(F6, six, 8, XSPD_R_BYPASS);
	expect(F6 " mark 0x2", 0, 0, XSPD_R_NO_POLICY);
	cr_assert_eq(xspd_spd_remove(mirror->spd, net), 0);
	expect(F4, wide, 5, XSPD_R_PROTECT);
	cr_assert_eq(xspd_spd_flush(mirror->spd, XSPD_MAIN), 0);
	expect(F4, 0, 0, XSPD_R_NO_POLICY);
	expect(F6, 0, 0, XSPD_R_NO_POLICY);
	mirror_free(mirror);
}

Test(steer, sub_policies_first)
{
	uint32_t main, sub;

	begin((struct xspd_plane_opts){.capacity = 64});
	main = add(NET "priority 1 action allow tmpl reqid 1 if_id 5");
	expect(F4, main, 5, XSPD_R_PROTECT);
	sub = add(NET "priority 900 action allow if_id 6 ptype sub");
	expect(F4, sub, 6, XSPD_R_BYPASS);
	add(NET "priority 900 action allow if_id 7 ptype sub");
	expect(F4, 0, 0, XSPD_R_TIE);
	cr_assert_eq(xspd_spd_flush(mirror->spd, XSPD_SUB), 0);
	expect(F4, main, 5, XSPD_R_PROTECT);
	mirror_free(mirror);
}

/* Equal priorities of several tunnels: nobody is chosen, unless a better one matches. */
Test(steer, ties)
{
	struct xspd_pol pol;
	uint32_t one, two, other;

	begin((struct xspd_plane_opts){.capacity = 64});
	one = add(NET "priority 5 action allow tmpl reqid 1 if_id 1");
	expect(F4, one, 1, XSPD_R_PROTECT);
	/* another selector, another mask class */
	other = add("dir out src 0.0.0.0/0 dst 10.2.0.0/24 priority 5 action allow if_id 2");
	expect(F4, 0, 0, XSPD_R_TIE);
	expect("dir out src 10.1.0.1 dst 10.2.9.1 " UDP, one, 1, XSPD_R_PROTECT);
	cr_assert_eq(xspd_spd_remove(mirror->spd, other), 0);
	expect(F4, one, 1, XSPD_R_PROTECT);
	/* the same selector, up to host bits */
	two = add("dir out src 10.1.9.9/16 dst 10.2.0.0/16 priority 5 action block if_id 2");
	expect(F4, 0, 0, XSPD_R_TIE);
	other = add(NET "proto udp priority 4 action allow if_id 3");
	expect(F4, other, 3, XSPD_R_BYPASS);
	cr_assert_eq(xspd_spd_remove(mirror->spd, other), 0);
	cr_assert_eq(xspd_spd_remove(mirror->spd, one), 0);
	expect(F4, two, 2, XSPD_R_BLOCK);
	/* of one tunnel: which policy it is does not matter */
	other = add("dir out src 0.0.0.0/0 dst 10.2.0.0/24 priority 5 action allow if_id 2");
	expect(F4, two, 2, XSPD_R_BLOCK);
	pol = *xspd_spd_find(mirror->spd, two);
	cr_assert_eq(xspd_spd_upsert(mirror->spd, &pol), 0);
	expect(F4, 0, 2, XSPD_R_TIE);
	/* a priority of its own again */
	pol.priority = 4;
	cr_assert_eq(xspd_spd_upsert(mirror->spd, &pol), 0);
	expect(F4, two, 2, XSPD_R_BLOCK);
	pol.unmodelled = XSPD_UNMODELLED_SEC_CTX;
	cr_assert_eq(xspd_spd_upsert(mirror->spd, &pol), 0);
	expect(F4, 0, 0, XSPD_R_UNMODELLED);
	mirror_free(mirror);
}

/* Route-based tunnels: all of one selector.  They cost one record, not one each. */
Test(steer, many_of_one_selector)
{
	struct xspd_plane_usage usage;
	uint32_t index[3000], net;

	begin((struct xspd_plane_opts){.capacity = 64});
	for (uint32_t i = 0; i < 3000; i++) {
		char words[128];

		snprintf(words, sizeof(words),
			 "dir out src 0.0.0.0/0 dst 0.0.0.0/0 priority 9 action allow tmpl reqid 1 "
			 "if_id %u",
			 i + 1);
		index[i] = add(words);
	}
	expect(F4, 0, 0, XSPD_R_TIE);
	net = add(NET "priority 8 action allow tmpl reqid 1 if_id 77");
	expect(F4, net, 77, XSPD_R_PROTECT);
	cr_assert_eq(xspd_plane_build(mirror->plane, mirror->spd), 0);
	expect(F4, net, 77, XSPD_R_PROTECT);
	xspd_plane_usage(mirror->plane, &usage);
	cr_expect_leq(usage.slots, 3001 + 3001 / 16 + 70, "%u", usage.slots);
	/* buckets that overflow by chance do not with another seed; policies that share no record
	 * do */
	for (int seeds = 0; usage.longest_chain > 2 && seeds < 5; seeds++) {
		cr_assert_eq(xspd_plane_build(mirror->plane, mirror->spd), 0);
		xspd_plane_usage(mirror->plane, &usage);
	}
	cr_expect_leq(usage.longest_chain, 2);
	for (uint32_t i = 0; i < 2999; i++)
		cr_assert_eq(xspd_spd_remove(mirror->spd, index[i]), 0);
	expect("dir out src 9.1.0.1 dst 10.3.0.1 " UDP, index[2999], 3000, XSPD_R_PROTECT);
	mirror_free(mirror);
}

/* Not asked for, not kept, and not answered either. */
Test(steer, costs_only_when_wanted)
{
	struct xspd_plane_usage with, without;

	begin((struct xspd_plane_opts){.capacity = 64});
	for (uint32_t i = 0; i < 500; i++) {
		char words[128];

		snprintf(words, sizeof(words),
			 "dir out src 0.0.0.0/0 dst 10.%u.%u.0/24 priority 9 action allow if_id %u",
			 i / 250, i % 250, i + 1);
		add(words);
	}
	cr_assert_eq(xspd_plane_build(mirror->plane, mirror->spd), 0);
	xspd_plane_usage(mirror->plane, &with);
	cr_expect_eq(xspd_plane_conf(mirror->plane)->steer, 501);
	cr_assert_eq(xspd_plane_steer(mirror->plane, mirror->spd, false), 0);
	xspd_plane_usage(mirror->plane, &without);
	cr_expect_eq(xspd_plane_conf(mirror->plane)->steer, 0);
	cr_expect_geq(with.slots, without.slots + 500);
	cr_expect_eq(with.tuples, without.tuples + 1);
	expect("dir out src 9.1.0.1 dst 10.1.9.1 " UDP, 0, 0, XSPD_R_ERROR);
	cr_assert_eq(xspd_plane_steer(mirror->plane, mirror->spd, true), 0);
	expect("dir out src 9.1.0.1 dst 10.1.9.1 " UDP, 260 << 3 | XSPD_OUT, 260, XSPD_R_BYPASS);
	mirror_free(mirror);
}

/* --- against the linear scan ------------------------------------------------------- */

#define POLICIES 400
#define STEPS	 2500

static struct {
	uint64_t asked, named, ties, tunnels, wrong;
} found;

static void compare(const struct xspd_flow *flow)
{
	struct xspd_answer answer = ask(*flow);
	struct xspd_steer_ref ref;
	bool right;

	xspd_spd_steer(mirror->spd, flow, &ref);
	right = answer.index2 == ref.if_id;
	/* which of several of one tunnel it is may be left open */
	if (answer.reason == XSPD_R_TIE && ref.if_id)
		right = right && ref.best > 1 && !answer.index;
	else
		right = right && answer.reason == ref.reason &&
			answer.index == (ref.pol ? ref.pol->index : 0);
	found.asked++;
	found.named += ref.if_id != 0;
	found.ties += ref.reason == XSPD_R_TIE && !ref.if_id;
	found.tunnels += ref.reason == XSPD_R_TIE && ref.if_id;
	if (!right && found.wrong++ < 5)
		cr_log_error("if_id %u, not %u; index %u, not %u; %s, not %s", answer.index2,
			     ref.if_id, answer.index, ref.pol ? ref.pol->index : 0,
			     xspd_reason_name(answer.reason), xspd_reason_name(ref.reason));
}

static struct xspd_pol *pick(void)
{
	uint32_t count = HASH_COUNT(mirror->spd->by_index), nr = gen_below(&gen, count ?: 1);
	struct xspd_pol *pol = mirror->spd->by_index;

	while (pol && nr--)
		pol = pol->hh.next;
	return pol;
}

static void change(void)
{
	uint32_t count = HASH_COUNT(mirror->spd->by_index), what = gen_below(&gen, 100);
	struct xspd_pol pol, *old = pick();

	if (!old || what < (count < POLICIES ? 60u : 30u)) {
		gen_policy(&gen, &pol);
		/* the same selector in another tunnel, or the same tunnel with other host bits */
		if (old && gen_chance(&gen, 40)) {
			pol.sel = old->sel;
			pol.priority = old->priority;
			pol.mark = old->mark;
			pol.mark_mask = old->mark_mask;
			pol.sel.user = mirror->next;
		}
		mirror_add(mirror, pol);
	} else if (what < 70) {
		cr_assert_eq(xspd_spd_remove(mirror->spd, old->index), 0);
	} else {
		pol = *old;
		if (gen_chance(&gen, 50))
			pol.priority = gen_priority(&gen);
		pol.action = gen_chance(&gen, 20) ? XSPD_BLOCK : XSPD_ALLOW;
		cr_assert_eq(xspd_spd_upsert(mirror->spd, &pol), 0);
	}
	if (gen_chance(&gen, 1) && gen_chance(&gen, 20))
		cr_assert_eq(xspd_spd_flush(mirror->spd, gen_below(&gen, 2)), 0);
	if (gen_chance(&gen, 1) && gen_chance(&gen, 40))
		cr_assert_eq(xspd_plane_build(mirror->plane, mirror->spd), 0);
}

static void churn(const char *name, struct xspd_plane_opts opts)
{
	struct xspd_flow flow;

	begin(opts);
	memset(&found, 0, sizeof(found));
	gen_init(&gen, name, 11);
	gen = (struct gen){.state = gen.state,
			   .if_id = 85,
			   .mark = 20,
			   .dev = 5,
			   .sub = 10,
			   .block = 20,
			   .dir = XSPD_OUT,
			   .flow_marks = true};
	gen.devs[0] = gen.devs[1] = gen.devs[2] = 1;
	for (uint32_t step = 0; step < STEPS; step++) {
		change();
		mirror_beat(mirror);
		for (int i = 0; i < 3; i++) {
			gen_flow(&gen, pick(), pick(), &flow);
			compare(&flow);
		}
	}
	printf("%s: %lu flows, %lu with a tunnel, %lu of several, %lu with an uncertain policy\n",
	       name, found.asked, found.named, found.ties, found.tunnels);
	cr_expect_eq(found.wrong, 0);
	cr_expect_eq(mirror->failed, 0);
	cr_expect_gt(found.named, found.asked / 5);
	cr_expect_gt(found.ties, 100);
	cr_expect_gt(found.tunnels, 10);
	mirror_free(mirror);
}

Test(steer, churn)
{
	churn("steer", (struct xspd_plane_opts){.capacity = 16});
}

Test(steer, churn_coarse_and_pruned)
{
	churn("steer, tries",
	      (struct xspd_plane_opts){.capacity = 2048, .prune_at = 2, .coarsen_at = 64});
}

Test(steer, churn_cached)
{
	churn("steer, cached", (struct xspd_plane_opts){.capacity = 256, .cache = 1024});
}
