// SPDX-License-Identifier: GPL-2.0-only
/* One field at a time: what matches, what does not, and what cannot be told. */
#include "spd_pol.h"

struct row {
	const char *name;
	void (*edit)(struct xspd_pol *pol, struct xspd_flow *flow);
	enum xspd_miss miss;
	uint32_t unknown;
};

static void nothing(struct xspd_pol *pol, struct xspd_flow *flow)
{
	(void)pol;
	(void)flow;
}

static void family(struct xspd_pol *pol, struct xspd_flow *flow)
{
	(void)flow;
	pol->sel.family = AF_INET6;
	pol->sel.prefixlen_d = pol->sel.prefixlen_s = 0;
}

static void dir(struct xspd_pol *pol, struct xspd_flow *flow)
{
	(void)flow;
	pol->dir = XSPD_FWD;
}

static void type(struct xspd_pol *pol, struct xspd_flow *flow)
{
	(void)flow;
	pol->type = XSPD_SUB;
}

static void if_id(struct xspd_pol *pol, struct xspd_flow *flow)
{
	(void)pol;
	flow->if_id = 5;
}

static void if_id_pol(struct xspd_pol *pol, struct xspd_flow *flow)
{
	(void)flow;
	pol->if_id = 5;
}

static void mark_fits(struct xspd_pol *pol, struct xspd_flow *flow)
{
	pol->mark = 0x34;
	pol->mark_mask = 0xff;
	flow->mark = 0x1234;
}

static void mark_beyond(struct xspd_pol *pol, struct xspd_flow *flow)
{
	mark_fits(pol, flow);
	pol->mark = 0x134;
}

static void mark_beyond_nothing(struct xspd_pol *pol, struct xspd_flow *flow)
{
	pol->mark = 5;
	flow->mark = 5;
}

static void mark_zero(struct xspd_pol *pol, struct xspd_flow *flow)
{
	pol->mark_mask = 0xff;
	flow->mark = 0x1234;
}

static void mark_unknown(struct xspd_pol *pol, struct xspd_flow *flow)
{
	mark_zero(pol, flow);
	flow->unknown = XSPD_UNKNOWN_MARK | XSPD_UNKNOWN_PORTS;
}

static void mark_unknown_unasked(struct xspd_pol *pol, struct xspd_flow *flow)
{
	(void)pol;
	flow->unknown = XSPD_UNKNOWN_MARK | XSPD_UNKNOWN_PORTS | XSPD_UNKNOWN_OIF;
}

static void daddr_bit(struct xspd_pol *pol, struct xspd_flow *flow)
{
	(void)pol;
	flow->daddr[0] ^= htonl(0x00000100);
}

static void daddr_host_bit(struct xspd_pol *pol, struct xspd_flow *flow)
{
	(void)pol;
	flow->daddr[0] ^= htonl(0x000000ff);
}

static void daddr_any(struct xspd_pol *pol, struct xspd_flow *flow)
{
	pol->sel.prefixlen_d = 0; /* address bits stay, and say nothing */
	flow->daddr[0] ^= htonl(0xff000000);
}

static void daddr_host(struct xspd_pol *pol, struct xspd_flow *flow)
{
	pol->sel.prefixlen_d = 32;
	flow->daddr[0] = pol->sel.daddr.a4 ^ htonl(1);
}

static void saddr_bit(struct xspd_pol *pol, struct xspd_flow *flow)
{
	(void)pol;
	flow->saddr[0] ^= htonl(0x80000000);
}

static void dport_mask(struct xspd_pol *pol, struct xspd_flow *flow)
{
	pol->sel.dport = htons(0x1203);
	pol->sel.dport_mask = htons(0x0f0f);
	flow->dport = htons(0x5253);
}

static void dport_masked_bit(struct xspd_pol *pol, struct xspd_flow *flow)
{
	dport_mask(pol, flow);
	flow->dport = htons(0x5254);
}

static void dport_value_outside_mask(struct xspd_pol *pol, struct xspd_flow *flow)
{
	pol->sel.dport = htons(0xffff);
	flow->dport = htons(1);
}

static void sport(struct xspd_pol *pol, struct xspd_flow *flow)
{
	(void)flow;
	pol->sel.sport = htons(500);
	pol->sel.sport_mask = htons(0xffff);
}

static void sport_zero(struct xspd_pol *pol, struct xspd_flow *flow)
{
	flow->sport = htons(1);
	pol->sel.sport_mask = htons(0xffff);
}

static void ports_unknown(struct xspd_pol *pol, struct xspd_flow *flow)
{
	sport(pol, flow);
	flow->unknown = XSPD_UNKNOWN_PORTS;
}

static void proto(struct xspd_pol *pol, struct xspd_flow *flow)
{
	(void)flow;
	pol->sel.proto = 6;
}

static void oif(struct xspd_pol *pol, struct xspd_flow *flow)
{
	pol->sel.ifindex = 3;
	flow->oif = 4;
}

static void oif_fits(struct xspd_pol *pol, struct xspd_flow *flow)
{
	pol->sel.ifindex = 3;
	flow->oif = 3;
}

static void oif_unknown(struct xspd_pol *pol, struct xspd_flow *flow)
{
	pol->sel.ifindex = 3;
	flow->unknown = XSPD_UNKNOWN_OIF;
}

static void unknown_but_missed(struct xspd_pol *pol, struct xspd_flow *flow)
{
	ports_unknown(pol, flow);
	pol->sel.proto = 6;
}

