// SPDX-License-Identifier: GPL-2.0-only
/* xspd diff: which flows' answers change from one set of policies to another. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/flow.h"
#include "cli/mirror.h"
#include "cli/selector.h"
#include "cli/source.h"
#include "diff/diff.h"
#include "plane/pure/info.h"
#include "reason.h"
#include "util.h"

struct diff {
	struct cli_common common;
	const char *name[2];
	struct xspd_spd *spd[2];
	struct json_object *regions; /* with --json */
};

/* The order of the file is that in which a kernel that loads it will have them: it is certain. */
static int read_file(const struct diff *diff, const char *path, struct xspd_spd **ret)
{
	struct cli_source source;
	int rc = cli_source_open(&source, "diff", path, diff->common.instance, false);

	if (rc)
		return rc;
	*ret = xspd_take(source.spd);
	cli_source_close(&source);
	return XSPD_DONE;
}

static void order_settle(struct xspd_spd *spd)
{
	for (struct xspd_pol *pol = spd->by_index; pol; pol = pol->hh.next)
		pol->tie = pol->apart = false;
}

/* Its order counts as certain, which is said if it is not. */
static int read_live(const struct diff *diff, struct xspd_spd **ret)
{
	enum xspd_reason doubt;
	struct cli_view view;
	int rc = cli_view_open(&view, diff->common.instance);

	if (rc)
		return rc;
	rc = cli_mirror_read_settled(ret, &view, "diff: live", &doubt);
	cli_view_close(&view);
	if (!rc && doubt)
		rc = cli_fail(
			"diff: live: the mirror cannot be relied upon (%s); see 'xspd status'",
			xspd_reason_name(doubt));
	if (rc)
		return rc;
	if ((*ret)->ties)
		cli_notice("diff: live: the order of %u policies among equal priorities is not "
			   "certain, going by what is likely",
			   (*ret)->ties);
	return XSPD_DONE;
}

static int read_both(struct diff *diff)
{
	int rc = XSPD_DONE;

	for (int i = 0; i < 2 && !rc; i++)
		rc = strcmp(diff->name[i], "live") ? read_file(diff, diff->name[i], &diff->spd[i])
						   : read_live(diff, &diff->spd[i]);
	/* a file does not say what the default is: the same as on the other side */
	for (int i = 0; i < 2 && !rc; i++) {
		diff->spd[i]->defaults |= diff->spd[!i]->defaults;
		order_settle(diff->spd[i]);
	}
	return rc;
}

static void region_info(const struct xspd_region *region, struct xspd_info *ret)
{
	struct xspd_pol pol;

	xspd_box_selector(&pol, &region->box, region->family);
	pol.dir = region->dir;
	pol.if_id = region->if_id;
	xspd_info_fill(ret, &pol);
}

static void region_text(const struct xspd_region *region, char *buf, size_t size)
{
	struct xspd_info info;
	char sel[256], mark[40] = "", if_id[24] = "";

	region_info(region, &info);
	cli_selector_text(&info, sel, sizeof(sel));
	if (info.mark_mask)
		snprintf(mark, sizeof(mark), " mark 0x%x/0x%x", info.mark, info.mark_mask);
	if (info.if_id)
		snprintf(if_id, sizeof(if_id), " if_id 0x%x", info.if_id);
	snprintf(buf, size, "dir %s %s%s%s", xspd_dir_name(region->dir), sel, mark, if_id);
}

static void print_answer(const char *when, const struct xspd_ref *ref)
{
	const struct xspd_pol *pols[] = {ref->pol, ref->pol2};
	struct xspd_info info;
	char text[256];

	printf("\t%s %s reason %s%s\n", when, xspd_verdict_name(ref->verdict),
	       xspd_reason_name(ref->reason), ref->pol ? "" : ", no policy");
	for (int i = 0; i < 2; i++) {
		if (!pols[i])
			continue;
		xspd_info_fill(&info, pols[i]);
		cli_selector_text(&info, text, sizeof(text));
		printf("\t\t%s\n", text);
		cli_traits_text(&info, text, sizeof(text));
		printf("\t\t%s\n", text);
		cli_tmpl_text(&info, text, sizeof(text));
		if (*text)
			printf("\t\t%s\n", text);
	}
}

