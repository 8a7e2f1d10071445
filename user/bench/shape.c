/* SPDX-License-Identifier: GPL-2.0-only */
/* The shapes of real deployments, and some that nobody has but an attacker might make. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "bench/shape.h"
#include "util.h"

#define GOLDEN 0x9e3779b1u /* odd: multiplying by it permutes the low bits */

/* The same bits in another order, so that neighbours in number are no neighbours in address. */
static uint32_t scatter(uint32_t i, unsigned int bits)
{
	return (i * GOLDEN) & ((1u << bits) - 1);
}

static void set_dst4(struct xspd_pol *pol, uint32_t addr, uint8_t len)
{
	pol->sel.daddr.a4 = htonl(addr);
	pol->sel.prefixlen_d = len;
}

static void set_src4(struct xspd_pol *pol, uint32_t addr, uint8_t len)
{
	pol->sel.saddr.a4 = htonl(addr);
	pol->sel.prefixlen_s = len;
}

/* 2001:db8:hi::lo; shapes with /64 use hi, those with /128 use lo. */
static void set_addr6(xfrm_address_t *addr, uint32_t hi, uint32_t lo)
{
	addr->a6[0] = htonl(0x20010db8);
	addr->a6[1] = htonl(hi);
	addr->a6[2] = 0;
	addr->a6[3] = htonl(lo);
}

static void set_udp_dport(struct xspd_pol *pol, uint16_t port)
{
	pol->sel.proto = IPPROTO_UDP;
	pol->sel.dport = htons(port);
	pol->sel.dport_mask = 0xffff;
}

/* strongSwan's rule: the more specific the selector, the lower the number. */
static uint32_t specific(const struct xfrm_selector *sel)
{
	unsigned int ports = (unsigned int)__builtin_popcount(sel->dport_mask) +
			     (unsigned int)__builtin_popcount(sel->sport_mask);

	return 400000 - (sel->prefixlen_d + sel->prefixlen_s) * 512u - (sel->proto ? 256 : 0) -
	       ports * 4 - 1;
}

static void roadwarrior(uint32_t i, struct xspd_pol *pol)
{
	set_dst4(pol, 10u << 24 | scatter(i, 24), 32);
}

static void roadwarrior6(uint32_t i, struct xspd_pol *pol)
{
	pol->sel.family = AF_INET6;
	set_addr6(&pol->sel.daddr, 1, i * GOLDEN);
	pol->sel.prefixlen_d = 128;
}

/* One /16 over its clients, again for each 65,536 policies. The cover is inserted first. */
static void pool(uint32_t i, struct xspd_pol *pol)
{
	uint32_t net = (10u << 8 | (1 + (i >> 16))) << 16;
	uint32_t host = scatter(i, 16);

	set_dst4(pol, net | host, host ? 32 : 16);
}

static void vti(uint32_t i, struct xspd_pol *pol)
{
	pol->mark = i + 1;
	pol->mark_mask = ~0u;
}

static void vti6(uint32_t i, struct xspd_pol *pol)
{
	pol->sel.family = AF_INET6;
	vti(i, pol);
}

static void ports(uint32_t i, struct xspd_pol *pol)
{
	uint32_t pair = i / 60000;

	set_src4(pol, (10u << 8 | 1) << 16, 16);
	set_dst4(pol, (10u << 8 | (2 + pair)) << 16, 16);
	set_udp_dport(pol, (uint16_t)(1 + i % 60000));
}

static void site(uint32_t i, struct xspd_pol *pol)
{
	uint32_t net = (16 + (i >> 16)) << 24 | scatter(i, 16) << 8;

	set_src4(pol, 10u << 24 | scatter(i * 7, 16) << 8, 24);
	set_dst4(pol, net, 24);
}

static void site6(uint32_t i, struct xspd_pol *pol)
{
	pol->sel.family = AF_INET6;
	set_addr6(&pol->sel.saddr, scatter(i * 7, 16), 0);
	set_addr6(&pol->sel.daddr, 1u << 31 | scatter(i, 31), 0);
	pol->sel.prefixlen_s = 64;
	pol->sel.prefixlen_d = 64;
}

/* One /8 over the /24 of its sites, again for each 65,536 policies. */
static void hub(uint32_t i, struct xspd_pol *pol)
{
	if (i & 0xffff)
		site(i, pol);
	else
		set_dst4(pol, (16 + (i >> 16)) << 24, 8);
}

static void ifid(uint32_t i, struct xspd_pol *pol)
{
	pol->if_id = i + 1;
}

