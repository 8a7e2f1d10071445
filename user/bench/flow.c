/* SPDX-License-Identifier: GPL-2.0-only */
/* Random flows through a policy: what the selector leaves open is drawn. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "bench/shape.h"

#define PLAIN_PORT 40000

/* Random bits from bit @len of @addr on. */
static void fill_host(struct xspd_rng *rng, __be32 *addr, unsigned int words, unsigned int len)
{
	for (unsigned int i = 0; i < words; i++) {
		unsigned int fixed = len > i * 32 ? len - i * 32 : 0;
		uint32_t keep = fixed >= 32 ? ~0u : fixed ? ~0u << (32 - fixed) : 0;

		addr[i] = htonl((ntohl(addr[i]) & keep) | ((uint32_t)xspd_rng_next(rng) & ~keep));
	}
}

/* What a route can lead to: no multicast, loopback or "this network". */
static bool is_unicast(const __be32 *addr, bool v6)
{
	uint8_t top = *(const uint8_t *)addr;

	if (v6)
		return (top & 0xe0) == 0x20;
	return top > 0 && top < 224 && top != 127;
}

static void draw_addr(struct xspd_rng *rng, const xfrm_address_t *net, uint8_t len, bool v6,
		      __be32 ret[4])
{
	const __be32 global[4] = {htonl(0x20000000)};
	unsigned int words = v6 ? 4 : 1;
	const void *base = net;

	if (v6 && len < 3) { /* 2000::/3 is all the unicast there is */
		base = global;
		len = 3;
	}
	/* a net outside of unicast never becomes routable: give up in time */
	for (int tries = 0; tries < 64; tries++) {
		memcpy(ret, base, words * 4);
		fill_host(rng, ret, words, len);
		if (is_unicast(ret, v6))
			return;
	}
}

/* Never port 0 if there is a choice: no socket can send there. */
static __be16 draw_port(struct xspd_rng *rng, __be16 port, __be16 mask)
{
	__be16 ret;

	do {
		ret = (port & mask) | ((__be16)xspd_rng_next(rng) & ~mask);
	} while (!ret && mask != 0xffff);
	return ret;
}

void xspd_bench_flow(struct xspd_rng *rng, const struct xspd_pol *pol, uint32_t oif,
		     struct xspd_flow *ret)
{
	bool v6 = pol->sel.family == AF_INET6;
	struct xspd_flow flow = {
		.family = v6 ? XSPD_INET6 : XSPD_INET,
		.dir = pol->dir,
		.proto = pol->sel.proto ? pol->sel.proto : IPPROTO_UDP,
		.oif = pol->sel.ifindex ? (uint32_t)pol->sel.ifindex : oif,
		.mark = pol->mark & pol->mark_mask,
		.if_id = pol->if_id,
	};

	draw_addr(rng, &pol->sel.daddr, pol->sel.prefixlen_d, v6, flow.daddr);
	draw_addr(rng, &pol->sel.saddr, pol->sel.prefixlen_s, v6, flow.saddr);
	flow.dport = draw_port(rng, pol->sel.dport, pol->sel.dport_mask);
	/* one socket can say all of these; a port that no policy looks at costs the same */
	flow.sport = htons(PLAIN_PORT);
	if (pol->sel.sport_mask)
		flow.sport = draw_port(rng, pol->sel.sport, pol->sel.sport_mask);
	*ret = flow;
}

void xspd_bench_hits(const struct xspd_bench_set *set, uint32_t oif, struct xspd_flow *ret,
		     uint32_t count)
{
	struct xspd_rng rng = {.state = 1};
	struct xspd_pol pol;

	for (uint32_t i = 0; i < count; i++) {
		xspd_bench_pol(set, xspd_rng_below(&rng, set->count), &pol);
		xspd_bench_flow(&rng, &pol, oif, &ret[i]);
	}
}

void xspd_bench_misses(const struct xspd_bench_set *set, uint32_t oif, struct xspd_flow *ret,
		       uint32_t count)
{
	uint32_t block = set->shape->block ? set->shape->block : 1;
	uint32_t first = (set->count + block - 1) / block * block;
	uint32_t room = set->shape->room ? set->shape->room - first : 60000;
	struct xspd_rng rng = {.state = 2};
	struct xspd_pol pol;

	for (uint32_t i = 0; i < count; i++) {
		xspd_bench_pol(set, first + xspd_rng_below(&rng, room), &pol);
		xspd_bench_flow(&rng, &pol, oif, &ret[i]);
	}
}
