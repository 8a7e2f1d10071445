// SPDX-License-Identifier: GPL-2.0-only
/* Telling an answer. */
#include <stdio.h>

#include "cli/ask.h"
#include "cli/flow.h"
#include "cli/path.h"
#include "cli/selector.h"
#include "reason.h"

static void print_policy(const char *what, const struct cli_answer *answer, int nr)
{
	const struct xspd_info *info = &answer->info[nr];
	char text[256];

	printf("%s %u", what, info->index);
	if (answer->line[nr])
		printf(" (new, by line %zu; the kernel chooses its number)", answer->line[nr]);
	cli_selector_text(info, text, sizeof(text));
	printf("\n\t%s\n", text);
	cli_traits_text(info, text, sizeof(text));
	printf("\t%s\n", text);
	cli_tmpl_text(info, text, sizeof(text));
	if (*text)
		printf("\t%s\n", text);
}

static void print_counter(const struct cli_answer *answer)
{
	const char *when, *counter = cli_fate_counter(answer, &when);

	if (!counter)
		return;
	printf("counter %s%s\n", counter,
	       *when == 'u'   ? ", if it comes unprotected"
	       : *when == 'n' ? ", while there is no SA"
			      : "");
}

void cli_answer_print(const struct cli_answer *answer)
{
	printf("verdict %s reason %s", xspd_verdict_name(answer->answer.verdict),
	       xspd_reason_name(answer->answer.reason));
	if (answer->answer.verdict == XSPD_DEFER)
		printf(" (the kernel decides)");
	printf("\n");
	if (answer->info[0].index)
		print_policy("policy", answer, 0);
	else
		printf("policy none\n");
	if (answer->info[1].index)
		print_policy("and then policy", answer, 1);
	print_counter(answer);
	if (answer->explained)
		cli_explain_print(&answer->explain, &answer->flow);
}

static struct json_object *counter_json(const struct cli_answer *answer)
{
	const char *when, *counter = cli_fate_counter(answer, &when);
	struct json_object *o;

	if (!counter)
		return NULL;
	o = json_object_new_object();
	cli_json_text(o, "name", counter);
	cli_json_text(o, "when", when);
	return o;
}

static struct json_object *policy_json(const struct cli_answer *answer, int nr)
{
	struct json_object *o;

	if (!answer->info[nr].index)
		return NULL;
	o = cli_policy_json(&answer->info[nr]);
	if (answer->dry) /* 0: it is there already */
		cli_json_number(o, "line", answer->line[nr]);
	return o;
}

struct json_object *cli_answer_json(const struct cli_answer *answer)
{
	static const char *const keys[] = {"policy", "policy2"};
	struct json_object *o = json_object_new_object();
	char text[256];

	cli_flow_text(&answer->flow, text, sizeof(text));
	cli_json_text(o, "flow", text);
	cli_json_text(o, "verdict", xspd_verdict_name(answer->answer.verdict));
	cli_json_text(o, "reason", xspd_reason_name(answer->answer.reason));
	cli_json_number(o, "tuples", answer->answer.tuples);
	for (int i = 0; i < 2; i++)
		json_object_object_add(o, keys[i], policy_json(answer, i));
	json_object_object_add(o, "counter", counter_json(answer));
	if (answer->explained) {
		cli_json_bool(o, "agrees", !cli_answer_disagrees(answer));
		json_object_object_add(o, "reference",
				       cli_explain_json(&answer->explain, &answer->flow));
	}
	return o;
}
