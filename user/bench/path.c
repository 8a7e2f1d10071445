// SPDX-License-Identifier: GPL-2.0-only
/* The gateway set up in each way, the ways taken in turn, and medians of what they let through. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "bench/fill.h"
#include "bench/path.h"
#include "util.h"

#define LEASE_MS 3600000
#define WARM_MS	 3

static const char *const spd_names[XSPD_PATH_SPDS] = {"none", "healthy", "cliff", "block"};

static const struct way {
	const char *name;
	enum xspd_path_way way;
	enum xspd_path_spd spd; /* what the traffic is, and the policies but for nft */
	unsigned int rig;
} ways[] = {
	{"kernel", XSPD_PATH_KERNEL, XSPD_PATH_NONE, 0},
	{"kernel", XSPD_PATH_KERNEL, XSPD_PATH_HEALTHY, 1},
	{"kernel", XSPD_PATH_KERNEL, XSPD_PATH_CLIFF, 2},
	{"xdp-redirect", XSPD_PATH_XDP_REDIRECT, XSPD_PATH_NONE, 7},
	{"bypass", XSPD_PATH_BYPASS, XSPD_PATH_HEALTHY, 1},
	{"bypass", XSPD_PATH_BYPASS, XSPD_PATH_CLIFF, 2},
	{"tc-pass", XSPD_PATH_TC_PASS, XSPD_PATH_HEALTHY, 8},
	{"observe-tc", XSPD_PATH_OBSERVE, XSPD_PATH_HEALTHY, 1},
	{"observe-xdp", XSPD_PATH_OBSERVE_XDP, XSPD_PATH_HEALTHY, 1},
	{"kernel", XSPD_PATH_KERNEL, XSPD_PATH_BLOCK, 3},
	{"xdp-drop", XSPD_PATH_XDP_DROP, XSPD_PATH_BLOCK, 6},
	{"enforce", XSPD_PATH_ENFORCE, XSPD_PATH_BLOCK, 3},
	{"nft-prerouting", XSPD_PATH_NFT_PREROUTING, XSPD_PATH_BLOCK, 4},
	{"nft-ingress", XSPD_PATH_NFT_INGRESS, XSPD_PATH_BLOCK, 5},
};
#define WAYS XSPD_ARRAY_SIZE(ways)
#define RIGS 9

struct bench {
	const struct xspd_path_request *request;
	struct xspd_traffic traffic;
	struct xspd_path_rig rigs[RIGS];
	const char *what;
	char text[64];
};

/* Is it one of the names between the commas? */
static bool wanted(const struct bench *b, const struct way *way)
{
	const char *list = b->request->setups;
	size_t len = strlen(way->name);

	for (; list; list = strchr(list, ',') ? strchr(list, ',') + 1 : NULL)
		if (!strncmp(list, way->name, len) && (!list[len] || list[len] == ','))
			return true;
	return !b->request->setups;
}

static int fill(struct bench *b, const struct way *way)
{
	struct xspd_bench_set set;
	uint32_t refused = 0;
	double ns;
	int err;

	b->what = "insert the policies";
	err = xspd_path_policies(way->spd, b->request->policies, &set);
	if (err)
		return err;
	if (set.count)
		err = xspd_bench_insert(&set, &ns, &refused);
	xspd_bench_set_close(&set);
	return !err && refused ? -EEXIST : err;
}

static int load(struct bench *b, struct xspd_path_rig *rig)
{
	struct xspd_plane_opts opts = {.lease_ms = LEASE_MS, .cache = XSPD_CACHE_DEFAULT};
	int err;

	b->what = "mirror the policies";
	rig->spd = xspd_spd_new();
	if (!rig->spd)
		return -errno;
	err = xspd_bench_mirror(rig->spd);
	if (err)
		return err;
	b->what = "load the programs";
	err = xspd_plane_new(&rig->plane, &opts);
	if (err)
		return err;
	/* they stay when the set is replaced, but the plane does not keep them */
	rig->xdp = fcntl(xspd_plane_prog_fd(rig->plane, "xspd_xdp"), F_DUPFD_CLOEXEC, 3);
	rig->tc = fcntl(xspd_plane_prog_fd(rig->plane, "xspd_tc_in"), F_DUPFD_CLOEXEC, 3);
	if (rig->xdp < 0 || rig->tc < 0)
		return -errno;
	err = xspd_plane_build(rig->plane, rig->spd);
	xspd_plane_beat(rig->plane);
	xspd_plane_doubt(rig->plane, 0, ~0u);
	return err;
}

/* tc runs a program that finds nothing to jump to. */
static int load_pass(struct bench *b, struct xspd_path_rig *rig)
{
	struct xspd_plane_opts opts = {.capacity = 1};
	uint32_t at = 0;
	int err;

	b->what = "load the programs";
	err = xspd_plane_new(&rig->plane, &opts);
	if (err)
		return err;
	rig->tc = fcntl(xspd_plane_prog_fd(rig->plane, "xspd_tc_in"), F_DUPFD_CLOEXEC, 3);
	if (rig->tc < 0 ||
	    bpf_map_delete_elem(xspd_plane_map_fd(rig->plane, "xspd_jump_tc"), &at) < 0)
		return -errno;
	return 0;
}

