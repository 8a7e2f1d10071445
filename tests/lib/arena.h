/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One thread changes policies, another looks flows up all the time.  No kernel SPD is
 * behind it, so that the changes come fast.
 *
 * Policies that must win are block policies, all others protect; nothing matches by
 * default.  So the verdict says who won.
 */
#ifndef XSPD_TESTS_LIB_ARENA_H
#define XSPD_TESTS_LIB_ARENA_H

#include <pthread.h>

#include "lib/gen.h"
#include "lib/mirror.h"
#include "lib/scale.h"

#define ARENA_FLOWS   512  /* each governed by a policy */
#define ARENA_CHURN   2048 /* policies that come, change and go */
#define ARENA_SECONDS scaled(3)

struct arena {
	const char *name;
	struct mirror *mirror;
	struct gen gen;
	pthread_mutex_t lock; /* held for each change; the reader only to pick up a new set */
	struct xspd_flow flow[ARENA_FLOWS];
	struct xspd_pol stable[ARENA_FLOWS];
	struct xspd_pol churn[ARENA_CHURN];
	bool present[ARENA_CHURN];
	bool swaps;	    /* slots may change: the reader goes by verdicts alone */
	bool pairs;	    /* flow i is governed by stable[i], by churn[i], or by both */
	volatile bool want; /* the reader is waiting for the lock, which is not a fair one */
	volatile bool stop;

	/* the reader's findings */
	uint64_t lookups, missed, others, reasons[XSPD_R_MAX_];
	int failed;
};

struct arena *arena_new(const char *name, const struct xspd_plane_opts *opts);
void arena_free(struct arena *arena);

/* For a writer whose changes may swap sets, around each change; fair to the reader. */
void arena_lock(struct arena *arena);
void arena_unlock(struct arena *arena);

/*
 * Run @write in this thread, lookups of all flows in another; report, and free.  No lookup may
 * miss or find another policy, and no more than 0.01 % may be deferred (with arena->swaps: some).
 */
void arena_race(struct arena *arena, uint64_t (*write)(struct arena *arena));

#endif
