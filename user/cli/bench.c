// SPDX-License-Identifier: GPL-2.0-only
/* xspd bench: what a lookup costs here, in xspd and in the kernel. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <json-c/json.h>

#include "bench/measure.h"
#include "bench/start.h"
#include "cli/cli.h"
#include "cli/selector.h"
#include "util.h"

#define POLICIES     10000
#define POLICIES_MAX 4000000
#define LINEAR_MAX   20000 /* beyond it, filling a list in the kernel takes minutes */
#define SHAPES_MAX   64

static const char *const usual[] = {
	"pool", "vti",	  "ports",	 "roadwarrior",	 "site",   "hub", "ifid",
	"mesh", "bypass", "block-all",	 "ovs",		 "cilium", "sub", "one",
	"four", "pairs",  "adversarial", "roadwarrior6", "site6",
};

struct request {
	const char *shapes[SHAPES_MAX];
	uint32_t shape_count;
	uint32_t policies;
	bool no_kernel;
	bool json;
	struct xspd_bench_labs labs;
	struct json_object *rows;
	bool header; /* printed */
};

static int add_shape(struct request *request, const char *name)
{
	if (request->shape_count == SHAPES_MAX)
		return cli_usage("bench: more than %u shapes; run it twice", SHAPES_MAX);
	request->shapes[request->shape_count++] = name;
	return XSPD_DONE;
}

static int add_named(struct request *request, const char *name)
{
	const struct xspd_shape *shape;
	int err = XSPD_DONE;

	if (!strcmp(name, "all")) {
		for (shape = xspd_shapes; shape->name && !err; shape++)
			err = add_shape(request, shape->name);
		return err;
	}
	if (strncmp(name, "file:", 5) && !xspd_shape_find(name))
		return cli_usage("bench: unknown shape '%s'; 'xspd bench shapes' lists them", name);
	return add_shape(request, name);
}

/* Take every --shape out of the command line: an option that may be given again and again. */
static int take_shapes(struct request *request, int *argc, char **argv)
{
	int kept = 1, err = XSPD_DONE;

	for (int i = 1; i < *argc && !err; i++) {
		if (!strncmp(argv[i], "--shape=", 8))
			err = add_named(request, argv[i] + 8);
		else if (strcmp(argv[i], "--shape"))
			argv[kept++] = argv[i];
		else if (i + 1 < *argc)
			err = add_named(request, argv[++i]);
		else
			err = cli_usage(
				"bench: '--shape' lacks its argument; see 'xspd help bench'");
	}
	*argc = kept;
	argv[kept] = NULL;
	return err;
}

/* "file:/a/b/acl1_10k.pol.xz" is acl1_10k in the table. */
static void short_name(const char *name, char *ret, size_t size)
{
	const char *base = strrchr(name, '/');

	if (strncmp(name, "file:", 5))
		base = name;
	else
		base = base ? base + 1 : name + 5;
	snprintf(ret, size, "%.*s", (int)strcspn(base, "."), base);
}

static void print_number(double value, int width, const char *unit)
{
	if (isnan(value))
		printf(" %*s%s", width, "-", unit);
	else
		printf(" %*.*f%s", width, fabs(value) < 10 ? 1 : 0, value, unit);
}

static void print_row(struct request *request, const struct xspd_bench_row *row)
{
	char name[32];

	if (!request->header)
		printf("%-12s %8s %7s %6s %5s %5s %7s %7s %6s %7s\n"
		       "%-12s %8s %7s %6s %5s %5s %7s %7s %6s %7s\n",
		       "shape", "policies", "mask", "probes", "hit", "miss", "kernel", "kernel",
		       "map", "publish", "", "", "classes", "a hit", "ns", "ns", "hit ns", "/ hit",
		       "bytes", "ns");
	request->header = true;
	short_name(row->shape, name, sizeof(name));
	printf("%-12s %8u %7u", name, row->policies, row->tuples);
	print_number(row->probes, 6, "");
	print_number(row->hit, 5, "");
	print_number(row->miss, 5, "");
	print_number(row->kernel, 7, "");
	print_number(row->kernel / row->hit, 7, "");
	print_number(row->bytes, 6, "");
	print_number(row->publish, 7, "\n");
	fflush(stdout);
}

static void put_count(struct json_object *object, const char *key, uint32_t value)
{
	json_object_object_add(object, key, json_object_new_int64(value));
}

