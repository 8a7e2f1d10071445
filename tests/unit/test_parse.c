// SPDX-License-Identifier: GPL-2.0-only
/*
 * bpf/lib/parse.h, compiled natively under ASan and UBSan: each packet lies in memory of
 * exactly its size.  That the expectations are the kernel's own is shown by
 * tests/kernel/test_packets.c.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "../lib/dissect.h"
#include "../lib/packet_rows.h"

#define L4(n, ...) .l4_len = n, .l4 = {__VA_ARGS__}
/* What parse.h says of @n bytes that lie alone; @ethertype 0: they start with Ethernet. */
static enum xspd_reason parse(const uint8_t *bytes, size_t n, unsigned int ethertype,
			      struct xspd_flow *flow, struct xspd_meta *meta)
{
	enum xspd_reason reason;
	struct xspd_cursor cur;
	uint8_t *copy = malloc(n);

	memcpy(copy, bytes, n);
	xspd_cursor_linear(&cur, copy, copy + n);
	reason = ethertype ? xspd_parse_ip(&cur, xspd_be16(ethertype), flow)
			   : xspd_parse_eth(&cur, flow);
	free(copy);
	if (meta)
		*meta = cur.meta;
	return reason;
}

static struct xspd_flow blank(void)
{
	struct xspd_flow flow;

	memset(&flow, 0xa5, sizeof(flow));
	return flow;
}

/* Of a flow that was blank(): the caller's fields are untouched, the others are @want's. */
static void same(const char *name, const struct xspd_flow *flow, const struct xspd_flow *want)
{
	struct xspd_flow full = blank();

	memcpy(full.daddr, want->daddr, sizeof(full.daddr));
	memcpy(full.saddr, want->saddr, sizeof(full.saddr));
	full.family = want->family;
	full.proto = want->proto;
	full.sport = want->sport;
	full.dport = want->dport;
	full.frag = want->frag;
	cr_assert(!memcmp(flow, &full, sizeof(full)),
		  "%s: proto %u, ports %04x %04x, frag %u; not proto %u, ports %04x %04x, frag %u",
		  name, flow->proto, ntohs(flow->sport), ntohs(flow->dport), flow->frag, full.proto,
		  ntohs(full.sport), ntohs(full.dport), full.frag);
}

static struct xspd_flow expected(const struct packet_row *row, const struct craft *c)
{
	struct xspd_flow want = {
		.family = row->spec.family == 4 ? XSPD_INET : XSPD_INET6,
		.proto = row->proto,
		.sport = htons(row->sport),
		.dport = htons(row->dport),
		.frag = row->frag,
	};
	bool v6 = row->spec.family == 6;

	memcpy(want.saddr, c->b + c->l3 + (v6 ? 8 : 12), v6 ? 16 : 4);
	memcpy(want.daddr, c->b + c->l3 + (v6 ? 24 : 16), v6 ? 16 : 4);
	return want;
}

Test(parse, rows)
{
	size_t i;

	for (i = 0; i < PACKET_ROWS; i++) {
		const struct packet_row *row = &packet_rows[i];
		struct xspd_flow flow = blank(), want;
		struct xspd_meta meta;
		struct craft c;

		craft(&c, &row->spec);
		cr_assert_eq(parse(c.b, c.len, 0, &flow, &meta), row->reason, "%s", row->name);
		if (row->reason)
			continue;
		want = expected(row, &c);
		same(row->name, &flow, &want);
		cr_assert_eq(meta.vlan, row->spec.tags, "%s", row->name);
		cr_assert_eq(meta.flags, row->flags, "%s: flags %u", row->name, meta.flags);
	}
}

/* parse.h against the plain dissection of the same bytes */
static void agree(const char *name, const uint8_t *l3, size_t n, unsigned int ethertype)
{
	struct xspd_flow flow = blank(), want = {};
	enum xspd_reason reason = parse(l3, n, ethertype, &flow, NULL);

	if (dissect(l3, n, ethertype, XSPD_EXT_MAX, &want) == DISSECT_FLOW) {
		cr_assert_eq(reason, XSPD_R_NONE, "%s cut to %zu: %u", name, n, reason);
		same(name, &flow, &want);
	} else {
		cr_assert(reason == XSPD_R_SHORT || reason == XSPD_R_HEADER ||
				  reason == XSPD_R_NOT_IP,
			  "%s cut to %zu: %u", name, n, reason);
	}
}

Test(parse, cut_at_every_byte)
{
	size_t i, n;

	for (i = 0; i < PACKET_ROWS; i++) {
		const struct craft_spec *spec = &packet_rows[i].spec;
		unsigned int ethertype = spec->family == 4 ? 0x0800 : 0x86dd;
		struct craft c;

		craft(&c, spec);
		for (n = 0; n + c.l3 <= c.len; n++)
			agree(packet_rows[i].name, c.b + c.l3, n, ethertype);
		/* and as a sender would have said it */
		for (n = 40; n + c.l3 <= c.len; n++) {
			craft_be16(c.b + c.l3 + (spec->family == 4 ? 2 : 4),
				   spec->family == 4 ? n : n - 40);
			agree(packet_rows[i].name, c.b + c.l3, n, ethertype);
		}
	}
}

