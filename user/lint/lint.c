// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>

#include "lint/check.h"

size_t xspd_lint_add(struct xspd_lint *lint, enum xspd_lint_id id, enum xspd_lint_level level,
		     const struct xspd_pol *subject)
{
	struct xspd_lint_report *report = lint->report;
	size_t room = report->room ? 2 * report->room : 64;
	struct xspd_lint_finding *finding;

	if (report->count == report->room) {
		finding = reallocarray(report->finding, room, sizeof(*finding));
		if (!finding) {
			lint->err = -ENOMEM;
			return 0;
		}
		report->finding = finding;
		report->room = room;
	}
	report->finding[report->count] = (struct xspd_lint_finding){
		.id = id,
		.level = level,
		.count = 1,
		.pol[0] = subject,
	};
	report->level[level]++;
	return report->count++;
}

void xspd_lint_more(struct xspd_lint *lint, size_t nr, const struct xspd_pol *pol)
{
	struct xspd_lint_finding *finding;

	if (lint->err)
		return;
	finding = &lint->report->finding[nr];
	if (finding->count < XSPD_LINT_NAMED)
		finding->pol[finding->count] = pol;
	finding->count++;
}

static int compare_finding(const void *a, const void *b)
{
	const struct xspd_lint_finding *x = a, *y = b;

	if (x->level != y->level)
		return x->level > y->level ? -1 : 1;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return (x->pol[0]->index > y->pol[0]->index) - (x->pol[0]->index < y->pol[0]->index);
}

int xspd_lint(const struct xspd_lint_input *input, struct xspd_lint_report *ret)
{
	static void (*const checks[])(struct xspd_lint *) = {
		xspd_lint_check_twins,	xspd_lint_check_never,	  xspd_lint_check_unions,
		xspd_lint_check_bypass, xspd_lint_check_ties,	  xspd_lint_check_ways,
		xspd_lint_check_fwd,	xspd_lint_check_defaults, xspd_lint_check_ndp,
		xspd_lint_check_bits,	xspd_lint_check_sas,
	};
	struct xspd_lint_report report = {};
	struct xspd_lint lint = {.input = input, .report = &report};
	int err = xspd_lint_table_new(&lint.table, input->spd);

	if (err)
		return err;
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]) && !lint.err; i++)
		checks[i](&lint);
	report.incomplete = lint.table.incomplete;
	xspd_lint_table_drop(&lint.table);
	if (lint.err) {
		xspd_lint_drop(&report);
		return lint.err;
	}
	if (report.count)
		qsort(report.finding, report.count, sizeof(*report.finding), compare_finding);
	*ret = report;
	return 0;
}

void xspd_lint_drop(struct xspd_lint_report *report)
{
	free(report->finding);
	*report = (struct xspd_lint_report){};
}
