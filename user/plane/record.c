// SPDX-License-Identifier: GPL-2.0-only
/* The records of a policy, and the chains that they are linked into. */
#include <errno.h>
#include <string.h>

#include "plane/pure/info.h"
#include "plane/record.h"
#include "util.h"

/* Unmodelled policies stand before everything: whatever else matches, the kernel must be asked. */
uint32_t xspd_record_priority(const struct xspd_pol *pol)
{
	return pol->unmodelled ? 0 : pol->priority;
}

uint64_t xspd_record_key(const struct xspd_pol *pol)
{
	return pol->unmodelled ? 0 : (uint64_t)pol->priority << 32 | pol->pos;
}

void xspd_record_fill(struct xspd_policy *rec, const struct xspd_pol *pol, uint32_t part)
{
	struct xspd_class cls;
	struct xspd_tuple masks;
	struct xspd_policy fill = {
		.dport = pol->sel.dport & pol->sel.dport_mask,
		.dport_mask = pol->sel.dport_mask,
		.sport = pol->sel.sport & pol->sel.sport_mask,
		.sport_mask = pol->sel.sport_mask,
		.ifindex = (uint32_t)pol->sel.ifindex,
		.part = part,
		.priority = xspd_record_priority(pol),
		.pos = pol->unmodelled ? 0 : pol->pos,
		.dlen = pol->sel.prefixlen_d,
		.slen = pol->sel.prefixlen_s,
		.proto = pol->sel.proto,
		.flags = xspd_pol_flags(pol),
	};

	xspd_class_of(pol, &cls);
	xspd_class_tuple(&cls, pol->sel.family == XSPD_INET6, &masks);
	if (pol->sel.family == XSPD_INET6) {
		uint64_t d[2], s[2];

		memcpy(d, &pol->sel.daddr, sizeof(d));
		memcpy(s, &pol->sel.saddr, sizeof(s));
		for (int i = 0; i < 2; i++) {
			d[i] &= masks.dmask[i];
			s[i] &= masks.smask[i];
		}
		memcpy(fill.v6.daddr, d, sizeof(d));
		memcpy(fill.v6.saddr, s, sizeof(s));
	} else {
		fill.v4.dmask = (uint32_t)masks.dmask[0];
		fill.v4.smask = (uint32_t)(masks.dmask[0] >> 32);
		fill.v4.daddr = pol->sel.daddr.a4 & fill.v4.dmask;
		fill.v4.saddr = pol->sel.saddr.a4 & fill.v4.smask;
		fill.v4.mark = pol->mark;
		fill.v4.mark_mask = pol->mark_mask;
	}
	/* among those that are gone it does not matter which it was */
	if (pol->type >= XSPD_TYPE_MAX_)
		fill.flags &= (uint8_t)~XSPD_P_TIE;
	*rec = fill;
}

static struct xspd_bucket *bucket_of(const struct xspd_set *set, const struct xspd_pol *pol,
				     const struct xspd_tuple *tuple, uint32_t *ret_tag)
{
	struct xspd_key key;
	uint64_t hash;

	xspd_class_key(pol, &key);
	hash = xspd_key_hash(&key, tuple);
	*ret_tag = xspd_hash_tag(hash);
	return &set->bucket[xspd_hash_bucket(hash, set->sizes.buckets)];
}

/*
 * The entry for a tag: the one that has it, a free one, or else the last, which
 * takes every key once the others are full.  *ret_tag is what the entry carries.
 */
static uint64_t *entry_for(struct xspd_bucket *bucket, uint32_t *tag)
{
	uint64_t *entry = (uint64_t *)bucket->entry;
	uint64_t *free_entry = NULL;

	for (int i = 0; i < XSPD_BUCKET_ENTRIES - 1; i++) {
		if ((uint32_t)entry[i] == *tag)
			return &entry[i];
		if (!entry[i] && !free_entry)
			free_entry = &entry[i];
	}
	if (free_entry)
		return free_entry;
	*tag = XSPD_TAG_ANY;
	return &entry[XSPD_BUCKET_ENTRIES - 1];
}

void xspd_set_prefetch(const struct xspd_set *set, const struct xspd_pol *pol,
		       const struct xspd_pol *like)
{
	struct xspd_partition *part;
	uint32_t tag;
	int err;

	part = xspd_partition_get((struct xspd_set *)set, like, false, &err);
	for (uint32_t i = 0; part && i < part->count; i++)
		if (part->tuple[i].rec.id == like->tuple)
			__builtin_prefetch(bucket_of(set, pol, &part->tuple[i].rec, &tag), 1);
}

unsigned int xspd_set_chain(const struct xspd_set *set, const struct xspd_pol *pol,
			    const struct xspd_tuple *tuple)
{
	unsigned int length = 0;
	uint32_t tag;
	struct xspd_bucket *bucket = bucket_of(set, pol, tuple, &tag);

	for (uint32_t slot = (uint32_t)(*entry_for(bucket, &tag) >> 32); slot;
	     slot = set->policy[slot].next)
		length++;
	return length;
}

/* Find where @slot is linked in. */
int xspd_place_find(const struct xspd_set *set, const struct xspd_pol *pol,
		    const struct xspd_tuple *tuple, uint32_t slot, struct xspd_place *ret)
{
	uint32_t tag;
	struct xspd_bucket *bucket = bucket_of(set, pol, tuple, &tag);
	uint64_t *entry = (uint64_t *)bucket->entry;

	for (int i = 0; i < XSPD_BUCKET_ENTRIES; i++) {
		uint32_t pred = 0, at = (uint32_t)(entry[i] >> 32);

		if ((uint32_t)entry[i] != tag && (uint32_t)entry[i] != XSPD_TAG_ANY)
			continue;
		for (; at; pred = at, at = set->policy[at].next) {
			if (at != slot)
				continue;
			*ret = (struct xspd_place){.entry = &entry[i], .pred = pred};
			return 0;
		}
	}
	return -ENOENT;
}

/* The visible store: @slot takes this place; 0 empties it. */
void xspd_place_set(struct xspd_set *set, const struct xspd_place *place, uint32_t tag,
		    uint32_t slot)
{
	if (place->pred)
		XSPD_STORE(set->policy[place->pred].next, slot);
	else
		XSPD_STORE(*place->entry, slot ? (uint64_t)slot << 32 | tag : 0);
}

/* Link @slot into its chain: behind all that are as good or better. */
void xspd_chain_insert(struct xspd_set *set, const struct xspd_pol *pol,
		       const struct xspd_tuple *tuple, uint32_t slot)
{
	uint32_t tag, at;
	struct xspd_bucket *bucket = bucket_of(set, pol, tuple, &tag);
	struct xspd_place place = {.entry = entry_for(bucket, &tag)};

	for (at = (uint32_t)(*place.entry >> 32); at; at = set->policy[at].next) {
		if (set->policy[at].priority > xspd_record_priority(pol))
			break;
		place.pred = at;
	}
	set->policy[slot].next = at;
	xspd_place_set(set, &place, tag, slot);
}

void xspd_chain_remove(struct xspd_set *set, const struct xspd_place *place, uint32_t slot)
{
	xspd_place_set(set, place, (uint32_t)*place->entry, set->policy[slot].next);
}
