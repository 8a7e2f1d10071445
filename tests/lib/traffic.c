// SPDX-License-Identifier: GPL-2.0-only
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "lib/craft.h"
#include "lib/packet.h"
#include "lib/traffic.h"
#include "util.h"

#define L3		 14
#define PICK(gen, table) ((table)[gen_below(gen, XSPD_ARRAY_SIZE(table))])

static bool is_v4(const struct traffic_frame *f)
{
	return f->b[L3] >> 4 == 4;
}

static size_t l4_at(const struct traffic_frame *f)
{
	return L3 + (is_v4(f) ? (f->b[L3] & 0xf) * 4 : 40);
}

/* The IP length is that of the frame, and the IPv4 header's checksum is right. */
static void finish(struct traffic_frame *f)
{
	if (is_v4(f)) {
		craft_be16(f->b + L3 + 2, (unsigned int)(f->len - L3));
		craft_ip_sum(f->b + L3, (f->b[L3] & 0xf) * 4);
	} else {
		craft_be16(f->b + L3 + 4, (unsigned int)(f->len - L3 - 40));
	}
}

/* @n zero bytes at @at. */
static uint8_t *insert(struct traffic_frame *f, size_t at, size_t n)
{
	memmove(f->b + at + n, f->b + at, f->len - at);
	memset(f->b + at, 0, n);
	f->len += n;
	return f->b + at;
}

/* --- flows --------------------------------------------------------------------- */

static uint8_t *half_byte(struct xspd_flow *flow, __be32 *addr)
{
	return (uint8_t *)addr + (flow->family == XSPD_INET ? 1 : 4);
}

static void put_address(struct xspd_flow *flow, __be32 *addr, const char *text)
{
	memset(addr, 0, 16);
	if (inet_pton(flow->family, text, addr) != 1)
		abort();
}

static void odd_source(struct gen *gen, struct xspd_flow *flow)
{
	static const char *const v4[] = {"127.0.0.1",	    "0.0.0.0",	 "224.0.0.1",
					 "255.255.255.255", "0.1.2.3",	 GATEWAY_V4_S,
					 "240.1.1.1",	    "192.0.2.9", "8.8.8.8",
					 "198.51.100.9",    "10.0.0.1",	 "169.254.1.1"};
	static const char *const v6[] = {"::",	    "::1",	  "ff02::1",	     "fe80::1",
					 "fec0::1", "64:ff9b::1", "::ffff:10.1.1.1", GATEWAY_V6_S,
					 "2600::1", "fd00:c::9",  "::10.1.1.1"};

	put_address(flow, flow->saddr, flow->family == XSPD_INET ? PICK(gen, v4) : PICK(gen, v6));
}

static void odd_target(struct gen *gen, struct xspd_flow *flow)
{
	static const char *const v4[] = {
		"127.0.0.1",	 "0.0.0.0",	   "224.0.0.1", "239.1.1.1",   "255.255.255.255",
		"192.0.2.255",	 "198.51.100.255", "240.1.1.1", "169.254.1.1", "198.51.100.9",
		"203.0.113.255", "0.1.2.3",	   "8.8.8.8",	"198.51.100.2"};
	static const char *const v6[] = {
		"::",	     "::1",	"ff02::1",	     "ff05::5", "ff02::1:ff00:1",
		"fe80::1",   "fec0::1", "::ffff:10.129.1.1", "2600::1", "fd00:5::9",
		"fd00:5::2", "fd00:5::"};

	put_address(flow, flow->daddr, flow->family == XSPD_INET ? PICK(gen, v4) : PICK(gen, v6));
}

/* To the gateway itself; often to a socket, IKE included. */
static void to_gateway(struct gen *gen, struct xspd_flow *flow)
{
	static const char *const v4[] = {GATEWAY_V4_C, GATEWAY_V4_S, "192.0.2.1", "198.51.100.1"};
	static const char *const v6[] = {GATEWAY_V6_C, GATEWAY_V6_S, "fd00:c::1", "fd00:5::1"};
	static const uint16_t ports[] = {500, 4500, GATEWAY_EXEMPT, 53, 8080};

	put_address(flow, flow->daddr, flow->family == XSPD_INET ? PICK(gen, v4) : PICK(gen, v6));
	if (gen_chance(gen, 40)) {
		flow->proto = gen_chance(gen, 90) ? IPPROTO_UDP : IPPROTO_TCP;
		flow->dport = htons(PICK(gen, ports));
		if (gen_chance(gen, 30))
			flow->sport = htons(PICK(gen, ports));
	}
}

/*
 * What the kernel says for want of an IPv4 route is limited per sender, with no switch for it
 * in a namespace (net.ipv4.route.error_cost): each such packet has a sender of its own.
 */
