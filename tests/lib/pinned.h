/* SPDX-License-Identifier: GPL-2.0-only */
/* An instance seen from outside, through its pins alone, whoever is or was its daemon. */
#ifndef XSPD_TESTS_LIB_PINNED_H
#define XSPD_TESTS_LIB_PINNED_H

#include "nl/nl.h"
#include "spd/spd.h"

struct pinned {
	char dir[128]; /* .../v1 */
	char set[32];  /* what "maps" named when they were opened; "": nothing is open */
	int query, count;
	uint32_t slots;
	const struct xspd_conf *conf;
	const struct xspd_info *info;
};

/* Nothing needs to be there yet. */
void pinned_init(struct pinned *pinned, const char *dir);
void pinned_close(struct pinned *pinned);
/* Open what "maps" names now, unless it is open. 0, or a negative errno: nothing is open then. */
int pinned_follow(struct pinned *pinned);

/* As xspd_plane_query(); pinned_follow() first. */
int pinned_ask(const struct pinned *pinned, const struct xspd_flow *flow, struct xspd_answer *ret);
/* Packets counted for the policy of this kernel index, all in all. */
uint64_t pinned_packets(const struct pinned *pinned, uint32_t index);

/* No doubt, and a lease that holds. */
bool pinned_sure(const struct pinned *pinned);

/*
 * Compare what people read of the mirror with a fresh dump: every field, the order, the number.
 * NULL if equal, else what differs.
 */
const char *pinned_compare(const struct pinned *pinned, struct xspd_nl *requests);

#endif
