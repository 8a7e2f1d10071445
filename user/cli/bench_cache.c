// SPDX-License-Identifier: GPL-2.0-only
/* xspd bench cache: lookups with and without the flow cache. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench/cache.h"
#include "cli/cli.h"
#include "cli/selector.h"
#include "util.h"

#define ROUNDS 7

static void print_row(void *ctx, const struct xspd_cache_row *row)
{
	bool *header = ctx;

	if (!*header) {
		printf("%-4s %6s %6s %9s", "", "flows", "tuples", "changes/s");
		for (int i = 0; i < XSPD_CACHE_SIZES; i++)
			printf("   %6u (min)", xspd_cache_sizes[i]);
		printf("  gain\n");
	}
	*header = true;
	printf("%-4s %6u %6u %9.0f", row->v6 ? "IPv6" : "IPv4", row->flows, row->tuples, row->rate);
	for (int i = 0; i < XSPD_CACHE_SIZES; i++)
		printf("   %6.1f %5.1f", row->ns[i], row->ns_min[i]);
	printf("  %.2f\n", row->ns[0] / row->ns[1]);
	fflush(stdout);
}

/* One object a size, so that every row has the same keys. */
static void add_json(void *ctx, const struct xspd_cache_row *row)
{
	for (int i = 0; i < XSPD_CACHE_SIZES; i++) {
		struct json_object *o = json_object_new_object();

		cli_json_number(o, "family", row->v6 ? 6 : 4);
		cli_json_number(o, "flows", row->flows);
		cli_json_number(o, "tuples", row->tuples);
		cli_json_number(o, "cache", xspd_cache_sizes[i]);
		cli_json_number(o, "churn", row->churn);
		cli_json_decimal(o, "ns", row->ns[i], "%.1f");
		cli_json_decimal(o, "ns_min", row->ns_min[i], "%.1f");
		cli_json_decimal(o, "ns_off", row->ns[0], "%.1f");
		cli_json_decimal(o, "churn_rate", row->rate, "%.1f");
		json_object_array_add(ctx, o);
	}
}

int bench_cache_main(int argc, char **argv)
{
	struct cli_common common = {.reads = true};
	uint32_t rounds = ROUNDS;
	const struct cli_option options[] = {
		{"rounds", CLI_NUMBER, &rounds, 1, 64},
		{},
	};
	struct json_object *rows = NULL;
	bool header = false;
	const char *what;
	int err = cli_parse(&common, options, &argc, &argv);

	if (err || common.help)
		return err;
	if (argc != 1)
		return cli_usage("bench: cache takes no words; see 'xspd help bench'");
	if (common.json)
		rows = json_object_new_array();
	err = xspd_bench_cache(rounds, rows ? add_json : print_row, rows ? (void *)rows : &header,
			       &what);
	if (rows)
		cli_json_print(rows);
	if (err)
		return cli_fail("bench: cache: %s: %s%s", what, strerror(-err), cli_root_hint(err));
	return XSPD_DONE;
}
