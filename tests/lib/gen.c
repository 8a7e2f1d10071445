// SPDX-License-Identifier: GPL-2.0-only
#include <arpa/inet.h>
#include <linux/xfrm.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/gen.h"
#include "util.h"
#include "xspd/hash.h"

#define PICK(gen, table) ((table)[gen_below(gen, XSPD_ARRAY_SIZE(table))])

void gen_init(struct gen *gen, const char *name, uint64_t seed)
{
	const char *env = getenv("XSPD_SEED");

	if (env)
		seed = strtoull(env, NULL, 0);
	memset(gen, 0, sizeof(*gen));
	gen->state = seed * XSPD_HASH_K1 + 1;
	gen->next_reqid = 1;
	gen->dir = -1;
	printf("%s: seed %llu\n", name, (unsigned long long)seed);
}

/* xorshift64* */
uint32_t gen_next(struct gen *gen)
{
	gen->state ^= gen->state >> 12;
	gen->state ^= gen->state << 25;
	gen->state ^= gen->state >> 27;
	return (uint32_t)((gen->state * 0x2545f4914f6cdd1dull) >> 32);
}

uint32_t gen_below(struct gen *gen, uint32_t end)
{
	return (uint32_t)(((uint64_t)gen_next(gen) * end) >> 32);
}

bool gen_chance(struct gen *gen, uint32_t percent)
{
	return gen_below(gen, 100) < percent;
}

static void gen_address(struct gen *gen, uint8_t family, void *ret)
{
	static const uint8_t octets[] = {0, 1, 2, 127, 128, 129, 255};
	static const uint16_t groups[] = {0, 0, 1, 0x7fff, 0x8000};
	uint8_t v4[4] = {10, PICK(gen, octets) & 129, PICK(gen, octets), PICK(gen, octets)};
	uint16_t v6[8] = {htons(0x2001), htons(0xdb8)};

	memset(ret, 0, 16);
	if (family == AF_INET) {
		memcpy(ret, v4, sizeof(v4));
		return;
	}
	for (int i = 2; i < 8; i++)
		v6[i] = htons(PICK(gen, groups));
	memcpy(ret, v6, sizeof(v6));
}

static uint8_t gen_plen(struct gen *gen, uint8_t family)
{
	static const uint8_t v4[] = {0, 8, 9, 15, 16, 17, 20, 23, 24, 24, 28, 31, 32, 32, 32};
	static const uint8_t v6[] = {0,	 32, 33, 47, 48,  49,  56,  63,
				     64, 64, 65, 96, 112, 127, 128, 128};

	if (gen_chance(gen, 10))
		return (uint8_t)gen_below(gen, family == AF_INET ? 33 : 129);
	return family == AF_INET ? PICK(gen, v4) : PICK(gen, v6);
}

static void mask_address(void *addr, unsigned int plen)
{
	uint8_t *byte = addr;

	for (unsigned int i = 0; i < 16; i++) {
		unsigned int bits = plen > i * 8 ? plen - i * 8 : 0;

		if (bits < 8)
			byte[i] &= (uint8_t)(0xff00 >> bits);
	}
}

static void gen_prefix(struct gen *gen, uint8_t family, xfrm_address_t *addr, uint8_t *plen)
{
	*plen = gen_plen(gen, family);
	gen_address(gen, family, addr);
	/* host bits may stay: they are part of the identity */
	if (!gen_chance(gen, 10))
		mask_address(addr, *plen);
	else if (gen_chance(gen, 20))
		memset(addr, 0, sizeof(*addr));
}

static uint8_t gen_proto(struct gen *gen, uint8_t family)
{
	static const uint8_t protos[] = {IPPROTO_TCP,  IPPROTO_TCP, IPPROTO_UDP,  IPPROTO_UDP,
					 IPPROTO_UDP,  IPPROTO_GRE, IPPROTO_SCTP, IPPROTO_ICMP,
					 IPPROTO_ICMP, IPPROTO_ESP, IPPROTO_IPIP, IPPROTO_UDPLITE};
	uint8_t proto = PICK(gen, protos);

	return proto == IPPROTO_ICMP && family == AF_INET6 ? IPPROTO_ICMPV6 : proto;
}

