// SPDX-License-Identifier: GPL-2.0-only
/* Partitions: their mask classes, the published tuple list, and the tries. */
#include <errno.h>
#include <string.h>
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "plane/crash.h"
#include "plane/set.h"
#include "util.h"
#include "xspd.skel.h"

/* Chain lengths at which a coarse class takes no more policies: while there is a better way, if
 * there is any. */
#define XSPD_CHAIN_SOFT 8
#define XSPD_CHAIN_HARD 128

static struct xspd_ifid_key partition_key(const struct xspd_pol *pol)
{
	return (struct xspd_ifid_key){
		.if_id = pol->if_id,
		.dir = pol->dir,
		.type = pol->type,
		.family = (enum xspd_family)pol->sel.family,
	};
}

static struct xspd_partition **fixed_place(struct xspd_set *set, const struct xspd_ifid_key *key)
{
	return &set->fixed[XSPD_PART_FIXED(key->type, key->dir, key->family == XSPD_INET6)];
}

static struct xspd_partition *partition_make(struct xspd_set *set, const struct xspd_ifid_key *key,
					     uint32_t nr, int *ret_err)
{
	struct xspd_partition *part = calloc(1, sizeof(*part));

	*ret_err = -ENOMEM;
	if (!part)
		return NULL;
	part->key = *key;
	part->nr = nr;
	set->part[nr] = (struct xspd_part){
		.if_id = key->if_id,
		.dir = key->dir,
		.type = key->type,
		.family = key->family,
	};
	if (!key->if_id) {
		*fixed_place(set, key) = part;
	} else {
		if (bpf_map_update_elem(bpf_map__fd(set->skel->maps.xspd_ifid), key, &nr, BPF_ANY) <
		    0) {
			*ret_err = errno == E2BIG ? -ENOSPC : -errno;
			free(part);
			return NULL;
		}
		HASH_ADD(hh, set->by_ifid, key, sizeof(part->key), part);
	}
	set->parts++;
	*ret_err = 0;
	return part;
}

struct xspd_partition *xspd_partition_get(struct xspd_set *set, const struct xspd_pol *pol,
					  bool make, int *ret_err)
{
	struct xspd_ifid_key key = partition_key(pol);
	struct xspd_partition *part = NULL;
	uint32_t nr;

	*ret_err = 0;
	if (!key.if_id) {
		part = *fixed_place(set, &key);
		nr = XSPD_PART_FIXED(key.type, key.dir, key.family == XSPD_INET6);
	} else {
		HASH_FIND(hh, set->by_ifid, &key, sizeof(key), part);
		nr = 0;
	}
	if (part || !make)
		return part;
	if (key.if_id) {
		nr = xspd_set_part(set);
		if (!nr) {
			*ret_err = -ENOSPC;
			return NULL;
		}
	}
	return partition_make(set, &key, nr, ret_err);
}

int xspd_partition_drop(struct xspd_set *set, struct xspd_grace *grace, struct xspd_partition *part)
{
	uint32_t nr = part->nr;

	if (part->block)
		xspd_set_retire(set, grace,
				(struct xspd_retired){.kind = XSPD_RETIRED_BLOCK,
						      .nr = part->block,
						      .block_class = part->block_class});
	set->parts--;
	if (part->key.if_id) {
		bpf_map_delete_elem(bpf_map__fd(set->skel->maps.xspd_ifid), &part->key);
		HASH_DEL(set->by_ifid, part);
	} else {
		*fixed_place(set, &part->key) = NULL;
	}
	xspd_prefixes_free(part->dst);
	xspd_prefixes_free(part->src);
	free(part->tuple);
	free(part->plan);
	if (!part->key.if_id) {
		free(part);
		return 0;
	}
	free(part);
	return xspd_set_retire(set, grace,
			       (struct xspd_retired){.kind = XSPD_RETIRED_PART, .nr = nr});
}

static int tuple_order(const void *a, const void *b)
{
	const struct xspd_tuple *x = a, *y = b;

	return x->best < y->best ? -1 : x->best > y->best;
}

