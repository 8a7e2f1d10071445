// SPDX-License-Identifier: GPL-2.0-only
/* xspd bench path: packets through a gateway, by the kernel, by xspd, by nftables. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bench/path.h"
#include "cli/cli.h"
#include "cli/selector.h"
#include "util.h"

#define POLICIES     10000
#define POLICIES_MAX 50000
#define ROUNDS	     7
#define SAMPLE_MS    30

static void print_ratio(double ratio)
{
	if (ratio > 0)
		printf(" %6.2f", ratio);
	else
		printf(" %6s", "-");
}

static void print_row(void *ctx, const struct xspd_path_row *row)
{
	bool *header = ctx;

	if (!*header)
		printf("%-15s %-8s %8s %6s %-9s %8s %8s %8s %8s %6s %6s\n", "setup", "policies",
		       "number", "flows", "", "Mpps", "best", "wall", "ns", "ratio", "net");
	*header = true;
	printf("%-15s %-8s %8u %6u %-9s %8.4f %8.4f %8.4f %8.0f", row->setup, row->spd,
	       row->policies, row->flows, row->drops ? "dropped" : "delivered", row->mpps,
	       row->mpps_most, row->mpps_wall, row->ns);
	print_ratio(row->ratio);
	print_ratio(row->ratio_net);
	putchar('\n');
	fflush(stdout);
}

/* 0: was not measured */
static void put_measured(struct json_object *o, const char *key, double value, const char *format)
{
	if (value > 0)
		cli_json_decimal(o, key, value, format);
	else
		json_object_object_add(o, key, NULL);
}

static void add_json(void *ctx, const struct xspd_path_row *row)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "setup", json_object_new_string(row->setup));
	json_object_object_add(o, "spd", json_object_new_string(row->spd));
	cli_json_number(o, "flows", row->flows);
	cli_json_decimal(o, "mpps", row->mpps, "%.5f");
	cli_json_number(o, "drops", row->received - row->delivered);
	cli_json_number(o, "policies", row->policies);
	cli_json_decimal(o, "mpps_best", row->mpps_most, "%.5f");
	cli_json_decimal(o, "mpps_wall", row->mpps_wall, "%.5f");
	cli_json_decimal(o, "ns", row->ns, "%.1f");
	cli_json_number(o, "received", row->received);
	cli_json_number(o, "delivered", row->delivered);
	cli_json_number(o, "rounds", row->rounds);
	cli_json_number(o, "acted", row->acted);
	put_measured(o, "ns_floor", row->floor_ns, "%.1f");
	put_measured(o, "ratio", row->ratio, "%.2f");
	put_measured(o, "ratio_net", row->ratio_net, "%.2f");
	json_object_array_add(ctx, o);
}

int bench_path_main(int argc, char **argv)
{
	struct xspd_path_request request = {
		.policies = POLICIES,
		.rounds = ROUNDS,
		.ms = SAMPLE_MS,
		.row = print_row,
	};
	const struct cli_option options[] = {
		{"policies", CLI_NUMBER, &request.policies, 2, POLICIES_MAX},
		{"rounds", CLI_NUMBER, &request.rounds, 1, XSPD_PATH_ROUNDS_MOST},
		{"setup", CLI_STRING, &request.setups},
		{"flows", CLI_NUMBER, &request.flows, 1, XSPD_ASK_MAX},
		{"sample-ms", CLI_NUMBER, &request.ms, 10, 10000},
		{},
	};
	struct cli_common common = {.reads = true};
	struct json_object *rows = NULL;
	bool header = false;
	const char *what;
	int err = cli_parse(&common, options, &argc, &argv);

	if (err || common.help)
		return err;
	if (argc != 1)
		return cli_usage("bench: path takes no words; see 'xspd help bench'");
	request.ctx = &header;
	if (common.json) {
		rows = json_object_new_array();
		request.ctx = rows;
		request.row = add_json;
	}
	err = xspd_bench_path(&request, &what);
	if (rows)
		cli_json_print(rows);
	if (err)
		return cli_fail("bench: path: %s: %s%s", what, strerror(-err), cli_root_hint(err));
	return XSPD_DONE;
}
