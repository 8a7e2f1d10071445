/* SPDX-License-Identifier: GPL-2.0-only */
/* The situations in tests/cases: see the README there for the format. */
#ifndef XSPD_TESTS_LIB_CASEFILE_H
#define XSPD_TESTS_LIB_CASEFILE_H

#include "lib/oracle.h"

#define CASE_NAME_MAX 24

enum case_kind {
	CASE_POLICY,
	CASE_UPDATE,
	CASE_DELETE,
	CASE_FLUSH,
	CASE_DEFAULT,
	CASE_FLOW,
};

enum case_expect {
	CASE_NAMED,
	CASE_NONE,
	CASE_AMBIGUOUS, /* who saw only a dump cannot know; @winner is what a 6.12+ kernel says */
};

struct case_step {
	enum case_kind kind;
	unsigned int line;

	/* policy, update, delete: everything that is to be sent; default: dir and action */
	struct xspd_pol pol;
	bool refused; /* the kernel is to say EEXIST or ENOENT */

	/* flow */
	struct xspd_flow flow;	 /* as it is looked up: the ports of a fragment are 0 */
	struct xspd_flow packet; /* as it is sent */
	enum case_expect expect;
	uint32_t winner; /* reqid, 0: none */
	int verdict;	 /* enum xspd_verdict, -1: the file does not say */
};

struct casefile {
	char *path;
	unsigned int kernel; /* least version, major << 8 | minor; 0: any */
	struct case_step *step;
	size_t steps;
	/*
	 * Policies by name.  Whatever reqid the file gives, the policy gets its place here + 1, so
	 * that its template names it; a policy without a template gets an optional one.
	 */
	struct case_policy {
		char name[CASE_NAME_MAX];
		struct xspd_pol pol; /* as last written */
	} * policy;
	size_t policies;
};

/*
 * casefile_read() - Parse a file, making the devices that it names in the caller's namespace.
 * Return: 0, or a negative errno with a sentence in @error.
 */
int casefile_read(const char *path, struct casefile **ret, char *error, size_t len);
void casefile_free(struct casefile *cf);

/* "P1"; "none" for 0, "?" for a reqid that no policy has. */
const char *casefile_name(const struct casefile *cf, uint32_t reqid);

/*
 * The keys of a policy or flow line, without kind, name and answer. For tests: abort on a
 * mistake.  No template is added; reqid is ignored; a fragment keeps its ports.
 */
struct xspd_pol case_pol(const char *words);
struct xspd_flow case_flow(const char *words);

/* Do a step that is no flow to the kernel: its answer, 0 or a negative errno. */
int case_apply(struct oracle *oracle, const struct case_step *step);

#endif
