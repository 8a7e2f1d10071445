// SPDX-License-Identifier: GPL-2.0-only
/* The classifier, asked through BPF_PROG_TEST_RUN about hand-made SPDs. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/casefile.h"
#include "lib/mirror.h"
#include "reason.h"
#include "util.h"

static struct mirror *mirror;

static void begin(const struct xspd_plane_opts *opts)
{
	struct xspd_plane_opts none = {.capacity = 256, .lease_ms = 60000};

	cr_assert_eq(mirror_new(&mirror, 0, opts ? opts : &none), 0, "needs root");
	mirror->spd->old_order = false; /* whatever kernel this is */
}

static uint32_t add(const char *words)
{
	return mirror_add(mirror, case_pol(words));
}

static struct xspd_answer ask_flow(struct xspd_flow flow)
{
	struct xspd_answer answer = {};

	cr_assert_eq(xspd_plane_query(mirror->plane, &flow, &answer), 0);
	return answer;
}

static struct xspd_answer ask(const char *words)
{
	return ask_flow(case_flow(words));
}

#define expect(answer, name, why) expect_at(__LINE__, answer, name, why)

static void expect_at(int line, struct xspd_answer answer, uint32_t index, enum xspd_reason reason)
{
	cr_expect_eq(answer.reason, reason, "line %d: %s, not %s", line,
		     xspd_reason_name(answer.reason), xspd_reason_name(reason));
	cr_expect_eq(answer.index, index, "line %d: index %u, not %u", line, answer.index, index);
	cr_expect_eq(answer.verdict == XSPD_DEFER, reason >= XSPD_R_SHORT, "line %d", line);
}

/* --- selectors ----------------------------------------------------------------- */

/* One policy, a flow that it matches, and one that differs in a single field. */
static const struct selector_row {
	const char *pol, *hit, *miss;
} selectors[] = {
#define V4  "dir out src 10.1.0.0/16 dst 10.2.0.0/16 priority 1 action block"
#define V6  "dir out src 2001:db8:1::/48 dst 2001:db8:2::/48 priority 1 action block"
#define F4  "dir out src 10.1.0.1 dst 10.2.0.1 "
#define F6  "dir out src 2001:db8:1::1 dst 2001:db8:2::1 "
#define UDP "proto udp sport 1000 dport 53"
	{V4, F4 UDP, "dir in src 10.1.0.1 dst 10.2.0.1 " UDP},
	{V4, F4 UDP, "dir fwd src 10.1.0.1 dst 10.2.0.1 " UDP},
	{V4, F4 UDP, "dir out src 10.1.0.1 dst 10.3.0.1 " UDP},
	{V4, F4 UDP, "dir out src 10.0.0.1 dst 10.2.0.1 " UDP},
	{V4, F4 UDP, F4 UDP " if_id 1"},
	{V6, F6 UDP, F4 UDP},
	{V4, F4 UDP, F6 UDP},
	{V4 " if_id 7", F4 UDP " if_id 7", F4 UDP},
	{V6 " if_id 7", F6 UDP " if_id 7", F6 UDP " if_id 6"},
	{V4 " proto udp", F4 UDP, F4 "proto tcp sport 1000 dport 53"},
	{V4 " proto 50", F4 "proto 50", F4 "proto 51"},
	{V4 " dport 53", F4 UDP, F4 "proto udp sport 1000 dport 54"},
	{V4 " sport 1000", F4 UDP, F4 "proto udp sport 1001 dport 53"},
	{V4 " sport 0", F4 "proto udp sport 0 dport 53", F4 UDP},
	{V4 " dport 52/0xfffe", F4 UDP, F4 "proto udp sport 1000 dport 54"},
	{V4 " dport 0x30/0x0f0f", F4 "proto udp sport 1 dport 0xf0f0",
	 F4 "proto udp sport 1 dport 0xf1f0"},
	{V4 " sport 0x8000/0x8001", F4 "proto tcp sport 0x8002 dport 1",
	 F4 "proto tcp sport 0x8003 dport 1"},
	{V6 " proto udp sport 1000 dport 53", F6 UDP, F6 "proto udp sport 53 dport 1000"},
	{V4 " proto icmp sport 8 dport 0", F4 "proto icmp sport 8 dport 0",
	 F4 "proto icmp sport 8 dport 1"},
	{V4 " proto gre sport 0x1234 dport 0x5678", F4 "proto gre sport 0x1234 dport 0x5678",
	 F4 "proto gre sport 0x5678 dport 0x1234"},
	{V4 " mark 0x5/0xff", F4 UDP " mark 0x105", F4 UDP " mark 0x104"},
	{V6 " mark 0x5/0xff", F6 UDP " mark 0x105", F6 UDP " mark 0x104"},
	{V6 " mark 0x80000000/0x80000000", F6 UDP " mark 0xffffffff", F6 UDP " mark 0x7fffffff"},
	{V4 " mark 0x0/0xf0", F4 UDP " mark 0xf", F4 UDP " mark 0x10"},
	{V4 " dev lo", F4 UDP " dev lo", F4 UDP},
	{V6 " dev lo", F6 UDP " dev lo", F6 UDP},
	{"dir in src ::/0 dst ::/0 dev lo priority 1 action block", "dir in src ::1 dst ::2 " UDP,
	 "dir fwd src ::1 dst ::2 " UDP " dev lo"},
	{"dir out src 10.1.0.1/32 dst 0.0.0.0/0 priority 1 action block", F4 UDP,
	 "dir out src 10.1.0.2 dst 10.2.0.1 " UDP},
	{"dir out src 0.0.0.0/0 dst 10.2.0.1/31 priority 1 action block",
	 "dir out src 1.2.3.4 dst 10.2.0.0 " UDP, "dir out src 1.2.3.4 dst 10.2.0.2 " UDP},
	{"dir out src 128.0.0.0/1 dst 0.0.0.0/0 priority 1 action block",
	 "dir out src 255.2.3.4 dst 10.2.0.0 " UDP,
	 "dir out src 127.255.255.255 dst 10.2.0.0 " UDP},
	{"dir out src 2001:db8:1::1/128 dst 2001:db8:2::/127 priority 1 action block", F6 UDP,
	 "dir out src 2001:db8:1::1 dst 2001:db8:2::2 " UDP},
	{"dir out src ::/0 dst 2001:db8:2:0:8000::/65 priority 1 action block",
	 "dir out src ::1 dst 2001:db8:2:0:8000::1 " UDP,
	 "dir out src ::1 dst 2001:db8:2:0:7fff::1 " UDP},
	{"dir out src 8000::/1 dst ::/0 priority 1 action block",
	 "dir out src ffff::1 dst ::1 " UDP, "dir out src 7fff::1 dst ::1 " UDP},
	/* host bits are no part of the match */
	{"dir out src 10.1.3.7/16 dst 10.2.255.255/16 priority 1 action block", F4 UDP,
	 "dir out src 10.1.0.1 dst 10.3.255.255 " UDP},
	{"dir out src 10.1.0.0/16 dst 10.2.0.0/16 sport 0x1234/0xff00 priority 1 action block",
	 F4 "proto tcp sport 0x12ff dport 1", F4 "proto tcp sport 0x1334 dport 1"},
};

