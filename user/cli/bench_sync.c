// SPDX-License-Identifier: GPL-2.0-only
/* xspd bench sync: what the mirror costs whoever changes the SPD, and how far it is behind. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bench/sync.h"
#include "cli/cli.h"
#include "cli/selector.h"
#include "util.h"

static const struct {
	uint32_t policies, runs;
	bool full;
} sizes[] = {{100, 11, false},
	     {1000, 11, false},
	     {10000, 7, false},
	     {100000, 5, false},
	     {1000000, 1, true}};

static void print_row(const struct xspd_sync_row *row, bool first)
{
	if (first)
		printf("%8s %9s %9s %6s %6s %6s %9s %6s %8s %8s %15s %15s %5s %7s\n%8s %9s %9s %6s "
		       "%6s %6s %9s %6s %8s %8s %15s %15s %5s %7s\n",
		       "policies", "ip -batch", "daemon", "slower", "deaf", "reader", "snapshot",
		       "faster", "complete", "mirrored", "lag of one", "at 30,000/s", "lost",
		       "redumps", "", "s", "on, s", "%", "%", "%", "load, s", "by", "after ms", "",
		       "p50/p99 us", "p50/p99 us", "", "");
	printf("%8u %9.3f %9.3f %6.1f %6.1f %6.1f %9.3f %6.1f %8.1f %8u %7.0f/%-7.0f "
	       "%7.0f/%-7.0f %5" PRIu64 " %7" PRIu64 "\n",
	       row->policies, row->insert_off, row->insert_on, row->slowdown * 100,
	       row->deaf_slowdown * 100, row->reader_slowdown * 100, row->load,
	       row->insert_off / row->load, row->complete_ms, row->mirrored, row->quiet.p50_us,
	       row->quiet.p99_us, row->churn.p50_us, row->churn.p99_us, row->lost, row->redumps);
	fflush(stdout);
}

static struct json_object *row_json(const struct xspd_sync_row *row)
{
	struct json_object *o = json_object_new_object();

	cli_json_number(o, "policies", row->policies);
	cli_json_decimal(o, "insert_s_off", row->insert_off, "%.4f");
	cli_json_decimal(o, "insert_s_on", row->insert_on, "%.4f");
	cli_json_decimal(o, "load_s", row->load, "%.4f");
	cli_json_number(o, "mirrored", row->mirrored);
	cli_json_decimal(o, "lag_p50_us", row->quiet.p50_us, "%.1f");
	cli_json_decimal(o, "lag_p99_us", row->quiet.p99_us, "%.1f");
	cli_json_number(o, "lost", row->lost);
	cli_json_number(o, "redumps", row->redumps);
	cli_json_number(o, "runs", row->runs);
	cli_json_decimal(o, "slowdown", row->slowdown, "%.4f");
	cli_json_decimal(o, "cpu_slowdown", row->cpu_slowdown, "%.4f");
	cli_json_decimal(o, "slowdown_deaf", row->deaf_slowdown, "%.4f");
	cli_json_decimal(o, "slowdown_reader", row->reader_slowdown, "%.4f");
	cli_json_decimal(o, "complete_ms", row->complete_ms, "%.1f");
	cli_json_decimal(o, "load_s_on", row->load_on, "%.4f");
	cli_json_decimal(o, "load_complete_ms", row->load_complete_ms, "%.1f");
	cli_json_decimal(o, "churn_rate", row->churn.rate, "%.0f");
	cli_json_number(o, "churn_swaps", row->churn.swaps);
	cli_json_number(o, "churn_lost", row->churn.lost);
	cli_json_decimal(o, "churn_lag_p50_us", row->churn.p50_us, "%.1f");
	cli_json_decimal(o, "churn_lag_p99_us", row->churn.p99_us, "%.1f");
	return o;
}

static int one_size(uint32_t policies, uint32_t runs, struct json_object *rows, bool first)
{
	struct xspd_sync_row row;
	const char *what;
	int err = xspd_bench_sync(policies, runs, &row, &what);

	if (err)
		return cli_fail("bench: %u policies: %s: %s%s", policies, what, strerror(-err),
				cli_root_hint(err));
	if (rows)
		json_object_array_add(rows, row_json(&row));
	else
		print_row(&row, first);
	if (row.mirrored != row.policies)
		return cli_fail("bench: %u policies, but %u in the maps", row.policies,
				row.mirrored);
	return XSPD_DONE;
}

int bench_sync_main(int argc, char **argv)
{
	struct cli_common common = {.reads = true};
	uint32_t policies = 0;
	bool full = false, first = true;
	const struct cli_option options[] = {
		{"policies", CLI_NUMBER, &policies, 1, XSPD_SYNC_MOST},
		{"full", CLI_FLAG, &full},
		{},
	};
	int rc = cli_parse(&common, options, &argc, &argv);
	struct json_object *rows;

	if (rc || common.help)
		return rc;
	if (argc != 1)
		return cli_usage("bench: sync takes no words; see 'xspd help bench'");
	rows = common.json ? json_object_new_array() : NULL;
	if (policies)
		rc = one_size(policies, policies > 200000 ? 1 : 5, rows, true);
	for (size_t i = 0; i < XSPD_ARRAY_SIZE(sizes) && !policies; i++) {
		if (sizes[i].full && !full)
			continue;
		if (one_size(sizes[i].policies, sizes[i].runs, rows, first))
			rc = XSPD_FAILED;
		first = false;
	}
	if (rows)
		cli_json_print(rows);
	return rc;
}
