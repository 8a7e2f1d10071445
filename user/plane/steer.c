// SPDX-License-Identifier: GPL-2.0-only
/* Out policies over all if_ids: see steer.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "plane/crash.h"
#include "plane/pure/info.h"
#include "plane/record.h"
#include "plane/steer.h"
#include "util.h"

/* What readers see of one. */
struct face {
	uint32_t if_id, alias, pos;
	uint8_t flags;
};

static bool is_steered(const struct xspd_pol *pol)
{
	return pol->dir == XSPD_OUT && pol->if_id && !pol->sel.ifindex &&
	       pol->type < XSPD_TYPE_MAX_;
}

bool xspd_steer_wants(const struct xspd_set *set, const struct xspd_pol *pol)
{
	return set->steer && is_steered(pol);
}

static void addr_mask(xfrm_address_t *to, const xfrm_address_t *from, unsigned int len, bool v6)
{
	unsigned int words = v6 ? 4 : 1;

	for (unsigned int i = 0; i < words && len; i++) {
		unsigned int bits = len < 32 ? len : 32;

		to->a6[i] = from->a6[i] & htonl(~0u << (32 - bits));
		len -= bits;
	}
}

static void key_of(const struct xspd_pol *pol, struct xspd_steer_key *ret)
{
	const struct xfrm_selector *sel = &pol->sel;
	bool v6 = sel->family == XSPD_INET6;

	/* bytes of padding are compared too */
	memset(ret, 0, sizeof(*ret));
	ret->sel.family = sel->family;
	ret->sel.prefixlen_d = sel->prefixlen_d;
	ret->sel.prefixlen_s = sel->prefixlen_s;
	ret->sel.proto = sel->proto;
	ret->sel.dport_mask = sel->dport_mask;
	ret->sel.sport_mask = sel->sport_mask;
	ret->sel.dport = sel->dport & sel->dport_mask;
	ret->sel.sport = sel->sport & sel->sport_mask;
	addr_mask(&ret->sel.daddr, &sel->daddr, sel->prefixlen_d, v6);
	addr_mask(&ret->sel.saddr, &sel->saddr, sel->prefixlen_s, v6);
	ret->priority = pol->priority;
	ret->mark = pol->mark;
	ret->mark_mask = pol->mark_mask;
	ret->type = pol->type;
	ret->unmodelled = pol->unmodelled != 0;
}

static void view_of(const struct xspd_steer_key *key, struct xspd_pol *ret)
{
	*ret = (struct xspd_pol){
		.sel = key->sel,
		.priority = key->priority,
		.mark = key->mark,
		.mark_mask = key->mark_mask,
		.dir = XSPD_STEER,
		.type = key->type,
		.unmodelled = key->unmodelled,
	};
}

void xspd_steer_view(const struct xspd_pol *pol, struct xspd_pol *ret)
{
	struct xspd_steer_key key;

	key_of(pol, &key);
	view_of(&key, ret);
}

static struct xspd_steer *steer_find(struct xspd_steer *head, const struct xspd_steer_key *key)
{
	struct xspd_steer *steer;

	HASH_FIND(hh, head, key, sizeof(*key), steer);
	return steer;
}

static struct xspd_steer *steer_make(struct xspd_steer **head, const struct xspd_steer_key *key)
{
	struct xspd_steer *steer = calloc(1, sizeof(*steer));

	if (!steer)
		return NULL;
	steer->key = *key;
	view_of(key, &steer->shown);
	HASH_ADD(hh, *head, key, sizeof(*key), steer);
	return steer;
}

static void all_free(struct xspd_steer **head)
{
	struct xspd_steer *steer, *tmp;

	HASH_ITER (hh, *head, steer, tmp) {
		HASH_DEL(*head, steer);
		free(steer);
	}
}

int xspd_steer_count(const struct xspd_spd *spd, uint32_t *ret)
{
	struct xspd_steer *head = NULL;
	const struct xspd_pol *pol;
	struct xspd_steer_key key;
	int err = 0;

	for (pol = spd->by_index; pol && !err; pol = pol->hh.next) {
		if (!is_steered(pol))
			continue;
		key_of(pol, &key);
		if (!steer_find(head, &key) && !steer_make(&head, &key))
			err = -ENOMEM;
	}
	*ret = HASH_COUNT(head);
	all_free(&head);
	return err;
}

