// SPDX-License-Identifier: GPL-2.0-only
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tune/tune.h"

static const struct xspd_tune_bits hosts = {32, 32, 128, 128};

/* One step, one nanosecond, so that costs can be counted. */
static const struct xspd_tune_costs unit = {
	.base = 1,
	.walk = {1, 1, 1, 1, 1},
	.host = {1, 1, 1, 1, 1},
	.tree = {1, 1, 1, 1, 1},
	.insert = {1, 1, 1, 1, 1},
};

/* Empty at first: each test is a process of its own. */
static struct {
	struct xspd_pol pol[4096];
	const struct xspd_pol *at[4096];
	uint32_t count;
} set;

static void address(const char *text, uint16_t *family, xfrm_address_t *addr, uint8_t *len)
{
	char buf[64];
	char *slash;

	snprintf(buf, sizeof(buf), "%s", text);
	slash = strchr(buf, '/');
	*slash = '\0';
	*family = strchr(buf, ':') ? AF_INET6 : AF_INET;
	*len = (uint8_t)atoi(slash + 1);
	cr_assert_eq(inet_pton(*family, buf, addr), 1);
}

static struct xspd_pol *add(const char *src, const char *dst)
{
	struct xspd_pol *pol = &set.pol[set.count];

	pol->dir = XSPD_OUT;
	pol->priority = 100;
	pol->pos = set.count + 1;
	pol->index = (set.count + 1) << 3 | XSPD_OUT;
	address(src, &pol->sel.family, &pol->sel.saddr, &pol->sel.prefixlen_s);
	address(dst, &pol->sel.family, &pol->sel.daddr, &pol->sel.prefixlen_d);
	set.at[set.count++] = pol;
	return pol;
}

/* @count more, the last @bits of whose address count up. */
static void add_hosts(const char *src, const char *dst, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct xspd_pol *pol = add(src, dst);
		uint8_t shift = (uint8_t)(32 - pol->sel.prefixlen_d);

		pol->sel.daddr.a4 = htonl(ntohl(pol->sel.daddr.a4) + ((i + 1) << shift));
	}
}

static struct xspd_tune_result predict(const struct xspd_tune_bits *now,
				       const struct xspd_tune_bits *bits)
{
	struct xspd_tune_result result;
	struct xspd_tune *tune;

	cr_assert_eq(xspd_tune_new(&tune, set.at, set.count, now, &unit), 0);
	xspd_tune_predict(tune, bits, &result);
	xspd_tune_free(tune);
	return result;
}

static struct xspd_tune_bits search(void)
{
	struct xspd_tune_bits best;
	struct xspd_tune *tune;

	cr_assert_eq(xspd_tune_new(&tune, set.at, set.count, &hosts, &unit), 0);
	xspd_tune_search(tune, &hosts, &best);
	xspd_tune_free(tune);
	return best;
}

Test(tune, empty)
{
	struct xspd_tune_result result = predict(&hosts, &hosts);
	struct xspd_tune_bits best = search();

	cr_expect_eq(result.cliffs_all, 0);
	cr_expect_eq(result.expected, 0);
	cr_expect_eq(result.stall, 0);
	cr_expect_eq(memcmp(&best, &hosts, sizeof(best)), 0);
}

Test(tune, networks_that_do_not_nest_have_lists_of_their_own)
{
	struct xspd_tune_result result;

	add_hosts("10.0.0.0/16", "20.0.0.0/24", 100);
	result = predict(&hosts, &hosts);
	cr_expect_eq(result.side[XSPD_OUT][0].policies, 100);
	cr_expect_eq(result.side[XSPD_OUT][0].lists, 100);
	cr_expect_eq(result.side[XSPD_OUT][0].longest, 1);
	cr_expect_eq(result.side[XSPD_OUT][0].hashed, 0);
	cr_expect_eq(result.cliffs_all, 0);
}

