/* SPDX-License-Identifier: GPL-2.0-only */
/* The keys of a policy or flow line of a case file. */
#ifndef XSPD_TESTS_LIB_CASE_KEYS_H
#define XSPD_TESTS_LIB_CASE_KEYS_H

#include "lib/casefile.h"
#include "words/words.h"

struct case_reader {
	struct xspd_words w;
	struct casefile *cf;
	struct case_step *step; /* being read */
	char *comment;		/* of this line, or NULL */
};

/* Both read up to the end of the line, the latter at most up to an arrow. 0 or -EINVAL. */
int case_read_policy_keys(struct case_reader *r, struct xspd_pol *pol);
int case_read_flow_keys(struct case_reader *r, struct xspd_flow *flow);

#endif
