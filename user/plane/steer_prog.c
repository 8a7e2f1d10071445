// SPDX-License-Identifier: GPL-2.0-only
/* The steering program and the one that sets the if_id: objects of their own, see there. */
#include <errno.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "plane/plane.h"
#include "plane/steer.h"
#include "util.h"
#include "xspd.skel.h"
#include "xspd_if_id.skel.h"
#include "xspd_steer.skel.h"

#define KFUNC  "bpf_skb_set_xfrm_info"
#define MODULE "xfrm_interface"

/* Every map that the set has is the set's. */
static int maps_share(const struct xspd_set *set, struct bpf_object *obj)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, obj)
	{
		const struct bpf_map *own =
			bpf_object__find_map_by_name(set->skel->obj, bpf_map__name(map));

		if (own && bpf_map__reuse_fd(map, bpf_map__fd(own)) < 0)
			return -errno;
	}
	return 0;
}

static bool btf_has(const struct btf *btf)
{
	return btf && btf__find_by_name_kind(btf, KFUNC, BTF_KIND_FUNC) > 0;
}

bool xspd_steer_kernel(void)
{
	static enum { UNKNOWN, NO, YES } built_in; /* which takes a while to find out */
	struct btf *vmlinux, *module = NULL;
	bool found;

	if (built_in == YES)
		return true;
	if (built_in == NO && access("/sys/kernel/btf/" MODULE, F_OK) < 0)
		return false;
	vmlinux = btf__load_vmlinux_btf();
	found = btf_has(vmlinux);
	built_in = found ? YES : NO;
	if (vmlinux && !found) {
		module = btf__load_module_btf(MODULE, vmlinux);
		found = btf_has(module);
	}
	btf__free(module);
	btf__free(vmlinux);
	return found;
}

int xspd_steer_load(struct xspd_set *set)
{
	struct xspd_steer_bpf *steer;
	int err;

	if (!xspd_steer_kernel())
		return -EOPNOTSUPP;
	steer = xspd_steer_bpf__open();
	if (!steer)
		return -errno;
	steer->rodata->xspd_cache_size = set->sizes.cache;
	steer->rodata->xspd_samples = set->sizes.samples;
	steer->rodata->xspd_buckets = set->sizes.buckets;
	steer->rodata->xspd_dissector = xspd_kernel_since(6, 7);
	steer->rodata->xspd_steers = true;
	err = maps_share(set, steer->obj);
	err = err ?: xspd_steer_bpf__load(steer);
	if (err) {
		xspd_steer_bpf__destroy(steer);
		return err;
	}
	set->steer_skel = steer;
	return 0;
}

void xspd_steer_unload(struct xspd_set *set)
{
	xspd_steer_bpf__destroy(set->steer_skel);
	set->steer_skel = NULL;
}

int xspd_steer_prog(const struct xspd_set *set)
{
	return set->steer_skel ? bpf_program__fd(set->steer_skel->progs.xspd_do_steer) : -1;
}

int xspd_if_id_store(int jump, int act)
{
	struct xspd_if_id_bpf *skel = xspd_if_id_bpf__open();
	uint32_t at = XSPD_JUMP_IF_ID_AT;
	int err, fd;

	if (!skel)
		return -errno;
	err = bpf_map__reuse_fd(skel->maps.xspd_act, act) < 0 ? -errno : 0;
	err = err ?: xspd_if_id_bpf__load(skel);
	fd = bpf_program__fd(skel->progs.xspd_set_if_id);
	if (!err && bpf_map_update_elem(jump, &at, &fd, BPF_ANY) < 0)
		err = -errno;
	xspd_if_id_bpf__destroy(skel);
	return err;
}

void xspd_if_id_drop(int jump)
{
	uint32_t at = XSPD_JUMP_IF_ID_AT;

	bpf_map_delete_elem(jump, &at);
}
