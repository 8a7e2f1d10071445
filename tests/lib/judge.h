/* SPDX-License-Identifier: GPL-2.0-only */
/* Flows asked three ways: of the kernel, of the BPF program, of the linear reference. */
#ifndef XSPD_TESTS_LIB_JUDGE_H
#define XSPD_TESTS_LIB_JUDGE_H

#include "lib/mirror.h"
#include "lib/oracle.h"

#define JUDGE_FLOWS 4096 /* at most, in one call */

struct judge {
	struct mirror *mirror;
	struct oracle *oracle;
	bool no_program;   /* the reference and the kernel only */
	uint64_t probes;   /* flows asked */
	uint64_t kernel;   /* questions answered by the kernel */
	uint64_t named;	   /* flows that a policy governs */
	uint64_t deferred; /* with reason tie */
	uint64_t wrong;	   /* of any kind; the first few are printed */
	uint64_t tuples;   /* probed, in total */
};

/*
 * judge_flows() - Ask, and compare.  A DEFER must be for a tie, and the tie must be real:
 * two or more policies of the best priority match, one of them with an uncertain place.  The
 * kernel's winner is then one of them. Return: 0, or a negative errno where asking failed.
 */
int judge_flows(struct judge *judge, const struct xspd_flow *flows, size_t count);

/*
 * The same by oracle_send(): OUT, UDP, with marks.  A block policy is not named, only that it
 * is one.
 */
int judge_sent(struct judge *judge, const struct xspd_flow *flows, size_t count);

/*
 * The program and the reference only; @answers get what the program said. Wrong
 * ones are counted.
 */
int judge_program(struct judge *judge, const struct xspd_flow *flows, size_t count,
		  struct xspd_answer *answers);

/*
 * Of policies that match, best first: those of the best priority among them, and whether their
 * order is not certain.
 */
size_t judge_tied(const struct xspd_pol *const *match, size_t count, bool *ret_tie);

/* Say that @flow got a wrong answer, and which policies match. */
void judge_wrong(struct judge *judge, const struct xspd_flow *flow, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

void judge_report(const struct judge *judge, const char *name);

#endif
