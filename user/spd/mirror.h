/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of spd/ share about the mirror. */
#ifndef XSPD_SPD_MIRROR_H
#define XSPD_SPD_MIRROR_H

#include <string.h>
#include "spd/spd.h"

/* One policy during a dump: an entry of it, later on with what becomes of it. */
struct xspd_spd_item {
	struct xspd_pol *pol;  /* in the mirror, NULL: not there */
	struct xspd_pol *copy; /* what the dump says, NULL: the same as the mirror */
	uint32_t index;
	uint32_t pos; /* to be */
	bool tie;     /* to be */
	bool moved;   /* its order among those known has changed */
	bool skip;
};

/* Same policy to the kernel (xfrm_policy_insert). A security context is not looked at, events do
 * not carry it. */
static inline bool xspd_pol_same_identity(const struct xspd_pol *a, const struct xspd_pol *b)
{
	return a->dir == b->dir && a->type == b->type && a->if_id == b->if_id &&
	       a->mark == b->mark && a->mark_mask == b->mark_mask &&
	       !memcmp(&a->sel, &b->sel, sizeof(a->sel));
}

/* Same in all that only an update can change. */
static inline bool xspd_pol_same_update(const struct xspd_pol *a, const struct xspd_pol *b)
{
	return a->priority == b->priority && a->action == b->action && a->flags == b->flags;
}

/* Same in all that MIGRATE can change, or that a dump knows better than an event. */
static inline bool xspd_pol_same_rest(const struct xspd_pol *a, const struct xspd_pol *b)
{
	return a->unmodelled == b->unmodelled && !memcmp(&a->tmpl, &b->tmpl, sizeof(a->tmpl));
}

/*
 * The kernel counts indexes up by 8, and a dump is nearly in the order of the
 * indexes: neighbours share cache lines of the table, blocks of 1024 lie apart.
 */
static inline unsigned int xspd_index_hash(uint32_t index)
{
	uint32_t number = index >> 3;

	return number + (number >> 10) * 0x9e3779b1u + (index & 7) * 0x85ebca6bu;
}

struct xspd_pol *xspd_pol_clone(const struct xspd_pol *pol);

/* Enter @pol, which the mirror then owns; 0 or -ENOMEM (and @pol is still the caller's). */
int xspd_spd_link(struct xspd_spd *spd, struct xspd_pol *pol);
void xspd_spd_unlink(struct xspd_spd *spd, struct xspd_pol *pol);

/* Tell the listener; 0 or its negative return. */
int xspd_spd_tell(struct xspd_spd *spd, const struct xspd_change *change);

/* Each changes the mirror and tells of it.  @pol of add is owned by the mirror, or freed on
 * failure. */
int xspd_spd_add(struct xspd_spd *spd, struct xspd_pol *pol);
int xspd_spd_drop(struct xspd_spd *spd, struct xspd_pol *pol);
/* @pol gets the contents, pos and tie of @with, which stays the caller's. */
int xspd_spd_replace(struct xspd_spd *spd, struct xspd_pol *pol, const struct xspd_pol *with);
/* ... when @with is another policy that got the same index. */
int xspd_spd_supersede(struct xspd_spd *spd, struct xspd_pol *pol, const struct xspd_pol *with);

/*
 * Room for @need more values of next_pos.  When there is none, everything is
 * renumbered and the listener hears nothing until xspd_spd_renumbered() tells
 * it of that. 0 or -ENOMEM.
 */
int xspd_spd_renumber(struct xspd_spd *spd, size_t need);
int xspd_spd_renumbered(struct xspd_spd *spd);

void xspd_spd_dump_forget(struct xspd_spd *spd);

#endif