int xspd_partition_publish(struct xspd_set *set, struct xspd_grace *grace,
			   struct xspd_partition *part)
{
	unsigned int block_class = 0;
	uint32_t block = 0, old = part->block;
	uint8_t old_class = part->block_class;
	/* over all if_ids, equal priorities must be seen for their if_ids */
	bool ties = part->ties || part->key.dir == XSPD_STEER;
	uint64_t flags = (ties ? XSPD_PART_TIES : 0) | (part->prune ? XSPD_PART_PRUNE : 0);

	if (part->hidden)
		return 0;
	if (part->count) {
		while (1u << block_class < part->count)
			block_class++;
		block = xspd_set_block(set, block_class);
		if (!block)
			return -ENOSPC;
		for (uint32_t i = 0; i < part->count; i++)
			set->list[block + i] = part->tuple[i].rec;
		qsort(&set->list[block], part->count, sizeof(set->list[0]), tuple_order);
	}
	part->block = block;
	part->block_class = (uint8_t)block_class;
	xspd_crash_point("list: written");
	XSPD_STORE(set->part[part->nr].ref,
		   block ? (uint64_t)block << 32 | (uint64_t)part->count << 16 | flags : 0);
	xspd_crash_point("list: stored");
	if (!old)
		return 0;
	return xspd_set_retire(set, grace,
			       (struct xspd_retired){.kind = XSPD_RETIRED_BLOCK,
						     .nr = old,
						     .block_class = old_class});
}

struct xspd_part_tuple *xspd_partition_tuple(struct xspd_partition *part, uint16_t id)
{
	for (uint32_t i = 0; i < part->count; i++)
		if (part->tuple[i].rec.id == id)
			return &part->tuple[i];
	return NULL;
}

static struct xspd_part_tuple *tuple_make(struct xspd_set *set, struct xspd_partition *part,
					  const struct xspd_class *cls, int *ret_err)
{
	struct xspd_part_tuple *tuple;
	unsigned int id = 0;

	*ret_err = -ENOMEM;
	if (part->count == part->room) {
		uint16_t room = part->room ? part->room * 2 : 1;

		tuple = realloc(part->tuple, room * sizeof(*tuple));
		if (!tuple)
			return NULL;
		part->tuple = tuple;
		part->room = room;
	}
	while (part->ids[id / 64] >> (id % 64) & 1)
		id++;
	part->ids[id / 64] |= 1ull << (id % 64);
	tuple = &part->tuple[part->count++];
	tuple->cls = *cls;
	xspd_class_tuple(cls, part->key.family == XSPD_INET6, &tuple->rec);
	tuple->rec.id = (uint16_t)id;
	/* any number never used before in this set will do */
	tuple->rec.seed = set->seed += 0x9e3779b9;
	tuple->rec.best = UINT64_MAX;
	set->tuples++;
	*ret_err = 0;
	return tuple;
}

void xspd_partition_tuple_drop(struct xspd_set *set, struct xspd_partition *part,
			       struct xspd_part_tuple *tuple)
{
	unsigned int id = tuple->rec.id;

	part->ids[id / 64] &= ~(1ull << (id % 64));
	*tuple = part->tuple[--part->count];
	set->tuples--;
}

static struct xspd_part_tuple *tuple_equal(struct xspd_partition *part,
					   const struct xspd_class *cls)
{
	for (uint32_t i = 0; i < part->count; i++)
		if (xspd_class_equal(&part->tuple[i].cls, cls))
			return &part->tuple[i];
	return NULL;
}

/* Among the classes that compare no more than @cls does: the one with the shortest chain under this
 * key. */
static struct xspd_part_tuple *tuple_shortest(struct xspd_set *set, struct xspd_partition *part,
					      const struct xspd_pol *pol,
					      const struct xspd_class *cls, unsigned int *ret_chain)
{
	struct xspd_part_tuple *best = NULL;

	for (uint32_t i = 0; i < part->count; i++) {
		struct xspd_part_tuple *tuple = &part->tuple[i];
		unsigned int chain;

		if (!xspd_class_covers(&tuple->cls, cls))
			continue;
		chain = xspd_set_chain(set, pol, &tuple->rec);
		if (best && chain >= *ret_chain)
			continue;
		best = tuple;
		*ret_chain = chain;
	}
	return best;
}

