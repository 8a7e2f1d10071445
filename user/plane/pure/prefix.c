// SPDX-License-Identifier: GPL-2.0-only
/* A path-compressed binary trie over an array of nodes. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "plane/pure/prefix.h"
#include "util.h"

/* A node with @real false only joins two branches. */
struct node {
	uint8_t addr[16];
	uint8_t len;
	bool real;
	uint8_t pad[2];
	uint32_t child[2];	   /* index, 0 = none */
	struct xspd_trie_val own;  /* tuples stored under exactly this prefix */
	struct xspd_trie_val shut; /* own, and those of every shorter prefix above */
};

struct xspd_prefixes {
	struct node *node; /* [0] is unused */
	uint32_t used, size;
	uint32_t root;
	size_t real;
};

struct xspd_prefixes *xspd_prefixes_new(void)
{
	struct xspd_prefixes *set = calloc(1, sizeof(*set));

	if (set)
		set->used = 1;
	return set;
}

void xspd_prefixes_free(struct xspd_prefixes *set)
{
	if (!set)
		return;
	free(set->node);
	free(set);
}

size_t xspd_prefixes_count(const struct xspd_prefixes *set)
{
	return set->real;
}

static unsigned int bit_of(const uint8_t addr[16], unsigned int n)
{
	return addr[n / 8] >> (7 - n % 8) & 1;
}

/* Leading bits that @a and @b share, at most @max. */
static unsigned int common_bits(const uint8_t a[16], const uint8_t b[16], unsigned int max)
{
	unsigned int n = 0;

	for (; n + 8 <= max && a[n / 8] == b[n / 8];)
		n += 8;
	while (n < max && bit_of(a, n) == bit_of(b, n))
		n++;
	return n;
}

static uint32_t node_new(struct xspd_prefixes *set, const uint8_t addr[16], unsigned int len)
{
	struct node *node;

	if (set->used >= set->size) {
		uint32_t size = set->size ? set->size * 2 : 64;

		node = realloc(set->node, size * sizeof(*node));
		if (!node)
			return 0;
		set->node = node;
		set->size = size;
	}
	node = &set->node[set->used];
	memset(node, 0, sizeof(*node));
	memcpy(node->addr, addr, len / 8);
	if (len % 8)
		node->addr[len / 8] = addr[len / 8] & (uint8_t)(0xff00 >> (len % 8));
	node->len = (uint8_t)len;
	return set->used++;
}

static void val_or(struct xspd_trie_val *to, const struct xspd_trie_val *from)
{
	for (size_t i = 0; i < XSPD_ARRAY_SIZE(to->tuples); i++)
		to->tuples[i] |= from->tuples[i];
}

static bool val_has(const struct xspd_trie_val *val, unsigned int id)
{
	return val->tuples[id / 64] >> (id % 64) & 1;
}

/* Find or make the node of addr/len; *above collects what shorter prefixes allow. 0: no memory. */
static uint32_t node_get(struct xspd_prefixes *set, const uint8_t addr[16], unsigned int len,
			 struct xspd_trie_val *above)
{
	uint32_t at = set->root, parent = 0, fresh, join;
	unsigned int side = 0, same = 0;

	while (at) {
		const struct node *node = &set->node[at];
		unsigned int max = node->len < len ? node->len : len;

		same = common_bits(node->addr, addr, max);
		if (same < node->len || node->len == len)
			break;
		val_or(above, &node->own);
		parent = at;
		side = bit_of(addr, node->len);
		at = node->child[side];
	}
	if (at && set->node[at].len == len && same == len)
		return at;
	fresh = node_new(set, addr, len);
	if (!fresh)
		return 0;
	join = fresh;
	if (at && same < len) {
		join = node_new(set, addr, same);
		if (!join)
			return 0;
		set->node[join].child[bit_of(addr, same)] = fresh;
	}
	if (at)
		set->node[join].child[bit_of(set->node[at].addr, same)] = at;
	if (parent)
		set->node[parent].child[side] = join;
	else
		set->root = join;
	return fresh;
}

/* Everything stored below @at gets tuple @id, deepest first. */
static int widen_below(struct xspd_prefixes *set, uint32_t at, unsigned int id, xspd_prefix_cb cb,
		       void *ctx)
{
	struct node *node = &set->node[at];
	int err;

	if (!at || (node->real && val_has(&node->own, id)))
		return 0; /* and so do those below it */
	for (int side = 0; side < 2; side++) {
		err = widen_below(set, node->child[side], id, cb, ctx);
		if (err)
			return err;
	}
	if (!node->real || val_has(&node->shut, id))
		return 0;
	node->shut.tuples[id / 64] |= 1ull << (id % 64);
	return cb(ctx, node->addr, node->len, &node->shut);
}

int xspd_prefixes_widen(struct xspd_prefixes *set, const uint8_t addr[16], unsigned int len,
			unsigned int id, xspd_prefix_cb cb, void *ctx)
{
	struct xspd_trie_val above = {};
	struct node *node;
	uint32_t at;
	int err;

	at = node_get(set, addr, len, &above);
	if (!at)
		return -ENOMEM;
	node = &set->node[at];
	if (node->real && val_has(&node->own, id))
		return 0;
	for (int side = 0; side < 2; side++) {
		err = widen_below(set, node->child[side], id, cb, ctx);
		if (err)
			return err;
	}
	if (!node->real) {
		node->real = true;
		node->shut = above;
		set->real++;
	}
	node->own.tuples[id / 64] |= 1ull << (id % 64);
	node->shut.tuples[id / 64] |= 1ull << (id % 64);
	return cb(ctx, node->addr, node->len, &node->shut);
}
