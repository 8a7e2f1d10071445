// SPDX-License-Identifier: GPL-2.0-only
#include "spd_pol.h"

enum { BYPASS, PROTECT, OPTIONAL, BLOCK };

/* An any-any policy that says @what. */
static struct xspd_pol pol(uint32_t n, enum xspd_dir dir, uint32_t priority, int what)
{
	struct xspd_pol pol = pol_any(n, priority);

	pol.dir = dir;
	pol.index = INDEX(n, dir);
	pol.action = what == BLOCK;
	pol.tmpl = (struct xspd_tmpl){};
	if (what == PROTECT || what == OPTIONAL)
		pol.tmpl = (struct xspd_tmpl){.proto = 50, .count = 1};
	pol.tmpl.required = what == PROTECT;
	return pol;
}

static struct xspd_pol sub(uint32_t n, enum xspd_dir dir, uint32_t priority, int what)
{
	struct xspd_pol ret = pol(n, dir, priority, what);

	ret.type = XSPD_SUB;
	return ret;
}

static struct xspd_flow flow_dir(enum xspd_dir dir)
{
	struct xspd_flow flow = flow_make("10.0.0.1", "10.0.0.2");

	flow.dir = dir;
	return flow;
}

/* @n and @n2: numbers of pol and pol2, 0 = none */
static void expect(struct xspd_spd *spd, const struct xspd_flow *flow, uint32_t n, uint32_t n2,
		   enum xspd_verdict verdict, enum xspd_reason reason, int line)
{
	struct xspd_ref ref;