static int plan_order(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct xspd_class));
}

/* The class that the plan stores @cls under, or @cls itself. */
static struct xspd_class planned_class(const struct xspd_partition *part,
				       const struct xspd_class *cls)
{
	const struct xspd_plan_class *found = part->plan ? bsearch(cls, part->plan, part->planned,
								   sizeof(*part->plan), plan_order)
							 : NULL;

	return found ? found->stored : *cls;
}

struct xspd_part_tuple *xspd_partition_pick(struct xspd_set *set, struct xspd_partition *part,
					    const struct xspd_pol *pol, bool *ret_new, int *ret_err)
{
	struct xspd_part_tuple *tuple, *shortest = NULL;
	struct xspd_class exact, cls;
	unsigned int chain = UINT32_MAX;

	*ret_new = false;
	*ret_err = 0;
	xspd_class_of(pol, &exact);
	cls = planned_class(part, &exact);
	tuple = tuple_equal(part, &cls);
	if (tuple && (!part->plan || xspd_set_chain(set, pol, &tuple->rec) < XSPD_CHAIN_HARD))
		return tuple;
	if (tuple || part->count >= set->coarsen_at)
		shortest = tuple_shortest(set, part, pol, &exact, &chain);
	if (shortest && (chain < (part->plan ? XSPD_CHAIN_HARD : XSPD_CHAIN_SOFT) ||
			 part->count == XSPD_TUPLES))
		return shortest;
	/* the planned class is full here: the policy's own, if that is not the same */
	if (tuple)
		cls = exact;
	tuple = tuple_equal(part, &cls);
	if (tuple)
		return tuple;
	/* the last place is for a class that takes everything, however long its chains */
	if (part->count == XSPD_TUPLES - 1)
		cls = (struct xspd_class){};
	*ret_new = true;
	return tuple_make(set, part, &cls, ret_err);
}

/* --- tries ------------------------------------------------------------------ */

struct widen {
	struct xspd_set *set;
	int map;
	unsigned int base; /* bits of the key before the address */
	__be32 part;
};

static int widen_one(void *ctx, const uint8_t addr[16], unsigned int len,
		     const struct xspd_trie_val *val)
{
	const struct widen *widen = ctx;
	struct xspd_trie_key key = {.prefixlen = widen->base + len, .part = widen->part};

	memcpy(key.addr, addr, sizeof(key.addr));
	if (bpf_map_update_elem(widen->map, &key, val, BPF_ANY) < 0)
		return errno == ENOSPC ? -ENOSPC : -errno;
	xspd_crash_point("tries: one wider");
	return 0;
}

static int widen_side(struct xspd_set *set, struct xspd_partition *part,
		      struct xspd_prefixes **side, struct bpf_map *map, const void *addr,
		      unsigned int len, unsigned int id)
{
	bool v6 = part->key.family == XSPD_INET6;
	struct widen widen = {
		.set = set, .map = bpf_map__fd(map), .base = 32, .part = htonl(part->nr)};
	uint8_t bytes[16] = {};
	size_t before;
	int err;

	/* whole addresses are not prefixes: what may match any of them stands at the root */
	if (len == (v6 ? 128 : 32))
		len = 0;
	if (!*side) {
		*side = xspd_prefixes_new();
		if (!*side)
			return -ENOMEM;
	}
	memcpy(bytes, addr, v6 ? 16 : 4);
	before = xspd_prefixes_count(*side);
	err = xspd_prefixes_widen(*side, bytes, len, id, widen_one, &widen);
	set->tries += (uint32_t)(xspd_prefixes_count(*side) - before);
	return err;
}

int xspd_partition_widen(struct xspd_set *set, struct xspd_partition *part,
			 const struct xspd_pol *pol, const struct xspd_part_tuple *tuple)
{
	int err;

	if (!part->prune)
		return 0;
	err = widen_side(set, part, &part->dst, set->skel->maps.xspd_dst, &pol->sel.daddr,
			 tuple->cls.dlen, tuple->rec.id);
	return err
		       ?: widen_side(set, part, &part->src, set->skel->maps.xspd_src,
				     &pol->sel.saddr, tuple->cls.slen, tuple->rec.id);
}
