// SPDX-License-Identifier: GPL-2.0-only
/* The set in service: opening, serving, doubt and lease. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "plane/crash.h"
#include "plane/plane_priv.h"
#include "util.h"
#include "xspd.skel.h"

#define XSPD_CAPACITY	4096 /* policies, at the least */
#define XSPD_LISTS	512  /* list records; those of changed lists rest for a grace period */
#define XSPD_LEASE_MS	3000
#define XSPD_PRUNE_AT	64 /* two lookups in deep tries cost as much as so many probes */
#define XSPD_COARSEN_AT 8

int xspd_plane_set(struct xspd_plane *plane, uint32_t capacity, uint32_t ifids,
		   unsigned int attempt, struct xspd_set **ret)
{
	uint64_t lists = (XSPD_LISTS + capacity / 64 + (uint64_t)ifids) << attempt;
	uint64_t parts = (256 + (uint64_t)ifids * 2) << attempt;
	struct xspd_sizes sizes = {
		.slots = capacity + 1,
		.buckets = capacity / 2 + 1,
		.lists = lists > 1u << 30 ? 1u << 30 : (uint32_t)lists,
		.parts = parts > 1u << 28 ? 1u << 28 : (uint32_t)parts,
		.cache = plane->opts.cache,
		.samples = plane->opts.samples,
		.bench = plane->opts.bench,
		.ask = plane->opts.ask,
	};
	struct xspd_set *set;
	int err;

	err = xspd_set_new(&set, &sizes, plane->lasting, !plane->set && !plane->pins.taken);
	if (err)
		return err;
	set->number = ++plane->pins.last;
	set->prune_at = plane->opts.prune_at;
	set->coarsen_at = plane->opts.coarsen_at;
	set->seed = (uint32_t)xspd_now(CLOCK_REALTIME);
	set->conf->doubt = plane->doubt;
	set->conf->env = plane->env;
	set->conf->route_mtu = plane->route_mtu;
	set->conf->cache = plane->opts.cache;
	set->conf->lease_ms = plane->opts.lease_ms;
	*ret = set;
	return 0;
}

static int jump_store(int map, uint32_t at, const struct bpf_program *prog)
{
	int fd = bpf_program__fd(prog);

	return bpf_map_update_elem(map, &at, &fd, BPF_ANY) < 0 ? -errno : 0;
}

/* From here on, whoever enters is led to @set. */
static int jumps_store(const struct xspd_set *set)
{
	int tc = bpf_map__fd(set->skel->maps.xspd_jump_tc);
	int xdp = bpf_map__fd(set->skel->maps.xspd_jump_xdp);
	int err;

	if (set->sizes.ask)
		return 0;
	err = jump_store(tc, 0, set->skel->progs.xspd_do_in);
	xspd_crash_point("serve: in");
	err = err ?: jump_store(tc, 1, set->skel->progs.xspd_do_out);
	xspd_crash_point("serve: out");
	err = err ?: jump_store(xdp, 0, set->skel->progs.xspd_do_xdp);
	xspd_crash_point("serve: xdp");
	return err;
}

int xspd_plane_serve(struct xspd_plane *plane, struct xspd_set *set)
{
	int err = 0;

	if (plane->pins.dir) {
		/* the first set, which is empty and serves nobody, has the entry programs */
		if (!plane->served && !plane->pins.taken)
			err = xspd_pins_entries(&plane->pins, plane->set);
		err = err ?: xspd_pins_set(&plane->pins, set);
	}
	xspd_crash_point("serve: pinned");
	err = err ?: jumps_store(set);
	if (err)
		return err;
	set->live = true;
	if (plane->pins.dir && !plane->served)
		plane->left_alone = xspd_pins_adopt(&plane->pins, set);
	plane->served = true;
	if (plane->pins.dir)
		xspd_pins_prune(&plane->pins, set->number);
	plane->set = set;
	return 0;
}

