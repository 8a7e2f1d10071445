// SPDX-License-Identifier: GPL-2.0-only
/* Regions of change against the linear reference, flow by flow. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "diff/diff.h"
#include "util.h"

#define REGIONS_MAX 20000

static struct xspd_region regions[REGIONS_MAX];
static size_t region_count;

static uint32_t pick(uint32_t below)
{
	static uint64_t state = 0x853c49e6748fea9bull;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)((state >> 20) % below);
}

static __be32 word(void)
{
	return htonl(0x0a000000u | pick(4) << 16 | pick(4) << 8 | pick(4));
}

static void address(xfrm_address_t *addr, uint8_t *plen, uint16_t family)
{
	static const uint8_t lens4[] = {0, 8, 14, 16, 22, 24, 31, 32},
			     lens6[] = {0, 32, 48, 112, 128};

	addr->a6[0] = word();
	*plen = lens4[pick(8)];
	if (family != XSPD_INET6)
		return;
	addr->a6[3] = htonl(pick(4));
	*plen = lens6[pick(5)];
}

/* Of few addresses, ports, and marks: they meet. */
static struct xspd_pol random_pol(uint32_t number, bool sub)
{
	static const uint8_t protos[] = {IPPROTO_UDP, IPPROTO_ICMP, IPPROTO_GRE, IPPROTO_ESP};
	uint16_t family = pick(4) ? XSPD_INET : XSPD_INET6;
	struct xspd_pol pol = {.sel = {.family = family}, .dir = (uint8_t)pick(3)};

	address(&pol.sel.saddr, &pol.sel.prefixlen_s, family);
	address(&pol.sel.daddr, &pol.sel.prefixlen_d, family);
	pol.index = number * 8 + pol.dir;
	pol.priority = pick(4);
	if (!pick(3))
		pol.sel.proto = protos[pick(4)];
	if (!pick(3)) {
		pol.sel.dport = htons((uint16_t)pick(3));
		pol.sel.dport_mask = pick(2) ? 0xffff : htons(0xfffe);
	}
	if (!pick(6)) {
		pol.sel.sport = htons((uint16_t)pick(3));
		pol.sel.sport_mask = 0xffff;
	}
	if (!pick(5)) {
		pol.mark_mask = pick(2) ? 3 : 1;
		pol.mark = pick(4) & pol.mark_mask;
	}
	if (!pick(8))
		pol.sel.ifindex = (int)(1 + pick(2));
	if (!pick(8))
		pol.if_id = 7;
	if (sub && !pick(4))
		pol.type = XSPD_SUB;
	pol.action = !pick(3);
	if (!pol.action && pick(2))
		pol.tmpl = (struct xspd_tmpl){.reqid = 1 + pick(2), .count = 1, .required = 1};
	if (!pick(40))
		pol.unmodelled = XSPD_UNMODELLED_OFFLOAD;
	return pol;
}

static struct xspd_flow random_flow(void)
{
	static const uint8_t protos[] = {
		IPPROTO_UDP, IPPROTO_TCP, IPPROTO_ICMP, IPPROTO_ICMPV6, IPPROTO_GRE,
		IPPROTO_ESP, 99};
	struct xspd_flow flow = {.family = pick(4) ? XSPD_INET : XSPD_INET6,
				 .dir = (enum xspd_dir)pick(3),
				 .proto = protos[pick(7)],
				 .mark = pick(4),
				 .oif = pick(3),
				 .if_id = pick(6) ? 0 : 7};

	flow.saddr[0] = word();
	flow.daddr[0] = word();
	if (flow.family == XSPD_INET6) {
		flow.saddr[3] = htonl(pick(4));
		flow.daddr[3] = htonl(pick(4));
	}
	if (flow.proto != IPPROTO_ESP && flow.proto != 99 &&
	    flow.proto != (flow.family == XSPD_INET6 ? IPPROTO_ICMP : IPPROTO_ICMPV6)) {
		flow.sport = htons((uint16_t)pick(4));
		flow.dport = htons((uint16_t)pick(4));
	}
	return flow;
}

