// SPDX-License-Identifier: GPL-2.0-only
/*
 * Publishing.  Readers see each change in one aligned store, and can tell by
 * conf->generation that one happened while they looked.  What a reader may need
 * is widened before that store, and narrowed after it.
 */
#include <errno.h>
#include <string.h>
#include <linux/in.h>

#include "plane/crash.h"
#include "plane/pure/info.h"
#include "plane/set.h"
#include "util.h"

/* Where a slot number is stored: a bucket entry or the link in another policy. */
struct place {
	uint64_t *entry; /* tag | slot << 32, of the chain's head */
	uint32_t pred;	 /* slot before it in the chain, 0: it is the head */
};

static uint64_t generation_add(struct xspd_set *set, uint64_t add)
{
	uint64_t generation = XSPD_LOAD(set->conf->generation) + add;

	XSPD_STORE(set->conf->generation, generation);
	return generation;
}

/* A change that takes several stores: readers that overlap it begin anew. */
static void multi_begin(struct xspd_set *set)
{
	generation_add(set, 1);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void multi_end(struct xspd_set *set)
{
	generation_add(set, 1);
}

/* Unmodelled policies stand before everything: whatever else matches, the kernel must be asked. */
static uint32_t effective_priority(const struct xspd_pol *pol)
{
	return pol->unmodelled ? 0 : pol->priority;
}

static uint64_t effective_key(const struct xspd_pol *pol)
{
	return pol->unmodelled ? 0 : (uint64_t)pol->priority << 32 | pol->pos;
}

static bool may_tie(const struct xspd_pol *pol)
{
	return pol->tie || pol->apart;
}

static void record_fill(struct xspd_policy *rec, const struct xspd_pol *pol, uint32_t part)
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
		.priority = effective_priority(pol),
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
static int place_find(const struct xspd_set *set, const struct xspd_pol *pol,
		      const struct xspd_tuple *tuple, uint32_t slot, struct place *ret)
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
			*ret = (struct place){.entry = &entry[i], .pred = pred};
			return 0;
		}
	}
	return -ENOENT;
}

/* The visible store: @slot takes this place; 0 empties it. */
static void place_set(struct xspd_set *set, const struct place *place, uint32_t tag, uint32_t slot)
{
	if (place->pred)
		XSPD_STORE(set->policy[place->pred].next, slot);
	else
		XSPD_STORE(*place->entry, slot ? (uint64_t)slot << 32 | tag : 0);
}

/* Link @slot into its chain: behind all that are as good or better. */
static void chain_insert(struct xspd_set *set, const struct xspd_pol *pol,
			 const struct xspd_tuple *tuple, uint32_t slot)
{
	uint32_t tag, at;
	struct xspd_bucket *bucket = bucket_of(set, pol, tuple, &tag);
	struct place place = {.entry = entry_for(bucket, &tag)};

	for (at = (uint32_t)(*place.entry >> 32); at; at = set->policy[at].next) {
		if (set->policy[at].priority > effective_priority(pol))
			break;
		place.pred = at;
	}
	set->policy[slot].next = at;
	place_set(set, &place, tag, slot);
}

static void chain_remove(struct xspd_set *set, const struct place *place, uint32_t slot)
{
	place_set(set, place, (uint32_t)*place->entry, set->policy[slot].next);
}

/*
 * Make the lists promise what @pol is about to need; undone by nobody: supersets are harmless.
 * After a failure nothing counts as promised, so that it can be tried again.
 */
static int promise(struct xspd_set *set, struct xspd_grace *grace, struct xspd_partition *part,
		   const struct xspd_pol *pol, struct xspd_part_tuple *tuple, bool fresh)
{
	uint64_t key = effective_key(pol), best = tuple->rec.best;
	bool first_tie = may_tie(pol) && !part->ties;
	int err;

	err = xspd_partition_widen(set, part, pol, tuple);
	if (err)
		return err;
	if (!fresh && key >= best && !first_tie)
		return 0;
	if (key < best)
		tuple->rec.best = key;
	part->ties += first_tie;
	err = xspd_partition_publish(set, grace, part);
	part->ties -= first_tie;
	if (err)
		tuple->rec.best = best;
	return err;
}

int xspd_set_add(struct xspd_set *set, struct xspd_grace *grace, struct xspd_pol *pol,
		 const struct xspd_count *inherited)
{
	struct xspd_part_tuple *tuple;
	struct xspd_partition *part;
	bool fresh = false, reused = set->free_slots.count != 0;
	uint32_t slot;
	int err;

	part = xspd_partition_get(set, pol, true, &err);
	if (!part)
		return err;
	tuple = xspd_partition_pick(set, part, pol, &fresh, &err);
	err = tuple ? promise(set, grace, part, pol, tuple, fresh) : err;
	if (err)
		return err; /* the caller tries again, builds another set or stays on DEFER */
	slot = xspd_set_slot(set);
	if (!slot)
		return -ENOSPC;
	if ((reused && set->live) || inherited)
		xspd_set_count_start(set, slot, inherited);
	xspd_info_fill(&set->info[slot], pol);
	set->info[slot].hit = inherited && inherited->packets;
	record_fill(&set->policy[slot], pol, part->nr);
	xspd_crash_point("add: written");
	chain_insert(set, pol, &tuple->rec, slot);
	xspd_crash_point("add: linked");
	generation_add(set, 2);

	pol->slot = slot;
	pol->tuple = tuple->rec.id;
	tuple->rec.policies++;
	part->policies++;
	part->ties += may_tie(pol);
	set->policies++;
	return 0;
}