/* Equal numbers, and no others, have a sum whose square is their count times the sum of squares. */
static bool one_if_id(const struct xspd_steer *steer)
{
	return steer->members * steer->squares == (unsigned __int128)steer->if_ids * steer->if_ids;
}

static struct face face_of(const struct xspd_set *set, const struct xspd_steer *steer,
			   const struct xspd_policy *rec)
{
	struct face face = {.flags = rec->flags};

	if (steer->members == 1) {
		const struct xspd_policy *only = &set->policy[steer->slots];

		return (struct face){.if_id = (uint32_t)steer->if_ids,
				     .alias = (uint32_t)steer->slots,
				     .pos = only->pos,
				     .flags = only->flags};
	}
	face.flags |= XSPD_P_MANY | XSPD_P_TIE;
	if (one_if_id(steer))
		face.if_id = (uint32_t)(steer->if_ids / steer->members);
	else
		face.flags |= XSPD_P_IFIDS;
	return face;
}

static bool face_shown(const struct xspd_set *set, uint32_t slot, const struct face *face)
{
	return set->info[slot].if_id == face->if_id && set->info[slot].alias == face->alias &&
	       set->policy[slot].pos == face->pos && set->policy[slot].flags == face->flags;
}

/* The first of its kind: a place in its partition. */
static int steer_link(struct xspd_set *set, struct xspd_grace *grace, struct xspd_steer *steer,
		      uint32_t slot)
{
	struct xspd_part_tuple *tuple;
	struct xspd_partition *part;
	bool fresh = false;
	int err;

	part = xspd_partition_get(set, &steer->shown, true, &err);
	if (!part)
		return err;
	tuple = xspd_partition_pick(set, part, &steer->shown, &fresh, &err);
	err = tuple ? xspd_set_promise(set, grace, part, &steer->shown, tuple, fresh) : err;
	if (err)
		return err;
	set->policy[slot].part = part->nr;
	xspd_crash_point("steer: written");
	xspd_chain_insert(set, &steer->shown, &tuple->rec, slot);
	steer->shown.tuple = tuple->rec.id;
	tuple->rec.policies++;
	part->policies++;
	return 0;
}

/* Another face for one that is there. */
static int steer_swap(struct xspd_set *set, struct xspd_grace *grace, struct xspd_steer *steer,
		      uint32_t slot)
{
	struct xspd_part_tuple *tuple;
	struct xspd_partition *part;
	struct xspd_place place;
	uint32_t old = steer->shown.slot;
	int err;

	part = xspd_partition_get(set, &steer->shown, false, &err);
	tuple = part ? xspd_partition_tuple(part, steer->shown.tuple) : NULL;
	if (!tuple || xspd_place_find(set, &steer->shown, &tuple->rec, old, &place))
		return -ESTALE;
	set->policy[slot].part = part->nr;
	set->policy[slot].next = set->policy[old].next;
	xspd_crash_point("steer: written anew");
	xspd_place_set(set, &place, (uint32_t)*place.entry, slot);
	return xspd_set_retire(set, grace,
			       (struct xspd_retired){.kind = XSPD_RETIRED_SLOT, .nr = old});
}

/* Show what the sums say now. */
static int steer_publish(struct xspd_set *set, struct xspd_grace *grace, struct xspd_steer *steer)
{
	struct xspd_policy rec;
	struct face face;
	uint32_t slot;
	int err;

	xspd_record_fill(&rec, &steer->shown, 0);
	face = face_of(set, steer, &rec);
	if (steer->shown.slot && face_shown(set, steer->shown.slot, &face))
		return 0;
	slot = xspd_set_slot(set);
	if (!slot)
		return -ENOBUFS;
	xspd_info_fill(&set->info[slot], &steer->shown);
	set->info[slot].dir = XSPD_OUT;
	set->info[slot].if_id = face.if_id;
	set->info[slot].alias = face.alias;
	rec.pos = face.pos;
	rec.flags = face.flags;
	set->policy[slot] = rec;
	err = steer->shown.slot ? steer_swap(set, grace, steer, slot)
				: steer_link(set, grace, steer, slot);
	if (err)
		return err == -ENOSPC ? -ENOBUFS : err;
	xspd_crash_point("steer: shown");
	steer->shown.slot = slot;
	xspd_set_generation(set, 2);
	return 0;
}

