// SPDX-License-Identifier: GPL-2.0-only
/* The flow cache is exact: whatever it answers, a lookup would have answered just then. */
#include <criterion/criterion.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "lib/casefile.h"
#include "lib/gen.h"
#include "lib/mirror.h"
#include "reason.h"
#include "util.h"

#define POLICIES 300
#define FLOWS	 2048
#define CHANGES	 150
#define WARM	 96 /* flows asked after each change */

static struct mirror *cached, *plain; /* the same policies, with a cache and without */
static uint32_t next_index;

static void begin(uint32_t size)
{
	struct xspd_plane_opts opts = {.capacity = 1024, .lease_ms = 60000, .bench = true};
	cpu_set_t set;

	/* each CPU remembers what it was asked itself */
	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	cr_assert_eq(sched_setaffinity(0, sizeof(set), &set), 0);
	next_index = 1;
	cr_assert_eq(mirror_new(&plain, 0, &opts), 0, "needs root");
	opts.cache = size;
	cr_assert_eq(mirror_new(&cached, 0, &opts), 0);
}

static void end(void)
{
	cr_expect_eq(cached->failed, 0);
	cr_expect_eq(plain->failed, 0);
	mirror_free(cached);
	mirror_free(plain);
}

static void upsert(struct xspd_pol pol)
{
	cr_assert_eq(xspd_spd_upsert(cached->spd, &pol), 0);
	cr_assert_eq(xspd_spd_upsert(plain->spd, &pol), 0);
}

/* Return: its index. */
static uint32_t add(const char *words)
{
	struct xspd_pol pol = case_pol(words);

	pol.index = next_index++ << 3 | pol.dir;
	upsert(pol);
	return pol.index;
}

static void take_out(uint32_t index)
{
	cr_assert_eq(xspd_spd_remove(cached->spd, index), 0);
	cr_assert_eq(xspd_spd_remove(plain->spd, index), 0);
}

static uint32_t index_of(const struct mirror *mirror, uint32_t slot)
{
	struct xspd_info info = {};

	if (!slot)
		return 0;
	cr_assert_eq(
		bpf_map_lookup_elem(xspd_plane_map_fd(mirror->plane, "xspd_info"), &slot, &info),
		0);
	return info.index;
}

static void ask(const struct mirror *mirror, const struct xspd_flow *flows, uint32_t count,
		struct xspd_answer *ret)
{
	double ns;

	memset(ret, 0, count * sizeof(*ret));
	cr_assert_eq(xspd_plane_ask(mirror->plane, flows, count, ret, &ns), 0);
}

/* Ask both; return how many answers differ. */
static uint32_t differ(const struct xspd_flow *flows, uint32_t count)
{
	xspd_autofree struct xspd_answer *a = calloc(count, sizeof(*a));
	xspd_autofree struct xspd_answer *b = calloc(count, sizeof(*b));
	uint32_t wrong = 0;

	ask(cached, flows, count, a);
	ask(plain, flows, count, b);
	for (uint32_t i = 0; i < count; i++)
		wrong += a[i].verdict != b[i].verdict || a[i].reason != b[i].reason ||
			 index_of(cached, a[i].slot) != index_of(plain, b[i].slot) ||
			 index_of(cached, a[i].slot2) != index_of(plain, b[i].slot2);
	return wrong;
}

/* --- random policies and flows ---------------------------------------------------- */

static void random_policy(struct gen *gen, uint32_t number, struct xspd_pol *ret)
{
	gen_policy(gen, ret);
	ret->index = number << 3 | ret->dir;
	ret->unmodelled = gen_chance(gen, 3) ? XSPD_UNMODELLED_SEC_CTX : 0;
}

/* Beside the addresses, each flow has some of what answers hang on. */
static void random_flow(struct gen *gen, const struct xspd_pol *pols, struct xspd_flow *ret)
{
	const struct xspd_pol *pol = &pols[gen_below(gen, POLICIES)];

	gen_flow(gen, pol, pol, ret);
	ret->dir = pol->dir;
	if (gen_chance(gen, 30))
		ret->unknown = gen_below(gen, 8);
	if (gen_chance(gen, 20))
		ret->if_id = pol->if_id ^ gen_below(gen, 2);
}