static uint16_t gen_port(struct gen *gen, uint8_t proto)
{
	static const uint16_t ports[] = {0, 1, 22, 53, 80, 443, 500, 4500, 8080, 40000, 65535};
	static const uint16_t icmp[] = {0, 1, 3, 8, 128, 129, 135};

	if (proto == IPPROTO_ICMP || proto == IPPROTO_ICMPV6)
		return PICK(gen, icmp);
	return gen_chance(gen, 80) ? PICK(gen, ports) : (uint16_t)gen_next(gen);
}

static void gen_ports(struct gen *gen, uint8_t proto, __be16 *port, __be16 *port_mask)
{
	static const uint16_t masks[] = {0xffff, 0xffff, 0xffff, 0xfffe, 0xff00, 0xfff0,
					 0xf000, 0x8000, 0x0f0f, 0x8001, 0x00ff, 0x0001};
	uint16_t mask;

	if (gen_chance(gen, 60))
		return;
	mask = gen_chance(gen, 95) ? PICK(gen, masks) : (uint16_t)gen_next(gen);
	*port_mask = htons(mask);
	*port = htons(gen_port(gen, proto));
	if (gen_chance(gen, 90))
		*port &= *port_mask;
}

static uint32_t gen_mark(struct gen *gen)
{
	static const uint32_t marks[] = {0, 0, 1, 2, 0x100, 0x101, 0xd00, 0xe00, 0x80000001};

	return PICK(gen, marks);
}

uint32_t gen_priority(struct gen *gen)
{
	static const uint32_t ends[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff};

	if (gen_chance(gen, 3))
		return PICK(gen, ends);
	return 100 * (1 + gen_below(gen, 5));
}

void gen_policy(struct gen *gen, struct xspd_pol *ret)
{
	static const uint32_t mark_masks[] = {0xffffffff, 0xffffffff, 0xff, 0xf00, 0x80000000, 0x3};
	static const uint32_t if_ids[] = {1, 2, 3, 0xffffffff};
	uint8_t family = gen_chance(gen, 50) ? AF_INET : AF_INET6;
	struct xspd_pol pol = {.sel.family = family};

	pol.dir = gen->dir < 0 ? (uint8_t)gen_below(gen, 3) : (uint8_t)gen->dir;
	pol.type = gen_chance(gen, gen->sub) ? XSPD_SUB : XSPD_MAIN;
	pol.action = gen_chance(gen, gen->block) ? XSPD_BLOCK : XSPD_ALLOW;
	pol.priority = gen_priority(gen);
	gen_prefix(gen, family, &pol.sel.saddr, &pol.sel.prefixlen_s);
	gen_prefix(gen, family, &pol.sel.daddr, &pol.sel.prefixlen_d);
	pol.sel.proto = gen_chance(gen, 50) ? gen_proto(gen, family) : 0;
	gen_ports(gen, pol.sel.proto, &pol.sel.sport, &pol.sel.sport_mask);
	gen_ports(gen, pol.sel.proto, &pol.sel.dport, &pol.sel.dport_mask);
	if (gen_chance(gen, gen->dev))
		pol.sel.ifindex = (int)gen->devs[gen_below(gen, 3)];
	if (gen_chance(gen, gen->user))
		pol.sel.user = gen_below(gen, 3);
	if (gen_chance(gen, gen->if_id))
		pol.if_id = PICK(gen, if_ids);
	if (gen_chance(gen, gen->mark)) {
		pol.mark_mask = PICK(gen, mark_masks);
		pol.mark = gen_mark(gen) & pol.mark_mask;
	}
	pol.tmpl = (struct xspd_tmpl){.reqid = gen->next_reqid++,
				      .proto = IPPROTO_ESP,
				      .mode = XFRM_MODE_TRANSPORT,
				      .count = 1,
				      .required = !gen->optional && gen_chance(gen, 70)};
	*ret = pol;
}