static void sender_of_its_own(const struct traffic *t, struct xspd_flow *flow)
{
	const uint8_t *to = (const uint8_t *)flow->daddr;
	uint8_t *from = (uint8_t *)flow->saddr;

	if (flow->family != XSPD_INET ||
	    (to[0] == 10 && !(to[1] == 128 && (to[2] == 129 || to[2] == 127))))
		return;
	from[0] = 10;
	from[1] = t->nr & 0x10000 ? 7 : 6;
	craft_be16(from + 2, t->nr);
}

static enum gateway_side pick_flow(struct traffic *t, struct xspd_flow *flow)
{
	static const uint8_t protos[] = {50, 51, 108, 4, 41, 33, 2, 253, 59, 135};
	struct gen *gen = t->gen;
	const struct xspd_pol *src = &t->pols[gen_below(gen, t->count)];
	const struct xspd_pol *dst = gen_chance(gen, 80) ? src : &t->pols[gen_below(gen, t->count)];
	uint8_t *from, *to;
	bool s;

	gen_flow(gen, src, dst, flow);
	from = half_byte(flow, flow->saddr);
	to = half_byte(flow, flow->daddr);
	/* most come from the client's half; ports mean something */
	if (gen_chance(gen, 60))
		*from &= 0x7f;
	s = *from & 0x80;
	if (!((*from ^ *to) & 0x80) && gen_chance(gen, 95))
		*to ^= 0x80;
	if (gen_chance(gen, 5))
		flow->proto = PICK(gen, protos);
	if (gen_chance(gen, 14))
		to_gateway(gen, flow);
	else if (gen_chance(gen, 4))
		odd_target(gen, flow);
	if (gen_chance(gen, 4))
		odd_source(gen, flow);
	sender_of_its_own(t, flow);
	if (gen_chance(gen, 5))
		flow->frag = gen_chance(gen, 50) ? XSPD_FRAG_FIRST : XSPD_FRAG_LATER;
	if (gen_chance(gen, 3))
		s = !s;
	return s ? GATEWAY_S : GATEWAY_C;
}

/* --- shapes -------------------------------------------------------------------- */

static uint32_t sum_add(uint32_t sum, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sum += i & 1 ? p[i] : (uint32_t)p[i] << 8;
	return sum;
}

/* An error about a packet that the flow's target may have sent. */
static void quote(struct traffic *t, struct traffic_frame *f, const struct xspd_flow *flow)
{
	static const uint8_t types4[] = {3, 3, 11, 12, 4, 5}, types6[] = {1, 2, 3, 4};
	struct xspd_flow outer = *flow, inner = *flow;
	uint8_t frame[PACKET_MAX], *l4;
	uint32_t sum = 0;
	size_t len;

	outer.frag = inner.frag = XSPD_FRAG_NONE;
	memcpy(inner.saddr, flow->daddr, 16);
	memcpy(inner.daddr, flow->saddr, 16);
	inner.sport = flow->dport;
	inner.dport = flow->sport;
	if (gen_chance(t->gen, 20))
		gen_flow(t->gen, &t->pols[gen_below(t->gen, t->count)], NULL, &inner);
	if (inner.family != flow->family)
		inner = *flow;
	len = packet_build(frame, &inner) - L3;
	outer.proto = flow->family == XSPD_INET ? IPPROTO_ICMP : IPPROTO_ICMPV6;
	outer.sport =
		htons(flow->family == XSPD_INET ? PICK(t->gen, types4) : PICK(t->gen, types6));
	outer.dport = htons((uint16_t)gen_below(t->gen, 5));
	f->len = packet_build(f->b, &outer);
	l4 = f->b + l4_at(f);
	memcpy(l4 + 8, frame + L3, len);
	f->len = (size_t)(l4 - f->b) + 8 + len;
	craft_be16(l4 + 2, 0);
	if (!is_v4(f)) {
		sum = sum_add(0, f->b + L3 + 8, 32) + IPPROTO_ICMPV6 + (uint32_t)(8 + len);
		l4[4] = 0;
		if (l4[0] == 2)
			craft_be16(l4 + 6, 1280);
	}
	for (sum = sum_add(sum, l4, 8 + len); sum >> 16;)
		sum = (sum & 0xffff) + (sum >> 16);
	craft_be16(l4 + 2, ~sum);
}

/* Identification or flow label, by which a packet is known. */
static void number(struct traffic_frame *f, uint32_t nr)
{
	if (is_v4(f)) {
		craft_be16(f->b + L3 + 4, nr);
		return;
	}
	f->b[L3 + 1] = (uint8_t)((f->b[L3 + 1] & 0xf0) | (nr >> 16 & 0xf));
	craft_be16(f->b + L3 + 2, nr);
}