static struct gen generator(const char *name)
{
	struct gen gen;

	gen_init(&gen, name, 4711);
	gen.devs[1] = 2;
	gen.devs[2] = 3;
	gen.sub = gen.dev = gen.if_id = 15;
	gen.mark = 25;
	gen.block = 30;
	gen.dir = -1;
	gen.flow_marks = true;
	return gen;
}

static void random_set(struct gen *gen, struct xspd_pol *pols)
{
	for (uint32_t i = 0; i < POLICIES; i++) {
		random_policy(gen, i + 1, &pols[i]);
		upsert(pols[i]);
	}
}

static uint32_t answered(const struct xspd_flow *flows, uint32_t count, enum xspd_reason reason)
{
	xspd_autofree struct xspd_answer *answers = calloc(count, sizeof(*answers));
	uint32_t found = 0;

	ask(plain, flows, count, answers);
	for (uint32_t i = 0; i < count; i++)
		found += answers[i].reason == reason;
	return found;
}

Test(cache, random_flows)
{
	static const uint32_t sizes[] = {1, 64, 2048};
	static const enum xspd_reason wanted[] = {
		XSPD_R_BYPASS,	     XSPD_R_PROTECT,	   XSPD_R_BLOCK,      XSPD_R_NO_POLICY,
		XSPD_R_UNKNOWN_MARK, XSPD_R_UNKNOWN_PORTS, XSPD_R_UNMODELLED,
	};
	static struct xspd_pol pols[POLICIES];
	static struct xspd_flow flows[FLOWS];

	for (size_t i = 0; i < XSPD_ARRAY_SIZE(sizes); i++) {
		struct gen gen = generator("cache.random_flows");
		uint32_t pool = sizes[i] < 64 ? 3 : sizes[i]; /* flows that recur */

		begin(sizes[i]);
		random_set(&gen, pols);
		for (uint32_t k = 0; k < FLOWS; k++)
			if (k < pool)
				random_flow(&gen, pols, &flows[k]);
			else
				flows[k] = flows[gen_below(&gen, pool)];
		for (int round = 0; round < 3; round++)
			cr_expect_eq(differ(flows, FLOWS), 0, "size %u", sizes[i]);
		cr_expect_gt(mirror_hits(cached), FLOWS / 8, "size %u: only %lu hits", sizes[i],
			     mirror_hits(cached));
		if (pool == FLOWS)
			for (size_t k = 0; k < XSPD_ARRAY_SIZE(wanted); k++)
				cr_expect_gt(answered(flows, FLOWS, wanted[k]), 0, "never %s",
					     xspd_reason_name(wanted[k]));
		end();
	}
}

Test(cache, after_each_change)
{
	struct gen gen = generator("cache.after_each_change");
	static struct xspd_pol pols[POLICIES];
	static struct xspd_flow flows[WARM];
	uint64_t before;
	uint32_t number = POLICIES;

	begin(4096);
	random_set(&gen, pols);
	for (uint32_t i = 0; i < WARM; i++)
		random_flow(&gen, pols, &flows[i]);
	for (uint32_t i = 0; i < CHANGES; i++) {
		struct xspd_pol *pol = &pols[gen_below(&gen, POLICIES)];

		before = mirror_hits(cached);
		cr_assert_eq(differ(flows, WARM), 0, "change %u, warm", i);
		cr_assert_eq(differ(flows, WARM), 0, "change %u, cached", i);
		cr_assert_gt(mirror_hits(cached) - before, WARM / 2, "nothing was cached");
		if (gen_chance(&gen, 50)) {
			take_out(pol->index);
			random_policy(&gen, ++number, pol);
		} else {
			pol->priority = gen_priority(&gen);
			pol->action ^= 1;
		}
		upsert(*pol);
		cr_assert_eq(differ(flows, WARM), 0, "after change %u", i);
	}
	end();
}

/* --- one entry, and flows that differ in one field --------------------------------- */

#define V4  "dir out src 10.1.0.1 dst 10.2.0.1 "
#define V6  "dir out src 2001:db8:1::1 dst 2001:db8:2::1 "
#define UDP "proto udp sport 1000 dport 53 "