Test(parse, cut_inside_ethernet_and_tags)
{
	struct craft_spec spec = {V4, .tags = 2, .proto = 17, L4(8, UDP_BYTES)};
	struct xspd_flow flow;
	struct craft c;
	size_t n;

	craft(&c, &spec);
	for (n = 0; n < c.l3 + 20; n++) {
		flow = blank();
		cr_assert_eq(parse(c.b, n, 0, &flow, NULL), XSPD_R_SHORT, "%zu", n);
	}
	for (; n < c.len; n++)
		cr_assert_eq(parse(c.b, n, 0, &flow, NULL), XSPD_R_HEADER, "%zu", n);
	cr_assert_eq(parse(c.b, n, 0, &flow, NULL), XSPD_R_NONE);
}

Test(parse, other_protocols_are_not_ip)
{
	static const uint16_t types[] = {0x0806, 0x8864, 0x8847, 0x0026, 0x86dc, 0x0801, 0};
	uint8_t frame[64] = {};
	struct xspd_flow flow;
	size_t i;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		craft_be16(frame + 12, types[i]);
		cr_assert_eq(parse(frame, sizeof(frame), 0, &flow, NULL), XSPD_R_NOT_IP);
	}
}

Test(parse, version_and_header_length)
{
	struct craft_spec spec = {V4, .proto = 17, L4(40, UDP_BYTES)};
	struct xspd_flow flow;
	unsigned int first;
	struct craft c;

	craft(&c, &spec);
	for (first = 0; first < 256; first++) {
		bool good = first >> 4 == 4 && (first & 15) >= 5;

		c.b[c.l3] = first;
		cr_assert_eq(parse(c.b + c.l3, c.len - c.l3, 0x0800, &flow, NULL),
			     good ? XSPD_R_NONE : XSPD_R_HEADER, "%02x", first);
		if (first >> 4 != 6)
			cr_assert_eq(parse(c.b + c.l3, c.len - c.l3, 0x86dd, &flow, NULL),
				     XSPD_R_HEADER, "%02x", first);
	}
}

Test(parse, meta)
{
	struct craft_spec v4 = {V4,	    .tags = 1,	       .vid = 7, .options = 2,
				.proto = 6, L4(20, UDP_BYTES), .pad = 9};
	struct craft_spec v6 = {V6, EXT(2, {60, 1}, {0, 0}), .proto = 17, L4(9, UDP_BYTES),
				.pad = 9};
	struct xspd_flow flow;
	struct xspd_meta meta;
	struct craft c;

	craft(&c, &v4);
	cr_assert_eq(parse(c.b, c.len, 0, &flow, &meta), XSPD_R_NONE);
	cr_expect_eq(meta.l3, 18);
	cr_expect_eq(meta.vlan, 1);
	cr_expect_eq(meta.vid, 7);
	cr_expect_eq(meta.l4, 18 + 28);
	cr_expect_eq(meta.len, 28 + 20);
	cr_expect_eq(meta.tos, 0x20);
	cr_expect_eq(meta.ttl, 64);

	craft(&c, &v6);
	memcpy(c.b + c.l3, (uint8_t[]){0x6a, 0xbc, 0xde, 0xf1}, 4);
	cr_assert_eq(parse(c.b + c.l3, c.len - c.l3, 0x86dd, &flow, &meta), XSPD_R_NONE);
	cr_expect_eq(meta.l3, 0);
	cr_expect_eq(meta.l4, 40 + 16 + 8);
	cr_expect_eq(meta.len, 40 + 16 + 8 + 9);
	cr_expect_eq(meta.tos, 0xab);
	cr_expect_eq(meta.flowinfo, htonl(0x0abcdef1));
	cr_expect_eq(meta.ttl, 64);
}

Test(parse, random_packets)
{
	uint64_t rng = 20261130;
	size_t filled = 0;
	int i;

	for (i = 0; i < 200000; i++) {
		struct craft_spec spec;
		struct xspd_flow want;
		struct craft c;
		size_t n;

		craft_random(&rng, &spec);
		craft(&c, &spec);
		n = c.len - c.l3;
		if (craft_below(&rng, 8) == 0)
			n = craft_below(&rng, n + 1);
		agree("random", c.b + c.l3, n, spec.family == 4 ? 0x0800 : 0x86dd);
		want = (struct xspd_flow){};
		filled += dissect(c.b + c.l3, n, spec.family == 4 ? 0x0800 : 0x86dd, XSPD_EXT_MAX,
				  &want) == DISSECT_FLOW;
	}
	cr_assert_gt(filled, 150000, "%zu", filled);
}