/* Take @slot out of service; @heir goes on counting for it. */
static int slot_retire(struct xspd_set *set, struct xspd_grace *grace, uint32_t slot, uint32_t heir,
		       const struct xspd_count *taken)
{
	struct xspd_retired what = {.kind = XSPD_RETIRED_SLOT, .nr = slot, .heir = heir};

	if (heir) {
		what.packets = taken->packets;
		what.bytes = taken->bytes;
		what.acted = taken->acted;
	}
	XSPD_STORE(set->info[slot].index, 0);
	return xspd_set_retire(set, grace, what);
}

int xspd_set_replace(struct xspd_set *set, struct xspd_grace *grace, struct xspd_pol *pol,
		     const struct xspd_pol *old)
{
	struct xspd_part_tuple *tuple;
	struct xspd_partition *part;
	struct xspd_count count = {};
	struct place place;
	uint32_t slot;
	int err;

	part = xspd_partition_get(set, pol, false, &err);
	tuple = part ? xspd_partition_tuple(part, old->tuple) : NULL;
	if (!tuple || place_find(set, old, &tuple->rec, old->slot, &place))
		return -ESTALE;
	err = promise(set, grace, part, pol, tuple, false);
	if (err)
		return err;
	slot = xspd_set_slot(set);
	if (!slot)
		return -ENOSPC;
	xspd_set_count(set, old->slot, &count);
	xspd_set_count_start(set, slot, &count);
	xspd_info_fill(&set->info[slot], pol);
	set->info[slot].hit = count.packets != 0;
	record_fill(&set->policy[slot], pol, part->nr);
	xspd_crash_point("replace: written");
	if (effective_priority(pol) == effective_priority(old) ||
	    (!place.pred && !set->policy[old->slot].next)) {
		set->policy[slot].next = set->policy[old->slot].next;
		place_set(set, &place, (uint32_t)*place.entry, slot);
		xspd_crash_point("replace: in place");
	} else {
		/* while both are there, the better one alone counts: they match the same flows */
		chain_insert(set, pol, &tuple->rec, slot);
		xspd_crash_point("replace: both linked");
		generation_add(set, 2);
		if (place_find(set, old, &tuple->rec, old->slot, &place))
			return -ESTALE;
		chain_remove(set, &place, old->slot);
		xspd_crash_point("replace: old unlinked");
	}
	generation_add(set, 2);
	pol->slot = slot;
	pol->tuple = old->tuple;
	part->ties += may_tie(pol) - may_tie(old);
	return slot_retire(set, grace, old->slot, slot, &count);
}

int xspd_set_remove(struct xspd_set *set, struct xspd_grace *grace, const struct xspd_pol *old)
{
	struct xspd_part_tuple *tuple;
	struct xspd_partition *part;
	struct place place;
	bool narrow;
	int err;

	part = xspd_partition_get(set, old, false, &err);
	tuple = part ? xspd_partition_tuple(part, old->tuple) : NULL;
	if (!tuple || place_find(set, old, &tuple->rec, old->slot, &place))
		return -ESTALE;
	chain_remove(set, &place, old->slot);
	xspd_crash_point("remove: unlinked");
	generation_add(set, 2);

	set->policies--;
	part->policies--;
	part->ties -= may_tie(old);
	narrow = may_tie(old) && !part->ties;
	if (!--tuple->rec.policies) {
		xspd_partition_tuple_drop(set, part, tuple);
		narrow = true;
	}
	err = slot_retire(set, grace, old->slot, 0, NULL);
	xspd_crash_point("remove: retired");
	/* no room for a narrower list: the wider one still answers rightly */
	if (narrow)
		xspd_partition_publish(set, grace, part);
	xspd_crash_point("remove: narrowed");
	if (!part->policies && !err)
		err = xspd_partition_drop(set, grace, part);
	return err;
}

/* Every partition of @type answers "nothing", all in one change. */
static void flush_hide(struct xspd_set *set, uint8_t type)
{
	struct xspd_partition *part, *tmp;

	multi_begin(set);
	for (size_t i = 0; i < XSPD_PARTS_FIXED; i++) {
		part = set->fixed[i];
		if (!part || part->key.type != type)
			continue;
		part->hidden = true;
		XSPD_STORE(set->part[part->nr].ref, 0);
		xspd_crash_point("flush: one hidden");
	}
	HASH_ITER (hh, set->by_ifid, part, tmp) {
		if (part->key.type != type)
			continue;
		part->hidden = true;
		XSPD_STORE(set->part[part->nr].ref, 0);
	}
	multi_end(set);
}

int xspd_set_flush(struct xspd_set *set, struct xspd_grace *grace, struct xspd_spd *spd,
		   uint8_t type)
{
	struct xspd_pol *pol, *tmp;
	int err;

	flush_hide(set, type);
	xspd_crash_point("flush: all hidden");
	HASH_ITER (hh, spd->by_index, pol, tmp) {
		if (pol->type != type || !pol->slot)
			continue;
		err = xspd_set_remove(set, grace, pol);
		if (err)
			return err;
		pol->slot = 0;
	}
	return 0;
}
