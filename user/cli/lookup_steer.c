// SPDX-License-Identifier: GPL-2.0-only
/* xspd lookup --steer: which tunnel a packet gets on the device that steers. */
#include <stdio.h>

#include "cli/ask.h"
#include "cli/flow.h"
#include "cli/lookup_steer.h"
#include "cli/selector.h"
#include "reason.h"

/* As the device asks: over all if_ids, without a device. */
static int flow_parse(int argc, char **argv, struct xspd_flow *ret)
{
	const struct cli_flow_form form = {};
	struct xspd_flow flow;
	int rc = cli_flow_parse(&form, argc, argv, &flow, NULL);

	if (rc)
		return rc;
	if (flow.dir != XSPD_OUT || flow.if_id || flow.oif)
		return cli_usage("lookup: --steer asks in direction out, without if_id and dev");
	flow.dir = XSPD_STEER;
	*ret = flow;
	return XSPD_DONE;
}

static void print_text(const struct xspd_answer *answer, const struct xspd_info *info)
{
	char text[256];

	if (answer->index2)
		printf("if_id %u\n", answer->index2);
	else
		printf("if_id none reason %s\n", xspd_reason_name(answer->reason));
	if (!info) {
		printf("policy none%s\n",
		       answer->index2 ? " for certain: several of this if_id are as good" : "");
		return;
	}
	cli_selector_text(info, text, sizeof(text));
	printf("policy %u\n\t%s\n", info->index, text);
}

static void print_json(const struct xspd_answer *answer, const struct xspd_info *info)
{
	struct json_object *o = json_object_new_object();

	cli_json_number(o, "if_id", answer->index2);
	cli_json_text(o, "reason", xspd_reason_name(answer->reason));
	json_object_object_add(o, "policy", info ? cli_policy_json(info) : NULL);
	cli_json_print(o);
}

int cli_lookup_steer(const struct cli_common *common, int argc, char **argv)
{
	struct xspd_answer answer = {};
	struct cli_asker asker;
	struct xspd_flow flow;
	struct xspd_info info;
	bool known;
	int rc = flow_parse(argc, argv, &flow);

	if (!rc)
		rc = cli_asker_open(&asker, common->instance, NULL);
	if (rc)
		return rc;
	if (!asker.view.conf->steer)
		rc = cli_fail("lookup: --steer: no device of instance %s is in mode steer",
			      common->instance);
	if (!rc)
		rc = cli_ask_many(&asker, &flow, 1, &answer);
	if (!rc) {
		known = answer.slot && answer.slot < asker.view.slots &&
			cli_view_info(&asker.view, answer.slot, &info) &&
			info.index == answer.index;
		(common->json ? print_json : print_text)(&answer, known ? &info : NULL);
	}
	cli_asker_close(&asker);
	return rc;
}