static void user(struct xspd_pol *pol, struct xspd_flow *flow)
{
	(void)flow;
	pol->sel.user = 1000;
}

static const struct row rows[] = {
	{"as it is", nothing, XSPD_MISS_NOT, 0},
	{"family", family, XSPD_MISS_FAMILY, 0},
	{"dir", dir, XSPD_MISS_DIR, 0},
	{"type", type, XSPD_MISS_TYPE, 0},
	{"if_id of the flow", if_id, XSPD_MISS_IF_ID, 0},
	{"if_id of the policy", if_id_pol, XSPD_MISS_IF_ID, 0},
	{"mark under its mask", mark_fits, XSPD_MISS_NOT, 0},
	{"mark with bits beyond its mask", mark_beyond, XSPD_MISS_MARK, 0},
	{"mark beyond a mask of nothing", mark_beyond_nothing, XSPD_MISS_MARK, 0},
	{"mark zero under a mask", mark_zero, XSPD_MISS_MARK, 0},
	{"mark unknown", mark_unknown, XSPD_MISS_NOT, XSPD_UNKNOWN_MARK},
	{"unknown, but not asked for", mark_unknown_unasked, XSPD_MISS_NOT, 0},
	{"daddr, last bit of the prefix", daddr_bit, XSPD_MISS_DADDR, 0},
	{"daddr, behind the prefix", daddr_host_bit, XSPD_MISS_NOT, 0},
	{"daddr, no prefix", daddr_any, XSPD_MISS_NOT, 0},
	{"daddr, whole address", daddr_host, XSPD_MISS_DADDR, 0},
	{"saddr, first bit", saddr_bit, XSPD_MISS_SADDR, 0},
	{"dport under an odd mask", dport_mask, XSPD_MISS_NOT, 0},
	{"dport, a bit of the mask", dport_masked_bit, XSPD_MISS_DPORT, 0},
	{"dport without a mask", dport_value_outside_mask, XSPD_MISS_NOT, 0},
	{"sport", sport, XSPD_MISS_SPORT, 0},
	{"sport must be zero", sport_zero, XSPD_MISS_SPORT, 0},
	{"ports unknown", ports_unknown, XSPD_MISS_NOT, XSPD_UNKNOWN_PORTS},
	{"proto", proto, XSPD_MISS_PROTO, 0},
	{"oif", oif, XSPD_MISS_OIF, 0},
	{"oif fits", oif_fits, XSPD_MISS_NOT, 0},
	{"oif unknown", oif_unknown, XSPD_MISS_NOT, XSPD_UNKNOWN_OIF},
	{"unknown, but another field fails", unknown_but_missed, XSPD_MISS_PROTO, 0},
	{"user is not matched", user, XSPD_MISS_NOT, 0},
};

Test(spd_match, each_field)
{
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct xspd_flow flow = flow_make("10.1.2.3", "192.168.0.1");
		struct xspd_pol pol = pol_make(1, 10);
		uint32_t unknown = 99;
		enum xspd_miss miss;

		pol.sel.daddr.a4 = htonl(0x0a010207); /* host bits set */
		pol.sel.prefixlen_d = 24;
		pol.sel.saddr.a4 = htonl(0xc0a80000);
		pol.sel.prefixlen_s = 1;
		rows[i].edit(&pol, &flow);
		miss = xspd_pol_match(&pol, &flow, XSPD_OUT, XSPD_MAIN, &unknown);
		cr_expect_eq(miss, rows[i].miss, "%s: missed by %s", rows[i].name,
			     xspd_miss_name(miss));
		if (!miss)
			cr_expect_eq(unknown, rows[i].unknown, "%s: hangs on %u", rows[i].name,
				     unknown);
		cr_expect_eq(xspd_pol_match(&pol, &flow, XSPD_OUT, XSPD_MAIN, NULL), miss);
	}
}

Test(spd_match, every_ipv6_prefix_length)
{
	struct xspd_pol pol = pol_make(1, 10);
	struct xspd_flow flow;
	unsigned int plen, bit;

	pol.sel.family = AF_INET6;
	for (plen = 0; plen <= 128; plen++)
		for (bit = 0; bit < 128; bit++) {
			flow = flow_make("2001:db8::1", "2001:db8::2");
			memcpy(&pol.sel.daddr, flow.daddr, 16);
			pol.sel.prefixlen_d = plen;
			flow.daddr[bit / 32] ^= htonl(1u << (31 - bit % 32));
			cr_assert_eq(xspd_pol_match(&pol, &flow, XSPD_OUT, XSPD_MAIN, NULL),
				     bit < plen ? XSPD_MISS_DADDR : XSPD_MISS_NOT, "/%u bit %u",
				     plen, bit);
		}
}

Test(spd_match, every_miss_has_a_name)
{
	int i;

	for (i = 0; i < XSPD_MISS_MAX_; i++)
		cr_expect_neq(*xspd_miss_name(i), '?');
	cr_expect_str_eq(xspd_miss_name(XSPD_MISS_MAX_), "?");
}

Test(spd_match, before)
{
	struct xspd_pol a = {.priority = 1, .pos = 9}, b = {.priority = 2, .pos = 1};
	struct xspd_pol c = {.priority = 2, .pos = UINT32_MAX};

	cr_expect(xspd_pol_before(&a, &b));
	cr_expect_not(xspd_pol_before(&b, &a));
	cr_expect(xspd_pol_before(&b, &c));
	cr_expect_not(xspd_pol_before(&c, &b));
	cr_expect_not(xspd_pol_before(&c, &c));
}