Test(classify, selectors)
{
	begin(NULL);
	for (size_t i = 0; i < XSPD_ARRAY_SIZE(selectors); i++) {
		const struct selector_row *row = &selectors[i];
		uint32_t index = add(row->pol);

		cr_expect_eq(ask(row->hit).index, index, "%s does not match %s", row->pol,
			     row->hit);
		cr_expect_eq(ask(row->miss).reason, XSPD_R_NO_POLICY, "%s matches %s", row->pol,
			     row->miss);
		cr_assert_eq(xspd_spd_remove(mirror->spd, index), 0);
		expect(ask(row->hit), 0, XSPD_R_NO_POLICY);
	}
	mirror_free(mirror);
}

/* --- who wins -------------------------------------------------------------------- */

Test(classify, priority_then_age)
{
	uint32_t older, better;

	begin(NULL);
	older = add("dir out src 10.0.0.0/8 dst 0.0.0.0/0 priority 100 action allow tmpl reqid 1");
	add("dir out src 10.1.0.1/32 dst 10.2.0.1/32 priority 100 action block");
	add("dir out src 0.0.0.0/0 dst 0.0.0.0/0 priority 101 action block");
	expect(ask(F4 UDP), older, XSPD_R_PROTECT);
	better = add("dir out src 0.0.0.0/0 dst 10.2.0.0/16 priority 99 action allow");
	expect(ask(F4 UDP), better, XSPD_R_BYPASS);
	expect(ask("dir out src 10.1.0.1 dst 10.3.0.1 " UDP), older, XSPD_R_PROTECT);
	mirror_free(mirror);
}

Test(classify, ends_of_the_scales)
{
	uint32_t last, first;

	begin(NULL);
	last = add("dir out src 0.0.0.0/0 dst 0.0.0.0/0 priority 0xffffffff action block");
	add("dir out src 0.0.0.0/0 dst 0.0.0.0/0 proto udp priority 0xffffffff action allow");
	expect(ask(F4 UDP), last, XSPD_R_BLOCK);
	first = add("dir out src 10.0.0.0/8 dst 0.0.0.0/0 priority 0 action allow tmpl reqid 1");
	add("dir out src 0.0.0.0/0 dst 0.0.0.0/0 dport 53 priority 0 action block");
	expect(ask(F4 UDP), first, XSPD_R_PROTECT);
	mirror_free(mirror);
}

