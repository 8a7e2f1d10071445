// SPDX-License-Identifier: GPL-2.0-only
/* xspd bench tune: what "xspd tune" predicts, and what the kernel then takes. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/tune.h"
#include "cli/cli.h"
#include "cli/selector.h"
#include "util.h"

#define POLICIES     10000
#define POLICIES_MAX 100000

static const char *const usual[] = {
	"pool",	 "vti",		"ports",	"roadwarrior", "site",	 "hub",
	"mesh",	 "bypass",	"block-all",	"ovs",	       "cilium", "sub",
	"pairs", "adversarial", "roadwarrior6", "site6",       "mesh6",
};

static void print_ns(double ns, int width)
{
	if (isnan(ns))
		printf(" %*s", width, "-");
	else
		printf(" %*.0f", width, ns);
}

static void print_row(const char *name, const struct xspd_tune_row *row, bool first)
{
	char bits[32] = "-";

	if (first)
		printf("%-13s %8s %7s %9s %9s %5s  %-15s %9s %9s %8s %8s %9s %9s\n", "shape",
		       "policies", "longest", "predicted", "measured", "p/m", "best", "predicted",
		       "measured", "stall ms", "measured", "back ns", "stall ms");
	if (!isnan(row->measured_after))
		snprintf(bits, sizeof(bits), "%u/%u %u/%u", row->bits.lbits4, row->bits.rbits4,
			 row->bits.lbits6, row->bits.rbits6);
	printf("%-13s %8u %7u", name, row->policies, row->longest);
	print_ns(row->predicted, 9);
	print_ns(row->measured, 9);
	printf(" %5.2f  %-15s", row->predicted / row->measured, bits);
	print_ns(row->predicted_after, 9);
	print_ns(row->measured_after, 9);
	print_ns(row->predicted_stall / 1e6, 8);
	print_ns(row->measured_stall / 1e6, 8);
	print_ns(row->measured_back, 9);
	print_ns(row->measured_stall_back / 1e6, 9);
	printf("\n");
	fflush(stdout);
}

static void put_table(struct json_object *o, const char *key, const double table[XSPD_TUNE_SIZES])
{
	struct json_object *array = json_object_new_array();

	for (int i = 0; i < XSPD_TUNE_SIZES; i++)
		json_object_array_add(array, json_object_new_double(round(table[i] * 10) / 10));
	json_object_object_add(o, key, array);
}

static struct json_object *row_json(const char *name, const struct xspd_tune_row *row)
{
	struct json_object *o = json_object_new_object(), *costs = json_object_new_object();

	cli_json_text(o, "shape", name);
	cli_json_number(o, "policies", row->policies);
	cli_json_number(o, "longest_list", row->longest);
	cli_json_decimal(o, "predicted_ns", row->predicted, "%.1f");
	cli_json_decimal(o, "measured_ns", row->measured, "%.1f");
	cli_json_decimal(o, "ratio", row->predicted / row->measured, "%.1f");
	cli_json_number(o, "lbits4", row->bits.lbits4);
	cli_json_number(o, "rbits4", row->bits.rbits4);
	cli_json_number(o, "lbits6", row->bits.lbits6);
	cli_json_number(o, "rbits6", row->bits.rbits6);
	cli_json_decimal(o, "predicted_after_ns", row->predicted_after, "%.1f");
	cli_json_decimal(o, "measured_after_ns", row->measured_after, "%.1f");
	cli_json_decimal(o, "predicted_stall_ms", row->predicted_stall / 1e6, "%.1f");
	cli_json_decimal(o, "measured_stall_ms", row->measured_stall / 1e6, "%.1f");
	cli_json_decimal(o, "faster", row->measured / row->measured_after, "%.1f");
	cli_json_decimal(o, "measured_back_ns", row->measured_back, "%.1f");
	cli_json_decimal(o, "predicted_stall_back_ms", row->predicted_stall_back / 1e6, "%.1f");
	cli_json_decimal(o, "measured_stall_back_ms", row->measured_stall_back / 1e6, "%.1f");
	cli_json_decimal(costs, "base", row->costs.base, "%.1f");
	cli_json_decimal(costs, "hit", row->costs.hit, "%.1f");
	cli_json_decimal(costs, "hit6", row->costs.hit6, "%.1f");
	put_table(costs, "walk", row->costs.walk);
	put_table(costs, "host", row->costs.host);
	put_table(costs, "tree", row->costs.tree);
	put_table(costs, "insert", row->costs.insert);
	json_object_object_add(o, "costs", costs);
	return o;
}

static int one_shape(const char *name, uint32_t policies, struct json_object *rows, bool first)
{
	const struct xspd_shape *shape = xspd_shape_find(name);
	struct xspd_bench_set set;
	struct xspd_tune_row row;
	const char *what = "";
	uint32_t line;
	int err;

	if (!shape)
		return cli_usage("bench: unknown shape '%s'; 'xspd bench shapes' lists them", name);
	if (shape->max && policies > shape->max)
		policies = shape->max;
	err = xspd_bench_set_open(&set, name, policies, &line);
	if (!err)
		err = xspd_bench_tune(&set, &row, &what);
	xspd_bench_set_close(&set);
	if (err)
		return cli_fail("bench: tune %s: %s: %s%s", name, what, strerror(-err),
				cli_root_hint(err));
	if (rows)
		json_object_array_add(rows, row_json(name, &row));
	else
		print_row(name, &row, first);
	return XSPD_DONE;
}

int bench_tune_main(int argc, char **argv)
{
	struct cli_common common = {.reads = true};
	const char *shape = NULL;
	uint32_t policies = POLICIES;
	const struct cli_option options[] = {
		{"shape", CLI_STRING, &shape},
		{"policies", CLI_NUMBER, &policies, 1, POLICIES_MAX},
		{},
	};
	struct json_object *rows;
	int err = cli_parse(&common, options, &argc, &argv), rc = XSPD_DONE;

	if (err || common.help)
		return err;
	if (argc != 1)
		return cli_usage("bench: tune takes no words; see 'xspd help bench'");
	rows = common.json ? json_object_new_array() : NULL;
	if (shape)
		rc = one_shape(shape, policies, rows, true);
	for (size_t i = 0; !shape && i < XSPD_ARRAY_SIZE(usual); i++)
		if (one_shape(usual[i], policies, rows, !i))
			rc = XSPD_FAILED; /* the others may still be of use */
	if (rows)
		cli_json_print(rows);
	return rc;
}