static int load_nft(struct bench *b, const struct way *way)
{
	bool ingress = way->way == XSPD_PATH_NFT_INGRESS;
	xspd_autofree char *text =
		xspd_path_nft(b->request->policies, ingress ? b->rigs[way->rig].path.in : NULL);

	b->what = "load the nftables ruleset (is nft installed?)";
	return text ? xspd_path_run((char *[]){"nft", "-f", "-", NULL}, text) : -ENOMEM;
}

/* The least that XDP can do: drop everything, or write anew and redirect everything. */
static int load_least(struct bench *b, const struct way *way)
{
	struct xspd_plane_opts opts = {.capacity = 1, .bench = true};
	struct xspd_path_rig *rig = &b->rigs[way->rig];
	struct xspd_source source = {.ifindex = rig->path.out_if, .count = 1};
	bool drop = way->way == XSPD_PATH_XDP_DROP;
	uint32_t zero = 0;
	int err;

	b->what = "load the programs";
	err = xspd_plane_new(&rig->plane, &opts);
	if (err)
		return err;
	memcpy(source.macs, rig->path.sink_mac, 6);
	memcpy(source.macs + 6, rig->path.out_mac, 6);
	rig->xdp = fcntl(xspd_plane_prog_fd(rig->plane, drop ? "xspd_sink" : "xspd_frame"),
			 F_DUPFD_CLOEXEC, 3);
	if (rig->xdp < 0 || bpf_map_update_elem(xspd_plane_map_fd(rig->plane, "xspd_source"), &zero,
						&source, BPF_ANY) < 0)
		return -errno;
	return 0;
}

static bool is_nft(const struct way *way)
{
	return way->way == XSPD_PATH_NFT_PREROUTING || way->way == XSPD_PATH_NFT_INGRESS;
}

static int make_rig(struct bench *b, const struct way *way)
{
	struct xspd_path_rig *rig = &b->rigs[way->rig];
	int err;

	b->what = "make the namespaces";
	err = xspd_path_new(&rig->path, way->rig, &b->traffic);
	if (err)
		return err;
	if (is_nft(way))
		return load_nft(b, way);
	if (way->way == XSPD_PATH_XDP_DROP || way->way == XSPD_PATH_XDP_REDIRECT)
		return load_least(b, way);
	err = fill(b, way);
	if (err || way->spd == XSPD_PATH_NONE)
		return err;
	return way->way == XSPD_PATH_TC_PASS ? load_pass(b, rig) : load(b, rig);
}

static int make_rigs(struct bench *b)
{
	int err;

	b->what = "load the programs";
	err = xspd_traffic_new(&b->traffic);
	for (unsigned int rig = 0; rig < RIGS && !err; rig++)
		for (size_t i = 0; i < WAYS; i++)
			if (ways[i].rig == rig && wanted(b, &ways[i])) {
				err = make_rig(b, &ways[i]);
				break;
			}
	return err;
}

static void free_rigs(struct bench *b)
{
	for (unsigned int i = 0; i < RIGS; i++) {
		struct xspd_path_rig *rig = &b->rigs[i];

		xspd_plane_free(rig->plane);
		xspd_spd_free(rig->spd);
		xspd_closep(&rig->xdp);
		xspd_closep(&rig->tc);
		xspd_closep(&rig->link);
		xspd_path_free(&rig->path);
	}
	xspd_traffic_free(&b->traffic);
}

/* --- samples ---------------------------------------------------------------------- */

static bool drops(const struct way *way)
{
	return way->spd == XSPD_PATH_BLOCK;
}

/* What xspd has done itself by now, by its own count. */
static int acted(const struct xspd_path_rig *rig, const struct way *way, uint64_t *ret)
{
	bool bypass = way->way == XSPD_PATH_BYPASS;
	int cpus = libbpf_num_possible_cpus();
	xspd_autofree struct xspd_stat *stat = calloc((size_t)cpus, sizeof(*stat));
	uint32_t nr = XSPD_HOOK_XDP * XSPD_A_MAX_ + (bypass ? XSPD_A_FORWARDED : XSPD_A_DROP_BLOCK);

	*ret = 0;
	if (!bypass && way->way != XSPD_PATH_ENFORCE)
		return 0;
	if (!stat)
		return -ENOMEM;
	if (bpf_map_lookup_elem(xspd_plane_map_fd(rig->plane, "xspd_act"), &nr, stat) < 0)
		return -errno;
	for (int i = 0; i < cpus; i++)
		*ret += stat[i].packets;
	return 0;
}

