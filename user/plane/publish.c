// SPDX-License-Identifier: GPL-2.0-only
/*
 * Publishing.  Readers see each change in one aligned store, and can tell by
 * conf->generation that one happened while they looked.  What a reader may need
 * is widened before that store, and narrowed after it.
 */
#include <errno.h>
#include <string.h>

#include "plane/crash.h"
#include "plane/pure/info.h"
#include "plane/record.h"
#include "plane/set.h"
#include "plane/steer.h"
#include "util.h"

uint64_t xspd_set_generation(struct xspd_set *set, uint64_t add)
{
	uint64_t generation = XSPD_LOAD(set->conf->generation) + add;

	XSPD_STORE(set->conf->generation, generation);
	return generation;
}

/* A change that takes several stores: readers that overlap it begin anew. */
static void multi_begin(struct xspd_set *set)
{
	xspd_set_generation(set, 1);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void multi_end(struct xspd_set *set)
{
	xspd_set_generation(set, 1);
}

static bool may_tie(const struct xspd_pol *pol)
{
	return pol->tie || pol->apart;
}

int xspd_set_promise(struct xspd_set *set, struct xspd_grace *grace, struct xspd_partition *part,
		     const struct xspd_pol *pol, struct xspd_part_tuple *tuple, bool fresh)
{
	uint64_t key = xspd_record_key(pol), best = tuple->rec.best;
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
	err = tuple ? xspd_set_promise(set, grace, part, pol, tuple, fresh) : err;
	if (err)
		return err; /* the caller tries again, builds another set or stays on DEFER */
	slot = xspd_set_slot(set);
	if (!slot)
		return -ENOSPC;
	if ((reused && set->live) || inherited)
		xspd_set_count_start(set, slot, inherited);
	xspd_info_fill(&set->info[slot], pol);
	set->info[slot].hit = inherited && inherited->packets;
	xspd_record_fill(&set->policy[slot], pol, part->nr);
	xspd_crash_point("add: written");
	xspd_chain_insert(set, pol, &tuple->rec, slot);
	xspd_crash_point("add: linked");
	xspd_set_generation(set, 2);

	pol->slot = slot;
	pol->tuple = tuple->rec.id;
	tuple->rec.policies++;
	part->policies++;
	part->ties += may_tie(pol);
	set->policies++;
	return xspd_steer_wants(set, pol) ? xspd_steer_add(set, grace, pol) : 0;
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
	struct xspd_place place;
	uint32_t slot;
	int err;

	part = xspd_partition_get(set, pol, false, &err);
	tuple = part ? xspd_partition_tuple(part, old->tuple) : NULL;
	if (!tuple || xspd_place_find(set, old, &tuple->rec, old->slot, &place))
		return -ESTALE;
	err = xspd_set_promise(set, grace, part, pol, tuple, false);
	if (err)
		return err;
	slot = xspd_set_slot(set);
	if (!slot)
		return -ENOSPC;
	xspd_set_count(set, old->slot, &count);
	xspd_set_count_start(set, slot, &count);
	xspd_info_fill(&set->info[slot], pol);
	set->info[slot].hit = count.packets != 0;
	xspd_record_fill(&set->policy[slot], pol, part->nr);
	xspd_crash_point("replace: written");
	if (xspd_record_priority(pol) == xspd_record_priority(old) ||
	    (!place.pred && !set->policy[old->slot].next)) {
		set->policy[slot].next = set->policy[old->slot].next;
		xspd_place_set(set, &place, (uint32_t)*place.entry, slot);
		xspd_crash_point("replace: in place");
	} else {
		/* while both are there, the better one alone counts: they match the same flows */
		xspd_chain_insert(set, pol, &tuple->rec, slot);
		xspd_crash_point("replace: both linked");
		xspd_set_generation(set, 2);
		if (xspd_place_find(set, old, &tuple->rec, old->slot, &place))
			return -ESTALE;
		xspd_chain_remove(set, &place, old->slot);
		xspd_crash_point("replace: old unlinked");
	}
	xspd_set_generation(set, 2);
	pol->slot = slot;
	pol->tuple = old->tuple;
	part->ties += may_tie(pol) - may_tie(old);
	err = xspd_steer_wants(set, pol) ? xspd_steer_replace(set, grace, pol, old) : 0;
	if (err)
		return err;
	return slot_retire(set, grace, old->slot, slot, &count);
}

static int policy_remove(struct xspd_set *set, struct xspd_grace *grace, const struct xspd_pol *old)
{
	struct xspd_part_tuple *tuple;
	struct xspd_partition *part;
	struct xspd_place place;
	bool narrow;
	int err;

	part = xspd_partition_get(set, old, false, &err);
	tuple = part ? xspd_partition_tuple(part, old->tuple) : NULL;
	if (!tuple || xspd_place_find(set, old, &tuple->rec, old->slot, &place))
		return -ESTALE;
	xspd_chain_remove(set, &place, old->slot);
	xspd_crash_point("remove: unlinked");
	xspd_set_generation(set, 2);

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

int xspd_set_remove(struct xspd_set *set, struct xspd_grace *grace, const struct xspd_pol *old)
{
	int err = xspd_steer_wants(set, old) ? xspd_steer_remove(set, grace, old) : 0;

	return err ?: policy_remove(set, grace, old);
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
	err = xspd_steer_flush(set, grace, type);
	if (err)
		return err;
	HASH_ITER (hh, spd->by_index, pol, tmp) {
		if (pol->type != type || !pol->slot)
			continue;
		err = policy_remove(set, grace, pol);
		if (err)
			return err;
		pol->slot = 0;
	}
	return 0;
}
