// SPDX-License-Identifier: GPL-2.0-only
/* Mask classes and the prefix sets behind the tries. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <string.h>

#include "plane/pure/class.h"
#include "plane/pure/prefix.h"
#include "util.h"

static struct xspd_pol policy(uint8_t dlen, uint8_t slen)
{
	struct xspd_pol pol = {};

	pol.sel.family = XSPD_INET;
	pol.sel.daddr.a4 = htonl(0x0a010203);
	pol.sel.saddr.a4 = htonl(0xc0a80102);
	pol.sel.prefixlen_d = dlen;
	pol.sel.prefixlen_s = slen;
	return pol;
}

Test(plane_class, masks_follow_the_prefix_lengths)
{
	struct xspd_pol pol = policy(17, 0);
	struct xspd_tuple tuple;
	struct xspd_class cls;
	uint8_t bytes[8];

	xspd_class_of(&pol, &cls);
	xspd_class_tuple(&cls, false, &tuple);
	memcpy(bytes, tuple.dmask, sizeof(bytes));
	cr_expect_arr_eq(bytes, ((uint8_t[]){0xff, 0xff, 0x80, 0, 0, 0, 0, 0}), 8);
	cls.dlen = 65;
	xspd_class_tuple(&cls, true, &tuple);
	cr_expect_eq(tuple.dmask[0], UINT64_MAX);
	memcpy(bytes, &tuple.dmask[1], sizeof(bytes));
	cr_expect_arr_eq(bytes, ((uint8_t[]){0x80, 0, 0, 0, 0, 0, 0, 0}), 8);
	cr_expect_eq(tuple.smask[0] | tuple.smask[1], 0);
}

Test(plane_class, covers_is_per_bit)
{
	struct xspd_class any = {}, ports = {.ports_mask = 0xffff0000, .dlen = 8};
	struct xspd_class fine = {.ports_mask = 0xfffff000, .dlen = 24, .proto_mask = 0xff};

	cr_expect(xspd_class_covers(&any, &fine));
	cr_expect(xspd_class_covers(&ports, &fine));
	cr_expect(xspd_class_covers(&fine, &fine));
	cr_expect_not(xspd_class_covers(&fine, &ports));
	fine.ports_mask = 0x0000ffff;
	cr_expect_not(xspd_class_covers(&ports, &fine));
}

/* A policy and every flow inside it have one hash under every class that covers the policy's. */
Test(plane_class, hash_ignores_what_the_class_does_not_compare)
{
	struct xspd_pol pol = policy(24, 16);
	struct xspd_key key, flow;
	struct xspd_tuple tuple;
	struct xspd_class cls;

	xspd_class_of(&pol, &cls);
	xspd_class_tuple(&cls, false, &tuple);
	tuple.seed = 7;
	xspd_class_key(&pol, &key);
	flow = key;
	flow.addr[0] ^= (uint64_t)htonl(0x0000ffff) << 32 | htonl(0x000000ff);
	flow.ports = 12345;
	flow.mark = 5;
	flow.oif = 3;
	flow.proto = 17;
	cr_expect_eq(xspd_key_hash(&key, &tuple), xspd_key_hash(&flow, &tuple));
	flow.addr[0] ^= htonl(0x00000100);
	cr_expect_neq(xspd_key_hash(&key, &tuple), xspd_key_hash(&flow, &tuple));
}

/* What the LPM tries would hold, kept as a list and searched without cleverness. */
struct model {
	struct entry {
		uint8_t addr[16];
		unsigned int len;
		struct xspd_trie_val val;
	} entry[4096];
	size_t count;
};

static bool covers(const uint8_t *prefix, unsigned int len, const uint8_t *addr)
{
	for (unsigned int i = 0; i < len; i++)
		if ((prefix[i / 8] ^ addr[i / 8]) >> (7 - i % 8) & 1)
			return false;
	return true;
}

static int model_store(void *ctx, const uint8_t addr[16], unsigned int len,
		       const struct xspd_trie_val *val)
{
	struct model *model = ctx;
	size_t i;

	for (i = 0; i < model->count; i++)
		if (model->entry[i].len == len && covers(addr, len, model->entry[i].addr))
			break;
	if (i == model->count) {
		cr_assert_lt(i, XSPD_ARRAY_SIZE(model->entry));
		model->count++;
	}
	memcpy(model->entry[i].addr, addr, 16);
	model->entry[i].len = len;
	model->entry[i].val = *val;
	return 0;
}

static const struct entry *model_longest(const struct model *model, const uint8_t *addr)
{
	const struct entry *best = NULL;

	for (size_t i = 0; i < model->count; i++)
		if (covers(model->entry[i].addr, model->entry[i].len, addr) &&
		    (!best || model->entry[i].len > best->len))
			best = &model->entry[i];
	return best;
}

/* After every insertion: the longest stored prefix names exactly the tuples of all prefixes that
 * cover. */
Test(plane_prefix, longest_prefix_names_all_covering_tuples)
{
	static struct model model;
	static struct {
		uint8_t addr[16];
		unsigned int len, id;
	} given[600];
	struct xspd_prefixes *set = xspd_prefixes_new();
	uint32_t seed = 1;

	cr_assert(set);
	for (size_t n = 0; n < XSPD_ARRAY_SIZE(given); n++) {
		uint8_t probe[16];
		struct xspd_trie_val want = {};
		const struct entry *got;

		for (int i = 0; i < 16; i++) {
			seed = seed * 1103515245 + 12345;
			/* few values: much nesting */
			given[n].addr[i] = (seed >> 16) & (i < 3 ? 0x81 : 0x01);
		}
		seed = seed * 1103515245 + 12345;
		given[n].len = (seed >> 16) % 41;
		given[n].id = (seed >> 8) % XSPD_TUPLES;
		cr_assert_eq(xspd_prefixes_widen(set, given[n].addr, given[n].len, given[n].id,
						 model_store, &model),
			     0);
		memcpy(probe, given[(seed >> 4) % (n + 1)].addr, 16);
		probe[2] ^= seed & 1;
		for (size_t i = 0; i <= n; i++)
			if (covers(given[i].addr, given[i].len, probe))
				want.tuples[given[i].id / 64] |= 1ull << (given[i].id % 64);
		got = model_longest(&model, probe);
		for (int w = 0; w < XSPD_TUPLES / 64; w++)
			cr_assert_eq(got ? got->val.tuples[w] : 0, want.tuples[w], "after %zu", n);
	}
	cr_expect_eq(xspd_prefixes_count(set), model.count);
	xspd_prefixes_free(set);
}
