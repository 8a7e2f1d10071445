// SPDX-License-Identifier: GPL-2.0-only
/* The set in service: opening, serving, doubt and lease. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "plane/crash.h"
#include "plane/plane_priv.h"
#include "plane/steer.h"
#include "util.h"
#include "xspd.skel.h"

/* Policies, at the least: those of most gateways without ever growing, if that is not too much
 * memory, since they are counted per CPU. */
#define XSPD_CAPACITY	   16384
#define XSPD_COUNTER_BYTES (16u << 20)
#define SETTLE_NS	   20000000 /* a grace period, mostly */
#define XSPD_LISTS	   512 /* list records; those of changed lists rest for a grace period */
#define XSPD_LEASE_MS	   3000
#define XSPD_PRUNE_AT	   64 /* two lookups in deep tries cost as much as so many probes */
#define XSPD_COARSEN_AT	   8

struct xspd_sizes xspd_plane_sizes(const struct xspd_plane *plane, uint32_t capacity,
				   uint32_t ifids, unsigned int attempt)
{
	const uint32_t least = plane->opts.ifids;
	uint64_t lists, parts;

	ifids = ifids > least ? ifids : least;
	lists = (XSPD_LISTS + capacity / 64 + (uint64_t)ifids) << attempt;
	parts = (256 + (uint64_t)ifids * 2) << attempt;

	return (struct xspd_sizes){
		.slots = capacity + 1,
		.buckets = capacity / 2 + 1,
		.lists = lists > 1u << 30 ? 1u << 30 : (uint32_t)lists,
		.parts = parts > 1u << 28 ? 1u << 28 : (uint32_t)parts,
		.cache = plane->opts.cache,
		.samples = plane->opts.samples,
		.steer = plane->opts.steer,
		.bench = plane->opts.bench,
		.ask = plane->opts.ask,
	};
}

void xspd_plane_brief(struct xspd_plane *plane, struct xspd_set *set)
{
	set->number = ++plane->pins.last;
	set->prune_at = plane->opts.prune_at;
	set->coarsen_at = plane->opts.coarsen_at;
	set->seed = (uint32_t)xspd_now(CLOCK_REALTIME);
	/* without the program the partitions can still be asked */
	plane->steer_err = set->steer ? xspd_steer_load(set) : -EOPNOTSUPP;
	set->conf->doubt = plane->doubt;
	set->conf->env = plane->env;
	set->conf->route_mtu = plane->route_mtu;
	set->conf->route_many = plane->route_many;
	set->conf->route_rules = plane->route_rules;
	set->conf->cache = plane->opts.cache;
	set->conf->lease_ms = plane->opts.lease_ms;
}

int xspd_plane_set(struct xspd_plane *plane, const struct xspd_sizes *sizes, struct xspd_set **ret)
{
	struct xspd_set *set;
	int err;

	/* the first of all brings the entry programs */
	err = xspd_set_new(&set, sizes, plane->lasting, plane->lasting[0] < 0);
	if (err)
		return err;
	xspd_plane_brief(plane, set);
	*ret = set;
	return 0;
}

/* The sets come and go, these stay. */
static int lasting_keep(struct xspd_plane *plane, const struct xspd_set *set)
{
	for (int i = 0; i < XSPD_LASTING; i++) {
		plane->lasting[i] =
			fcntl(xspd_set_map_fd(set, xspd_lasting_maps[i]), F_DUPFD_CLOEXEC, 3);
		if (plane->lasting[i] < 0)
			return -errno;
	}
	return 0;
}

static void lasting_drop(struct xspd_plane *plane)
{
	for (int i = 0; i < XSPD_LASTING; i++) {
		if (!plane->pins.taken)
			xspd_closep(&plane->lasting[i]);
		plane->lasting[i] = -1;
	}
}

static int jump_store(int map, uint32_t at, const struct bpf_program *prog)
{
	int fd = bpf_program__fd(prog);

	return bpf_map_update_elem(map, &at, &fd, BPF_ANY) < 0 ? -errno : 0;
}