/* The order of insertion does not matter: a short prefix takes in what is there and what comes. */
Test(tune, a_short_prefix_takes_in_the_others)
{
	struct xspd_tune_result result;
	struct xspd_pol *cover;

	add_hosts("0.0.0.0/0", "10.77.0.0/32", 1000);
	cover = add("0.0.0.0/0", "10.77.0.0/16");
	add_hosts("0.0.0.0/0", "10.77.8.0/32", 1000);
	add_hosts("0.0.0.0/0", "10.78.0.0/32", 1000);
	result = predict(&hosts, &hosts);
	cr_expect_eq(result.side[XSPD_OUT][0].longest, 2001);
	cr_expect_eq(result.side[XSPD_OUT][0].lists, 1001);
	cr_assert_eq(result.cliffs_all, 1);
	cr_expect_eq(result.cliff[0].cause, XSPD_TUNE_COVER);
	cr_expect_eq(result.cliff[0].place, XSPD_TUNE_DST);
	cr_expect_eq(result.cliff[0].length, 2001);
	cr_expect_eq(result.cliff[0].named, 1);
	cr_expect_eq(result.cliff[0].name[0], cover);
	/* two thirds of the traffic walk a thousand on average */
	cr_expect_float_eq(result.expected, 2 + 2001.0 / 3001 * 1000, 30);
	cr_expect_float_eq(result.stall, 2001.0 * 2000 / 2, 1);
}

Test(tune, hashing_the_clients_leaves_the_cover_alone)
{
	struct xspd_tune_bits best;
	struct xspd_tune_result result;

	add("0.0.0.0/0", "10.77.0.0/16");
	add_hosts("0.0.0.0/0", "10.77.0.0/32", 2000);
	best = search();
	cr_expect_eq(best.lbits4, 0);
	cr_expect_eq(best.rbits4, 32);
	cr_expect_eq(best.rbits6, 128);
	result = predict(&hosts, &best);
	cr_expect_eq(result.side[XSPD_OUT][0].hashed, 2000);
	cr_expect_eq(result.side[XSPD_OUT][0].longest, 1);
	cr_expect_lt(result.expected, 10);
}

/* local and remote change places with the direction */
Test(tune, thresholds_are_local_and_remote)
{
	struct xspd_tune_bits bits = {0, 32, 128, 128};
	struct xspd_tune_result result;

	add("0.0.0.0/0", "10.77.0.1/32");
	add("10.77.0.1/32", "0.0.0.0/0")->dir = XSPD_IN;
	add("10.77.0.1/32", "0.0.0.0/0")->dir = XSPD_FWD;
	add("0.0.0.0/0", "10.77.0.1/32")->dir = XSPD_FWD;
	result = predict(&hosts, &bits);
	cr_expect_eq(result.side[XSPD_OUT][0].hashed, 1);
	cr_expect_eq(result.side[XSPD_IN][0].hashed, 1);
	cr_expect_eq(result.side[XSPD_FWD][0].hashed, 1);
}

Test(tune, marks_share_a_list_whatever_the_thresholds)
{
	struct xspd_tune_bits best;
	struct xspd_tune_result result;

	for (uint32_t i = 0; i < 1500; i++) {
		struct xspd_pol *pol = add("0.0.0.0/0", "0.0.0.0/0");

		pol->mark = i + 1;
		pol->mark_mask = ~0u;
	}
	best = search();
	cr_expect_eq(memcmp(&best, &hosts, sizeof(best)), 0);
	result = predict(&hosts, &hosts);
	cr_assert_eq(result.cliffs_all, 1);
	cr_expect_eq(result.cliff[0].cause, XSPD_TUNE_MARKS);
	cr_expect_eq(result.cliff[0].place, XSPD_TUNE_ANY);
	cr_expect_eq(result.cliff[0].named, 1500);
}

Test(tune, if_ids_have_bins_of_their_own)
{
	struct xspd_tune_result result;

	for (uint32_t i = 0; i < 1000; i++)
		add("0.0.0.0/0", "0.0.0.0/0")->if_id = i + 1;
	result = predict(&hosts, &hosts);
	cr_expect_eq(result.side[XSPD_OUT][0].longest, 1);
	cr_expect_eq(result.cliffs_all, 0);
}