static void twist_ttl(struct gen *gen, struct traffic_frame *f)
{
	static const uint8_t ttls[] = {0, 1, 1, 2, 3, 255};

	f->b[L3 + (is_v4(f) ? 8 : 7)] = PICK(gen, ttls);
}

static void twist_tos(struct gen *gen, struct traffic_frame *f)
{
	uint8_t tos = (uint8_t)gen_next(gen);

	if (is_v4(f)) {
		f->b[L3 + 1] = tos;
		return;
	}
	f->b[L3] = 0x60 | tos >> 4;
	f->b[L3 + 1] = (uint8_t)((f->b[L3 + 1] & 0xf) | tos << 4);
}

static void twist_options(struct gen *gen, struct traffic_frame *f)
{
	static const uint8_t options[][12] = {
		{1, 1, 1, 0},			 /* no-operation, end */
		{7, 7, 4, 0, 0, 0, 0},		 /* record route */
		{68, 8, 5, 0, 0, 0, 0, 0},	 /* time stamp */
		{131, 7, 4, 10, 128, 1, 2, 0},	 /* loose source route */
		{137, 7, 4, 198, 51, 100, 2, 0}, /* strict source route */
		{131, 7, 8, 10, 128, 1, 2, 0},	 /* the same, used up */
		{148, 4, 0, 0},			 /* router alert */
		{7, 1, 4, 0},			 /* malformed */
		{200, 4, 0, 0},			 /* unknown */
		{134, 8, 0, 0, 0, 1, 2, 3},	 /* CIPSO */
	};
	const uint8_t *option = PICK(gen, options);
	size_t n = option[8] || option[7] || option[4] || option[5] || option[6] ? 8 : 4;

	if (!is_v4(f) || (f->b[L3] & 0xf) != 5)
		return;
	memcpy(insert(f, L3 + 20, n), option, n);
	f->b[L3] = (uint8_t)(0x45 + n / 4);
}

/* A hop-by-hop, routing, destination options or (atomic) fragment header in front of the rest. */
static void twist_ext(struct gen *gen, struct traffic_frame *f)
{
	static const uint8_t types[] = {0, 0, 43, 43, 60, 60, 44};
	static const uint8_t options[] = {1, 1, 0x1e, 0x5e, 0x9e, 0xde, 5, 0xc2, 0xc9};
	uint8_t type = PICK(gen, types), *head;
	size_t len;

	if (is_v4(f) || f->len > TRAFFIC_MAX - 24)
		return;
	len = type == 43 && gen_chance(gen, 50) ? 24 : 8;
	head = insert(f, L3 + 40, len);
	head[0] = f->b[L3 + 6];
	if (type != 44)
		head[1] = (uint8_t)(len / 8 - 1);
	f->b[L3 + 6] = type;
	if (type == 43) {
		head[2] = (uint8_t)gen_below(gen, 5); /* type */
		head[3] = (uint8_t)gen_below(gen, 2); /* segments left */
	} else if (type == 44) {
		head[3] = gen_chance(gen, 50) ? 0 : 1; /* atomic, or a first one */
		craft_be16(head + 6, gen_next(gen));
	} else {
		head[2] = PICK(gen, options);
		head[3] = head[2] == 5 ? 2 : 4;
		if (head[2] == 5)
			head[6] = 1; /* PadN */
	}
}

static void twist_large(struct gen *gen, struct traffic_frame *f)
{
	size_t len = 900 + gen_below(gen, TRAFFIC_MAX - 900 + 1);

	if (len <= f->len)
		return;
	insert(f, f->len, len - f->len);
	if (is_v4(f) && gen_chance(gen, 50))
		f->b[L3 + 6] |= 0x40; /* do not fragment */
}

static void twist_df(struct gen *gen, struct traffic_frame *f)
{
	(void)gen;
	if (is_v4(f))
		f->b[L3 + 6] |= 0x40;
}

/* These before the lengths are put right ... */
static const struct twist {
	uint8_t percent;
	void (*apply)(struct gen *gen, struct traffic_frame *f);
} inner_twists[] = {
	{4, twist_ttl}, {5, twist_tos},	  {4, twist_options}, {6, twist_ext},
	{3, twist_ext}, {6, twist_large}, {10, twist_df},
};

static void twist_sum(struct gen *gen, struct traffic_frame *f)
{
	if (is_v4(f))
		f->b[L3 + 10] ^= (uint8_t)(1u << gen_below(gen, 8));
}

static void twist_l4(struct gen *gen, struct traffic_frame *f)
{
	size_t at = l4_at(f) + gen_below(gen, 16);

	if (at < f->len)
		f->b[at] ^= (uint8_t)(1u << gen_below(gen, 8));
}