static void add_json(struct request *request, const struct xspd_bench_row *row)
{
	struct json_object *object = json_object_new_object();

	json_object_object_add(object, "shape", json_object_new_string(row->shape));
	put_count(object, "policies", row->policies);
	put_count(object, "tuples", row->tuples);
	cli_json_decimal(object, "ns_hit", row->hit, "%.1f");
	cli_json_decimal(object, "ns_miss", row->miss, "%.1f");
	cli_json_decimal(object, "ns_kernel", row->kernel, "%.1f");
	cli_json_decimal(object, "bytes_per_policy", row->bytes, "%.1f");
	cli_json_decimal(object, "publish_ns", row->publish, "%.1f");
	cli_json_decimal(object, "probes_per_lookup", row->probes, "%.1f");
	cli_json_decimal(object, "probes_per_miss", row->probes_miss, "%.1f");
	cli_json_decimal(object, "ns_kernel_miss", row->kernel_miss, "%.1f");
	cli_json_decimal(object, "ratio", row->kernel / row->hit, "%.1f");
	cli_json_decimal(object, "ns_rnd", row->rnd, "%.1f");
	cli_json_decimal(object, "ns_hit_min", row->hit_min, "%.1f");
	cli_json_decimal(object, "ns_miss_min", row->miss_min, "%.1f");
	cli_json_decimal(object, "ns_kernel_min", row->kernel_min, "%.1f");
	cli_json_decimal(object, "build_ns", row->build, "%.1f");
	cli_json_decimal(object, "kernel_insert_ns", row->insert, "%.1f");
	put_count(object, "longest_chain", row->longest_chain);
	put_count(object, "checked", row->checked);
	put_count(object, "wrong", row->wrong);
	put_count(object, "deferred", row->deferred);
	json_object_array_add(request->rows, object);
}

static int open_set(const struct request *request, const char *name, struct xspd_bench_set *ret)
{
	const struct xspd_shape *shape = xspd_shape_find(name);
	uint32_t policies = request->policies, line = 0;
	int err;

	if (shape && shape->max && policies > shape->max) {
		policies = shape->max;
		cli_notice("bench: %s has no more than %u policies", name, policies);
	}
	err = xspd_bench_set_open(ret, name, policies, &line);
	if (err == -EBADMSG)
		return cli_fail("bench: %s: line %u is not 'family src/len dst/len proto "
				"sport/mask dport/mask priority', or of a trace",
				name, line);
	if (err < 0)
		return cli_fail("bench: %s: %s", name, strerror(-err));
	return XSPD_DONE;
}

static int one_shape(struct request *request, const char *name)
{
	const struct xspd_bench_labs *labs = request->no_kernel ? NULL : &request->labs;
	struct xspd_bench_row row;
	struct xspd_bench_set set;
	const char *what;
	int err;

	err = open_set(request, name, &set);
	if (err)
		return err;
	if (labs && set.linear && set.count > LINEAR_MAX) {
		cli_notice("bench: %s: the kernel would take minutes to hold %u of them, leaving "
			   "it out",
			   name, set.count);
		labs = NULL;
	}
	err = xspd_bench_measure(&set, labs, &row, &what);
	if (err < 0) {
		xspd_bench_set_close(&set);
		return cli_fail("bench: %s: %s: %s%s", name, what, strerror(-err),
				cli_root_hint(err));
	}
	request->json ? add_json(request, &row) : print_row(request, &row);
	xspd_bench_set_close(&set);
	if (row.wrong)
		return cli_fail("bench: %s: %u wrong answers among %u", name, row.wrong,
				row.checked);
	if (row.deferred)
		return cli_fail("bench: %s: %u answers were DEFER", name, row.deferred);
	return XSPD_DONE;
}