static int keep(void *ctx, const struct xspd_region *region)
{
	(void)ctx;
	cr_assert_lt(region_count, REGIONS_MAX);
	regions[region_count++] = *region;
	return 0;
}

static bool in_region(const struct xspd_flow *flow)
{
	for (size_t i = 0; i < region_count; i++)
		if (regions[i].dir == flow->dir && regions[i].family == flow->family &&
		    regions[i].if_id == flow->if_id && xspd_box_has(&regions[i].box, flow))
			return true;
	return false;
}

/* The same policies, but for a few that go, come, say something else, or stand elsewhere. */
static void mutate(struct xspd_spd *spd, const struct xspd_pol *pols, uint32_t count, bool sub)
{
	uint32_t changes = 1 + pick(count / 2 + 1);

	for (uint32_t i = 0; i < count; i++)
		cr_assert_eq(xspd_spd_upsert(spd, &pols[i]), 0);
	for (uint32_t i = 0; i < changes; i++) {
		struct xspd_pol pol = pols[pick(count)];

		switch (pick(4)) {
		case 0:
			xspd_spd_remove(spd, pol.index);
			break;
		case 1:
			pol = random_pol(1000 + i, sub);
			xspd_spd_upsert(spd, &pol);
			break;
		case 2:
			pol.action ^= 1;
			xspd_spd_upsert(spd, &pol);
			break;
		default:
			pol.priority = pick(4);
			xspd_spd_upsert(spd, &pol);
		}
	}
}

static void certain(struct xspd_spd *spd)
{
	for (struct xspd_pol *pol = spd->by_index; pol; pol = pol->hh.next)
		pol->tie = false;
}

static void check_examples(const struct xspd_spd *before, const struct xspd_spd *after,
			   size_t *unproven)
{
	struct xspd_ref a, b;

	for (size_t i = 0; i < region_count; i++) {
		const struct xspd_region *region = &regions[i];

		if (!region->proven) {
			++*unproven;
			continue;
		}
		cr_assert(xspd_box_has(&region->box, &region->example));
		xspd_spd_lookup(before, &region->example, &a);
		xspd_spd_lookup(after, &region->example, &b);
		cr_assert_not(xspd_ref_same(&a, &b), "region %zu: the example does not differ", i);
		cr_assert(xspd_ref_same(&a, &region->before));
		cr_assert(xspd_ref_same(&b, &region->after));
	}
}

static void run(uint32_t rounds, uint32_t size, bool sub)
{
	size_t differ = 0, proven = 0, unproven = 0;
	struct xspd_diff_counts counts;
	struct xspd_pol pols[64];

	for (uint32_t round = 0; round < rounds; round++) {
		struct xspd_spd *before = xspd_spd_new(), *after = xspd_spd_new();
		uint32_t count = 1 + pick(size);

		for (uint32_t i = 0; i < count; i++) {
			pols[i] = random_pol(i + 1, sub);
			cr_assert_eq(xspd_spd_upsert(before, &pols[i]), 0);
		}
		mutate(after, pols, count, sub);
		before->defaults = after->defaults = pick(8);
		certain(after);
		region_count = 0;
		cr_assert_eq(xspd_diff(before, after, keep, NULL, &counts), 0);
		cr_assert_eq(counts.regions, region_count);
		check_examples(before, after, &unproven);
		proven += region_count;
		for (int i = 0; i < 2000; i++) {
			struct xspd_flow flow = random_flow();
			struct xspd_ref a, b;

			xspd_spd_lookup(before, &flow, &a);
			xspd_spd_lookup(after, &flow, &b);
			if (xspd_ref_same(&a, &b))
				continue;
			differ++;
			cr_assert(in_region(&flow), "round %u: a flow that differs in no region",
				  round);
		}
		xspd_spd_free(before);
		xspd_spd_free(after);
	}
	cr_log_info("%zu regions, %zu without an example, %zu flows that differ\n", proven,
		    unproven, differ);
	cr_expect_gt(differ, rounds * 5);
	cr_expect_lt(unproven * 20, proven);
}

Test(diff, main_policies)
{
	run(150, 40, false);
}

