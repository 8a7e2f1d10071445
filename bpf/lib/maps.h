/* SPDX-License-Identifier: GPL-2.0-only */
/* The maps of one set.  Sizes of 1 are set by user space before loading. */
#ifndef XSPD_BPF_MAPS_H
#define XSPD_BPF_MAPS_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "xspd/abi.h"

#define XSPD_JUMP_IN	0
#define XSPD_JUMP_OUT	1
#define XSPD_JUMP_STEER XSPD_JUMP_STEER_AT
#define XSPD_JUMP_IF_ID XSPD_JUMP_IF_ID_AT
#define XSPD_JUMP_XDP	0

/* Arrays, and what each kind of them adds. */
#define XSPD_MAP_OF(name_, kind_, flags_, value_, entries_)                                        \
	struct {                                                                                   \
		__uint(type, kind_);                                                               \
		__uint(map_flags, flags_);                                                         \
		__uint(max_entries, entries_);                                                     \
		__type(key, __u32);                                                                \
		__type(value, value_);                                                             \
	} name_ SEC(".maps")
#define XSPD_ARRAY(name_, value_, entries_)                                                        \
	XSPD_MAP_OF(name_, BPF_MAP_TYPE_ARRAY, 0, value_, entries_)
/* ... that the daemon writes, and tools read, in their own memory */
#define XSPD_MMAPABLE(name_, value_, entries_)                                                     \
	XSPD_MAP_OF(name_, BPF_MAP_TYPE_ARRAY, BPF_F_MMAPABLE, value_, entries_)
#define XSPD_PERCPU(name_, value_, entries_)                                                       \
	XSPD_MAP_OF(name_, BPF_MAP_TYPE_PERCPU_ARRAY, 0, value_, entries_)
/* Of inexact prefixes. */
#define XSPD_TRIE(name_)                                                                           \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_LPM_TRIE);                                               \
		__uint(map_flags, BPF_F_NO_PREALLOC);                                              \
		__uint(max_entries, 1);                                                            \
		__type(key, struct xspd_trie_key);                                                 \
		__type(value, struct xspd_trie_val);                                               \
	} name_ SEC(".maps")

/* Outlive the sets: the entry programs jump through them. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 4);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} xspd_jump_tc SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} xspd_jump_xdp SEC(".maps");

XSPD_MMAPABLE(xspd_conf, struct xspd_conf, 1);
XSPD_MMAPABLE(xspd_policy, struct xspd_policy, 1);
XSPD_MMAPABLE(xspd_info, struct xspd_info, 1);
XSPD_MMAPABLE(xspd_bucket, struct xspd_bucket, 1);
XSPD_MMAPABLE(xspd_list, struct xspd_tuple, 1);
XSPD_MMAPABLE(xspd_part, struct xspd_part, 1);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct xspd_ifid_key);
	__type(value, __u32);
} xspd_ifid SEC(".maps");

XSPD_TRIE(xspd_dst);
XSPD_TRIE(xspd_src);
XSPD_PERCPU(xspd_count, struct xspd_count, 1);
XSPD_PERCPU(xspd_stat, struct xspd_stat, (XSPD_ASKED_MAX_ * XSPD_HOOK_MAX_ * XSPD_R_MAX_));

/* These outlive the sets too: what operators have set, and what came of it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct xspd_mode_key);
	__type(value, struct xspd_mode);
} xspd_mode SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct xspd_exempt);
	__type(value, __u32);
} xspd_exempt SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 20);
	__type(key, struct xspd_mark_key);
	__type(value, struct xspd_mark);
} xspd_mark SEC(".maps");

XSPD_PERCPU(xspd_act, struct xspd_stat, (XSPD_HOOK_MAX_ * XSPD_A_MAX_));
XSPD_ARRAY(xspd_cache, struct xspd_cache4, 1);
XSPD_ARRAY(xspd_cache6, struct xspd_cache6, 1);
XSPD_PERCPU(xspd_cache_cpu, struct xspd_cache_cpu, 1);

/* Samples on their way to the daemon, and where it puts them; what has happened to the SPD. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, XSPD_SAMPLE_RING);
} xspd_ring SEC(".maps");

XSPD_MMAPABLE(xspd_sample, struct xspd_sample, XSPD_SAMPLES);
XSPD_MMAPABLE(xspd_change, struct xspd_changed, XSPD_CHANGES);

/* How many samples this CPU has taken in this second. */
struct xspd_sampler {
	__u64 since;
	__u32 count;
	__u32 missed;
};

XSPD_PERCPU(xspd_sampler, struct xspd_sampler, 1);

/* Batched asking (bench and tests): created with one element unless wanted. */
XSPD_MMAPABLE(xspd_flows, struct xspd_flow, 1);
XSPD_MMAPABLE(xspd_answers, struct xspd_answer, 1);

/* Set before loading. */
const volatile __u32 xspd_cache_size; /* entries a CPU, a power of two; 0: no cache */
const volatile __u32 xspd_samples;    /* a second and CPU, at most; 0: none */
const volatile __u32 xspd_buckets = 1;
const volatile bool xspd_steers; /* XSPD_STEER is kept */
const volatile bool
	xspd_dissector; /* Linux 6.7 or later: XFRM decodes through the flow dissector */

/* The next flow of a batch, and how many there are. */
__u32 xspd_ask_next;
__u32 xspd_ask_count = 1;

#endif
