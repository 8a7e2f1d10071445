/* SPDX-License-Identifier: GPL-2.0-only */
/* The maps of one set.  Sizes of 1 are set by user space before loading. */
#ifndef XSPD_BPF_MAPS_H
#define XSPD_BPF_MAPS_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "xspd/abi.h"

#define XSPD_JUMP_IN  0
#define XSPD_JUMP_OUT 1
#define XSPD_JUMP_STEER XSPD_JUMP_STEER_AT
#define XSPD_JUMP_IF_ID XSPD_JUMP_IF_ID_AT
#define XSPD_JUMP_XDP 0

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

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xspd_conf);
} xspd_conf SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xspd_policy);
} xspd_policy SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xspd_info);
} xspd_info SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xspd_bucket);
} xspd_bucket SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xspd_tuple);
} xspd_list SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xspd_part);
} xspd_part SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct xspd_ifid_key);
	__type(value, __u32);
} xspd_ifid SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct xspd_trie_key);
	__type(value, struct xspd_trie_val);
} xspd_dst SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct xspd_trie_key);
	__type(value, struct xspd_trie_val);
} xspd_src SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xspd_count);
} xspd_count SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, XSPD_ASKED_MAX_ *XSPD_HOOK_MAX_ *XSPD_R_MAX_);
	__type(key, __u32);
	__type(value, struct xspd_stat);
} xspd_stat SEC(".maps");

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

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, XSPD_HOOK_MAX_ *XSPD_A_MAX_);
	__type(key, __u32);
	__type(value, struct xspd_stat);
} xspd_act SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xspd_cache4);
} xspd_cache SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xspd_cache6);
} xspd_cache6 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xspd_cache_cpu);
} xspd_cache_cpu SEC(".maps");

/* Samples on their way to the daemon, and where it puts them; what has happened to the SPD. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, XSPD_SAMPLE_RING);
} xspd_ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, XSPD_SAMPLES);
	__type(key, __u32);
	__type(value, struct xspd_sample);
} xspd_sample SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, XSPD_CHANGES);
	__type(key, __u32);
	__type(value, struct xspd_changed);
} xspd_change SEC(".maps");

/* How many samples this CPU has taken in this second. */
struct xspd_sampler {
	__u64 since;
	__u32 count;
	__u32 missed;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xspd_sampler);
} xspd_sampler SEC(".maps");

/* Batched asking (bench and tests): created with one element unless wanted. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xspd_flow);
} xspd_flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xspd_answer);
} xspd_answers SEC(".maps");

/* Set before loading. */
const volatile __u32 xspd_cache_size; /* entries a CPU, a power of two; 0: no cache */
const volatile __u32 xspd_samples; /* a second and CPU, at most; 0: none */
const volatile __u32 xspd_buckets = 1;
const volatile bool xspd_steers; /* XSPD_STEER is kept */
const volatile bool
	xspd_dissector; /* Linux 6.7 or later: XFRM decodes through the flow dissector */

/* The next flow of a batch, and how many there are. */
__u32 xspd_ask_next;
__u32 xspd_ask_count = 1;

#endif
