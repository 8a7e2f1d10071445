/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's dissection a second time, written against bpf/lib/parse.h: on the
 * trimmed packet, by index, rule after rule.  tests/kernel/test_packets.c lets
 * the kernel judge both.
 */
#ifndef XSPD_TESTS_DISSECT_H
#define XSPD_TESTS_DISSECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "xspd/abi.h"

enum dissect {
	DISSECT_FLOW = 0, /* this is what XFRM is asked */
	DISSECT_DROP,	  /* the kernel throws it away, or it is not IP at all */
	DISSECT_UNTOLD,	  /* XFRM is asked, but a hook cannot be sure of it: parse.h must defer */
};

struct dissect_view {
	const uint8_t *p;
	size_t n; /* what the kernel keeps after trimming */
	size_t at;
};

static inline unsigned int dissect_be16(const struct dissect_view *v, size_t at)
{
	return v->p[at] << 8 | v->p[at + 1];
}

static inline bool dissect_has(const struct dissect_view *v, size_t n)
{
	return v->at <= v->n && v->n - v->at >= n;
}

static inline void dissect_set(uint16_t *port, unsigned int value)
{
	uint8_t b[2] = {value >> 8, value};

	memcpy(port, b, 2);
}

static inline void dissect_gre(const struct dissect_view *v, struct xspd_flow *ret)
{
	unsigned int flags, version, proto;
	size_t key;

	if (!dissect_has(v, 4))
		return;
	flags = dissect_be16(v, v->at);
	proto = dissect_be16(v, v->at + 2);
	version = flags & 7;
	if (flags & 0x4000)
		return;
	if (version >= 2)
		return;
	if (version == 1 && proto != 0x880b)
		return;
	if (!(flags & 0x2000))
		return;
	key = flags & 0x8000 ? 8 : 4;
	if (!dissect_has(v, key + 4))
		return;
	dissect_set(&ret->sport, version == 1 ? 0 : dissect_be16(v, v->at + key));
	dissect_set(&ret->dport, dissect_be16(v, v->at + key + 2));
}

static inline void dissect_l4(const struct dissect_view *v, struct xspd_flow *ret)
{
	bool ports = ret->proto == 6 || ret->proto == 17 || ret->proto == 132 || ret->proto == 136;
	bool icmp = ret->proto == (ret->family == XSPD_INET ? 1 : 58);

	if (ret->frag)
		return;
	if (ret->proto == 47)
		dissect_gre(v, ret);
	if (icmp && dissect_has(v, 8)) {
		dissect_set(&ret->sport, v->p[v->at]);
		dissect_set(&ret->dport, v->p[v->at + 1]);
	}
	if (ports && dissect_has(v, 4)) {
		dissect_set(&ret->sport, dissect_be16(v, v->at));
		dissect_set(&ret->dport, dissect_be16(v, v->at + 2));
	}
}

static inline enum dissect dissect_ip4(struct dissect_view *v, struct xspd_flow *ret)
{
	size_t len, head;

	if (v->n < 20 || v->p[0] >> 4 != 4)
		return DISSECT_DROP;
	head = (v->p[0] & 15) * 4;
	len = dissect_be16(v, 2);
	if (head < 20 || len < head || len > v->n)
		return DISSECT_DROP;
	v->n = len;
	v->at = head;
	ret->family = XSPD_INET;
	memcpy(ret->saddr, v->p + 12, 4);
	memcpy(ret->daddr, v->p + 16, 4);
	ret->proto = v->p[9];
	if (dissect_be16(v, 6) & 0x1fff)
		ret->frag = XSPD_FRAG_LATER;
	else if (v->p[6] & 0x20)
		ret->frag = XSPD_FRAG_FIRST;
	dissect_l4(v, ret);
	return DISSECT_FLOW;
}

static inline bool dissect_is_ext(unsigned int proto)
{
	return proto == 0 || proto == 43 || proto == 60;
}

static inline enum dissect dissect_ip6(struct dissect_view *v, unsigned int max,
				       struct xspd_flow *ret)
{
	unsigned int followed = 0;
	size_t len;

	if (v->n < 40 || v->p[0] >> 4 != 6)
		return DISSECT_DROP;
	len = dissect_be16(v, 4);
	if (len || v->p[6] != 0) {
		if (len + 40 > v->n)
			return DISSECT_DROP;
		v->n = len + 40;
	}
	v->at = 40;
	ret->family = XSPD_INET6;
	memcpy(ret->saddr, v->p + 8, 16);
	memcpy(ret->daddr, v->p + 24, 16);
	ret->proto = v->p[6];
	while (dissect_is_ext(ret->proto)) {
		if (followed++ == max)
			return DISSECT_UNTOLD;
		if (!dissect_has(v, 2))
			return DISSECT_FLOW;
		ret->proto = v->p[v->at];
		v->at += (v->p[v->at + 1] + 1) * 8;
	}
	if (ret->proto == 44 && dissect_has(v, 8)) {
		ret->proto = v->p[v->at];
		ret->frag = dissect_be16(v, v->at + 2) & 0xfff8 ? XSPD_FRAG_LATER : XSPD_FRAG_FIRST;
		if (dissect_is_ext(ret->proto) || ret->proto == 44)
			return DISSECT_UNTOLD;
	}
	dissect_l4(v, ret);
	return DISSECT_FLOW;
}

/* @p: @n bytes from the network header on; @max: extension headers that parse.h follows. */
static inline enum dissect dissect(const uint8_t *p, size_t n, unsigned int ethertype,
				   unsigned int max, struct xspd_flow *ret)
{
	struct dissect_view v = {.p = p, .n = n};
	int tags;

	for (tags = 0; tags < 2 && (ethertype == 0x8100 || ethertype == 0x88a8); tags++) {
		if (v.n < 4)
			return DISSECT_DROP;
		ethertype = dissect_be16(&v, 2);
		v.p += 4;
		v.n -= 4;
	}
	if (ethertype == 0x0800)
		return dissect_ip4(&v, ret);
	if (ethertype == 0x86dd)
		return dissect_ip6(&v, max, ret);
	return DISSECT_DROP;
}

#endif
