/* SPDX-License-Identifier: GPL-2.0-only */
/* An SPD, one change of each kind to it, and the answers that are right before and after each. */
#ifndef XSPD_TESTS_LIB_TRANSITION_H
#define XSPD_TESTS_LIB_TRANSITION_H

#include "lib/pinned.h"

#define TRANSITION_BASE	 32 /* policies that are there from the beginning */
#define TRANSITION_FLOWS 8  /* flow 1, to 10.1.0.1, is governed by policy 1 all the time */

/* What is there from the beginning, and nothing else. */
void transition_base(struct xspd_batch *batch);
void transition_change(struct xspd_batch *batch);

/* Flow @n. Asserts that it can be asked. */
struct xspd_answer transition_ask(const struct pinned *pinned, uint32_t n);
/* No answer of the set in service, if there is one, may be one that never was right. */
void transition_expect(struct pinned *pinned, const char *when);

#endif