	xspd_spd_lookup(spd, flow, &ref);
	cr_expect_eq(ref.verdict, verdict, "line %d: verdict %u", line, ref.verdict);
	cr_expect_eq(ref.reason, reason, "line %d: reason %u", line, ref.reason);
	cr_expect_eq(ref.pol ? ref.pol->index >> 3 : 0, n, "line %d: wrong policy", line);
	cr_expect_eq(ref.pol2 ? ref.pol2->index >> 3 : 0, n2, "line %d: wrong second", line);
}
#define expect(spd, flow, n, n2, verdict, reason)                                                  \
	expect(spd, flow, n, n2, XSPD_##verdict, XSPD_R_##reason, __LINE__)

Test(spd_lookup, in_the_old_order_the_prefixes_decide)
{
	struct xspd_spd *spd = xspd_spd_new();
	struct xspd_pol pair = pol(1, XSPD_OUT, 10, BLOCK), late = pol(2, XSPD_OUT, 10, BYPASS);
	struct xspd_pol other = pol(3, XSPD_OUT, 10, BYPASS), first = pol(4, XSPD_OUT, 5, BYPASS);
	struct xspd_flow flow = flow_dir(XSPD_OUT);

	spd->old_order = true;
	pair.sel.prefixlen_d = late.sel.prefixlen_d = 32;
	pair.sel.daddr.a4 = late.sel.daddr.a4 = htonl(0x0a000001);
	xspd_spd_upsert(spd, &pair);
	xspd_spd_upsert(spd, &late);
	expect(spd, &flow, 1, 0, DENY, BLOCK);
	xspd_spd_upsert(spd, &other);
	expect(spd, &flow, 0, 0, DEFER, TIE);
	xspd_spd_upsert(spd, &first);
	expect(spd, &flow, 4, 0, PLAIN, BYPASS);
	xspd_spd_remove(spd, first.index);
	xspd_spd_remove(spd, pair.index);
	expect(spd, &flow, 0, 0, DEFER, TIE);
	xspd_spd_remove(spd, late.index);
	expect(spd, &flow, 3, 0, PLAIN, BYPASS);
	xspd_spd_free(spd);
}

Test(spd_lookup, verdict_of_one_policy)
{
	static const struct {
		enum xspd_dir dir;
		int what;
		enum xspd_verdict verdict;
		enum xspd_reason reason;
	} rows[] = {
		{XSPD_OUT, BYPASS, XSPD_PLAIN, XSPD_R_BYPASS},
		{XSPD_OUT, PROTECT, XSPD_PROTECT, XSPD_R_PROTECT},
		{XSPD_OUT, OPTIONAL, XSPD_PROTECT, XSPD_R_PROTECT},
		{XSPD_OUT, BLOCK, XSPD_DENY, XSPD_R_BLOCK},
		{XSPD_IN, OPTIONAL, XSPD_PLAIN, XSPD_R_BYPASS},
		{XSPD_IN, PROTECT, XSPD_PROTECT, XSPD_R_PROTECT},
		{XSPD_FWD, OPTIONAL, XSPD_PLAIN, XSPD_R_BYPASS},
		{XSPD_FWD, BLOCK, XSPD_DENY, XSPD_R_BLOCK},
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct xspd_spd *spd = spd_watching(NULL);
		struct xspd_flow flow = flow_dir(rows[i].dir);
		struct xspd_ref ref;

		upsert(spd, pol(1, rows[i].dir, 10, rows[i].what));
		xspd_spd_lookup(spd, &flow, &ref);
		cr_expect_eq(ref.verdict, rows[i].verdict, "row %zu", i);
		cr_expect_eq(ref.reason, rows[i].reason, "row %zu", i);
		cr_expect_not_null(ref.pol, "row %zu", i);
		xspd_spd_free(spd);
	}
}

Test(spd_lookup, defaults_are_per_direction)
{
	struct xspd_spd *spd = spd_watching(NULL);
	struct xspd_flow in = flow_dir(XSPD_IN), fwd = flow_dir(XSPD_FWD);

	expect(spd, &in, 0, 0, PLAIN, NO_POLICY);
	cr_assert_eq(xspd_spd_set_defaults(spd, 1 << XSPD_FWD), 0);
	expect(spd, &in, 0, 0, PLAIN, NO_POLICY);
	expect(spd, &fwd, 0, 0, DENY, DEFAULT_BLOCK);
	upsert(spd, pol(1, XSPD_FWD, 10, BYPASS));
	expect(spd, &fwd, 1, 0, PLAIN, BYPASS);
	xspd_spd_free(spd);
}

Test(spd_lookup, priority_then_age)
{
	struct xspd_spd *spd = spd_watching(NULL);
	struct xspd_flow flow = flow_dir(XSPD_OUT);

	upsert(spd, pol(1, XSPD_OUT, 20, BLOCK));
	upsert(spd, pol(2, XSPD_OUT, 10, BYPASS));
	upsert(spd, pol(3, XSPD_OUT, 10, BLOCK));
	expect(spd, &flow, 2, 0, PLAIN, BYPASS);
	upsert(spd, pol(4, XSPD_OUT, 0, BLOCK));
	expect(spd, &flow, 4, 0, DENY, BLOCK);
	cr_assert_eq(xspd_spd_remove(spd, INDEX(4, XSPD_OUT)), 0);
	cr_assert_eq(xspd_spd_remove(spd, INDEX(2, XSPD_OUT)), 0);
	expect(spd, &flow, 3, 0, DENY, BLOCK);
	xspd_spd_free(spd);
}

Test(spd_lookup, ties_at_the_winning_priority)
{
	struct xspd_spd *spd = spd_watching(NULL);
	struct xspd_flow flow = flow_dir(XSPD_OUT);
	struct xspd_pol other = pol(4, XSPD_OUT, 10, BLOCK);

	upsert(spd, pol(1, XSPD_OUT, 10, BYPASS));
	upsert(spd, pol(1, XSPD_OUT, 10, BYPASS));
	expect(spd, &flow, 1, 0, PLAIN, BYPASS); /* alone at its priority */
	upsert(spd, pol(2, XSPD_OUT, 20, BLOCK));
	upsert(spd, pol(2, XSPD_OUT, 20, BLOCK));
	expect(spd, &flow, 1, 0, PLAIN, BYPASS); /* others of another priority */
	other.sel.proto = 6;
	upsert(spd, other);
	expect(spd, &flow, 1, 0, PLAIN, BYPASS); /* one that does not match */
	upsert(spd, pol(3, XSPD_OUT, 10, BLOCK));
	expect(spd, &flow, 0, 0, DEFER, TIE);
	upsert(spd, pol(5, XSPD_OUT, 9, BLOCK));
	expect(spd, &flow, 5, 0, DENY, BLOCK); /* a better one decides alone */
	xspd_spd_free(spd);
}

Test(spd_lookup, unknown_mark)
{
	struct xspd_spd *spd = spd_watching(NULL);
	struct xspd_flow flow = flow_dir(XSPD_OUT);
	struct xspd_pol marked = pol(1, XSPD_OUT, 10, BLOCK);

	marked.mark = marked.mark_mask = 1;
	flow.unknown = XSPD_UNKNOWN_MARK;
	upsert(spd, marked);
	expect(spd, &flow, 0, 0, DEFER, UNKNOWN_MARK); /* or none */
	upsert(spd, pol(2, XSPD_OUT, 20, BYPASS));
	expect(spd, &flow, 0, 0, DEFER, UNKNOWN_MARK);
	upsert(spd, pol(3, XSPD_OUT, 5, BYPASS));
	expect(spd, &flow, 3, 0, PLAIN, BYPASS); /* wins anyhow */
	cr_assert_eq(xspd_spd_remove(spd, INDEX(3, XSPD_OUT)), 0);
	flow.unknown = XSPD_UNKNOWN_PORTS | XSPD_UNKNOWN_OIF;
	expect(spd, &flow, 2, 0, PLAIN, BYPASS); /* the mark is known: 0 */
	xspd_spd_free(spd);
}

Test(spd_lookup, unknown_device_and_ports)
{
	struct xspd_spd *spd = spd_watching(NULL);
	struct xspd_flow flow = flow_dir(XSPD_OUT);
	struct xspd_pol dev = pol(1, XSPD_OUT, 10, BLOCK), port = pol(2, XSPD_OUT, 9, BLOCK);

	flow.unknown = XSPD_UNKNOWN_OIF;
	flow.oif = 2; /* a guess that counts for nothing */
	dev.sel.ifindex = 3;
	upsert(spd, dev);
	expect(spd, &flow, 0, 0, DEFER, UNKNOWN_OIF);
	port.sel.dport_mask = 0xffff;
	upsert(spd, port);
	expect(spd, &flow, 2, 0, DENY, BLOCK);
	flow.unknown = XSPD_UNKNOWN_OIF | XSPD_UNKNOWN_PORTS;
	expect(spd, &flow, 0, 0, DEFER, UNKNOWN_PORTS);
	xspd_spd_free(spd);
}

Test(spd_lookup, unknown_field_of_a_possible_tie)
{
	struct xspd_spd *spd = spd_watching(NULL);
	struct xspd_flow flow = flow_dir(XSPD_OUT);
	struct xspd_pol marked = pol(2, XSPD_OUT, 10, BLOCK);

	marked.mark = marked.mark_mask = 1;
	flow.unknown = XSPD_UNKNOWN_MARK;
	upsert(spd, pol(1, XSPD_OUT, 10, BYPASS));
	upsert(spd, marked);
	expect(spd, &flow, 1, 0, PLAIN, BYPASS); /* younger: it loses if it matches */
	upsert(spd, marked);
	expect(spd, &flow, 0, 0, DEFER, UNKNOWN_MARK); /* unless it kept a better place */
	xspd_spd_free(spd);
}

Test(spd_lookup, unmodelled_policies_defer_at_any_priority)
{
	struct xspd_spd *spd = spd_watching(NULL);
	struct xspd_flow flow = flow_dir(XSPD_OUT), in = flow_dir(XSPD_IN);
	struct xspd_pol odd = pol(2, XSPD_OUT, 100, BYPASS);

	odd.unmodelled = XSPD_UNMODELLED_OFFLOAD;
	upsert(spd, pol(1, XSPD_OUT, 10, BYPASS));
	upsert(spd, odd);
	expect(spd, &flow, 0, 0, DEFER, UNMODELLED);
	expect(spd, &in, 0, 0, PLAIN, NO_POLICY);
	odd.sel.proto = 6;
	upsert(spd, odd);
	expect(spd, &flow, 1, 0, PLAIN, BYPASS); /* it does not match */
	odd.sel.proto = 0;
	odd.mark = odd.mark_mask = 1;
	upsert(spd, odd);
	expect(spd, &flow, 1, 0, PLAIN, BYPASS);
	flow.unknown = XSPD_UNKNOWN_MARK;
	expect(spd, &flow, 0, 0, DEFER, UNMODELLED); /* it may */
	xspd_spd_free(spd);
}

Test(spd_lookup, sub_out)
{
	struct xspd_spd *spd = spd_watching(NULL);
	struct xspd_flow flow = flow_dir(XSPD_OUT);

	cr_assert_eq(xspd_spd_set_defaults(spd, 7), 0);
	upsert(spd, sub(1, XSPD_OUT, 99, BYPASS));
	expect(spd, &flow, 1, 0, PLAIN, BYPASS); /* found is found: no default */
	upsert(spd, pol(2, XSPD_OUT, 10, PROTECT));
	expect(spd, &flow, 1, 2, PROTECT, PROTECT);
	upsert(spd, sub(3, XSPD_OUT, 98, PROTECT));
	upsert(spd, pol(2, XSPD_OUT, 10, BLOCK));
	expect(spd, &flow, 3, 2, DENY, BLOCK);
	upsert(spd, sub(4, XSPD_OUT, 97, BLOCK));
	expect(spd, &flow, 4, 0, DENY, BLOCK); /* main is not asked */
	upsert(spd, pol(2, XSPD_OUT, 10, BYPASS));
	upsert(spd, pol(5, XSPD_OUT, 10, BYPASS));
	expect(spd, &flow, 4, 0, DENY, BLOCK); /* so that its tie does not matter */
	cr_assert_eq(xspd_spd_remove(spd, INDEX(4, XSPD_OUT)), 0);
	upsert(spd, pol(2, XSPD_OUT, 10, BYPASS));
	expect(spd, &flow, 0, 0, DEFER, TIE); /* here it does */
	cr_assert_eq(xspd_spd_flush(spd, XSPD_SUB), 0);
	cr_assert_eq(xspd_spd_remove(spd, INDEX(5, XSPD_OUT)), 0);
	expect(spd, &flow, 2, 0, PLAIN, BYPASS);
	xspd_spd_free(spd);
}

Test(spd_lookup, sub_forward_asks_main_in)
{
	struct xspd_spd *spd = spd_watching(NULL);
	struct xspd_flow flow = flow_dir(XSPD_FWD);

	upsert(spd, pol(1, XSPD_FWD, 10, PROTECT));
	upsert(spd, pol(2, XSPD_IN, 10, BLOCK));
	expect(spd, &flow, 1, 0, PROTECT, PROTECT); /* no sub policy: as ever */
	upsert(spd, sub(3, XSPD_FWD, 10, BYPASS));
	expect(spd, &flow, 3, 2, DENY, BLOCK);
	cr_assert_eq(xspd_spd_remove(spd, INDEX(2, XSPD_IN)), 0);
	expect(spd, &flow, 3, 0, PLAIN, BYPASS);
	upsert(spd, pol(4, XSPD_IN, 10, BYPASS));
	upsert(spd, sub(3, XSPD_FWD, 11, BLOCK));
	expect(spd, &flow, 3, 4, DENY, BLOCK); /* asked whatever the action is */
	xspd_spd_free(spd);
}

Test(spd_lookup, sub_in_and_its_doubts)
{
	struct xspd_spd *spd = spd_watching(NULL);
	struct xspd_flow flow = flow_dir(XSPD_IN);
	struct xspd_pol marked = sub(1, XSPD_IN, 10, BYPASS);

	upsert(spd, pol(2, XSPD_IN, 10, PROTECT));
	marked.mark = marked.mark_mask = 1;
	upsert(spd, marked);
	expect(spd, &flow, 2, 0, PROTECT, PROTECT);
	flow.mark = 1;
	expect(spd, &flow, 1, 2, PROTECT, PROTECT);
	flow.unknown = XSPD_UNKNOWN_MARK;
	expect(spd, &flow, 0, 0, DEFER, UNKNOWN_MARK);
	xspd_spd_free(spd);
}

static void expect_matches(struct xspd_spd *spd, const struct xspd_flow *flow, const uint32_t *n,
			   int line)
{
	const struct xspd_pol **pols;
	size_t i, count;

	cr_assert_eq(xspd_spd_matches(spd, flow, &pols, &count), 0);
	for (i = 0; i < count && n[i]; i++)
		cr_expect_eq(pols[i]->index >> 3, n[i], "line %d: [%zu] is %u", line, i,
			     pols[i]->index >> 3);
	cr_expect_eq(n[i], 0, "line %d: too few", line);
	cr_expect_eq(i, count, "line %d: too many", line);
	free(pols);
}
#define expect_matches(spd, flow, ...)                                                             \
	expect_matches(spd, flow, (const uint32_t[]){__VA_ARGS__ __VA_OPT__(, ) 0}, __LINE__)

Test(spd_lookup, matches_are_listed_in_order)
{
	struct xspd_spd *spd = spd_watching(NULL);
	struct xspd_flow out = flow_dir(XSPD_OUT), fwd = flow_dir(XSPD_FWD);
	struct xspd_pol marked = sub(6, XSPD_FWD, 10, BYPASS);
	uint32_t i;

	expect_matches(spd, &out);
	for (i = 20; i < 60; i++) /* more than fits at first, best last */
		upsert(spd, pol(i, XSPD_IN, 1000 - i, BYPASS));
	upsert(spd, pol(1, XSPD_OUT, 20, BLOCK));
	upsert(spd, pol(2, XSPD_OUT, 10, BLOCK));
	upsert(spd, pol(3, XSPD_OUT, 10, BLOCK));
	expect_matches(spd, &out, 2, 3, 1);
	upsert(spd, sub(4, XSPD_OUT, 50, BYPASS));
	expect_matches(spd, &out, 4, 2, 3, 1);
	upsert(spd, sub(4, XSPD_OUT, 49, BLOCK));
	expect_matches(spd, &out, 4); /* main is not asked */

	upsert(spd, pol(5, XSPD_FWD, 10, BYPASS));
	expect_matches(spd, &fwd, 5);
	for (i = 21; i < 60; i++)
		cr_assert_eq(xspd_spd_remove(spd, INDEX(i, XSPD_IN)), 0);
	marked.mark = marked.mark_mask = 1;
	upsert(spd, marked);
	fwd.unknown = XSPD_UNKNOWN_MARK;
	expect_matches(spd, &fwd, 6, 5, 20); /* either direction may be asked */
	fwd.unknown = 0;
	fwd.mark = 1;
	expect_matches(spd, &fwd, 6, 20);
	xspd_spd_free(spd);
}

Test(spd_lookup, matches_of_forty)
{
	struct xspd_spd *spd = spd_watching(NULL);
	struct xspd_flow in = flow_dir(XSPD_IN);
	const struct xspd_pol **pols;
	size_t i, count;

	for (i = 1; i <= 40; i++)
		upsert(spd, pol(i, XSPD_IN, 1000 - i, BYPASS));
	cr_assert_eq(xspd_spd_matches(spd, &in, &pols, &count), 0);
	cr_assert_eq(count, 40);
	for (i = 0; i < count; i++)
		cr_expect_eq(pols[i]->index >> 3, 40 - i);
	free(pols);
	xspd_spd_free(spd);
}