/* Where there is none any more, packets go on without an if_id. */
static int jump_steer(int map, const struct xspd_set *set)
{
	int fd = xspd_steer_prog(set);
	uint32_t at = XSPD_JUMP_STEER_AT;

	if (fd >= 0)
		return bpf_map_update_elem(map, &at, &fd, BPF_ANY) < 0 ? -errno : 0;
	return bpf_map_delete_elem(map, &at) < 0 && errno != ENOENT ? -errno : 0;
}

/* From here on, whoever enters is led to @set. */
static int jumps_store(const struct xspd_set *set)
{
	int tc = bpf_map__fd(set->skel->maps.xspd_jump_tc);
	int xdp = bpf_map__fd(set->skel->maps.xspd_jump_xdp);
	int err;

	if (set->sizes.ask)
		return 0;
	err = jump_store(tc, 0, set->prog_in);
	xspd_crash_point("serve: in");
	err = err ?: jump_store(tc, 1, set->skel->progs.xspd_do_out);
	xspd_crash_point("serve: out");
	err = err ?: jump_steer(tc, set);
	xspd_crash_point("serve: steer");
	err = err ?: jump_store(xdp, 0, set->prog_xdp);
	xspd_crash_point("serve: xdp");
	return err;
}

static int serve(struct xspd_plane *plane, struct xspd_set *set, bool first)
{
	int err = 0;

	if (plane->pins.dir) {
		if (first)
			err = xspd_pins_entries(&plane->pins, set);
		err = err ?: xspd_pins_set(&plane->pins, set);
	}
	xspd_crash_point("serve: pinned");
	return err ?: jumps_store(set);
}

int xspd_plane_serve(struct xspd_plane *plane, struct xspd_set *set)
{
	bool first = plane->lasting[0] < 0;
	int err = first ? lasting_keep(plane, set) : 0;

	err = err ?: serve(plane, set, first);
	if (err) {
		if (first)
			lasting_drop(plane); /* the next try brings its own, and entry programs */
		return err;
	}
	set->live = true;
	if (plane->pins.dir && !plane->served)
		plane->left_alone = xspd_pins_adopt(&plane->pins, set);
	plane->served = true;
	if (plane->pins.dir)
		xspd_pins_prune(&plane->pins, set->number);
	plane->set = set;
	return 0;
}

/* Unpinned it serves at once, with nothing in it; pinned, what is there stays until it is full. */
static int serve_empty(struct xspd_plane *plane)
{
	struct xspd_sizes sizes = xspd_plane_sizes(plane, plane->opts.capacity, 0, 0);
	struct xspd_set *set;
	int err = xspd_plane_set(plane, &sizes, &set);

	if (err)
		return err;
	err = xspd_plane_serve(plane, set);
	if (err)
		xspd_set_free(set);
	return err;
}

static int plane_open(struct xspd_plane *plane, const struct xspd_plane_opts *opts)
{
	int err;

	err = xspd_grace_new(&plane->grace);
	/* without grace periods nothing is reused: a full set is replaced sooner */
	if (err && err != -EOPNOTSUPP)
		return err;
	err = opts->pin ? xspd_pins_open(&plane->pins, opts->pin) : serve_empty(plane);
	if (err)
		return err;
	if (plane->pins.taken)
		memcpy(plane->lasting, plane->pins.lasting, sizeof(plane->lasting));
	xspd_plane_beat(plane);
	return 0;
}

static uint32_t capacity_default(void)
{
	uint32_t cpus = (uint32_t)libbpf_num_possible_cpus();
	uint32_t most = XSPD_COUNTER_BYTES / (uint32_t)sizeof(struct xspd_count) / cpus;

	return most < XSPD_CAPACITY ? most : XSPD_CAPACITY;
}

int xspd_plane_new(struct xspd_plane **ret, const struct xspd_plane_opts *opts)
{
	struct xspd_plane *plane = calloc(1, sizeof(*plane));
	int err;

	if (!plane)
		return -ENOMEM;
	plane->opts = *opts;
	plane->opts.pin = NULL;
	plane->opts.capacity = opts->capacity ?: capacity_default();
	plane->opts.lease_ms = opts->lease_ms ?: XSPD_LEASE_MS;
	plane->opts.prune_at = opts->prune_at ?: XSPD_PRUNE_AT;
	plane->opts.coarsen_at = opts->coarsen_at ?: XSPD_COARSEN_AT;
	plane->doubt = XSPD_DOUBT_START;
	plane->early = (struct xspd_conf){.abi = XSPD_ABI_VERSION,
					  .doubt = plane->doubt,
					  .lease_ms = plane->opts.lease_ms,
					  .cache = plane->opts.cache};
	for (int i = 0; i < XSPD_LASTING; i++)
		plane->lasting[i] = -1;
	err = plane_open(plane, opts);
	if (err) {
		xspd_plane_free(plane);
		return err;
	}
	*ret = plane;
	return 0;
}

