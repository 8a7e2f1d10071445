/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Packets as questions to the kernel, thousands at a time.  Each frame has an address
 * pair of its own, with two policies a direction: one for exactly the flow that is expected
 * of it, and below that one for anything between the two addresses.  Frames go in by
 * a tap device; the policies' time of use then says what the kernel made of each.
 * Failures are Criterion's.
 */
#ifndef XSPD_TESTS_LIB_QUESTION_H
#define XSPD_TESTS_LIB_QUESTION_H

#include "lib/dissect.h"
#include "lib/packet_rows.h"

#define QUESTIONS_MAX 4096

struct question {
	const char *name;
	struct craft c;
	enum dissect known;
	struct xspd_flow flow;	     /* if known is DISSECT_FLOW */
	bool told;		     /* parse.h fills the flow, too */
	bool used[XSPD_DIR_MAX_][2]; /* the exact policy, the one below */
};

extern struct question questions[QUESTIONS_MAX];
extern size_t question_count;

/* Enter a namespace that forwards everything, with "tap0" in it. Return: the tap's descriptor. */
int question_way(void);
/* From now on all the questions' destinations are this host. */
void question_local(void);

/*
 * Add a question, after making sure that parse.h says of it what the plain dissection
 * says; false, and not added, if this kernel dissects it as parse.h does not claim to.
 */
bool question_add(const char *name, const struct craft_spec *spec);

/* The kernel index of a question's policy; @below: 0 or 1, as in used[]. */
static inline uint32_t question_index(size_t nr, int below, uint8_t dir)
{
	return (uint32_t)(nr * 2 + below + 1) << 3 | dir;
}

void question_install(const uint8_t *dirs, size_t dir_count);
void question_send(int tap);
void question_read_use(void);

#endif