Test(tune, ports_of_hosts_fill_a_bucket)
{
	struct xspd_tune_result result;

	for (uint16_t i = 0; i < 1200; i++) {
		struct xspd_pol *pol = add("10.0.0.1/32", "10.0.0.2/32");

		pol->sel.proto = 17;
		pol->sel.dport = htons(i);
		pol->sel.dport_mask = 0xffff;
	}
	result = predict(&hosts, &hosts);
	cr_assert_eq(result.cliffs_all, 1);
	cr_expect_eq(result.cliff[0].cause, XSPD_TUNE_PORTS);
	cr_expect_eq(result.cliff[0].place, XSPD_TUNE_HASH);
}

Test(tune, low_thresholds_make_long_buckets)
{
	struct xspd_tune_bits low = {0, 8, 128, 128};
	struct xspd_tune_result result;

	add_hosts("0.0.0.0/0", "10.0.0.0/32", 2000);
	result = predict(&hosts, &low);
	cr_assert_eq(result.cliffs_all, 1);
	cr_expect_eq(result.cliff[0].cause, XSPD_TUNE_COARSE);
	cr_expect_eq(result.cliff[0].length, 2000);
}

Test(tune, prefixes_too_short_for_a_tree)
{
	struct xspd_tune_result result;

	add_hosts("0.0.0.0/0", "20.0.0.0/15", 100);
	for (int i = 0; i < 100; i++)
		add("::/0", "2001:db8::/47")->sel.daddr.a6[0] = htonl(0x20000000 + i);
	add("::/0", "2001:db8::/48");
	result = predict(&hosts, &hosts);
	cr_expect_eq(result.side[XSPD_OUT][0].longest, 100);
	cr_expect_eq(result.side[XSPD_OUT][1].longest, 100);
	cr_expect_eq(result.side[XSPD_OUT][1].lists, 2);
}

/* A rebuild does not split what is merged: the pair below 10.77/16 stays in its node. */
Test(tune, a_rebuild_leaves_nodes_as_they_are)
{
	struct xspd_tune_bits bits = {32, 16, 128, 128};
	struct xspd_tune_result fresh, rebuilt;

	add("10.0.0.1/32", "10.77.0.0/16");
	add_hosts("0.0.0.0/0", "10.77.0.0/24", 50);
	fresh = predict(&bits, &bits);
	rebuilt = predict(&hosts, &bits);
	cr_expect_eq(fresh.side[XSPD_OUT][0].hashed, 1);
	cr_expect_eq(fresh.side[XSPD_OUT][0].longest, 1);
	cr_expect_eq(rebuilt.side[XSPD_OUT][0].longest, 50);
}

/* A bucket of sub and main policies is walked for both types. */
Test(tune, sub_policies_double_the_hash)
{
	struct xspd_tune_costs costs = unit;
	struct xspd_tune_result one, two;
	struct xspd_tune *tune;

	for (uint16_t i = 0; i < 1000; i++) {
		struct xspd_pol *pol = add("10.0.0.1/32", "10.0.0.2/32");

		pol->sel.dport = htons(i);
		pol->sel.dport_mask = 0xffff;
	}
	one = predict(&hosts, &hosts);
	costs.sub_policy = true;
	cr_assert_eq(xspd_tune_new(&tune, set.at, set.count, &hosts, &costs), 0);
	xspd_tune_predict(tune, &hosts, &two);
	xspd_tune_free(tune);
	cr_expect_float_eq(two.expected - one.expected, 1000, 5);
}

Test(tune, costs_are_interpolated)
{
	const double table[XSPD_TUNE_SIZES] = {5, 10, 20, 40, 80};

	cr_expect_float_eq(xspd_tune_cost(table, 0), 5, 1e-9);
	cr_expect_float_eq(xspd_tune_cost(table, 1), 5, 1e-9);
	cr_expect_float_eq(xspd_tune_cost(table, 3000), 20, 1e-9);
	cr_expect_float_eq(xspd_tune_cost(table, 16000), 40, 1e-9);
	cr_expect_gt(xspd_tune_cost(table, 1000000), 80);
}