Test(classify, updates)
{
	struct xspd_pol pol = case_pol(V4);
	uint32_t first, second;

	begin(NULL);
	first = mirror_add(mirror, pol);
	second = add("dir out src 10.1.0.0/16 dst 10.2.0.0/16 proto udp priority 2 action allow");
	expect(ask(F4 UDP), first, XSPD_R_BLOCK);
	pol.index = first;
	pol.priority = 3;
	cr_assert_eq(xspd_spd_upsert(mirror->spd, &pol), 0);
	expect(ask(F4 UDP), second, XSPD_R_BYPASS);
	pol.priority = 2; /* as the younger of the two */
	cr_assert_eq(xspd_spd_upsert(mirror->spd, &pol), 0);
	expect(ask(F4 UDP), second, XSPD_R_BYPASS);
	pol.priority = 1;
	pol.action = XSPD_ALLOW;
	pol.tmpl = (struct xspd_tmpl){.count = 1, .required = 1, .reqid = 5};
	cr_assert_eq(xspd_spd_upsert(mirror->spd, &pol), 0);
	expect(ask(F4 UDP), first, XSPD_R_PROTECT);
	mirror_free(mirror);
}

/* Updated at its priority: nobody knows its place, but only where that matters. */
Test(classify, ties)
{
	struct xspd_pol pol = case_pol(V4);
	uint32_t first, third;

	begin(NULL);
	first = mirror_add(mirror, pol);
	add("dir out src 10.0.0.0/8 dst 10.2.0.0/16 proto udp priority 1 action allow");
	expect(ask(F4 UDP), first, XSPD_R_BLOCK);
	pol.index = first;
	cr_assert_eq(xspd_spd_upsert(mirror->spd, &pol), 0);
	expect(ask(F4 UDP), 0, XSPD_R_TIE);
	expect(ask(F4 "proto tcp sport 1000 dport 53"), first, XSPD_R_BLOCK);
	expect(ask("dir out src 10.9.0.1 dst 10.2.0.1 " UDP), first + 8, XSPD_R_BYPASS);
	third = add("dir out src 0.0.0.0/0 dst 10.2.0.0/16 dport 53 priority 0 action block");
	expect(ask(F4 UDP), third, XSPD_R_BLOCK);
	expect(ask(F4 "proto udp sport 1000 dport 54"), 0, XSPD_R_TIE);
	cr_assert_eq(xspd_spd_remove(mirror->spd, first + 8), 0);
	expect(ask(F4 "proto udp sport 1000 dport 54"), first, XSPD_R_BLOCK);
	mirror_free(mirror);
}

Test(classify, unmodelled)
{
	struct xspd_pol pol =
		case_pol("dir out src 10.1.0.0/16 dst 10.2.0.0/16 priority 500 action allow");
	uint32_t other;

	begin(NULL);
	other = add("dir out src 10.0.0.0/8 dst 10.0.0.0/8 priority 1 action block");
	pol.unmodelled = XSPD_UNMODELLED_OFFLOAD;
	mirror_add(mirror, pol);
	expect(ask(F4 UDP), 0, XSPD_R_UNMODELLED);
	expect(ask("dir out src 10.1.0.1 dst 10.3.0.1 " UDP), other, XSPD_R_BLOCK);
	mirror_free(mirror);
}

/* --- what is not known ------------------------------------------------------------- */

static struct xspd_answer ask_unknown(const char *words, uint32_t unknown)
{
	struct xspd_flow flow = case_flow(words);

	flow.unknown = unknown;
	return ask_flow(flow);
}

