/* SPDX-License-Identifier: GPL-2.0-only */
/* The pin directory: entry programs, jump tables, and the set in service behind a symlink. */
#ifndef XSPD_PLANE_PINS_H
#define XSPD_PLANE_PINS_H

#include "plane/set.h"

/* Maps that outlive the sets: the jump tables, the totals, and what operators have set. */
#define XSPD_LASTING 10
extern const char *const xspd_lasting_maps[XSPD_LASTING];

struct xspd_pins {
	char *dir;
	int lock;		   /* flock'ed directory: one daemon an instance */
	int lasting[XSPD_LASTING]; /* fds, -1 if not there */
	bool taken;		   /* entry programs were there already */
	uint32_t last;		   /* highest set number seen */
};

/* Make @dir, lock it, and open what a former daemon left. 0, -EBUSY when locked, negative errno. */
int xspd_pins_open(struct xspd_pins *ret, const char *dir);
void xspd_pins_close(struct xspd_pins *pins);
/* Pin the entry programs and lasting maps of the first set, and leave them to the pins: the set may
 * go. */
int xspd_pins_entries(struct xspd_pins *pins, const struct xspd_set *set);
/* Pin the maps of @set in set-<number>, and let `maps` name them: one rename. */
int xspd_pins_set(struct xspd_pins *pins, const struct xspd_set *set);
/* Take everything away again: of a start that failed where nothing was before. */
void xspd_pins_remove(struct xspd_pins *pins);
/* Take over what other ABI versions have pinned beside us. Return: how many were left alone. */
unsigned int xspd_pins_adopt(const struct xspd_pins *pins, const struct xspd_set *set);
/* Remove every set-<n> but @keep. */
void xspd_pins_prune(struct xspd_pins *pins, uint32_t keep);

#endif