static const struct field_row {
	const char *pol, *flow, *other;
} fields[] = {
	{"dir out src 10.1.0.1/32 dst 0.0.0.0/0", V4 UDP, "dir out src 10.1.0.2 dst 10.2.0.1 " UDP},
	{"dir out src 0.0.0.0/0 dst 10.2.0.1/32", V4 UDP, "dir out src 10.1.0.1 dst 10.2.0.2 " UDP},
	{"dir out src 10.1.0.1/32 dst 10.2.0.1/32", V4 UDP,
	 "dir out src 10.2.0.1 dst 10.1.0.1 " UDP},
	{"dir out src 0.0.0.0/0 dst 0.0.0.0/0 dport 53", V4 UDP,
	 V4 "proto udp sport 1000 dport 54"},
	{"dir out src 0.0.0.0/0 dst 0.0.0.0/0 sport 1000", V4 UDP,
	 V4 "proto udp sport 53 dport 1000"},
	{"dir out src 0.0.0.0/0 dst 0.0.0.0/0 proto udp", V4 UDP,
	 V4 "proto tcp sport 1000 dport 53"},
	{"dir out src 0.0.0.0/0 dst 0.0.0.0/0 mark 0x5/0xff", V4 UDP "mark 0x5", V4 UDP "mark 0x6"},
	{"dir out src 0.0.0.0/0 dst 0.0.0.0/0 if_id 7", V4 UDP "if_id 7", V4 UDP},
	{"dir out src 0.0.0.0/0 dst 0.0.0.0/0 dev lo", V4 UDP "dev lo", V4 UDP},
	{"dir out src 0.0.0.0/0 dst 0.0.0.0/0", V4 UDP, "dir fwd src 10.1.0.1 dst 10.2.0.1 " UDP},
	{"dir in src 0.0.0.0/0 dst 0.0.0.0/0", "dir in src 10.1.0.1 dst 10.2.0.1 " UDP, V4 UDP},
	{"dir out src 2001:db8:1::1/128 dst ::/0", V6 UDP,
	 "dir out src 2001:db8:1::2 dst 2001:db8:2::1 " UDP},
	{"dir out src 2001:db8:1::/48 dst ::/0", V6 UDP,
	 "dir out src 2001:db8:2::1 dst 2001:db8:2::1 " UDP},
	{"dir out src ::/0 dst 2001:db8:2::1/128", V6 UDP,
	 "dir out src 2001:db8:1::1 dst 2001:db8:2::2 " UDP},
	{"dir out src ::/0 dst 2001:db8:2::/48", V6 UDP,
	 "dir out src 2001:db8:1::1 dst 2001:db8:1::1 " UDP},
	{"dir out src ::/0 dst ::/0 dport 53", V6 UDP, V6 "proto udp sport 1000 dport 54"},
	{"dir out src ::/0 dst ::/0 sport 1000", V6 UDP, V6 "proto udp sport 53 dport 1000"},
	{"dir out src ::/0 dst ::/0 proto udp", V6 UDP, V6 "proto tcp sport 1000 dport 53"},
	{"dir out src ::/0 dst ::/0 mark 0x5/0xff", V6 UDP "mark 0x5", V6 UDP "mark 0x6"},
	{"dir out src ::/0 dst ::/0 if_id 7", V6 UDP "if_id 7", V6 UDP},
	{"dir out src ::/0 dst ::/0 dev lo", V6 UDP "dev lo", V6 UDP},
	{"dir out src ::/0 dst ::/0", V6 UDP, "dir fwd src 2001:db8:1::1 dst 2001:db8:2::1 " UDP},
};

/* First one, again, then the other where the first is remembered, and back. */
static void expect_apart(const struct xspd_flow *flow, const struct xspd_flow *other,
			 const char *what)
{
	struct xspd_flow flows[8] = {*flow, *flow, *other, *other, *flow, *other, *flow, *flow};
	struct xspd_answer answers[8];

	ask(plain, flows, 8, answers);
	cr_assert_neq(answers[0].reason, answers[2].reason, "%s: the answers do not tell", what);
	cr_expect_eq(differ(flows, 8), 0, "%s", what);
	cr_expect_eq(differ(flows, 8), 0, "%s", what);
}