Test(classify, unknown_fields)
{
	static const struct {
		const char *pol;
		uint32_t bit;
		enum xspd_reason reason;
	} rows[] = {
		{V4 " mark 0x1/0xff", XSPD_UNKNOWN_MARK, XSPD_R_UNKNOWN_MARK},
		{V4 " dev lo", XSPD_UNKNOWN_OIF, XSPD_R_UNKNOWN_OIF},
		{V4 " dport 99", XSPD_UNKNOWN_PORTS, XSPD_R_UNKNOWN_PORTS},
		{V4 " sport 9/0x1", XSPD_UNKNOWN_PORTS, XSPD_R_UNKNOWN_PORTS},
		{V6 " mark 0x1/0xff", XSPD_UNKNOWN_MARK, XSPD_R_UNKNOWN_MARK},
		{V6 " dport 99", XSPD_UNKNOWN_PORTS, XSPD_R_UNKNOWN_PORTS},
	};
	uint32_t index, best;

	for (size_t i = 0; i < XSPD_ARRAY_SIZE(rows); i++) {
		bool v6 = strchr(rows[i].pol, ':');
		const char *flow = v6 ? F6 UDP : F4 UDP;

		begin(NULL);
		index = add(rows[i].pol);
		/* another unknown field is of no concern */
		expect(ask_unknown(flow, 7 & ~rows[i].bit), 0, XSPD_R_NO_POLICY);
		expect(ask_unknown(flow, rows[i].bit), 0, rows[i].reason);
		expect(ask_unknown("dir out src 9.9.9.9 dst 9.9.9.9 proto udp", 7), 0,
		       v6 ? XSPD_R_NO_POLICY : rows[i].reason);
		/* nor is a policy that could not win anyway */
		best = add(v6 ? "dir out src ::/0 dst ::/0 priority 0 action block"
			      : "dir out src 0.0.0.0/0 dst 0.0.0.0/0 priority 0 action block");
		expect(ask_unknown(flow, 7), best, XSPD_R_BLOCK);
		cr_expect_neq(index, best);
		mirror_free(mirror);
	}
}

Test(classify, lease)
{
	uint32_t index;

	begin(NULL);
	index = add(V4);
	expect(ask(F4 UDP), index, XSPD_R_BLOCK);
	xspd_plane_conf(mirror->plane)->lease_until = xspd_now(CLOCK_MONOTONIC) - 100000000;
	expect(ask(F4 UDP), 0, XSPD_R_LEASE);
	mirror_beat(mirror);
	expect(ask(F4 UDP), index, XSPD_R_BLOCK);
	mirror_free(mirror);
}

Test(classify, doubt)
{
	uint32_t index;

	begin(NULL);
	index = add(V4);
	for (uint32_t bit = 1; bit <= XSPD_DOUBT_STOPPED; bit <<= 1) {
		xspd_plane_doubt(mirror->plane, bit, 0);
		expect(ask(F4 UDP), 0, XSPD_R_DOUBT);
		expect(ask("dir in src 9.9.9.9 dst 9.9.9.9 proto udp"), 0, XSPD_R_DOUBT);
		xspd_plane_doubt(mirror->plane, 0, bit);
		expect(ask(F4 UDP), index, XSPD_R_BLOCK);
	}
	xspd_plane_doubt(mirror->plane, XSPD_DOUBT_LOST_EVENTS | XSPD_DOUBT_DUMPING, 0);
	xspd_plane_doubt(mirror->plane, 0, XSPD_DOUBT_DUMPING);
	expect(ask(F4 UDP), 0, XSPD_R_DOUBT);
	/* survives a swap */
	cr_assert_eq(xspd_plane_build(mirror->plane, mirror->spd), 0);
	expect(ask(F4 UDP), 0, XSPD_R_DOUBT);
	xspd_plane_doubt(mirror->plane, 0, XSPD_DOUBT_LOST_EVENTS);
	expect(ask(F4 UDP), index, XSPD_R_BLOCK);
	mirror_free(mirror);
}

Test(classify, no_answer_before_the_start)
{
	struct xspd_plane_opts opts = {.capacity = 64};
	struct xspd_flow flow = case_flow(F4 UDP);
	struct xspd_answer answer = {};
	struct xspd_plane *plane;

	cr_assert_eq(xspd_plane_new(&plane, &opts), 0, "needs root");
	cr_assert_eq(xspd_plane_query(plane, &flow, &answer), 0);
	expect(answer, 0, XSPD_R_DOUBT);
	xspd_plane_free(plane);
}

Test(classify, defaults)
{
	static const char *const flows[] = {"dir in src 10.1.0.1 dst 10.2.0.1 " UDP, F4 UDP,
					    "dir fwd src ::1 dst ::2 " UDP};
	uint32_t index;

	begin(NULL);
	for (uint32_t set = 0; set < 8; set++) {
		cr_assert_eq(xspd_spd_set_defaults(mirror->spd, set), 0);
		for (int dir = 0; dir < 3; dir++)
			expect(ask(flows[dir]), 0,
			       set & 1u << dir ? XSPD_R_DEFAULT_BLOCK : XSPD_R_NO_POLICY);
	}
	index = add("dir out src 0.0.0.0/0 dst 0.0.0.0/0 priority 9 action allow");
	expect(ask(F4 UDP), index, XSPD_R_BYPASS);
	mirror_free(mirror);
}
