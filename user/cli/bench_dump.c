// SPDX-License-Identifier: GPL-2.0-only
/* xspd bench dump: what a start over many policies takes, beside a dump that nobody looks at. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench/dump.h"
#include "cli/cli.h"
#include "cli/selector.h"
#include "util.h"

#define RUNS 5

static const uint32_t sizes[] = {10000, 30000, 100000, 300000, 1000000};
#define SIZES_USUAL 3 /* without --full */

static void print_row(const struct xspd_dump_row *row, bool first)
{
	if (first)
		printf("%8s %9s %9s %6s %6s %9s %9s %9s %13s\n%8s %9s %9s %6s %6s %9s %9s %9s "
		       "%13s\n",
		       "policies", "bare dump", "and build", "ratio", "of CPU", "start", "user",
		       "maps", "lag of one", "", "s", "s", "", "time", "s", "bytes/p.", "bytes/p.",
		       "p50/p99 us");
	printf("%8u %9.4f %9.4f %6.2f %6.2f %9.3f %9.0f %9.0f %6.0f/%-6.0f\n", row->policies,
	       row->bare, row->dump_build, row->ratio, row->cpu_ratio, row->ready, row->user_bytes,
	       row->map_bytes, row->lag.p50_us, row->lag.p99_us);
	fflush(stdout);
}

static struct json_object *row_json(const struct xspd_dump_row *row)
{
	struct json_object *o = json_object_new_object();

	cli_json_number(o, "policies", row->policies);
	cli_json_decimal(o, "bare_dump_s", row->bare, "%.5f");
	cli_json_decimal(o, "dump_build_s", row->dump_build, "%.5f");
	cli_json_decimal(o, "ratio", row->ratio, "%.2f");
	cli_json_decimal(o, "user_bytes_per_policy", row->user_bytes, "%.1f");
	cli_json_decimal(o, "lag_p50_us", row->lag.p50_us, "%.1f");
	cli_json_decimal(o, "lag_p99_us", row->lag.p99_us, "%.1f");
	cli_json_decimal(o, "cpu_ratio", row->cpu_ratio, "%.2f");
	cli_json_decimal(o, "start_s", row->ready, "%.4f");
	cli_json_decimal(o, "map_bytes_per_policy", row->map_bytes, "%.1f");
	cli_json_number(o, "runs", row->runs);
	return o;
}

static int one_size(uint32_t policies, struct json_object *rows, bool first)
{
	struct xspd_dump_row row;
	const char *what;
	int err = xspd_bench_dump(policies, RUNS, &row, &what);

	if (err)
		return cli_fail("bench: %u policies: %s: %s%s", policies, what, strerror(-err),
				cli_root_hint(err));
	if (rows)
		json_object_array_add(rows, row_json(&row));
	else
		print_row(&row, first);
	return XSPD_DONE;
}

int bench_dump_main(int argc, char **argv)
{
	struct cli_common common = {.reads = true};
	uint32_t policies = 0;
	bool full = false;
	const struct cli_option options[] = {
		{"policies", CLI_NUMBER, &policies, 1, XSPD_SYNC_MOST},
		{"full", CLI_FLAG, &full},
		{},
	};
	int rc = cli_parse(&common, options, &argc, &argv);
	size_t count = full ? XSPD_ARRAY_SIZE(sizes) : SIZES_USUAL;
	struct json_object *rows;

	if (rc || common.help)
		return rc;
	if (argc != 1)
		return cli_usage("bench: dump takes no words; see 'xspd help bench'");
	rows = common.json ? json_object_new_array() : NULL;
	if (policies)
		rc = one_size(policies, rows, true);
	for (size_t i = 0; i < count && !policies && !rc; i++)
		rc = one_size(sizes[i], rows, i == 0);
	if (rows)
		cli_json_print(rows);
	return rc;
}
