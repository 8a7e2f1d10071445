// SPDX-License-Identifier: GPL-2.0-only
/* Loading a set, and the bookkeeping of its slots, blocks and partition numbers. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "plane/pins.h"
#include "plane/plane.h"
#include "plane/set.h"
#include "plane/steer.h"
#include "util.h"
#include "xspd.skel.h"

#define XSPD_IFID_ROOM 2 /* hash elements a partition: half full at most */

static int map_memory(struct bpf_map *map, void *ret)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t len = ((size_t)bpf_map__value_size(map) + 7) / 8 * 8 * bpf_map__max_entries(map);
	void *at;

	len = (len + page - 1) / page * page;
	at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
	if (at == MAP_FAILED)
		return -errno;
	*(void **)ret = at;
	return 0;
}

static void unmap_memory(struct bpf_map *map, void *at)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t len = ((size_t)bpf_map__value_size(map) + 7) / 8 * 8 * bpf_map__max_entries(map);

	if (at)
		munmap(at, (len + page - 1) / page * page);
}

static void set_sizes(struct xspd_bpf *skel, const struct xspd_sizes *sizes)
{
	bpf_map__set_max_entries(skel->maps.xspd_policy, sizes->slots);
	bpf_map__set_max_entries(skel->maps.xspd_info, sizes->slots);
	bpf_map__set_max_entries(skel->maps.xspd_count, sizes->slots);
	bpf_map__set_max_entries(skel->maps.xspd_bucket, sizes->buckets);
	bpf_map__set_max_entries(skel->maps.xspd_list, sizes->lists);
	bpf_map__set_max_entries(skel->maps.xspd_part, sizes->parts);
	bpf_map__set_max_entries(skel->maps.xspd_ifid, sizes->parts * XSPD_IFID_ROOM);
	bpf_map__set_max_entries(skel->maps.xspd_dst, sizes->slots * 2);
	bpf_map__set_max_entries(skel->maps.xspd_src, sizes->slots * 2);
	if (sizes->bench) {
		bpf_map__set_max_entries(skel->maps.xspd_flows, XSPD_ASK_MAX);
		bpf_map__set_max_entries(skel->maps.xspd_answers, XSPD_ASK_MAX);
	}
	if (sizes->cache) {
		uint32_t entries = sizes->cache * (uint32_t)libbpf_num_possible_cpus();

		bpf_map__set_max_entries(skel->maps.xspd_cache, entries);
		bpf_map__set_max_entries(skel->maps.xspd_cache6, entries);
	}
	skel->rodata->xspd_cache_size = sizes->cache;
	skel->rodata->xspd_samples = sizes->samples;
	skel->rodata->xspd_buckets = sizes->buckets;
	skel->rodata->xspd_dissector = xspd_kernel_since(6, 7);
	skel->rodata->xspd_steers = sizes->steer;
}

/* The programs for this kernel: bpf_cast_to_kern_ctx() is of 6.2. */
static void choose(struct xspd_set *set)
{
	struct xspd_bpf *skel = set->skel;
	bool old = !xspd_kernel_since(6, 2);

	set->prog_in = old ? skel->progs.xspd_old_in : skel->progs.xspd_do_in;
	set->prog_xdp = old ? skel->progs.xspd_old_xdp : skel->progs.xspd_do_xdp;
	bpf_program__set_autoload(skel->progs.xspd_do_in, !old);
	bpf_program__set_autoload(skel->progs.xspd_old_in, old);
	bpf_program__set_autoload(skel->progs.xspd_do_xdp, !old);
	bpf_program__set_autoload(skel->progs.xspd_old_xdp, old);
}

static int set_load(struct xspd_set *set, const int *lasting, bool entries)
{
	struct xspd_bpf *skel = set->skel;

	set_sizes(skel, &set->sizes);
	if (!entries || set->sizes.ask) {
		bpf_program__set_autoload(skel->progs.xspd_tc_in, false);
		bpf_program__set_autoload(skel->progs.xspd_tc_out, false);
		bpf_program__set_autoload(skel->progs.xspd_xdp, false);
	}
	choose(set);
	if (set->sizes.ask) {
		bpf_program__set_autoload(skel->progs.xspd_do_out, false);
		bpf_program__set_autoload(set->prog_in, false);
		bpf_program__set_autoload(set->prog_xdp, false);
	}
	if (!set->sizes.bench) {
		bpf_program__set_autoload(skel->progs.xspd_bench, false);
		bpf_program__set_autoload(skel->progs.xspd_null, false);
		bpf_program__set_autoload(skel->progs.xspd_frame, false);
		bpf_program__set_autoload(skel->progs.xspd_sink, false);
	}
	for (int i = 0; i < XSPD_LASTING; i++) {
		struct bpf_map *map = bpf_object__find_map_by_name(skel->obj, xspd_lasting_maps[i]);

		if (lasting[i] >= 0 && bpf_map__reuse_fd(map, lasting[i]))
			return -errno;
	}
	return xspd_bpf__load(skel);
}