Test(diff, sub_policies)
{
	run(150, 30, true);
}

static uint32_t diff_of(const struct xspd_pol *a, size_t na, const struct xspd_pol *b, size_t nb,
			struct xspd_diff_counts *counts)
{
	struct xspd_spd *before = xspd_spd_new(), *after = xspd_spd_new();

	region_count = 0;
	for (size_t i = 0; i < na; i++)
		cr_assert_eq(xspd_spd_upsert(before, &a[i]), 0);
	for (size_t i = 0; i < nb; i++)
		cr_assert_eq(xspd_spd_upsert(after, &b[i]), 0);
	cr_assert_eq(xspd_diff(before, after, keep, NULL, counts), 0);
	xspd_spd_free(before);
	xspd_spd_free(after);
	return counts->regions;
}

static struct xspd_pol pol4(uint32_t index, uint32_t dst, uint8_t plen, uint32_t priority)
{
	struct xspd_pol pol = {.sel = {.family = XSPD_INET, .prefixlen_d = plen},
			       .index = index,
			       .dir = XSPD_OUT,
			       .priority = priority};

	pol.sel.daddr.a4 = htonl(dst);
	return pol;
}

Test(diff, same_policies_by_other_numbers)
{
	struct xspd_pol a[] = {pol4(9, 0x0a000000, 8, 5), pol4(17, 0x0a010000, 16, 4)};
	struct xspd_pol b[] = {pol4(1001, 0x0a000000, 8, 50), pol4(1009, 0x0a010000, 16, 40)};
	struct xspd_diff_counts counts;

	cr_expect_eq(diff_of(a, 2, b, 2, &counts), 0);
	cr_expect_eq(counts.moved + counts.changed + counts.only_before + counts.only_after, 0);
}

/* What is hidden before and after may go without a trace. */
Test(diff, shadowed)
{
	struct xspd_pol a[] = {pol4(9, 0x0a000000, 8, 1), pol4(17, 0x0a010000, 16, 2)};
	struct xspd_diff_counts counts;

	cr_expect_eq(diff_of(a, 2, a, 1, &counts), 0);
	cr_expect_eq(counts.only_before, 1);
}

/* Two halves that hide a third together, which no single policy does. */
Test(diff, shadowed_by_two)
{
	struct xspd_pol a[] = {pol4(9, 0x0a000000, 9, 1), pol4(17, 0x0a800000, 9, 1),
			       pol4(25, 0x0a000000, 8, 2)};
	struct xspd_diff_counts counts;

	cr_expect_eq(diff_of(a, 3, a, 2, &counts), 0);
	a[1].sel.prefixlen_d = 10;
	cr_expect_eq(diff_of(a, 3, a, 2, &counts), 1);
	cr_expect_eq(regions[0].example.daddr[0] & htonl(0xffc00000), htonl(0x0ac00000));
}

/* Swapped priorities: only what both match changes. */
Test(diff, order)
{
	struct xspd_pol a[] = {pol4(9, 0x0a000000, 8, 1), pol4(17, 0x0a010000, 16, 2)};
	struct xspd_pol b[] = {pol4(9, 0x0a000000, 8, 3), pol4(17, 0x0a010000, 16, 2)};
	struct xspd_diff_counts counts;

	cr_expect_eq(diff_of(a, 2, b, 2, &counts), 1);
	cr_expect_eq(counts.moved, 1);
	cr_expect_eq(regions[0].example.daddr[0] & htonl(0xffff0000), htonl(0x0a010000));
}

/* Ports of a protocol without ports are no flow: nothing changes for any packet. */
Test(diff, impossible_flows)
{
	struct xspd_pol a[] = {pol4(9, 0x0a000000, 8, 1)};
	struct xspd_diff_counts counts;

	a[0].sel.proto = IPPROTO_ESP;
	a[0].sel.dport = htons(53);
	a[0].sel.dport_mask = 0xffff;
	cr_expect_eq(diff_of(a, 1, a, 0, &counts), 0);
	a[0].sel.proto = IPPROTO_TCP;
	cr_expect_eq(diff_of(a, 1, a, 0, &counts), 1);
}
