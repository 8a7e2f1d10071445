// SPDX-License-Identifier: GPL-2.0-only
/* xspd bench tunnel: traffic through one of many tunnels, told apart in several ways. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bench/tunnel.h"
#include "cli/cli.h"
#include "cli/selector.h"
#include "util.h"

#define ROUNDS 3
#define MS     1000
#define SAS    2000

struct bench {
	struct xspd_tunnel_request request;
	struct json_object *rows;
	bool header;
	uint32_t sas;
	bool no_streams;
	const char *sizes, *ways;
	double plain_rr, policy_rr; /* with the fewest tunnels */
};

static void note(void *ctx, const char *text)
{
	(void)ctx;
	cli_notice("bench: tunnel: %s", text);
}

static void put_cell(struct json_object *o, const char *key, const struct xspd_tunnel_cell *cell)
{
	struct json_object *of = json_object_new_object();

	cli_json_decimal(of, "median", cell->median, "%.1f");
	cli_json_decimal(of, "least", cell->least, "%.1f");
	cli_json_decimal(of, "most", cell->most, "%.1f");
	json_object_object_add(o, key, of);
}

static void row_json(const struct bench *bench, const struct xspd_tunnel_row *row)
{
	struct json_object *o = json_object_new_object();

	cli_json_text(o, "setup", row->way);
	cli_json_number(o, "tunnels", row->tunnels);
	cli_json_number(o, "rounds", row->rounds);
	cli_json_decimal(o, "setup_s", row->setup_s, "%.1f");
	put_cell(o, "rr_per_s", &row->rr);
	if (bench->request.streams) {
		put_cell(o, "tcp_bits_per_s", &row->tcp);
		put_cell(o, "udp_per_s", &row->udp);
	}
	if (row->steer_ns > 0)
		cli_json_decimal(o, "steer_ns", row->steer_ns, "%.1f");
	json_object_array_add(bench->rows, o);
}

static void row(void *ctx, const struct xspd_tunnel_row *row)
{
	struct bench *bench = ctx;

	if (!strcmp(row->way, "plain"))
		bench->plain_rr = row->rr.median;
	if (!strcmp(row->way, "policy") && !bench->policy_rr)
		bench->policy_rr = row->rr.median;
	if (bench->rows) {
		row_json(bench, row);
		return;
	}
	if (!bench->header)
		printf("%-11s %8s %10s %10s %10s %8s\n", "setup", "tunnels", "UDP_RR/s",
		       "TCP Mbit/s", "UDP/s", "steer ns");
	bench->header = true;
	printf("%-11s %8u %10.0f %10.1f %10.0f %8.0f\n", row->way, row->tunnels, row->rr.median,
	       row->tcp.median / 1e6, row->udp.median, row->steer_ns);
	fflush(stdout);
}

/* What ESP adds to the way of a packet, both gateways together. */
static double esp_ns(const struct bench *bench)
{
	if (!bench->plain_rr || !bench->policy_rr)
		return 0;
	return (1e9 / bench->policy_rr - 1e9 / bench->plain_rr) / 2;
}