static int set_map(struct xspd_set *set)
{
	struct xspd_bpf *skel = set->skel;
	int err;

	err = map_memory(skel->maps.xspd_conf, &set->conf);
	err = err ?: map_memory(skel->maps.xspd_policy, &set->policy);
	err = err ?: map_memory(skel->maps.xspd_info, &set->info);
	err = err ?: map_memory(skel->maps.xspd_bucket, &set->bucket);
	err = err ?: map_memory(skel->maps.xspd_list, &set->list);
	return err ?: map_memory(skel->maps.xspd_part, &set->part);
}

int xspd_set_new(struct xspd_set **ret, const struct xspd_sizes *sizes, const int *lasting,
		 bool entries)
{
	struct xspd_set *set = calloc(1, sizeof(*set));
	int cpus = libbpf_num_possible_cpus();
	int err = -ENOMEM;

	if (!set)
		return -ENOMEM;
	set->sizes = *sizes;
	set->steer = sizes->steer;
	set->cpus = cpus > 0 ? (uint32_t)cpus : 1;
	set->scratch = calloc(set->cpus, sizeof(*set->scratch));
	set->skel = xspd_bpf__open();
	if (!set->skel)
		err = -errno;
	if (!set->skel || !set->scratch)
		goto out;
	err = set_load(set, lasting, entries);
	err = err ?: set_map(set);
	if (err)
		goto out;
	/* slot, block 0 mean none */
	set->fresh_slot = 1;
	set->fresh_list = 1;
	set->fresh_part = XSPD_PARTS_FIXED;
	set->conf->abi = XSPD_ABI_VERSION;
	set->conf->generation = 2; /* no cache entry is of generation 0 */
	set->conf->cpus = set->cpus;
	set->conf->slots = sizes->slots;
	set->conf->steer = sizes->steer;
	set->conf->buckets = sizes->buckets;
	*ret = xspd_take(set);
out:
	xspd_set_free(set);
	return err;
}

int xspd_set_map_fd(const struct xspd_set *set, const char *name)
{
	const struct bpf_map *map = bpf_object__find_map_by_name(set->skel->obj, name);

	return map ? bpf_map__fd(map) : -1;
}

static void partition_free(struct xspd_partition *part)
{
	if (!part)
		return;
	xspd_prefixes_free(part->dst);
	xspd_prefixes_free(part->src);
	free(part->tuple);
	free(part->plan);
	free(part);
}

void xspd_set_free(struct xspd_set *set)
{
	struct xspd_partition *part, *tmp;

	if (!set)
		return;
	if (set->skel) {
		unmap_memory(set->skel->maps.xspd_conf, set->conf);
		unmap_memory(set->skel->maps.xspd_policy, set->policy);
		unmap_memory(set->skel->maps.xspd_info, set->info);
		unmap_memory(set->skel->maps.xspd_bucket, set->bucket);
		unmap_memory(set->skel->maps.xspd_list, set->list);
		unmap_memory(set->skel->maps.xspd_part, set->part);
		xspd_steer_unload(set);
		xspd_bpf__destroy(set->skel);
	}
	xspd_steer_free(set);
	for (size_t i = 0; i < XSPD_PARTS_FIXED; i++)
		partition_free(set->fixed[i]);
	HASH_ITER (hh, set->by_ifid, part, tmp) {
		HASH_DEL(set->by_ifid, part);
		partition_free(part);
	}
	free(set->free_slots.nr);
	free(set->free_parts.nr);
	for (size_t i = 0; i < XSPD_BLOCK_CLASSES; i++)
		free(set->free_blocks[i].nr);
	free(set->retired);
	free(set->scratch);
	free(set);
}

