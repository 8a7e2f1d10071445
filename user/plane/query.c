// SPDX-License-Identifier: GPL-2.0-only
/* Asking the BPF programs, and reading what they counted. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "plane/ask.h"
#include "plane/plane_priv.h"
#include "util.h"
#include "xspd.skel.h"

/* A trie node: struct lpm_trie_node, key and value, as kmalloc rounds it; inner nodes come on top.
 */
#define XSPD_TRIE_NODE 128

int xspd_plane_query(struct xspd_plane *plane, const struct xspd_flow *flow,
		     struct xspd_answer *ret)
{
	return xspd_ask(bpf_program__fd(plane->set->skel->progs.xspd_query), flow, 1, ret);
}

static int run(const struct bpf_program *prog, uint32_t repeat, double *ret_ns)
{
	char frame[64] = {};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = sizeof(frame),
		    .repeat = (int)repeat);

	if (bpf_prog_test_run_opts(bpf_program__fd(prog), &opts) < 0)
		return -errno;
	*ret_ns = opts.duration;
	return 0;
}

/* NULL with errno. */
static void *map_batch(const struct bpf_map *map, size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	return at == MAP_FAILED ? NULL : at;
}

int xspd_plane_ask(struct xspd_plane *plane, const struct xspd_flow *flows, uint32_t count,
		   struct xspd_answer *ret, double *ret_ns)
{
	const size_t flows_size = sizeof(struct xspd_flow) * XSPD_ASK_MAX;
	const size_t answers_size = sizeof(struct xspd_answer) * XSPD_ASK_MAX;
	struct xspd_bpf *skel = plane->set->skel;
	struct xspd_answer *answers;
	struct xspd_flow *to;
	double ns = 0;
	int err;

	if (!plane->opts.bench || !count || count > XSPD_ASK_MAX)
		return -EINVAL;
	to = map_batch(skel->maps.xspd_flows, flows_size);
	if (!to)
		return -errno;
	memcpy(to, flows, count * sizeof(*flows));
	munmap(to, flows_size);
	skel->bss->xspd_ask_next = 0;
	skel->data->xspd_ask_count = count;
	err = run(skel->progs.xspd_bench, count, &ns);
	if (err)
		return err;
	answers = map_batch(skel->maps.xspd_answers, answers_size);
	if (!answers)
		return -errno;
	memcpy(ret, answers, count * sizeof(*ret));
	munmap(answers, answers_size);
	if (ret_ns)
		*ret_ns = ns;
	return 0;
}

int xspd_plane_bench(struct xspd_plane *plane, uint32_t count, uint32_t rounds, double *ret_ns,
		     double *ret_null_ns)
{
	struct xspd_bpf *skel = plane->set->skel;
	int err;

	if (!plane->opts.bench || !count || count > XSPD_ASK_MAX)
		return -EINVAL;
	skel->bss->xspd_ask_next = 0;
	skel->data->xspd_ask_count = count;
	err = run(skel->progs.xspd_bench, count * rounds, ret_ns);
	return err ?: run(skel->progs.xspd_null, count * rounds, ret_null_ns);
}

uint64_t xspd_set_match_bytes(const struct xspd_set *set)
{
	const struct xspd_sizes *sizes = &set->sizes;
	uint32_t fixed = 0;

	for (size_t i = 0; i < XSPD_PARTS_FIXED; i++)
		fixed += set->fixed[i] != NULL;
	return (uint64_t)sizes->slots * sizeof(struct xspd_policy) +
	       (uint64_t)sizes->buckets * sizeof(struct xspd_bucket) +
	       (uint64_t)sizes->lists * sizeof(struct xspd_tuple) +
	       (uint64_t)sizes->parts * sizeof(struct xspd_part) +
	       /* element: struct htab_elem (48), key, value; bucket heads: 16 each */
	       (uint64_t)(set->parts - fixed) * 64 + (uint64_t)sizes->parts * 2 * 16 +
	       (uint64_t)set->tries * 2 * XSPD_TRIE_NODE;
}

static uint32_t longest_chain(const struct xspd_set *set)
{
	uint32_t longest = 0;

	for (uint32_t i = 0; i < set->sizes.buckets; i++) {
		for (int e = 0; e < XSPD_BUCKET_ENTRIES; e++) {
			uint32_t length = 0, slot = set->bucket[i].entry[e].slot;

			for (; slot; slot = set->policy[slot].next)
				length++;
			if (length > longest)
				longest = length;
		}
	}
	return longest;
}

void xspd_plane_usage(const struct xspd_plane *plane, struct xspd_plane_usage *ret)
{
	const struct xspd_set *set = plane->set;

	*ret = (struct xspd_plane_usage){
		.match_bytes = xspd_set_match_bytes(set),
		.other_bytes = (uint64_t)set->sizes.slots *
			       (sizeof(struct xspd_info) + sizeof(struct xspd_count) * set->cpus),
		.policies = set->policies,
		.slots = set->sizes.slots,
		.buckets = set->sizes.buckets,
		.tuples = set->tuples,
		.parts = set->parts,
		.longest_chain = longest_chain(set),
	};
}

int xspd_plane_count(struct xspd_plane *plane, uint32_t slot, struct xspd_count *ret)
{
	if (!slot || slot >= plane->set->sizes.slots)
		return -ENOENT;
	return xspd_set_count(plane->set, slot, ret);
}
