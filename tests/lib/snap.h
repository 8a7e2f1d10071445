/* SPDX-License-Identifier: GPL-2.0-only */
/* For the tests of snapshots: a varied SPD, the kernel's own list of it, and loads that keep a
 * record. */
#ifndef XSPD_TESTS_LIB_SNAP_H
#define XSPD_TESTS_LIB_SNAP_H

#include <signal.h>
#include <stdint.h>

#include "nl/nl.h"
#include "snapshot/load.h"

/* All fail the test themselves. */

/* What the last snap_load() said. */
struct snap_told {
	uint32_t refused;
	int error; /* of the last */
	char text[128];
	uint64_t stop_at; /* of the test: stop after so many entries; 0: never */
};
extern struct snap_told snap_told;
extern volatile sig_atomic_t snap_stop;
extern char snap_path[]; /* a file of our own, after snap_save() */

void snap_save(void);
int snap_load(bool states, struct xspd_load_result *ret);

/* A fresh namespace, with a socket for the requests below. */
void snap_enter(void);
void snap_fini(void);

/* Requests; a refusal fails the test. */
extern struct xspd_batch *snap_batch;
void snap_put(const struct xspd_pol *pol, uint16_t type);
void snap_flush(void);
/* Every attribute and every corner of a selector, by number. */
struct xspd_pol snap_policy(uint32_t i);
void snap_fill(uint32_t count); /* 1..@count */

/* The kernel's own list, newest first, without use and age. Free .at. */
struct snap_list {
	char *at;
	size_t used;
	uint32_t count;
};
struct snap_list snap_list(void);
void snap_expect_same(const struct snap_list *a, const struct snap_list *b);

#endif