static int lookup(struct request *request)
{
	int err, result = XSPD_DONE;

	if (!request->no_kernel) {
		err = xspd_bench_labs_new(&request->labs);
		if (err < 0)
			return cli_fail("bench: network namespace: %s%s", strerror(-err),
					cli_root_hint(err));
	}
	for (uint32_t i = 0; i < request->shape_count; i++)
		if (one_shape(request, request->shapes[i]))
			result = XSPD_FAILED; /* the others may still be of use */
	if (request->json)
		printf("%s\n", json_object_to_json_string_ext(
				       request->rows,
				       JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
	xspd_bench_labs_free(&request->labs);
	return result;
}

static int list_shapes(void)
{
	for (const struct xspd_shape *shape = xspd_shapes; shape->name; shape++)
		printf("%-13s %s\n", shape->name, shape->what);
	printf("%-13s %s\n", "file:PATH", "the rules of a file, see xspd-bench(8)");
	return XSPD_DONE;
}

static void print_start(const struct xspd_bench_set *set, const struct xspd_bench_start *result)
{
	struct json_object *object = json_object_new_object();

	json_object_object_add(object, "shape", json_object_new_string(set->name));
	put_count(object, "policies", set->count);
	cli_json_decimal(object, "ready_ms", result->ready_ms, "%.1f");
	cli_json_decimal(object, "cpu_ms", result->cpu_ms, "%.1f");
	put_count(object, "idle_s", XSPD_BENCH_IDLE_S);
	cli_json_decimal(object, "idle_cpu_ms", result->idle_ms, "%.1f");
	printf("%s\n", json_object_to_json_string_ext(
			       object, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(object);
}

static int start(struct request *request)
{
	struct xspd_bench_start result;
	struct xspd_bench_set set;
	const char *what;
	int err;

	if (request->shape_count > 1)
		return cli_usage("bench start: one shape at a time");
	err = open_set(request, request->shape_count ? request->shapes[0] : "roadwarrior", &set);
	if (err)
		return err;
	err = xspd_bench_start(&set, &result, &what);
	if (err < 0)
		cli_fail("bench: %s: %s: %s%s", set.name, what, strerror(-err), cli_root_hint(err));
	else if (request->json)
		print_start(&set, &result);
	else
		printf("%s, %u policies: answers after %.0f ms (%.0f ms of CPU time); idle for %d "
		       "s: "
		       "%.2f ms of CPU time, %.2f %%\n",
		       set.name, set.count, result.ready_ms, result.cpu_ms, XSPD_BENCH_IDLE_S,
		       result.idle_ms, result.idle_ms / XSPD_BENCH_IDLE_S / 10);
	xspd_bench_set_close(&set);
	return err < 0 ? XSPD_FAILED : XSPD_DONE;
}

int bench_main(int argc, char **argv)
{
	struct request request = {.policies = POLICIES};
	const struct cli_option options[] = {
		{"policies", CLI_NUMBER, &request.policies, 1, POLICIES_MAX},
		{"no-kernel", CLI_FLAG, &request.no_kernel},
		{},
	};
	struct cli_common common = {.reads = true};
	int err;

	if (argc > 1 && !strcmp(argv[1], "sync"))
		return bench_sync_main(argc, argv);
	if (argc > 1 && !strcmp(argv[1], "dump"))
		return bench_dump_main(argc, argv);
	if (argc > 1 && !strcmp(argv[1], "path"))
		return bench_path_main(argc, argv);
	if (argc > 1 && !strcmp(argv[1], "cache"))
		return bench_cache_main(argc, argv);
	if (argc > 1 && !strcmp(argv[1], "tune"))
		return bench_tune_main(argc, argv);
	if (argc > 1 && !strcmp(argv[1], "tunnel"))
		return bench_tunnel_main(argc, argv);
	err = take_shapes(&request, &argc, argv);

	if (!err)
		err = cli_parse(&common, options, &argc, &argv);
	if (err || common.help)
		return err;
	if (argc == 1 && !strcmp(argv[0], "shapes"))
		return list_shapes();
	if (argc != 1 || (strcmp(argv[0], "lookup") && strcmp(argv[0], "start")))
		return cli_usage("bench: say 'bench lookup', 'bench start', 'bench sync', 'bench "
				 "dump', 'bench path', 'bench cache', 'bench tunnel', 'bench tune' "
				 "or 'bench shapes'; see 'xspd "
				 "help bench'");
	err = cli_enter_netns(common.netns);
	if (err)
		return err;
	request.json = common.json;
	if (!strcmp(argv[0], "start"))
		return start(&request);
	if (!request.shape_count)
		for (size_t i = 0; i < XSPD_ARRAY_SIZE(usual) && !err; i++)
			err = add_shape(&request, usual[i]);
	request.rows = json_object_new_array();
	err = lookup(&request);
	json_object_put(request.rows);
	return err;
}
