/* SPDX-License-Identifier: GPL-2.0-only */
/* Random changes of the kernel's SPD, each followed by the mirror. */
#ifndef XSPD_TESTS_LIB_CHURN_H
#define XSPD_TESTS_LIB_CHURN_H

#include "lib/gen.h"
#include "lib/mirror.h"
#include "lib/oracle.h"

struct churn {
	struct gen *gen;
	struct oracle *oracle;
	struct mirror *mirror;
	bool in_place; /* updates may keep the priority */
	bool tellable; /* only what a dump can tell: no other priorities, no indexes of the user's
			*/
	size_t most;   /* policies */
	struct xspd_pol **live; /* the mirror's, in no order that matters; see churn_refresh() */
	size_t count;
	uint64_t adds, updates, in_places, deletes, refused, flushes, rebuilds;
};

/*
 * One change, and the events of it applied. The kernel may refuse it (EEXIST, ENOENT).
 * Return: 0 or a negative errno that should not have been.
 */
int churn_step(struct churn *churn);

/* Take stock of the mirror's policies, after any change to it. 0 or -ENOMEM. */
int churn_refresh(struct churn *churn);

/* One of them, NULL if there are none. */
const struct xspd_pol *churn_pick(struct churn *churn);

/* The kernel counts as many policies as the mirror, and a new dump shows nothing else than it. */
int churn_audit(struct churn *churn);

#endif
