// SPDX-License-Identifier: GPL-2.0-only
#include <stdio.h>

#include "cli/flow.h"
#include "cli/path.h"
#include "cli/selector.h"

static void print_steps(const struct cli_way *way, const char *which)
{
	char text[256];

	for (size_t i = 0; i < way->steps; i++) {
		cli_flow_text(&way->step[i].flow, text, sizeof(text));
		printf("%s: %s%s\n", which, text,
		       way->renamed && i == 2 ? " (after source NAT)" : "");
		cli_answer_print(&way->step[i]);
	}
}

static void print_end(const struct cli_way *way, const char *which)
{
	const struct cli_answer *end = cli_way_end(way);
	const char *when, *counter = cli_fate_counter(end, &when);
	enum cli_fate fate = cli_fate_of(end);

	printf("fate %s: %s", which, cli_fate_name(fate));
	if (fate == CLI_FATE_DROPPED)
		printf(" by %s, %s",
		       end->flow.dir == XSPD_OUT   ? "out"
		       : end->flow.dir == XSPD_FWD ? "fwd"
						   : "in",
		       counter ? counter : "not counted");
	printf("\n");
}

void cli_path_print(const struct cli_path *path)
{
	const char *warning;

	print_steps(&path->there, "there");
	if (path->both)
		print_steps(&path->back, "back");
	print_end(&path->there, "there");
	if (path->both)
		print_end(&path->back, "back");
	for (size_t i = 0; (warning = cli_path_warning(path, i)); i++)
		printf("warning: %s\n", warning);
}

static struct json_object *way_json(const struct cli_way *way)
{
	struct json_object *o = json_object_new_object(), *steps = json_object_new_array();
	const struct cli_answer *end = cli_way_end(way);

	for (size_t i = 0; i < way->steps; i++) {
		struct json_object *step = cli_answer_json(&way->step[i]);

		cli_json_bool(step, "after_source_nat", way->renamed && i == 2);
		json_object_array_add(steps, step);
	}
	json_object_object_add(o, "steps", steps);
	cli_json_text(o, "fate", cli_fate_name(cli_fate_of(end)));
	cli_json_number(o, "decided_by", (uint64_t)(end - way->step));
	return o;
}

struct json_object *cli_path_json(const struct cli_path *path)
{
	struct json_object *o = json_object_new_object(), *warnings = json_object_new_array();
	const char *warning;

	json_object_object_add(o, "there", way_json(&path->there));
	json_object_object_add(o, "back", path->both ? way_json(&path->back) : NULL);
	for (size_t i = 0; (warning = cli_path_warning(path, i)); i++)
		json_object_array_add(warnings, json_object_new_string(warning));
	json_object_object_add(o, "warnings", warnings);
	return o;
}
