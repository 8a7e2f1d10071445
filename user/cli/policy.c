// SPDX-License-Identifier: GPL-2.0-only
/* xspd policy list | show INDEX: what is mirrored, and how often it was used. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/selector.h"
#include "cli/view.h"
#include "util.h"

#define ATTEMPTS 5

struct row {
	struct xspd_info info;
	struct xspd_count count;
	uint32_t slot;
};

struct rows {
	struct row *row;
	size_t count, room;
};

static int rows_add(struct rows *rows, const struct row *row)
{
	if (rows->count == rows->room) {
		size_t room = rows->room ? rows->room * 2 : 64;
		struct row *grown = reallocarray(rows->row, room, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		rows->row = grown;
		rows->room = room;
	}
	rows->row[rows->count++] = *row;
	return 0;
}

/* Of @index, or all of them if it is 0. */
static int collect(const struct cli_view *view, uint32_t index, struct rows *ret)
{
	struct row row;
	int err;

	ret->count = 0;
	for (row.slot = 1; row.slot < view->slots; row.slot++) {
		if (!cli_view_info(view, row.slot, &row.info) || (index && row.info.index != index))
			continue;
		err = cli_view_count(view, row.slot, &row.info, &row.count);
		if (!err)
			err = rows_add(ret, &row);
		if (err)
			return err;
	}
	return 0;
}

/*
 * A list between two changes. On an SPD that never rests the last attempt is
 * as good as any: each record is whole, and two states of one index are told below.
 */
static int collect_settled(struct cli_view *view, uint32_t index, struct rows *ret)
{
	uint64_t generation;
	int err = 0;

	for (int i = 0; i < ATTEMPTS && !err; i++) {
		if (cli_view_stale(view)) {
			cli_view_close(view);
			if (cli_view_open(view, view->instance))
				return -ESTALE;
		}
		generation = cli_view_generation(view);
		err = collect(view, index, ret);
		if (!err && cli_view_generation(view) == generation && !cli_view_stale(view))
			break;
	}
	return err;
}

/* By index, the later of two states last. */
static int compare_index(const void *a, const void *b)
{
	const struct xspd_info *x = &((const struct row *)a)->info;
	const struct xspd_info *y = &((const struct row *)b)->info;

	if (x->index != y->index)
		return x->index < y->index ? -1 : 1;
	return x->pos < y->pos ? -1 : x->pos > y->pos;
}

static int compare(const void *a, const void *b)
{
	const struct xspd_info *x = &((const struct row *)a)->info;
	const struct xspd_info *y = &((const struct row *)b)->info;

	if (x->dir != y->dir)
		return x->dir < y->dir ? -1 : 1;
	if (x->priority != y->priority)
		return x->priority < y->priority ? -1 : 1;
	if (x->pos != y->pos)
		return x->pos < y->pos ? -1 : 1;
	return 0;
}

/* Milliseconds since last use. */
static uint64_t idle_ms(const struct xspd_count *count)
{
	uint64_t now = xspd_mono();

	return now > count->last ? (now - count->last) / 1000000 : 0;
}

static void print_row(const struct row *row)
{
	char text[256];

	cli_selector_text(&row->info, text, sizeof(text));
	puts(text);
	cli_traits_text(&row->info, text, sizeof(text));
	printf("\t%s\n", text);
	cli_tmpl_text(&row->info, text, sizeof(text));
	if (*text)
		printf("\t%s\n", text);
	printf("\tpackets %" PRIu64 " bytes %" PRIu64, (uint64_t)row->count.packets,
	       (uint64_t)row->count.bytes);
	if (row->count.acted)
		printf(" acted on %" PRIu64, (uint64_t)row->count.acted);
	if (row->count.last)
		printf(" last used %.1f s ago\n", (double)idle_ms(&row->count) / 1e3);
	else
		printf(" never used\n");
}

static struct json_object *row_json(const struct row *row)
{
	struct json_object *o = cli_policy_json(&row->info);

	cli_json_number(o, "packets", row->count.packets);
	cli_json_number(o, "bytes", row->count.bytes);
	cli_json_number(o, "acted", row->count.acted);
	if (row->count.last)
		cli_json_number(o, "last_used_ms_ago", idle_ms(&row->count));
	else
		cli_json_text(o, "last_used_ms_ago", NULL);
	cli_json_number(o, "slot", row->slot);
	return o;
}

static void print_list(const struct rows *rows, bool json)
{
	struct json_object *array = json ? json_object_new_array() : NULL;

	for (size_t i = 0; i < rows->count; i++) {
		if (json)
			json_object_array_add(array, row_json(&rows->row[i]));
		else
			print_row(&rows->row[i]);
	}
	if (json)
		cli_json_print(array);
}

/* During an update a policy is in two slots for a moment: the later one counts. */
static void drop_doubles(struct rows *rows)
{
	size_t kept = 0;

	if (rows->count)
		qsort(rows->row, rows->count, sizeof(*rows->row), compare_index);
	for (size_t i = 0; i < rows->count; i++) {
		if (kept && rows->row[kept - 1].info.index == rows->row[i].info.index)
			kept--;
		rows->row[kept++] = rows->row[i];
	}
	rows->count = kept;
}

static int show(struct cli_view *view, uint32_t index, bool json)
{
	struct rows rows = {};
	int err = collect_settled(view, index, &rows), rc = XSPD_DONE;

	drop_doubles(&rows);
	if (rows.count)
		qsort(rows.row, rows.count, sizeof(*rows.row), compare);
	if (err == -ESTALE)
		rc = XSPD_FAILED; /* told already */
	else if (err)
		rc = cli_fail("policy: %s", strerror(-err));
	else if (!index)
		print_list(&rows, json);
	else if (!rows.count)
		rc = cli_fail("policy show %u: no such index; 'xspd policy list' has them all",
			      index);
	else if (json)
		cli_json_print(row_json(&rows.row[rows.count - 1]));
	else
		print_row(&rows.row[rows.count - 1]);
	free(rows.row);
	return rc;
}

int policy_main(int argc, char **argv)
{
	struct cli_common common = {.reads = true};
	struct cli_view view;
	uint32_t index = 0;
	int rc = cli_parse(&common, NULL, &argc, &argv);

	if (rc || common.help)
		return rc;
	if (argc < 1)
		return cli_usage("policy: say 'list' or 'show INDEX'");
	if (!strcmp(argv[0], "show")) {
		if (argc < 2)
			return cli_usage("policy show: give the index of a policy");
		if (!cli_number(argv[1], UINT32_MAX, &index) || !index)
			return cli_usage("policy show %s: give an index, a number above 0",
					 argv[1]);
	} else if (strcmp(argv[0], "list")) {
		return cli_usage("policy: '%s': say 'list' or 'show INDEX'", argv[0]);
	}
	if (argc > (index ? 2 : 1))
		return cli_usage("policy %s: '%s' is one word too many", argv[0],
				 argv[index ? 2 : 1]);
	rc = cli_enter_netns(common.netns);
	if (!rc)
		rc = cli_view_open(&view, common.instance);
	if (rc)
		return rc;
	rc = show(&view, index, common.json);
	cli_view_close(&view);
	return rc;
}
