// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "plane/counts.h"
#include "util.h"

#define XSPD_CHUNK 4096 /* elements a system call */

struct xspd_former {
	struct xspd_info info;
	struct xspd_count count;
	UT_hash_handle hh;
};

static void sum_chunk(struct xspd_count *ret, const struct xspd_count *values, uint32_t count,
		      uint32_t cpus)
{
	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t cpu = 0; cpu < cpus; cpu++) {
			const struct xspd_count *one = &values[i * cpus + cpu];

			ret[i].packets += one->packets;
			ret[i].bytes += one->bytes;
			ret[i].acted += one->acted;
			if (one->last > ret[i].last)
				ret[i].last = one->last;
		}
	}
}

struct xspd_count *xspd_counts_read(int map, uint32_t slots)
{
	uint32_t cpus = (uint32_t)libbpf_num_possible_cpus(), done = 0, batch = 0;
	xspd_autofree struct xspd_count *ret = calloc(slots, sizeof(*ret));
	xspd_autofree struct xspd_count *values =
		calloc((size_t)XSPD_CHUNK * cpus, sizeof(*values));
	xspd_autofree uint32_t *keys = calloc(XSPD_CHUNK, sizeof(*keys));
	LIBBPF_OPTS(bpf_map_batch_opts, opts);

	if (!ret || !values || !keys)
		return NULL;
	while (done < slots) {
		uint32_t count = slots - done < XSPD_CHUNK ? slots - done : XSPD_CHUNK;
		int err = bpf_map_lookup_batch(map, done ? &batch : NULL, &batch, keys, values,
					       &count, &opts);

		if (err < 0 && errno != ENOENT)
			return NULL;
		sum_chunk(ret + done, values, count, cpus);
		done += count;
		if (err < 0 || !count)
			break; /* the end */
	}
	return xspd_take(ret);
}

static int get(const char *dir, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/maps/%s", dir, name);
	return bpf_obj_get(path);
}

void xspd_former_open(struct xspd_former_maps *ret, const char *dir)
{
	struct bpf_map_info info = {};
	__u32 len = sizeof(info);

	*ret = (struct xspd_former_maps){.info = get(dir, "xspd_info"),
					 .count = get(dir, "xspd_count"),
					 .conf = get(dir, "xspd_conf")};
	if (ret->info >= 0 && ret->count >= 0 && !bpf_obj_get_info_by_fd(ret->info, &info, &len) &&
	    info.value_size == sizeof(struct xspd_info)) {
		ret->slots = info.max_entries;
		return;
	}
	xspd_closep(&ret->info);
	xspd_closep(&ret->count);
	ret->info = ret->count = -1;
}

void xspd_former_doubt(const struct xspd_former_maps *maps, uint32_t set)
{
	struct bpf_map_info info = {};
	struct xspd_conf *conf;
	__u32 len = sizeof(info);

	if (maps->conf < 0 || bpf_obj_get_info_by_fd(maps->conf, &info, &len) ||
	    info.value_size != sizeof(*conf) || !(info.map_flags & BPF_F_MMAPABLE))
		return;
	conf = mmap(NULL, sizeof(*conf), PROT_READ | PROT_WRITE, MAP_SHARED, maps->conf, 0);
	if (conf == MAP_FAILED)
		return;
	if (conf->abi == XSPD_ABI_VERSION)
		__atomic_fetch_or(&conf->doubt, set, __ATOMIC_RELEASE);
	munmap(conf, sizeof(*conf));
}

static struct xspd_former *former_collect(const struct xspd_info *infos,
					  const struct xspd_count *counts, uint32_t slots)
{
	struct xspd_former *head = NULL;

	for (uint32_t slot = 1; slot < slots; slot++) {
		uint64_t packets = counts[slot].packets + infos[slot].base_packets;
		struct xspd_former *former;

		if (!infos[slot].index || !packets || infos[slot].type >= XSPD_TYPE_MAX_)
			continue;
		former = calloc(1, sizeof(*former));
		if (!former)
			break;
		former->info = infos[slot];
		former->count = counts[slot];
		former->count.packets = packets;
		former->count.bytes += infos[slot].base_bytes;
		former->count.acted += infos[slot].base_acted;
		HASH_ADD(hh, head, info.index, sizeof(former->info.index), former);
	}
	return head;
}

struct xspd_former *xspd_former_read(struct xspd_former_maps *maps)
{
	xspd_autofree struct xspd_count *counts = NULL;
	size_t size = (size_t)maps->slots * sizeof(struct xspd_info);
	struct xspd_former *head = NULL;
	struct xspd_info *infos;

	xspd_closep(&maps->conf);
	maps->conf = -1;
	if (maps->info < 0)
		return NULL;
	infos = mmap(NULL, size, PROT_READ, MAP_SHARED, maps->info, 0);
	counts = xspd_counts_read(maps->count, maps->slots);
	if (infos != MAP_FAILED && counts)
		head = former_collect(infos, counts, maps->slots);
	if (infos != MAP_FAILED)
		munmap(infos, size);
	xspd_closep(&maps->info);
	xspd_closep(&maps->count);
	maps->info = maps->count = -1;
	return head;
}

void xspd_former_free(struct xspd_former *former)
{
	struct xspd_former *one, *tmp;

	HASH_ITER (hh, former, one, tmp) {
		HASH_DEL(former, one);
		free(one);
	}
}

const struct xspd_count *xspd_former_find(const struct xspd_former *former,
					  const struct xspd_pol *pol)
{
	const struct xspd_former *found;
	const struct xspd_info *info;

	if (!former)
		return NULL;
	HASH_FIND(hh, former, &pol->index, sizeof(pol->index), found);
	if (!found)
		return NULL;
	info = &found->info;
	/* indexes can be given anew: it must be the same policy */
	if (info->dir != pol->dir || info->type != pol->type || info->if_id != pol->if_id ||
	    info->mark != pol->mark || info->mark_mask != pol->mark_mask ||
	    info->family != pol->sel.family || info->dlen != pol->sel.prefixlen_d ||
	    info->slen != pol->sel.prefixlen_s || info->proto != pol->sel.proto ||
	    info->dport != pol->sel.dport || info->dport_mask != pol->sel.dport_mask ||
	    info->sport != pol->sel.sport || info->sport_mask != pol->sel.sport_mask ||
	    info->ifindex != (uint32_t)pol->sel.ifindex ||
	    memcmp(info->daddr, &pol->sel.daddr, sizeof(info->daddr)) ||
	    memcmp(info->saddr, &pol->sel.saddr, sizeof(info->saddr)))
		return NULL;
	return &found->count;
}