void xspd_plane_free(struct xspd_plane *plane)
{
	if (!plane)
		return;
	xspd_plane_doubt(plane, XSPD_DOUBT_STOPPED, 0);
	if (plane->pins.dir && !plane->served && !plane->pins.taken)
		xspd_pins_remove(&plane->pins);
	/* nothing is counted from here on: what rests has counted all it will */
	if (plane->set)
		xspd_set_reclaim(plane->set, plane->grace, true);
	xspd_spare_drop(plane);
	xspd_grace_free(plane->grace);
	xspd_set_free(plane->set);
	lasting_drop(plane);
	xspd_pins_close(&plane->pins);
	xspd_former_free(plane->former);
	xspd_gone_forget(plane);
	free(plane);
}

uint64_t xspd_plane_settle(struct xspd_plane *plane)
{
	struct xspd_set *set = plane->set;

	if (!set || !plane->grace)
		return 0;
	xspd_set_reclaim(set, plane->grace, false);
	return set->retired_count ? xspd_mono() + SETTLE_NS : 0;
}

struct xspd_conf *xspd_plane_conf(struct xspd_plane *plane)
{
	return plane->set ? plane->set->conf : &plane->early;
}

void xspd_plane_doubt(struct xspd_plane *plane, uint32_t set, uint32_t clear)
{
	plane->doubt = (plane->doubt | set) & ~clear;
	XSPD_STORE(xspd_plane_conf(plane)->doubt, plane->doubt);
}

void xspd_plane_lease(struct xspd_plane *plane, uint64_t since)
{
	uint64_t lease = (uint64_t)plane->opts.lease_ms * 1000000ull;

	XSPD_STORE(xspd_plane_conf(plane)->lease_until, since + lease);
	xspd_spare_expire(plane);
}

void xspd_plane_env(struct xspd_plane *plane, uint32_t bits)
{
	plane->env = bits;
	XSPD_STORE(xspd_plane_conf(plane)->env, bits);
}

void xspd_plane_routes(struct xspd_plane *plane, uint32_t mtu, bool many, enum xspd_rules rules)
{
	plane->route_mtu = mtu;
	plane->route_many = many;
	plane->route_rules = rules;
	XSPD_STORE(xspd_plane_conf(plane)->route_mtu, mtu);
	XSPD_STORE(xspd_plane_conf(plane)->route_many, many);
	XSPD_STORE(xspd_plane_conf(plane)->route_rules, rules);
}

void xspd_plane_beat(struct xspd_plane *plane)
{
	xspd_plane_lease(plane, xspd_mono());
}

unsigned int xspd_plane_left_alone(const struct xspd_plane *plane)
{
	return plane->left_alone;
}

int xspd_plane_steers(const struct xspd_plane *plane)
{
	return plane->steer_err;
}

int xspd_plane_prog_fd(const struct xspd_plane *plane, const char *name)
{
	const struct xspd_set *set = plane->set;
	const struct bpf_program *prog =
		set ? bpf_object__find_program_by_name(set->skel->obj, name) : NULL;

	/* whichever this kernel has */
	if (prog && prog == set->skel->progs.xspd_do_in)
		prog = set->prog_in;
	if (prog && prog == set->skel->progs.xspd_do_xdp)
		prog = set->prog_xdp;
	return prog ? bpf_program__fd(prog) : -1;
}

int xspd_plane_map_fd(const struct xspd_plane *plane, const char *name)
{
	for (int i = 0; i < XSPD_LASTING; i++)
		if (!strcmp(name, xspd_lasting_maps[i]))
			return plane->lasting[i];
	return plane->set ? xspd_set_map_fd(plane->set, name) : -1;
}