static int stack_push(struct xspd_stack *stack, uint32_t nr)
{
	if (stack->count == stack->room) {
		uint32_t room = stack->room ? stack->room * 2 : 64;
		uint32_t *grown = realloc(stack->nr, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		stack->nr = grown;
		stack->room = room;
	}
	stack->nr[stack->count++] = nr;
	return 0;
}

uint32_t xspd_set_slot(struct xspd_set *set)
{
	if (set->free_slots.count)
		return set->free_slots.nr[--set->free_slots.count];
	if (set->fresh_slot < set->sizes.slots)
		return set->fresh_slot++;
	return 0;
}

uint32_t xspd_set_block(struct xspd_set *set, unsigned int block_class)
{
	struct xspd_stack *stack = &set->free_blocks[block_class];
	uint32_t block = set->fresh_list;

	if (stack->count)
		return stack->nr[--stack->count];
	if (set->sizes.lists - block < 1u << block_class)
		return 0;
	set->fresh_list += 1u << block_class;
	return block;
}

uint32_t xspd_set_part(struct xspd_set *set)
{
	if (set->free_parts.count)
		return set->free_parts.nr[--set->free_parts.count];
	if (set->fresh_part < set->sizes.parts)
		return set->fresh_part++;
	return 0;
}

/* Packets counted in a replaced slot after its heir took its counters over. */
static void heir_settle(struct xspd_set *set, const struct xspd_retired *what)
{
	struct xspd_info *heir = &set->info[what->heir];
	struct xspd_count now;

	if (!what->heir || xspd_set_count(set, what->nr, &now))
		return;
	XSPD_STORE(heir->base_packets, heir->base_packets + now.packets - what->packets);
	XSPD_STORE(heir->base_bytes, heir->base_bytes + now.bytes - what->bytes);
	XSPD_STORE(heir->base_acted, heir->base_acted + now.acted - what->acted);
}

static int give_back(struct xspd_set *set, const struct xspd_retired *what)
{
	switch (what->kind) {
	case XSPD_RETIRED_SLOT:
		if (set->live)
			heir_settle(set, what);
		memset(&set->info[what->nr], 0, sizeof(set->info[what->nr]));
		return stack_push(&set->free_slots, what->nr);
	case XSPD_RETIRED_BLOCK:
		return stack_push(&set->free_blocks[what->block_class], what->nr);
	default:
		return stack_push(&set->free_parts, what->nr);
	}
}

int xspd_set_retire(struct xspd_set *set, struct xspd_grace *grace, struct xspd_retired what)
{
	if (!set->live)
		return give_back(set, &what);
	if (set->retired_count == set->retired_room) {
		uint32_t room = set->retired_room ? set->retired_room * 2 : 256;
		struct xspd_retired *grown = malloc(room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		for (uint32_t i = 0; i < set->retired_count; i++)
			grown[i] = set->retired[(set->retired_head + i) % set->retired_room];
		free(set->retired);
		set->retired = grown;
		set->retired_room = room;
		set->retired_head = 0;
	}
	what.ticket = grace ? xspd_grace_ticket(grace) : UINT64_MAX;
	set->retired[(set->retired_head + set->retired_count++) % set->retired_room] = what;
	return 0;
}

void xspd_set_reclaim(struct xspd_set *set, struct xspd_grace *grace, bool wait)
{
	if (!grace || !set->retired_count)
		return;
	if (wait)
		xspd_grace_wait(grace, xspd_grace_ticket(grace));
	while (set->retired_count) {
		const struct xspd_retired *what = &set->retired[set->retired_head];

		if (!xspd_grace_over(grace, what->ticket))
			return;
		give_back(set, what);
		set->retired_head = (set->retired_head + 1) % set->retired_room;
		set->retired_count--;
	}
}

int xspd_set_count(struct xspd_set *set, uint32_t slot, struct xspd_count *ret)
{
	struct xspd_count sum = {.packets = set->info[slot].base_packets,
				 .bytes = set->info[slot].base_bytes,
				 .acted = set->info[slot].base_acted};

	if (bpf_map_lookup_elem(bpf_map__fd(set->skel->maps.xspd_count), &slot, set->scratch) < 0)
		return -errno;
	for (uint32_t cpu = 0; cpu < set->cpus; cpu++) {
		sum.packets += set->scratch[cpu].packets;
		sum.bytes += set->scratch[cpu].bytes;
		sum.acted += set->scratch[cpu].acted;
		if (set->scratch[cpu].last > sum.last)
			sum.last = set->scratch[cpu].last;
	}
	*ret = sum;
	return 0;
}

int xspd_set_count_start(struct xspd_set *set, uint32_t slot, const struct xspd_count *from)
{
	memset(set->scratch, 0, set->cpus * sizeof(*set->scratch));
	if (from)
		set->scratch[0] = *from;
	if (bpf_map_update_elem(bpf_map__fd(set->skel->maps.xspd_count), &slot, set->scratch,
				BPF_ANY) < 0)
		return -errno;
	return 0;
}