static int plane_open(struct xspd_plane *plane, const struct xspd_plane_opts *opts)
{
	struct xspd_set *set;
	int err;

	err = xspd_grace_new(&plane->grace);
	/* without grace periods nothing is reused: a full set is replaced sooner */
	if (err && err != -EOPNOTSUPP)
		return err;
	err = opts->pin ? xspd_pins_open(&plane->pins, opts->pin) : 0;
	if (err)
		return err;
	if (plane->pins.taken)
		memcpy(plane->lasting, plane->pins.lasting, sizeof(plane->lasting));
	/* pinned, it serves once it has been filled: until then what is there stays */
	err = xspd_plane_set(plane, opts->pin ? 1 : plane->opts.capacity, 0, 0, &set);
	if (err)
		return err;
	err = opts->pin ? 0 : xspd_plane_serve(plane, set);
	if (err) {
		xspd_set_free(set);
		return err;
	}
	plane->set = set;
	/* the sets come and go, these stay */
	for (int i = 0; i < XSPD_LASTING; i++) {
		if (plane->pins.taken)
			continue;
		plane->lasting[i] =
			fcntl(xspd_set_map_fd(set, xspd_lasting_maps[i]), F_DUPFD_CLOEXEC, 3);
		if (plane->lasting[i] < 0)
			return -errno;
	}
	xspd_plane_beat(plane);
	return 0;
}

int xspd_plane_new(struct xspd_plane **ret, const struct xspd_plane_opts *opts)
{
	struct xspd_plane *plane = calloc(1, sizeof(*plane));
	int err;

	if (!plane)
		return -ENOMEM;
	plane->opts = *opts;
	plane->opts.pin = NULL;
	plane->opts.capacity = opts->capacity ?: XSPD_CAPACITY;
	plane->opts.lease_ms = opts->lease_ms ?: XSPD_LEASE_MS;
	plane->opts.prune_at = opts->prune_at ?: XSPD_PRUNE_AT;
	plane->opts.coarsen_at = opts->coarsen_at ?: XSPD_COARSEN_AT;
	plane->doubt = XSPD_DOUBT_START;
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
	if (plane->set)
		xspd_plane_doubt(plane, XSPD_DOUBT_STOPPED, 0);
	if (plane->pins.dir && !plane->served && !plane->pins.taken)
		xspd_pins_remove(&plane->pins);
	xspd_grace_free(plane->grace);
	xspd_set_free(plane->set);
	for (int i = 0; i < XSPD_LASTING; i++)
		if (!plane->pins.taken && plane->lasting[i] >= 0)
			close(plane->lasting[i]);
	xspd_pins_close(&plane->pins);
	xspd_former_free(plane->former);
	xspd_gone_forget(plane);
	free(plane);
}

void xspd_plane_doubt(struct xspd_plane *plane, uint32_t set, uint32_t clear)
{
	plane->doubt = (plane->doubt | set) & ~clear;
	XSPD_STORE(plane->set->conf->doubt, plane->doubt);
}

void xspd_plane_lease(struct xspd_plane *plane, uint64_t since)
{
	uint64_t lease = (uint64_t)plane->opts.lease_ms * 1000000ull;

	XSPD_STORE(plane->set->conf->lease_until, since + lease);
}

void xspd_plane_env(struct xspd_plane *plane, uint32_t bits)
{
	plane->env = bits;
	XSPD_STORE(plane->set->conf->env, bits);
}

void xspd_plane_route_mtu(struct xspd_plane *plane, uint32_t mtu)
{
	plane->route_mtu = mtu;
	XSPD_STORE(plane->set->conf->route_mtu, mtu);
}

void xspd_plane_beat(struct xspd_plane *plane)
{
	xspd_plane_lease(plane, xspd_now(CLOCK_MONOTONIC));
}

unsigned int xspd_plane_left_alone(const struct xspd_plane *plane)
{
	return plane->left_alone;
}

struct xspd_conf *xspd_plane_conf(struct xspd_plane *plane)
{
	return plane->set->conf;
}

int xspd_plane_prog_fd(const struct xspd_plane *plane, const char *name)
{
	const struct bpf_program *prog =
		bpf_object__find_program_by_name(plane->set->skel->obj, name);

	return prog ? bpf_program__fd(prog) : -1;
}

int xspd_plane_map_fd(const struct xspd_plane *plane, const char *name)
{
	return xspd_set_map_fd(plane->set, name);
}
