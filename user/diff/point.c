// SPDX-License-Identifier: GPL-2.0-only
/*
 * The search of SAT solvers: each other box is a clause, "one of its bits
 * differs". The box with the fewest free bits is taken first, so that one with a
 * single free bit decides it, and one with none ends the branch.
 */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "diff/box.h"

#define NODES 4000 /* given up after that many */

struct search {
	const struct xspd_box **room; /* a list for each depth, one behind the other */
	size_t left;
	unsigned int nodes;
	struct xspd_box point;
};

static unsigned int free_bits(const struct xspd_box *box, const struct xspd_box *other)
{
	unsigned int count = 0;

	for (int i = 0; i < XSPD_BOX_WORDS; i++)
		count += (unsigned int)__builtin_popcountll(other->mask[i] & ~box->mask[i]);
	return count;
}

static enum xspd_point walk(struct search *s, const struct xspd_box *box,
			    const struct xspd_box *const *others, size_t count);

/* Differ from @other in one bit after the other, and agree in those before it. */
static enum xspd_point branch(struct search *s, const struct xspd_box *box,
			      const struct xspd_box *other, const struct xspd_box *const *others,
			      size_t count)
{
	struct xspd_box next = *box;
	enum xspd_point found = XSPD_POINT_NONE, any = XSPD_POINT_NONE;

	for (int i = 0; i < XSPD_BOX_WORDS; i++) {
		uint64_t left = other->mask[i] & ~box->mask[i];

		while (left) {
			uint64_t bit = 1ull << (63 - __builtin_clzll(left));

			left &= ~bit;
			next.mask[i] |= bit;
			next.value[i] |= ~other->value[i] & bit;
			found = walk(s, &next, others, count);
			if (found == XSPD_POINT_FOUND)
				return found;
			if (found == XSPD_POINT_UNKNOWN)
				any = found;
			next.value[i] ^= bit;
		}
	}
	return any;
}

static enum xspd_point walk(struct search *s, const struct xspd_box *box,
			    const struct xspd_box *const *others, size_t count)
{
	const struct xspd_box **mine = s->room, *least = NULL;
	unsigned int least_bits = 0, bits;
	size_t kept = 0;
	enum xspd_point found;

	if (!s->nodes || s->left < count)
		return XSPD_POINT_UNKNOWN;
	s->nodes--;
	for (size_t i = 0; i < count; i++) {
		if (!xspd_box_meet(box, others[i]))
			continue;
		bits = free_bits(box, others[i]);
		if (!bits)
			return XSPD_POINT_NONE;
		if (!least || bits < least_bits) {
			least = others[i];
			least_bits = bits;
		}
		mine[kept++] = others[i];
	}
	if (!least) {
		s->point = *box;
		return XSPD_POINT_FOUND;
	}
	s->room += kept;
	s->left -= kept;
	found = branch(s, box, least, mine, kept);
	s->room -= kept;
	s->left += kept;
	return found;
}

/* Which ports go with which protocol. */
static size_t domains(struct xspd_box *ret, uint8_t family)
{
	static const uint8_t with_ports[] = {IPPROTO_UDP, IPPROTO_TCP, IPPROTO_SCTP,
					     IPPROTO_UDPLITE, IPPROTO_GRE};
	uint8_t icmp = family == XSPD_INET6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP;
	size_t n = 0;

	memset(ret, 0, 7 * sizeof(*ret));
	for (size_t i = 0; i < sizeof(with_ports); i++, n++) {
		ret[n].value[5] = (uint64_t)with_ports[i] << 32;
		ret[n].mask[5] = 0xffull << 32;
	}
	ret[n].value[5] = (uint64_t)icmp << 32;
	ret[n].mask[5] = 0xffull << 32;
	ret[n++].mask[4] = 0xff00ff00ull << 32;
	ret[n++].mask[4] = 0xffffffffull << 32; /* any protocol, ports 0 */
	return n;
}

/* The device that is asked with when none is said. */
static void usual_device(struct xspd_box *box, uint8_t dir)
{
	box->mask[5] |= 0xffffffffu;
	box->value[5] |= dir == XSPD_IN ? 1 : 0;
}

static void to_flow(struct xspd_flow *ret, const struct xspd_box *point)
{
	uint64_t value[XSPD_BOX_WORDS];
	struct xspd_pol pol;
	struct xspd_box box = *point;

	/* what is free may be anything: no network's own address, for people's sake */
	memcpy(value, point->value, sizeof(value));
	if (ret->family == XSPD_INET6) {
		value[1] |= ~point->mask[1] & 1;
		value[3] |= ~point->mask[3] & 1;
	} else {
		value[0] |= ~point->mask[0] & (1ull << 32 | 1);
	}
	memcpy(box.value, value, sizeof(value));
	xspd_box_selector(&pol, &box, (uint16_t)ret->family);
	memcpy(ret->daddr, &pol.sel.daddr, sizeof(ret->daddr));
	memcpy(ret->saddr, &pol.sel.saddr, sizeof(ret->saddr));
	ret->sport = pol.sel.sport;
	ret->dport = pol.sel.dport;
	ret->proto = pol.sel.proto;
	ret->mark = pol.mark;
	ret->oif = (uint32_t)pol.sel.ifindex;
}

enum xspd_point xspd_box_point(const struct xspd_box *box, const struct xspd_box *const *others,
			       size_t count, struct xspd_flow *ret)
{
	enum xspd_point any = XSPD_POINT_NONE, found;
	struct xspd_box domain[7], start;
	size_t n = domains(domain, (uint8_t)ret->family), room = 8 * count + 64;
	const struct xspd_box **list = malloc(room * sizeof(*list));

	if (!list)
		return XSPD_POINT_UNKNOWN;
	for (size_t i = 0; i < 2 * n && any != XSPD_POINT_FOUND; i++) {
		struct xspd_box usual = {};
		struct search s = {.room = list, .left = room, .nodes = NODES};

		if (!xspd_box_meet(box, &domain[i % n]))
			continue;
		xspd_box_both(&start, box, &domain[i % n]);
		usual_device(&usual, (uint8_t)ret->dir);
		if (i < n && !xspd_box_meet(&start, &usual))
			continue;
		if (i < n)
			xspd_box_both(&start, &start, &usual);
		found = walk(&s, &start, others, count);
		if (found == XSPD_POINT_FOUND)
			to_flow(ret, &s.point);
		if (found)
			any = found;
	}
	free(list);
	return any;
}
