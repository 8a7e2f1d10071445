// SPDX-License-Identifier: GPL-2.0-only
/* xspd lint: what is wrong with the policies, or will surprise somebody. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/selector.h"
#include "cli/source.h"
#include "plane/pure/info.h"
#include "util.h"

#define SHOWN 10 /* findings of one kind, in text */

struct words {
	struct cli_common common;
	const char *file, *fail_on, *ignore;
	bool all;
	int fail_level;	  /* XSPD_LINT_LEVEL_MAX_: never */
	uint32_t ignored; /* bit 1 << enum xspd_lint_id */
};

/* --- text ------------------------------------------------------------------------ */
static void print_policies(const struct xspd_lint_finding *finding)
{
	char text[256];

	for (uint32_t i = 0; i < finding->count && i < XSPD_LINT_NAMED; i++) {
		cli_pol_text(finding->pol[i], text, sizeof(text));
		printf("\t%s\n", text);
	}
	if (finding->count > XSPD_LINT_NAMED)
		printf("\tand %u more\n", finding->count - XSPD_LINT_NAMED);
}

static void print_finding(const struct xspd_lint_finding *finding)
{
	char reason[256];

	xspd_lint_reason(finding, reason, sizeof(reason));
	printf("%s %s: index %u %s\n", xspd_lint_level_name(finding->level),
	       xspd_lint_id_name(finding->id), finding->pol[0]->index, reason);
	print_policies(finding);
	printf("\tremedy: %s\n", xspd_lint_remedy(finding->id));
}

static void print_text(const struct xspd_lint_report *report, const struct cli_source *source,
		       bool all)
{
	uint32_t same = 0;

	for (size_t i = 0; i < report->count; i++) {
		const struct xspd_lint_finding *f = &report->finding[i];

		same = i && f->id == f[-1].id && f->level == f[-1].level ? same + 1 : 0;
		if (all || same < SHOWN)
			print_finding(f);
		if (!all && same >= SHOWN &&
		    (i + 1 == report->count || f[1].id != f->id || f[1].level != f->level))
			printf("%s %s: %u more; --all shows them\n", xspd_lint_level_name(f->level),
			       xspd_lint_id_name(f->id), same + 1 - SHOWN);
	}
	printf("%u policies: %u errors, %u warnings, %u infos\n", source->count,
	       report->level[XSPD_LINT_ERROR], report->level[XSPD_LINT_WARNING],
	       report->level[XSPD_LINT_INFO]);
}

/* --- JSON ------------------------------------------------------------------------ */
static struct json_object *policy_json(const struct xspd_pol *pol)
{
	struct xspd_info info;

	xspd_info_fill(&info, pol);
	return cli_policy_json(&info);
}

static struct json_object *finding_json(const struct xspd_lint_finding *finding)
{
	struct json_object *o = json_object_new_object(), *pols = json_object_new_array();
	char reason[256];

	xspd_lint_reason(finding, reason, sizeof(reason));
	for (uint32_t i = 0; i < finding->count && i < XSPD_LINT_NAMED; i++)
		json_object_array_add(pols, policy_json(finding->pol[i]));
	cli_json_text(o, "id", xspd_lint_id_name(finding->id));
	cli_json_text(o, "severity", xspd_lint_level_name(finding->level));
	cli_json_text(o, "reason", reason);
	cli_json_text(o, "remedy", xspd_lint_remedy(finding->id));
	cli_json_number(o, "policy_count", finding->count);
	json_object_object_add(o, "policies", pols);
	return o;
}

static void print_json(const struct xspd_lint_report *report, const struct cli_source *source)
{
	struct json_object *o = json_object_new_object(), *findings = json_object_new_array();

	for (size_t i = 0; i < report->count; i++)
		json_object_array_add(findings, finding_json(&report->finding[i]));
	cli_json_number(o, "policies", source->count);
	if (source->sas_known)
		cli_json_number(o, "states", source->sas);
	else
		cli_json_text(o, "states", NULL);
	cli_json_bool(o, "order_from_daemon", source->daemon);
	cli_json_number(o, "errors", report->level[XSPD_LINT_ERROR]);
	cli_json_number(o, "warnings", report->level[XSPD_LINT_WARNING]);
	cli_json_number(o, "infos", report->level[XSPD_LINT_INFO]);
	cli_json_bool(o, "complete", !report->incomplete);
	json_object_object_add(o, "findings", findings);
	cli_json_print(o);
}

/* --- the rest ---------------------------------------------------------------------- */
static void ignore(struct xspd_lint_report *report, uint32_t ignored)
{
	size_t kept = 0;

	for (size_t i = 0; i < report->count; i++) {
		if (ignored & 1u << report->finding[i].id)
			report->level[report->finding[i].level]--;
		else
			report->finding[kept++] = report->finding[i];
	}
	report->count = kept;
}

static bool fails(const struct xspd_lint_report *report, int level)
{
	for (; level < XSPD_LINT_LEVEL_MAX_; level++)
		if (report->level[level])
			return true;
	return false;
}

static int lint(const struct words *words, const struct cli_source *source)
{
	const struct xspd_lint_input input = {
		.spd = source->spd,
		.sas = source->sa,
		.sa_count = source->sas,
		.sas_known = source->sas_known,
		.keyer = source->keyer,
		.no_ipv6 = source->no_ipv6,
	};
	struct xspd_lint_report report;
	int err = xspd_lint(&input, &report), rc;

	if (err)
		return cli_fail("lint: %s", strerror(-err));
	ignore(&report, words->ignored);
	if (words->common.json)
		print_json(&report, source);
	else
		print_text(&report, source, words->all);
	if (report.incomplete)
		cli_notice("lint: too many kinds of selectors to compare each with each; there may "
			   "be more findings");
	rc = fails(&report, words->fail_level) ? XSPD_FAILED : XSPD_DONE;
	xspd_lint_drop(&report);
	return rc;
}

static int read_ignored(struct words *words)
{
	char list[512], *save = NULL;
	int id;

	if (!words->ignore)
		return XSPD_DONE;
	snprintf(list, sizeof(list), "%s", words->ignore);
	for (char *name = strtok_r(list, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
		id = xspd_lint_id_find(name);
		if (id < 0)
			return cli_usage("lint: --ignore %s: no such finding; xspd-lint(8) lists "
					 "them",
					 name);
		words->ignored |= 1u << id;
	}
	return XSPD_DONE;
}

int lint_main(int argc, char **argv)
{
	struct words words = {.common = {.reads = true}, .fail_on = "warning"};
	const struct cli_option options[] = {
		{"file", CLI_STRING, &words.file},
		{"fail-on", CLI_STRING, &words.fail_on},
		{"ignore", CLI_STRING, &words.ignore},
		{"all", CLI_FLAG, &words.all},
		{},
	};
	int rc = cli_parse(&words.common, options, &argc, &argv);
	struct cli_source source;

	if (rc || words.common.help)
		return rc;
	if (argc)
		return cli_usage("lint: takes no words, not '%s'", argv[0]);
	words.fail_level = strcmp(words.fail_on, "never") ? xspd_lint_level_find(words.fail_on)
							  : XSPD_LINT_LEVEL_MAX_;
	if (words.fail_level < 0)
		return cli_usage("lint: --fail-on %s: say error, warning, info or never",
				 words.fail_on);
	rc = read_ignored(&words);
	if (!rc)
		rc = cli_enter_netns(words.common.netns);
	if (!rc)
		rc = cli_source_open(&source, "lint", words.file, words.common.instance, true);
	if (rc)
		return rc;
	rc = lint(&words, &source);
	cli_source_close(&source);
	return rc;
}
