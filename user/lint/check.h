/* SPDX-License-Identifier: GPL-2.0-only */
/* The checks, and how they report. */
#ifndef XSPD_LINT_CHECK_H
#define XSPD_LINT_CHECK_H

#include "lint/table.h"

struct xspd_lint {
	const struct xspd_lint_input *input;
	struct xspd_lint_table table;
	struct xspd_lint_report *report;
	int err; /* the first; everything after it is in vain */
};

/* Report @id about @subject (an item); returns its number, for xspd_lint_more(). */
size_t xspd_lint_add(struct xspd_lint *lint, enum xspd_lint_id id, enum xspd_lint_level level,
		     const struct xspd_pol *subject);
/* One more policy of a finding. */
void xspd_lint_more(struct xspd_lint *lint, size_t finding, const struct xspd_pol *pol);

void xspd_lint_check_twins(struct xspd_lint *lint);  /* before never: it leaves twins alone */
void xspd_lint_check_never(struct xspd_lint *lint);  /* before those that ask what is covered */
void xspd_lint_check_unions(struct xspd_lint *lint); /* after never */
void xspd_lint_check_bypass(struct xspd_lint *lint);
void xspd_lint_check_ties(struct xspd_lint *lint);
void xspd_lint_check_ways(struct xspd_lint *lint); /* OUT_ONLY, IN_ONLY */
void xspd_lint_check_fwd(struct xspd_lint *lint);
void xspd_lint_check_defaults(struct xspd_lint *lint); /* V6, IN_ALL */
void xspd_lint_check_ndp(struct xspd_lint *lint);
void xspd_lint_check_bits(struct xspd_lint *lint);
void xspd_lint_check_sas(struct xspd_lint *lint);

#endif
