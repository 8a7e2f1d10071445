/* SPDX-License-Identifier: GPL-2.0-only */
/* What `xspd verify` found, as text or as JSON. */
#ifndef XSPD_CLI_VERIFY_TELL_H
#define XSPD_CLI_VERIFY_TELL_H

#include "cli/selector.h"
#include "cli/verify.h"

/* A number that is known within bounds. */
struct verify_range {
	uint64_t lo, hi;
};

struct verify {
	struct verify_sample start, end;
	struct verify_cover cover;
	uint32_t seconds;
	struct verify_range deferred; /* questions on arrival that xspd left open */
	struct verify_looked looked;
	const char *fexit;
	unsigned int agreed, disagreed;
	struct json_object *checks; /* NULL: text */
};

enum verify_result { VERIFY_AGREE, VERIFY_DISAGREE, VERIFY_NOTHING, VERIFY_SKIPPED };

/* One check each: counted, and printed or put into v->checks. @upper: want.hi bounds it too. */
void verify_tell_stat(struct verify *v, enum verify_stat which, struct verify_range want,
		      bool upper, uint64_t kernel, enum verify_result result);
void verify_tell_policy(struct verify *v, const struct verify_use *use, const char *what);
/* @same: policies of which both say the same. */
void verify_tell_uses(struct verify *v, unsigned int same, enum verify_result result);
void verify_tell_looked(struct verify *v);

/* The end of it. */
void verify_print_text(const struct verify *v);
void verify_print_json(const struct verify *v);

#endif
