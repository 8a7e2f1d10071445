// SPDX-License-Identifier: GPL-2.0-only
#include <arpa/inet.h>
#include <string.h>

#include "plane/pure/class.h"

void xspd_class_of(const struct xspd_pol *pol, struct xspd_class *ret)
{
	struct xspd_class cls = {
		.mark_mask = pol->mark_mask,
		.dlen = pol->sel.prefixlen_d,
		.slen = pol->sel.prefixlen_s,
		.proto_mask = pol->sel.proto ? 0xff : 0,
		.dev = pol->sel.ifindex != 0,
	};
	__be16 ports[2] = {pol->sel.dport_mask, pol->sel.sport_mask};

	memcpy(&cls.ports_mask, ports, sizeof(cls.ports_mask));
	*ret = cls;
}

bool xspd_class_covers(const struct xspd_class *coarse, const struct xspd_class *fine)
{
	return coarse->dlen <= fine->dlen && coarse->slen <= fine->slen &&
	       !(coarse->proto_mask & ~fine->proto_mask) && coarse->dev <= fine->dev &&
	       !(coarse->ports_mask & ~fine->ports_mask) && !(coarse->mark_mask & ~fine->mark_mask);
}

unsigned int xspd_class_bits(const struct xspd_class *cls)
{
	return cls->dlen + cls->slen + (cls->proto_mask ? 4 : 0) + (cls->dev ? 4 : 0) +
	       __builtin_popcount(cls->ports_mask) + __builtin_popcount(cls->mark_mask);
}

bool xspd_class_equal(const struct xspd_class *a, const struct xspd_class *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* @len leading bits set, in network order, over two 64-bit words. */
static void prefix_mask(uint64_t mask[2], unsigned int len)
{
	unsigned char *byte = (unsigned char *)mask;

	memset(mask, 0, 16);
	memset(byte, 0xff, len / 8);
	if (len % 8)
		byte[len / 8] = (unsigned char)(0xff00 >> (len % 8));
}

void xspd_class_tuple(const struct xspd_class *cls, bool v6, struct xspd_tuple *ret)
{
	struct xspd_tuple tuple = {
		.ports_mask = cls->ports_mask,
		.mark_mask = cls->mark_mask,
		.proto_mask = cls->proto_mask,
		.dev = cls->dev,
		.dlen = cls->dlen,
		.slen = cls->slen,
	};

	prefix_mask((uint64_t *)tuple.dmask, cls->dlen);
	prefix_mask((uint64_t *)tuple.smask, cls->slen);
	if (!v6) {
		uint32_t d, s;

		memcpy(&d, tuple.dmask, sizeof(d));
		memcpy(&s, tuple.smask, sizeof(s));
		memset(tuple.dmask, 0, sizeof(tuple.dmask));
		memset(tuple.smask, 0, sizeof(tuple.smask));
		tuple.dmask[0] = (uint64_t)s << 32 | d;
	}
	*ret = tuple;
}

void xspd_class_key(const struct xspd_pol *pol, struct xspd_key *ret)
{
	struct xspd_key key = {
		.mark = pol->mark,
		.oif = (uint32_t)pol->sel.ifindex,
		.proto = pol->sel.proto,
		.v6 = pol->sel.family == XSPD_INET6,
	};
	__be16 ports[2] = {pol->sel.dport, pol->sel.sport};

	memcpy(&key.ports, ports, sizeof(key.ports));
	if (key.v6) {
		memcpy(&key.addr[0], &pol->sel.daddr, 16);
		memcpy(&key.addr[2], &pol->sel.saddr, 16);
	} else {
		key.addr[0] = (uint64_t)pol->sel.saddr.a4 << 32 | pol->sel.daddr.a4;
	}
	*ret = key;
}