Test(cache, collisions)
{
	uint64_t before;

	begin(1);
	for (size_t i = 0; i < XSPD_ARRAY_SIZE(fields); i++) {
		struct xspd_flow flow = case_flow(fields[i].flow);
		struct xspd_flow other = case_flow(fields[i].other);
		char words[160];
		uint32_t index;

		before = mirror_hits(cached);
		snprintf(words, sizeof(words), "%s priority 1 action block", fields[i].pol);
		index = add(words);
		expect_apart(&flow, &other, fields[i].pol);
		cr_expect_gt(mirror_hits(cached), before, "%s", fields[i].pol);
		take_out(index);
	}
	end();
}

/* What is not known of a packet is a part of the question. */
Test(cache, unknown_fields)
{
	static const struct {
		const char *pol;
		uint32_t unknown;
	} rows[] = {
		{"mark 0x5/0xff", XSPD_UNKNOWN_MARK},
		{"dev lo", XSPD_UNKNOWN_OIF},
		{"dport 53", XSPD_UNKNOWN_PORTS},
	};
	char words[160];
	uint32_t index;

	begin(1);
	for (int v6 = 0; v6 < 2; v6++) {
		for (size_t i = 0; i < XSPD_ARRAY_SIZE(rows); i++) {
			struct xspd_flow flow = case_flow(v6 ? V6 UDP : V4 UDP), other = flow;

			snprintf(words, sizeof(words),
				 "dir out src %s dst %s %s priority 1 action block",
				 v6 ? "::/0" : "0.0.0.0/0", v6 ? "::/0" : "0.0.0.0/0", rows[i].pol);
			index = add(words);
			other.unknown = rows[i].unknown;
			expect_apart(&flow, &other, words);
			take_out(index);
		}
	}
	end();
}

/* --- what makes every answer DEFER goes before the cache --------------------------- */

static enum xspd_reason reason_now(const struct xspd_flow *flow)
{
	struct xspd_answer answer;

	ask(cached, flow, 1, &answer);
	return answer.reason;
}

Test(cache, doubt_lease_and_defaults)
{
	struct xspd_flow flow = case_flow(V4 UDP);

	begin(64);
	cr_expect_eq(reason_now(&flow), XSPD_R_NO_POLICY);
	cr_expect_eq(reason_now(&flow), XSPD_R_NO_POLICY);
	cr_expect_eq(mirror_hits(cached), 1);
	xspd_plane_doubt(cached->plane, XSPD_DOUBT_LOST_EVENTS, 0);
	cr_expect_eq(reason_now(&flow), XSPD_R_DOUBT);
	xspd_plane_doubt(cached->plane, 0, XSPD_DOUBT_LOST_EVENTS);
	cr_expect_eq(reason_now(&flow), XSPD_R_NO_POLICY);
	cr_assert_eq(xspd_spd_set_defaults(cached->spd, 1u << XSPD_OUT), 0);
	cr_expect_eq(reason_now(&flow), XSPD_R_DEFAULT_BLOCK);
	cr_expect_eq(reason_now(&flow), XSPD_R_DEFAULT_BLOCK);
	cr_assert_eq(xspd_spd_set_defaults(cached->spd, 0), 0);
	cr_expect_eq(reason_now(&flow), XSPD_R_NO_POLICY);
	xspd_plane_conf(cached->plane)->lease_until = 1;
	cr_expect_eq(reason_now(&flow), XSPD_R_LEASE);
	end();
}

/* A tie that only the kernel can decide stays one when it is remembered. */
Test(cache, ties)
{
	struct xspd_pol pol = case_pol("dir out src 10.0.0.0/8 dst 0.0.0.0/0 priority 1");
	struct xspd_flow flow = case_flow(V4 UDP);

	begin(64);
	for (uint32_t i = 1; i < 3; i++) {
		pol.index = i << 3 | XSPD_OUT;
		pol.tie = true;
		pol.action = i & 1;
		pol.sel.prefixlen_s = 8 * i;
		upsert(pol);
	}
	for (int i = 0; i < 3; i++)
		cr_expect_eq(differ(&flow, 1), 0);
	cr_expect_eq(mirror_hits(cached), 2);
	end();
}
