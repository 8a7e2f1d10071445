// SPDX-License-Identifier: GPL-2.0-only
/* xspd lookup: ask the BPF program itself which policy governs a flow. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <bpf/bpf.h>

#include "cli/cli.h"
#include "cli/explain.h"
#include "cli/flow.h"
#include "cli/selector.h"
#include "cli/view.h"
#include "reason.h"
#include "util.h"

#define ATTEMPTS 20

struct lookup {
	struct xspd_flow flow;
	struct xspd_answer answer;
	struct xspd_info info[2]; /* of answer.slot, slot2; index 0: none */
	struct cli_explain explain;
	bool explained;
};

static int ask(const struct cli_view *view, const struct xspd_flow *flow, struct xspd_answer *ret)
{
	struct xspd_query in = {.flow = *flow}, out = {};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = &in, .data_size_in = sizeof(in),
		    .data_out = &out, .data_size_out = sizeof(out), .repeat = 1);

	if (bpf_prog_test_run_opts(view->query_fd, &opts) < 0)
		return -errno;
	if (opts.data_size_out != sizeof(out))
		return -EPROTO;
	*ret = out.answer;
	return 0;
}

static void read_infos(const struct cli_view *view, struct lookup *ret)
{
	uint32_t slot[2] = {ret->answer.slot, ret->answer.slot2};

	for (int i = 0; i < 2; i++)
		if (!slot[i] || slot[i] >= view->slots ||
		    !cli_view_info(view, slot[i], &ret->info[i]))
			ret->info[i].index = 0;
}

/* Answer, records and explanation of one state of the SPD, or -EAGAIN. */
static int attempt(const struct cli_view *view, bool explain, struct lookup *ret)
{
	uint64_t generation = cli_view_generation(view);
	int err = ask(view, &ret->flow, &ret->answer);

	if (err)
		return err;
	read_infos(view, ret);
	if (explain) {
		err = cli_explain_new(&ret->explain, view, &ret->flow);
		if (err)
			return err;
		ret->explained = true;
	}
	if (view->conf->generation == generation && !cli_view_stale(view))
		return 0;
	if (ret->explained)
		cli_explain_free(&ret->explain);
	ret->explained = false;
	return -EAGAIN;
}

static int run(struct cli_view *view, bool explain, struct lookup *ret)
{
	int err = -EAGAIN;

	for (int i = 0; i < ATTEMPTS && err == -EAGAIN; i++) {
		if (cli_view_stale(view)) {
			cli_view_close(view);
			if (cli_view_open(view, view->instance))
				return XSPD_FAILED;
		}
		err = attempt(view, explain, ret);
	}
	if (err == -EAGAIN)
		return cli_fail("lookup: the policies changed during each of %d attempts; "
				"try again",
				ATTEMPTS);
	if (err)
		return cli_fail("lookup: %s/%s/xspd_query: %s%s", view->dir, view->set,
				strerror(-err), err == -EPERM ? "; run as root" : "");
	return XSPD_DONE;
}

static void print_policy(const char *what, const struct xspd_info *info)
{
	char text[256];

	cli_selector_text(info, text, sizeof(text));
	printf("%s %u\n\t%s\n", what, info->index, text);
	cli_traits_text(info, text, sizeof(text));
	printf("\t%s\n", text);
	cli_tmpl_text(info, text, sizeof(text));
	if (*text)
		printf("\t%s\n", text);
}

static void print_text(const struct cli_view *view, const struct lookup *lookup)
{
	printf("verdict %s reason %s", xspd_verdict_name(lookup->answer.verdict),
	       xspd_reason_name(lookup->answer.reason));
	if (lookup->answer.verdict == XSPD_DEFER)
		printf(" (the kernel decides)");
	printf("\n");
	if (lookup->info[0].index)
		print_policy("policy", &lookup->info[0]);
	else
		printf("policy none\n");
	if (lookup->info[1].index)
		print_policy("and then policy", &lookup->info[1]);
	if (lookup->explained)
		cli_explain_print(&lookup->explain, view, &lookup->flow);
}

static void print_json(const struct cli_view *view, const struct lookup *lookup)
{
	static const char *const keys[] = {"policy", "policy2"};
	struct json_object *o = json_object_new_object();

	cli_json_text(o, "verdict", xspd_verdict_name(lookup->answer.verdict));
	cli_json_text(o, "reason", xspd_reason_name(lookup->answer.reason));
	cli_json_number(o, "tuples", lookup->answer.tuples);
	for (int i = 0; i < 2; i++)
		json_object_object_add(o, keys[i],
				       lookup->info[i].index ? cli_policy_json(&lookup->info[i])
							     : NULL);
	if (lookup->explained) {
		cli_json_bool(o, "agrees", cli_explain_agrees(&lookup->explain, &lookup->answer));
		json_object_object_add(o, "reference",
				       cli_explain_json(&lookup->explain, view, &lookup->flow));
	}
	cli_json_print(o);
}

/* A change told only after it was made can hide between two generations: look again. */
static bool disagrees(const struct lookup *lookup)
{
	return lookup->explained && !cli_explain_agrees(&lookup->explain, &lookup->answer);
}

static int run_settled(struct cli_view *view, bool explain, struct lookup *ret)
{
	struct timespec pause = {.tv_nsec = 20000000};
	int rc = run(view, explain, ret);

	for (int i = 0; i < 3 && !rc && disagrees(ret); i++) {
		nanosleep(&pause, NULL);
		cli_explain_free(&ret->explain);
		ret->explained = false;
		rc = run(view, explain, ret);
	}
	return rc;
}

static int answer(struct cli_view *view, struct lookup *lookup, bool explain, bool json)
{
	int rc = run_settled(view, explain, lookup);

	if (rc)
		return rc;
	if (json)
		print_json(view, lookup);
	else
		print_text(view, lookup);
	if (!lookup->explained)
		return XSPD_DONE;
	if (disagrees(lookup)) {
		const struct xspd_ref *ref = &lookup->explain.ref;

		rc = cli_fail("lookup: program and reference DISAGREE: %s %s %u %u against %s "
			      "%s %u %u; please report this",
			      xspd_verdict_name(lookup->answer.verdict),
			      xspd_reason_name(lookup->answer.reason), lookup->answer.index,
			      lookup->answer.index2, xspd_verdict_name(ref->verdict),
			      xspd_reason_name(ref->reason), ref->pol ? ref->pol->index : 0,
			      ref->pol2 ? ref->pol2->index : 0);
	}
	cli_explain_free(&lookup->explain);
	return rc;
}

int lookup_main(int argc, char **argv)
{
	struct cli_common common = {.reads = true};
	struct lookup lookup = {};
	struct cli_view view = {};
	bool explain = false;
	const struct cli_option options[] = {{"explain", CLI_FLAG, &explain}, {}};
	int rc = cli_parse(&common, options, &argc, &argv);

	if (rc || common.help)
		return rc;
	rc = cli_enter_netns(common.netns);
	if (!rc)
		rc = cli_flow_parse(argc, argv, &lookup.flow);
	if (!rc)
		rc = cli_view_open(&view, common.instance);
	if (rc)
		return rc;
	rc = answer(&view, &lookup, explain, common.json);
	cli_view_close(&view);
	return rc;
}