static int steer_drop(struct xspd_set *set, struct xspd_grace *grace, struct xspd_steer *steer)
{
	struct xspd_part_tuple *tuple;
	struct xspd_partition *part;
	struct xspd_place place;
	int err;

	part = xspd_partition_get(set, &steer->shown, false, &err);
	tuple = part ? xspd_partition_tuple(part, steer->shown.tuple) : NULL;
	if (!tuple || xspd_place_find(set, &steer->shown, &tuple->rec, steer->shown.slot, &place))
		return -ESTALE;
	xspd_chain_remove(set, &place, steer->shown.slot);
	xspd_crash_point("steer: unlinked");
	xspd_set_generation(set, 2);
	err = xspd_set_retire(
		set, grace,
		(struct xspd_retired){.kind = XSPD_RETIRED_SLOT, .nr = steer->shown.slot});
	part->policies--;
	if (!--tuple->rec.policies) {
		xspd_partition_tuple_drop(set, part, tuple);
		/* no room for a narrower list: the wider one still answers rightly */
		xspd_partition_publish(set, grace, part);
	}
	if (!part->policies && !err)
		err = xspd_partition_drop(set, grace, part);
	HASH_DEL(set->steers, steer);
	free(steer);
	return err;
}

static void sums_add(struct xspd_steer *steer, const struct xspd_pol *pol)
{
	steer->members++;
	steer->if_ids += pol->if_id;
	steer->squares += (uint64_t)pol->if_id * pol->if_id;
	steer->slots += pol->slot;
}

static void sums_sub(struct xspd_steer *steer, const struct xspd_pol *pol)
{
	steer->members--;
	steer->if_ids -= pol->if_id;
	steer->squares -= (uint64_t)pol->if_id * pol->if_id;
	steer->slots -= pol->slot;
}

int xspd_steer_add(struct xspd_set *set, struct xspd_grace *grace, const struct xspd_pol *pol)
{
	struct xspd_steer_key key;
	struct xspd_steer *steer;

	key_of(pol, &key);
	steer = steer_find(set->steers, &key) ?: steer_make(&set->steers, &key);
	if (!steer)
		return -ENOMEM;
	sums_add(steer, pol);
	return steer_publish(set, grace, steer);
}

int xspd_steer_remove(struct xspd_set *set, struct xspd_grace *grace, const struct xspd_pol *old)
{
	struct xspd_steer_key key;
	struct xspd_steer *steer;

	key_of(old, &key);
	steer = steer_find(set->steers, &key);
	if (!steer)
		return -ESTALE;
	sums_sub(steer, old);
	return steer->members ? steer_publish(set, grace, steer) : steer_drop(set, grace, steer);
}

int xspd_steer_replace(struct xspd_set *set, struct xspd_grace *grace, const struct xspd_pol *pol,
		       const struct xspd_pol *old)
{
	struct xspd_steer_key key, was;
	struct xspd_steer *steer;
	int err;

	key_of(pol, &key);
	key_of(old, &was);
	if (memcmp(&key, &was, sizeof(key))) {
		/* while both are there the better one counts, and both are of one if_id */
		err = xspd_steer_add(set, grace, pol);
		return err ?: xspd_steer_remove(set, grace, old);
	}
	steer = steer_find(set->steers, &key);
	if (!steer)
		return -ESTALE;
	sums_sub(steer, old);
	sums_add(steer, pol);
	return steer_publish(set, grace, steer);
}

int xspd_steer_flush(struct xspd_set *set, struct xspd_grace *grace, uint8_t type)
{
	struct xspd_steer *steer, *tmp;
	int err = 0;

	HASH_ITER (hh, set->steers, steer, tmp)
		if (steer->key.type == type && !err)
			err = steer_drop(set, grace, steer);
	return err;
}

void xspd_steer_free(struct xspd_set *set)
{
	all_free(&set->steers);
}