/* Pairs (a, b) in shells, so that the number of hosts need not be known. */
static void mesh_pair(uint32_t i, uint32_t *a, uint32_t *b)
{
	uint32_t shell = 0, rest, bit;

	for (bit = 1u << 15; bit; bit >>= 1)
		if ((shell + bit) * (shell + bit) <= i)
			shell += bit;
	rest = i - shell * shell;
	*a = rest <= shell ? shell : rest - shell - 1;
	*b = rest <= shell ? rest : shell;
}

static void mesh(uint32_t i, struct xspd_pol *pol)
{
	uint32_t a, b;

	mesh_pair(i, &a, &b);
	set_src4(pol, (10u << 8 | 1) << 16 | a, 32);
	set_dst4(pol, (10u << 8 | 2) << 16 | b, 32);
}

static void mesh6(uint32_t i, struct xspd_pol *pol)
{
	uint32_t a, b;

	mesh_pair(i, &a, &b);
	pol->sel.family = AF_INET6;
	set_addr6(&pol->sel.saddr, 1, a);
	set_addr6(&pol->sel.daddr, 2, b);
	pol->sel.prefixlen_s = 128;
	pol->sel.prefixlen_d = 128;
}

static void one(uint32_t i, struct xspd_pol *pol)
{
	set_src4(pol, 0xc0000201, 32);
	set_dst4(pol, 10u << 24 | scatter(i, 24), 32);
}

/* Priorities are mixed over the four, so that none of them can be skipped. */
static void four(uint32_t i, struct xspd_pol *pol)
{
	uint32_t net = 10 + (i & 3);

	set_dst4(pol, net << 24 | scatter(i >> 2, 24), 32);
	if (i & 1)
		set_src4(pol, 0xc0000201, 32);
	if (i & 2)
		set_udp_dport(pol, 4789);
	pol->priority = 1000 + ((i * GOLDEN) >> 16) % 1000;
}

static void bypass(uint32_t i, struct xspd_pol *pol)
{
	if (i)
		set_udp_dport(pol, (uint16_t)i);
}

static void block_all(uint32_t i, struct xspd_pol *pol)
{
	if (i)
		site(i, pol);
	else
		pol->action = XSPD_BLOCK;
}

/* Each peer's twins have the same priority: a flow 6081 to 6081 is theirs by age. */
static void ovs(uint32_t i, struct xspd_pol *pol)
{
	set_src4(pol, 0xc0000201, 32);
	set_dst4(pol, 10u << 24 | scatter(i >> 1, 24), 32);
	pol->sel.proto = IPPROTO_UDP;
	if (i & 1) {
		pol->sel.sport = htons(6081);
		pol->sel.sport_mask = 0xffff;
	} else {
		pol->sel.dport = htons(6081);
		pol->sel.dport_mask = 0xffff;
	}
}

/* The nodes' policies win over the block of what is no node's. */
static void cilium(uint32_t i, struct xspd_pol *pol)
{
	if (i) {
		pol->priority = 50;
		set_dst4(pol, 10u << 24 | scatter(i, 16) << 8, 24);
		pol->mark = i << 16 | (3 + (i >> 16)) << 12 | 0x0e00;
		pol->mark_mask = 0xffffff00;
		return;
	}
	pol->mark = 0x0e00;
	pol->mark_mask = 0x0f00;
	pol->action = XSPD_BLOCK;
	pol->priority = 100;
}

/* Each client has a policy of either type; both are asked then. */
static void sub(uint32_t i, struct xspd_pol *pol)
{
	set_dst4(pol, 10u << 24 | scatter(i >> 1, 24), 32);
	pol->type = i & 1 ? XSPD_SUB : XSPD_MAIN;
}

/* Random nets of 200 pairs of prefix lengths: most tuples can be left out. */
static void pairs(uint32_t i, struct xspd_pol *pol)
{
	struct xspd_rng rng = {.state = i};
	uint32_t pair = i % 200;

	set_dst4(pol, 2u << 30 | (uint32_t)(xspd_rng_next(&rng) & 0x3fffffff), 13 + pair / 10);
	set_src4(pol, 2u << 30 | (uint32_t)(xspd_rng_next(&rng) & 0x3fffffff), 15 + pair % 10);
	pol->sel.daddr.a4 &= htonl(~0u << (32 - pol->sel.prefixlen_d));
	pol->sel.saddr.a4 &= htonl(~0u << (32 - pol->sel.prefixlen_s));
	pol->priority = 1000 + (i * GOLDEN >> 8) % 1000;
}

