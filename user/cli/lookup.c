// SPDX-License-Identifier: GPL-2.0-only
/* xspd lookup: ask the BPF program itself which policy governs a flow. */
#include <stdio.h>
#include <string.h>

#include "cli/ask.h"
#include "cli/flow.h"
#include "cli/lookup_file.h"
#include "cli/lookup_steer.h"
#include "cli/path.h"
#include "cli/selector.h"
#include "reason.h"

struct lookup {
	struct cli_common common;
	bool explain, forward, reverse, steer;
	const char *file, *with, *snat, *dnat;
	struct cli_nat src, dst; /* of snat, dnat */
	struct cli_path path;
};

static int check_options(const struct lookup *lookup, int argc, char **argv)
{
	if ((lookup->snat || lookup->dnat) && !lookup->forward)
		return cli_usage("lookup: --%s goes with --forward",
				 lookup->snat ? "snat" : "dnat");
	if (lookup->steer &&
	    (lookup->explain || lookup->forward || lookup->reverse || lookup->file || lookup->with))
		return cli_usage("lookup: --steer goes without --explain, --forward, --reverse, "
				 "--file and --with");
	if (!lookup->file)
		return XSPD_DONE;
	if (lookup->with && !strcmp(lookup->file, "-") && !strcmp(lookup->with, "-"))
		return cli_usage("lookup: --file and --with cannot both read standard input");
	if (argc)
		return cli_usage("lookup: --file %s: takes no words besides, not '%s'",
				 lookup->file, argv[0]);
	if (lookup->forward || lookup->reverse || lookup->explain)
		return cli_usage("lookup: --file does not go with --%s", lookup->forward ? "forward"
									 : lookup->reverse
										 ? "reverse"
										 : "explain");
	return XSPD_DONE;
}

static int parse_nat(struct lookup *lookup)
{
	int rc = XSPD_DONE;

	if (lookup->snat)
		rc = cli_nat_parse("snat", lookup->snat, &lookup->src);
	if (!rc && lookup->dnat)
		rc = cli_nat_parse("dnat", lookup->dnat, &lookup->dst);
	return rc;
}

static int check_nat(const struct lookup *lookup, const struct xspd_flow *flow)
{
	uint8_t family = (uint8_t)flow->family;

	if (lookup->src.set && lookup->src.family != family)
		return cli_usage("lookup: --snat %s: not of the family of src and dst",
				 lookup->snat);
	if (lookup->dst.set && lookup->dst.family != family)
		return cli_usage("lookup: --dnat %s: not of the family of src and dst",
				 lookup->dnat);
	return XSPD_DONE;
}

/* From words to the lookups that they ask for. */
static int plan(struct lookup *lookup, int argc, char **argv)
{
	struct cli_flow_form form = {.path = lookup->forward, .reverse = lookup->reverse};
	struct cli_path *path = &lookup->path;
	struct xspd_flow flow;
	uint32_t iif;
	int rc = parse_nat(lookup);

	if (!rc)
		rc = cli_flow_parse(&form, argc, argv, &flow, &iif);
	if (!rc)
		rc = check_nat(lookup, &flow);
	if (rc)
		return rc;
	if (lookup->forward)
		cli_way_forward(&path->there, &flow, &lookup->dst, &lookup->src);
	else
		cli_way_single(&path->there, &flow);
	path->both = lookup->reverse;
	if (path->both)
		cli_way_back(&path->back, &path->there, &lookup->dst, &lookup->src, iif);
	return XSPD_DONE;
}

static int complain(const struct cli_answer *answer)
{
	const struct xspd_ref *ref = &answer->explain.ref;

	return cli_fail("lookup: program and reference DISAGREE: %s %s %u %u against %s %s %u "
			"%u; please report this",
			xspd_verdict_name(answer->answer.verdict),
			xspd_reason_name(answer->answer.reason), answer->answer.index,
			answer->answer.index2, xspd_verdict_name(ref->verdict),
			xspd_reason_name(ref->reason), ref->pol ? ref->pol->index : 0,
			ref->pol2 ? ref->pol2->index : 0);
}

static int complain_any(const struct cli_way *way)
{
	for (size_t i = 0; i < way->steps; i++)
		if (cli_answer_disagrees(&way->step[i]))
			return complain(&way->step[i]);
	return XSPD_DONE;
}

static void print(const struct lookup *lookup)
{
	const struct cli_path *path = &lookup->path;
	bool single = !lookup->forward && !lookup->reverse;

	if (lookup->common.json)
		cli_json_print(single ? cli_answer_json(&path->there.step[0])
				      : cli_path_json(path));
	else if (single)
		cli_answer_print(&path->there.step[0]);
	else
		cli_path_print(path);
}

/* All the lookups in one state of the SPD. */
static int ask(struct cli_asker *asker, struct lookup *lookup)
{
	struct cli_answer answers[2 * CLI_WAY_MAX];
	struct cli_way *ways[] = {&lookup->path.there, &lookup->path.back};
	size_t count = 0, at = 0;
	int rc;

	for (size_t w = 0; w < 2; w++)
		for (size_t i = 0; i < ways[w]->steps; i++)
			answers[count++] = ways[w]->step[i];
	rc = cli_ask(asker, answers, count, lookup->explain);
	for (size_t w = 0; w < 2; w++)
		for (size_t i = 0; i < ways[w]->steps; i++)
			ways[w]->step[i] = answers[at++];
	return rc;
}

static int answer(struct cli_asker *asker, struct lookup *lookup)
{
	int rc = ask(asker, lookup);

	if (rc)
		return rc;
	print(lookup);
	rc = complain_any(&lookup->path.there);
	if (!rc)
		rc = complain_any(&lookup->path.back);
	cli_answers_free(lookup->path.there.step, lookup->path.there.steps);
	cli_answers_free(lookup->path.back.step, lookup->path.back.steps);
	return rc;
}

static int run(struct lookup *lookup)
{
	struct cli_asker asker;
	int rc = cli_asker_open(&asker, lookup->common.instance, lookup->with);

	if (rc)
		return rc;
	if (lookup->file)
		rc = cli_lookup_file(&asker, lookup->file, lookup->common.json);
	else
		rc = answer(&asker, lookup);
	cli_asker_close(&asker);
	return rc;
}

int lookup_main(int argc, char **argv)
{
	struct lookup lookup = {.common = {.reads = true}};
	const struct cli_option options[] = {
		{"explain", CLI_FLAG, &lookup.explain},
		{"forward", CLI_FLAG, &lookup.forward},
		{"reverse", CLI_FLAG, &lookup.reverse},
		{"steer", CLI_FLAG, &lookup.steer},
		{"file", CLI_STRING, &lookup.file},
		{"with", CLI_STRING, &lookup.with},
		{"snat", CLI_STRING, &lookup.snat},
		{"dnat", CLI_STRING, &lookup.dnat},
		{},
	};
	int rc = cli_parse(&lookup.common, options, &argc, &argv);

	if (rc || lookup.common.help)
		return rc;
	rc = check_options(&lookup, argc, argv);
	if (!rc)
		rc = cli_enter_netns(lookup.common.netns);
	if (!rc && lookup.steer)
		return cli_lookup_steer(&lookup.common, argc, argv);
	if (!rc && !lookup.file)
		rc = plan(&lookup, argc, argv);
	return rc ? rc : run(&lookup);
}