static int parse_sizes(struct bench *bench)
{
	struct xspd_tunnel_request *request = &bench->request;
	xspd_autofree char *text = strdup(bench->sizes);
	char *save = NULL, *word;

	if (!text)
		return cli_fail("bench: tunnel: %s", strerror(ENOMEM));
	for (word = strtok_r(text, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		uint32_t *size = &request->sizes[request->size_count];

		if (request->size_count == XSPD_TUNNEL_SIZES)
			return cli_usage("bench: tunnel: no more than %u sizes", XSPD_TUNNEL_SIZES);
		if (!cli_number(word, XSPD_TUNNELS_MOST, size) || !*size)
			return cli_usage("bench: tunnel: --tunnels %s: give numbers from 1 to %u",
					 word, XSPD_TUNNELS_MOST);
		request->size_count++;
	}
	return request->size_count ? XSPD_DONE : cli_usage("bench: tunnel: --tunnels: none given");
}

static int parse_ways(struct bench *bench)
{
	xspd_autofree char *text = strdup(bench->ways);
	char *save = NULL, *word;

	if (!text)
		return cli_fail("bench: tunnel: %s", strerror(ENOMEM));
	for (word = strtok_r(text, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		int way = 0;

		while (way < XSPD_TUNNEL_WAYS && strcmp(word, xspd_tunnel_name(way)))
			way++;
		if (way == XSPD_TUNNEL_WAYS)
			return cli_usage("bench: tunnel: --setups %s: give plain, policy, "
					 "interfaces, marks, steer, with commas between",
					 word);
		bench->request.ways |= 1u << way;
	}
	return XSPD_DONE;
}

static int load_sas(const struct bench *bench, struct json_object *all)
{
	for (int way = 0; way < XSPD_SA_WAYS && bench->sas; way++) {
		double seconds;
		int err = xspd_tunnel_load(way, bench->sas, &seconds);

		if (err)
			return cli_fail("bench: tunnel: %u SAs, %s: %s", bench->sas,
					xspd_sa_names[way], strerror(-err));
		if (all) {
			struct json_object *o = json_object_new_object();

			cli_json_text(o, "way", xspd_sa_names[way]);
			cli_json_number(o, "sas", bench->sas);
			cli_json_decimal(o, "ms", seconds * 1e3, "%.1f");
			json_object_array_add(all, o);
		} else {
			printf("%u SAs by %-20s %8.0f ms\n", bench->sas, xspd_sa_names[way],
			       seconds * 1e3);
		}
	}
	return XSPD_DONE;
}

static int run(struct bench *bench, bool json)
{
	struct json_object *o = json ? json_object_new_object() : NULL, *sas = NULL;
	const char *what;
	int rc, err;

	if (json) {
		bench->rows = json_object_new_array();
		sas = json_object_new_array();
	}
	err = bench->request.ways ? xspd_bench_tunnel(&bench->request, &what) : 0;
	rc = err ? cli_fail("bench: tunnel: %s: %s%s", what, strerror(-err), cli_root_hint(err))
		 : load_sas(bench, sas);
	if (json) {
		json_object_object_add(o, "rows", bench->rows);
		json_object_object_add(o, "sas", sas);
		cli_json_decimal(o, "esp_ns", esp_ns(bench), "%.1f");
		cli_json_print(o);
	} else if (esp_ns(bench) > 0) {
		printf("ESP adds %.0f ns to the way of a packet\n", esp_ns(bench));
	}
	return rc;
}

int bench_tunnel_main(int argc, char **argv)
{
	struct bench bench = {
		.request = {.rounds = ROUNDS, .ms = MS, .note = note, .row = row},
		.sas = SAS,
		.sizes = "1,30,400,4000",
		.ways = "plain,policy,interfaces,marks,steer",
	};
	const struct cli_option options[] = {
		{"tunnels", CLI_STRING, &bench.sizes},
		{"setups", CLI_STRING, &bench.ways},
		{"rounds", CLI_NUMBER, &bench.request.rounds, 1, XSPD_TUNNEL_ROUNDS_MOST},
		{"sample-ms", CLI_NUMBER, &bench.request.ms, 10, 10000},
		{"no-streams", CLI_FLAG, &bench.no_streams},
		{"sas", CLI_NUMBER, &bench.sas, 0, 100000},
		{},
	};
	struct cli_common common = {.reads = true};
	int rc = cli_parse(&common, options, &argc, &argv);

	if (rc || common.help)
		return rc;
	if (argc != 1)
		return cli_usage("bench: tunnel takes no words; see 'xspd help bench'");
	rc = parse_sizes(&bench);
	rc = rc ?: parse_ways(&bench);
	if (rc)
		return rc;
	bench.request.streams = !bench.no_streams;
	bench.request.ctx = &bench;
	return run(&bench, common.json);
}