static void twist_length(struct gen *gen, struct traffic_frame *f)
{
	uint8_t *at = f->b + L3 + (is_v4(f) ? 2 : 4);
	unsigned int len = (unsigned int)(at[0] << 8 | at[1]);

	craft_be16(at, gen_chance(gen, 20) ? 0 : len + gen_below(gen, 40) - 20);
	if (is_v4(f))
		craft_ip_sum(f->b + L3, 20);
}

static void twist_version(struct gen *gen, struct traffic_frame *f)
{
	f->b[L3] = (uint8_t)(f->b[L3] ^ (1u << gen_below(gen, 8)));
}

static void twist_cut(struct gen *gen, struct traffic_frame *f)
{
	f->len = L3 + gen_below(gen, (uint32_t)(f->len - L3 + 1));
}

static void twist_pad(struct gen *gen, struct traffic_frame *f)
{
	size_t n = 1 + gen_below(gen, 46);

	if (f->len + n <= TRAFFIC_MAX)
		memset(insert(f, f->len, n), 0xee, n);
}

static void twist_tag(struct gen *gen, struct traffic_frame *f)
{
	uint8_t *tag;

	if (f->len > TRAFFIC_MAX - 4)
		return;
	tag = insert(f, 12, 4);
	craft_be16(tag, gen_chance(gen, 85) ? 0x8100 : 0x88a8);
	craft_be16(tag + 2, gen_below(gen, 8) << 13 | (gen_chance(gen, 60) ? 0 : 5));
}

static void twist_mac(struct gen *gen, struct traffic_frame *f)
{
	static const uint8_t macs[][6] = {{2, 9, 9, 9, 9, 9},	 {255, 255, 255, 255, 255, 255},
					  {1, 0, 0x5e, 0, 0, 1}, {0x33, 0x33, 0, 0, 0, 1},
					  {2, 0, 0, 0, 0, 's'},	 {0, 0, 0, 0, 0, 0}};

	memcpy(f->b, PICK(gen, macs), 6);
}

/* ... and these after. */
static const struct twist outer_twists[] = {
	{3, twist_sum}, {2, twist_l4},	{2, twist_length}, {1, twist_version}, {2, twist_cut},
	{8, twist_pad}, {4, twist_tag}, {1, twist_tag},	   {3, twist_mac},
};

static void twist(struct gen *gen, struct traffic_frame *f, const struct twist *twists, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (gen_chance(gen, twists[i].percent))
			twists[i].apply(gen, f);
}

/* The datagram as two fragments; the second becomes the next frame. */
static void split(struct traffic *t, struct traffic_frame *f)
{
	size_t at = l4_at(f), first = 8;

	if (f->len < at + 16 || f->len > TRAFFIC_MAX - 8 || (f->b[L3 + 6] & 0x40 && is_v4(f)))
		return;
	if (f->len > 600)
		first = 480;
	if (!is_v4(f)) {
		uint8_t *head = insert(f, at, 8);

		head[0] = f->b[L3 + 6];
		f->b[L3 + 6] = 44;
		craft_be16(head + 6, t->nr);
		at += 8;
	}
	t->later = *f;
	t->pending = true;
	memmove(t->later.b + at, t->later.b + at + first, f->len - at - first);
	t->later.len = f->len - first;
	f->len = at + first;
	if (is_v4(f)) {
		f->b[L3 + 6] |= 0x20;
		craft_be16(t->later.b + L3 + 6, (unsigned int)first / 8);
	} else {
		f->b[at - 5] |= 1;
		craft_be16(t->later.b + at - 6, (unsigned int)first);
	}
	finish(f);
	finish(&t->later);
}

static void address(struct traffic *t, struct traffic_frame *f)
{
	static const uint8_t letters[] = {'c', 's', 't'};
	static const uint32_t marks[] = {1, 2, 0x100, 0xd00, 0xe00};

	memcpy(f->b, (uint8_t[]){2, 0, 0, 0, 0, letters[f->side], 2, 0, 0, 0, 2, 9}, 12);
	f->mark = t->marks && gen_chance(t->gen, 30) ? PICK(t->gen, marks) : 0;
}

void traffic_next(struct traffic *t, struct traffic_frame *ret)
{
	struct gen *gen = t->gen;
	struct xspd_flow flow;

	if (t->pending) {
		t->pending = false;
		*ret = t->later;
		return;
	}
	memset(ret, 0, sizeof(*ret));
	ret->side = pick_flow(t, &flow);
	if (gen_chance(gen, 6))
		quote(t, ret, &flow);
	else
		ret->len = packet_build(ret->b, &flow);
	number(ret, ++t->nr);
	address(t, ret);
	twist(gen, ret, inner_twists, XSPD_ARRAY_SIZE(inner_twists));
	finish(ret);
	if (!flow.frag && gen_chance(gen, 4)) {
		split(t, ret);
		return;
	}
	twist(gen, ret, outer_twists, XSPD_ARRAY_SIZE(outer_twists));
}