/* 200 pairs of prefix lengths, every one of which covers every flow: nothing can be left out. */
static void adversarial(uint32_t i, struct xspd_pol *pol)
{
	uint32_t pair = i % 200;

	set_dst4(pol, 0x0a010200, 5 + pair / 10);
	set_src4(pol, 0x0a030400, 15 + pair % 10);
	pol->sel.daddr.a4 &= htonl(~0u << (32 - pol->sel.prefixlen_d));
	pol->sel.saddr.a4 &= htonl(~0u << (32 - pol->sel.prefixlen_s));
	set_udp_dport(pol, (uint16_t)(1 + i));
	pol->priority = 1000 + (i * GOLDEN >> 8) % 1000;
}

const struct xspd_shape xspd_shapes[] = {
	{"pool", "clients /32 under the /16 of their pool", pool, .block = 65536, .linear = true},
	{"vti", "0/0 to 0/0, one mark a tunnel", vti, .linear = true},
	{"ports", "UDP ports of one pair of /16", ports, .linear = true},
	{"roadwarrior", "0/0 to a /32 each", roadwarrior},
	{"site", "/24 to /24 pairs", site},
	{"hub", "/24 to /24 pairs under a /8", hub, .block = 65536},
	{"ifid", "0/0 to 0/0, one if_id a tunnel", ifid, .migrate = true},
	{"mesh", "host to host pairs", mesh},
	{"bypass", "UDP ports above a 0/0 tunnel", bypass, .max = 60000, .room = 65536,
	 .linear = true, .catch_all = true},
	{"block-all", "/24 to /24 pairs above a 0/0 block", block_all, .catch_all = true},
	{"ovs", "per peer: udp dport 6081 and udp sport 6081", ovs},
	{"cilium", "a /24 and a mark with a mask a node", cilium, .max = 65536, .catch_all = true},
	{"sub", "clients /32, a sub and a main policy each", sub},
	{"one", "one host to a /32 each: one mask class", one},
	{"four", "four mask classes, priorities mixed", four},
	{"pairs", "200 pairs of prefix lengths, random nets", pairs},
	{"adversarial", "200 pairs of prefix lengths over every flow", adversarial, .max = 60000,
	 .room = 65535, .linear = true},
	{"roadwarrior6", "::/0 to a /128 each", roadwarrior6},
	{"site6", "/64 to /64 pairs", site6},
	{"mesh6", "host to host pairs, IPv6", mesh6},
	{"vti6", "::/0 to ::/0, one mark a tunnel", vti6, .linear = true},
	{},
};

const struct xspd_shape *xspd_shape_find(const char *name)
{
	const struct xspd_shape *shape;

	for (shape = xspd_shapes; shape->name; shape++)
		if (!strcmp(shape->name, name))
			return shape;
	return NULL;
}

int xspd_bench_set_open(struct xspd_bench_set *ret, const char *name, uint32_t count,
			uint32_t *ret_line)
{
	struct xspd_bench_set set = {.name = name};
	int err;

	if (!strncmp(name, "file:", 5)) {
		set.migrate = true;
		err = xspd_bench_file_read(&set, name + 5, ret_line);
		if (err < 0) {
			xspd_bench_set_close(&set);
			return err;
		}
		*ret = set;
		return 0;
	}
	set.shape = xspd_shape_find(name);
	if (!set.shape)
		return -ENOENT;
	if (set.shape->max && count > set.shape->max)
		return -E2BIG;
	set.count = count;
	set.catch_all = set.shape->catch_all;
	set.linear = set.shape->linear;
	set.migrate = set.shape->migrate;
	*ret = set;
	return 0;
}

void xspd_bench_set_close(struct xspd_bench_set *set)
{
	free(set->pols);
	for (int i = 0; i < 2; i++) {
		free(set->trace[i]);
		free(set->winner[i]);
	}
	*set = (struct xspd_bench_set){};
}

void xspd_bench_pol(const struct xspd_bench_set *set, uint32_t i, struct xspd_pol *ret)
{
	struct xspd_pol pol = {.sel.family = AF_INET, .dir = XSPD_OUT};

	if (set->shape) {
		set->shape->pol(i, &pol);
		if (!pol.priority)
			pol.priority = specific(&pol.sel);
	} else {
		pol = set->pols[i];
	}
	pol.index = xspd_bench_index(i, pol.dir);
	*ret = pol;
}