static void print_text(const struct xspd_region *region)
{
	char text[400];

	region_text(region, text, sizeof(text));
	printf("region %s%s\n", text, region->mixed ? " (several answers)" : "");
	if (region->proven) {
		cli_flow_text(&region->example, text, sizeof(text));
		printf("\texample %s\n", text);
	} else {
		printf("\texample none found\n");
	}
	print_answer("before", &region->before);
	print_answer("after ", &region->after);
}

static struct json_object *answer_json(const struct xspd_ref *ref)
{
	const struct xspd_pol *pols[] = {ref->pol, ref->pol2};
	static const char *const keys[] = {"policy", "policy2"};
	struct json_object *o = json_object_new_object();
	struct xspd_info info;

	cli_json_text(o, "verdict", xspd_verdict_name(ref->verdict));
	cli_json_text(o, "reason", xspd_reason_name(ref->reason));
	for (int i = 0; i < 2; i++) {
		if (pols[i])
			xspd_info_fill(&info, pols[i]);
		json_object_object_add(o, keys[i], pols[i] ? cli_policy_json(&info) : NULL);
	}
	return o;
}

static struct json_object *region_json(const struct xspd_region *region)
{
	struct json_object *o = json_object_new_object();
	char text[400];

	region_text(region, text, sizeof(text));
	cli_json_text(o, "region", text);
	cli_json_bool(o, "mixed", region->mixed);
	cli_flow_text(&region->example, text, sizeof(text));
	cli_json_text(o, "example", region->proven ? text : NULL);
	json_object_object_add(o, "before", answer_json(&region->before));
	json_object_object_add(o, "after", answer_json(&region->after));
	return o;
}

static int on_region(void *ctx, const struct xspd_region *region)
{
	struct diff *diff = ctx;

	if (diff->regions)
		json_object_array_add(diff->regions, region_json(region));
	else
		print_text(region);
	return 0;
}

static struct json_object *side_json(const struct diff *diff, int side)
{
	struct json_object *o = json_object_new_object();

	cli_json_text(o, "name", diff->name[side]);
	cli_json_number(o, "policies", HASH_COUNT(diff->spd[side]->by_index));
	return o;
}

static void print_json(struct diff *diff, const struct xspd_diff_counts *counts)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "before", side_json(diff, 0));
	json_object_object_add(o, "after", side_json(diff, 1));
	cli_json_number(o, "removed", counts->only_before);
	cli_json_number(o, "added", counts->only_after);
	cli_json_number(o, "changed", counts->changed);
	cli_json_number(o, "moved", counts->moved);
	json_object_object_add(o, "regions", diff->regions);
	cli_json_print(o);
}

static int compare(struct diff *diff)
{
	struct xspd_diff_counts counts;
	int err;

	if (diff->common.json)
		diff->regions = json_object_new_array();
	err = xspd_diff(diff->spd[0], diff->spd[1], on_region, diff, &counts);
	if (err)
		return cli_fail("diff: %s", strerror(-err));
	if (diff->common.json)
		print_json(diff, &counts);
	else
		printf("regions %u: policies removed %u, added %u, changed %u, moved %u\n",
		       counts.regions, counts.only_before, counts.only_after, counts.changed,
		       counts.moved);
	return XSPD_DONE;
}

int diff_main(int argc, char **argv)
{
	struct diff diff = {.common = {.reads = true}};
	int rc = cli_parse(&diff.common, NULL, &argc, &argv);

	if (rc || diff.common.help)
		return rc;
	if (argc != 2)
		return cli_usage("diff: give two, each a file of 'xspd snapshot save', or 'live'");
	diff.name[0] = argv[0];
	diff.name[1] = argv[1];
	rc = cli_enter_netns(diff.common.netns);
	if (!rc)
		rc = read_both(&diff);
	if (!rc)
		rc = compare(&diff);
	xspd_spd_free(diff.spd[0]);
	xspd_spd_free(diff.spd[1]);
	return rc;
}
