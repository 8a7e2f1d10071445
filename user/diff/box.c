// SPDX-License-Identifier: GPL-2.0-only
#include <arpa/inet.h>
#include <string.h>

#include "diff/box.h"

static uint64_t half_mask(unsigned int bits)
{
	return bits >= 32 ? 0xffffffffu : bits ? 0xffffffffu << (32 - bits) & 0xffffffffu : 0;
}

static uint64_t two(const __be32 *addr)
{
	return (uint64_t)ntohl(addr[0]) << 32 | ntohl(addr[1]);
}

/* A prefix over two words. */
static void mask_two(uint64_t *mask, unsigned int bits)
{
	mask[0] = bits >= 64 ? ~0ull : bits ? ~0ull << (64 - bits) : 0;
	mask[1] = bits >= 128 ? ~0ull : bits > 64 ? ~0ull << (128 - bits) : 0;
}

void xspd_box_of(struct xspd_box *ret, const struct xspd_pol *pol)
{
	const struct xfrm_selector *sel = &pol->sel;
	struct xspd_box box = {};

	if (sel->family == XSPD_INET6) {
		box.value[0] = two(sel->daddr.a6);
		box.value[1] = two(sel->daddr.a6 + 2);
		box.value[2] = two(sel->saddr.a6);
		box.value[3] = two(sel->saddr.a6 + 2);
		mask_two(box.mask, sel->prefixlen_d);
		mask_two(box.mask + 2, sel->prefixlen_s);
	} else {
		box.value[0] = (uint64_t)ntohl(sel->saddr.a4) << 32 | ntohl(sel->daddr.a4);
		box.mask[0] = half_mask(sel->prefixlen_s) << 32 | half_mask(sel->prefixlen_d);
	}
	box.value[4] =
		(uint64_t)ntohs(sel->sport) << 48 | (uint64_t)ntohs(sel->dport) << 32 | pol->mark;
	box.mask[4] = (uint64_t)ntohs(sel->sport_mask) << 48 |
		      (uint64_t)ntohs(sel->dport_mask) << 32 | pol->mark_mask;
	box.value[5] = (uint64_t)sel->proto << 32 | (uint32_t)sel->ifindex;
	box.mask[5] = (sel->proto ? 0xffull << 32 : 0) | (sel->ifindex ? 0xffffffffu : 0);
	for (int i = 0; i < XSPD_BOX_WORDS; i++)
		box.value[i] &= box.mask[i];
	*ret = box;
}

bool xspd_box_meet(const struct xspd_box *a, const struct xspd_box *b)
{
	for (int i = 0; i < XSPD_BOX_WORDS; i++)
		if ((a->value[i] ^ b->value[i]) & a->mask[i] & b->mask[i])
			return false;
	return true;
}

bool xspd_box_covers(const struct xspd_box *a, const struct xspd_box *b)
{
	for (int i = 0; i < XSPD_BOX_WORDS; i++)
		if (a->mask[i] & ~b->mask[i] || (a->value[i] ^ b->value[i]) & a->mask[i])
			return false;
	return true;
}

void xspd_box_both(struct xspd_box *ret, const struct xspd_box *a, const struct xspd_box *b)
{
	for (int i = 0; i < XSPD_BOX_WORDS; i++) {
		ret->value[i] = a->value[i] | b->value[i];
		ret->mask[i] = a->mask[i] | b->mask[i];
	}
}

bool xspd_box_has(const struct xspd_box *box, const struct xspd_flow *flow)
{
	/* a flow is what a policy matches that asks for every bit of it; only 0 would be any */
	struct xspd_pol pol = {.sel = {.family = (uint16_t)flow->family,
				       .prefixlen_d = 128,
				       .prefixlen_s = 128,
				       .sport = flow->sport,
				       .dport = flow->dport,
				       .sport_mask = 0xffff,
				       .dport_mask = 0xffff,
				       .proto = flow->proto,
				       .ifindex = (int)flow->oif},
			       .mark = flow->mark,
			       .mark_mask = ~0u};
	struct xspd_box point;

	memcpy(&pol.sel.daddr, flow->daddr, sizeof(flow->daddr));
	memcpy(&pol.sel.saddr, flow->saddr, sizeof(flow->saddr));
	xspd_box_of(&point, &pol);
	point.mask[XSPD_BOX_PROTO_DEV] = ~0ull;
	return xspd_box_covers(box, &point);
}

static uint8_t length(uint64_t mask)
{
	return (uint8_t)__builtin_popcountll(mask);
}

static void put_two(__be32 *addr, uint64_t value)
{
	addr[0] = htonl((uint32_t)(value >> 32));
	addr[1] = htonl((uint32_t)value);
}

void xspd_box_selector(struct xspd_pol *ret, const struct xspd_box *box, uint16_t family)
{
	const uint64_t *value = box->value, *mask = box->mask;
	struct xspd_pol pol = {
		.sel = {.family = family,
			.sport = htons((uint16_t)(value[4] >> 48)),
			.sport_mask = htons((uint16_t)(mask[4] >> 48)),
			.dport = htons((uint16_t)(value[4] >> 32)),
			.dport_mask = htons((uint16_t)(mask[4] >> 32)),
			.proto = (uint8_t)(value[5] >> 32),
			.ifindex = (int)(uint32_t)value[5]},
		.mark = (uint32_t)value[4],
		.mark_mask = (uint32_t)mask[4],
	};

	if (family == XSPD_INET6) {
		for (int i = 0; i < 2; i++) {
			put_two(pol.sel.daddr.a6 + 2 * i, value[i]);
			put_two(pol.sel.saddr.a6 + 2 * i, value[2 + i]);
		}
		pol.sel.prefixlen_d = length(mask[0]) + length(mask[1]);
		pol.sel.prefixlen_s = length(mask[2]) + length(mask[3]);
	} else {
		pol.sel.saddr.a4 = htonl((uint32_t)(value[0] >> 32));
		pol.sel.daddr.a4 = htonl((uint32_t)value[0]);
		pol.sel.prefixlen_s = length(mask[0] >> 32);
		pol.sel.prefixlen_d = length(mask[0] & 0xffffffffu);
	}
	*ret = pol;
}