static int take_sample(struct bench *b, const struct way *way, struct xspd_path_sums *sums,
		       uint32_t round)
{
	const struct xspd_path_rig *rig = &b->rigs[way->rig];
	struct xspd_path_sample warm, sample;
	uint64_t before = 0, after = 0;
	double good;
	int err;

	err = xspd_path_sample(&rig->path, &b->traffic, WARM_MS, &warm);
	err = err ?: acted(rig, way, &before);
	err = err ?: xspd_path_sample(&rig->path, &b->traffic, b->request->ms, &sample);
	err = err ?: acted(rig, way, &after);
	if (err)
		return err;
	good = (double)(drops(way) ? sample.received - sample.delivered : sample.delivered);
	sums->mpps[round] = good / sample.cpu_ns * 1e3;
	sums->wall[round] = good / sample.wall_ns * 1e3;
	sums->received += sample.received;
	sums->delivered += sample.delivered;
	sums->acted += after - before;
	return 0;
}

static int one_sample(struct bench *b, const struct way *way, struct xspd_path_sums *sums,
		      uint32_t round)
{
	struct xspd_path_rig *rig = &b->rigs[way->rig];
	int err, off;

	snprintf(b->text, sizeof(b->text), "%s, %s", way->name, spd_names[way->spd]);
	b->what = b->text;
	xspd_path_flows(way->spd, b->request->policies, b->traffic.count, b->traffic.flows);
	err = xspd_path_enter(&rig->path, XSPD_PATH_GATEWAY);
	if (!err)
		err = xspd_path_switch(rig, way->way, true);
	if (err)
		return err;
	err = take_sample(b, way, sums, round);
	off = xspd_path_enter(&rig->path, XSPD_PATH_GATEWAY);
	if (!off)
		off = xspd_path_switch(rig, way->way, false);
	return err ? err : off;
}

/*
 * Of all that was received at most one in ten may have gone another way: behind a gateway that
 * takes a long time, the sink's queue runs over when the kernel has held up both threads.
 */
static bool treated(const struct way *way, const struct xspd_path_sums *sums)
{
	uint64_t wrong = drops(way) ? sums->delivered : sums->received - sums->delivered;
	bool acts = way->way == XSPD_PATH_BYPASS || way->way == XSPD_PATH_ENFORCE;

	return sums->received && wrong <= sums->received / 10 &&
	       (!acts || sums->acted >= sums->received - sums->received / 10);
}

static int give_rows(struct bench *b, struct xspd_path_sums *sums)
{
	const struct xspd_path_request *request = b->request;
	struct xspd_path_row rows[WAYS];
	size_t count = 0;
	int err = 0;

	for (size_t i = 0; i < WAYS; i++) {
		if (!wanted(b, &ways[i]))
			continue;
		rows[count] = (struct xspd_path_row){
			.setup = ways[i].name,
			.spd = spd_names[ways[i].spd],
			.policies = ways[i].spd == XSPD_PATH_NONE ? 0 : request->policies,
			.flows = b->traffic.count,
			.drops = drops(&ways[i]),
		};
		xspd_path_row_sum(&rows[count++], &sums[i], request->rounds);
		if (!treated(&ways[i], &sums[i])) {
			snprintf(b->text, sizeof(b->text), "%s, %s: packets treated wrong",
				 ways[i].name, spd_names[ways[i].spd]);
			err = -EBADE;
		}
	}
	xspd_path_rows_compare(rows, count);
	for (size_t i = 0; i < count; i++)
		request->row(request->ctx, &rows[i]);
	return err;
}

static int one_count(struct bench *b, uint32_t flows)
{
	xspd_autofree struct xspd_path_sums *sums = calloc(WAYS, sizeof(*sums));
	int err = 0;

	if (!sums)
		return -ENOMEM;
	b->traffic.count = flows;
	for (uint32_t round = 0; round < b->request->rounds && !err; round++)
		for (size_t i = 0; i < WAYS && !err; i++)
			if (wanted(b, &ways[i]))
				err = one_sample(b, &ways[i], &sums[i], round);
	return err ? err : give_rows(b, sums);
}

int xspd_bench_path(const struct xspd_path_request *request, const char **ret_what)
{
	static const uint32_t counts[] = {1, 512, 4096, 65536};
	static struct bench b; /* the name of what failed outlives the call */
	int err;

	b = (struct bench){.request = request};
	for (unsigned int i = 0; i < RIGS; i++) {
		b.rigs[i].xdp = b.rigs[i].tc = b.rigs[i].link = b.rigs[i].path.sysfs = -1;
		memset(b.rigs[i].path.netns, -1, sizeof(b.rigs[i].path.netns));
	}
	err = make_rigs(&b);
	for (size_t i = 0; i < XSPD_ARRAY_SIZE(counts) && !err; i++)
		if (!request->flows || request->flows == counts[i])
			err = one_count(&b, counts[i]);
	free_rigs(&b);
	*ret_what = b.what;
	return err;
}