/* An address below the prefix, now and then just outside it. */
static void flow_address(struct gen *gen, const xfrm_address_t *addr, uint8_t plen, uint8_t family,
			 void *ret)
{
	uint8_t prefix[16], *byte = ret;
	unsigned int bit;

	memcpy(prefix, addr, sizeof(prefix));
	mask_address(prefix, plen);
	memset(ret, 0, 16);
	if (gen_chance(gen, 90))
		gen_address(gen, family, ret);
	for (unsigned int i = 0; i < 16; i++) {
		unsigned int bits = plen > i * 8 ? plen - i * 8 : 0;
		uint8_t mask = bits < 8 ? (uint8_t)(0xff00 >> bits) : 0xff;

		byte[i] = (prefix[i] & mask) | (byte[i] & ~mask);
	}
	if (plen && gen_chance(gen, 8)) {
		bit = plen - 1 - gen_below(gen, plen < 4 ? plen : 4);
		byte[bit / 8] ^= 0x80 >> (bit % 8);
	}
}

static __be16 flow_port(struct gen *gen, uint8_t proto, __be16 port, __be16 port_mask)
{
	__be16 other = htons(gen_port(gen, proto));

	if (gen_chance(gen, 5))
		return other;
	return (port & port_mask) | (other & ~port_mask);
}

static void flow_ports(struct gen *gen, const struct xfrm_selector *sel, struct xspd_flow *flow)
{
	switch (flow->proto) {
	case IPPROTO_TCP:
	case IPPROTO_UDP:
	case IPPROTO_UDPLITE:
	case IPPROTO_SCTP:
	case IPPROTO_GRE:
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		flow->sport = flow_port(gen, flow->proto, sel->sport, sel->sport_mask);
		flow->dport = flow_port(gen, flow->proto, sel->dport, sel->dport_mask);
		break;
	default:
		break;
	}
	if (flow->proto == IPPROTO_ICMP || flow->proto == IPPROTO_ICMPV6) {
		flow->sport &= htons(0xff);
		flow->dport &= htons(0xff);
	}
}

void gen_flow(struct gen *gen, const struct xspd_pol *src, const struct xspd_pol *dst,
	      struct xspd_flow *ret)
{
	struct xspd_flow flow = {};
	struct xspd_pol any;

	if (!src || !dst || src->sel.family != dst->sel.family) {
		gen_policy(gen, &any);
		gen->next_reqid--;
		src = src ? src : &any;
		dst = src;
	}
	flow.family = (uint8_t)dst->sel.family;
	flow.dir = gen_chance(gen, 95) || gen->dir >= 0 ? dst->dir : (uint8_t)gen_below(gen, 3);
	flow_address(gen, &src->sel.saddr, src->sel.prefixlen_s, flow.family, flow.saddr);
	flow_address(gen, &dst->sel.daddr, dst->sel.prefixlen_d, flow.family, flow.daddr);
	flow.proto = dst->sel.proto;
	if (!flow.proto || gen_chance(gen, 5))
		flow.proto = gen_proto(gen, flow.family);
	flow_ports(gen, &dst->sel, &flow);
	if (gen->flow_marks)
		flow.mark = gen_chance(gen, 80) ? dst->mark | (gen_mark(gen) & ~dst->mark_mask)
						: gen_mark(gen);
	flow.oif = (uint32_t)dst->sel.ifindex;
	if (!flow.oif || gen_chance(gen, 10))
		flow.oif = gen->devs[gen_below(gen, 3)];
	flow.if_id = gen->if_id && gen_chance(gen, 5) ? gen_below(gen, 4) : dst->if_id;
	*ret = flow;
}
