// SPDX-License-Identifier: GPL-2.0-only
/*
 * The last step of steering: set the if_id that xspd_do_steer has found, which waits in cb[0].  An
 * object of its own, independent of the sets and loaded once, by who attaches: what it calls is in
 * a module (xfrm_interface, Linux 6.2), and the fd that needs is for CAP_SYS_ADMIN, which the
 * daemon has not.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "xspd/abi.h"

char LICENSE[] SEC("license") = "GPL";

struct bpf_xfrm_info {
	__u32 if_id;
	int link; /* flowi_oif of the kernel's lookup */
};

extern int bpf_skb_set_xfrm_info(struct __sk_buff *skb, const struct bpf_xfrm_info *from) __ksym;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, XSPD_HOOK_MAX_ *XSPD_A_MAX_);
	__type(key, __u32);
	__type(value, struct xspd_stat);
} xspd_act SEC(".maps");

SEC("tc")
int xspd_set_if_id(struct __sk_buff *ctx)
{
	struct bpf_xfrm_info to = {.if_id = ctx->cb[0]};
	enum xspd_act act = bpf_skb_set_xfrm_info(ctx, &to) ? XSPD_A_UNSTEERED : XSPD_A_STEERED;
	__u32 nr = XSPD_HOOK_EGRESS * XSPD_A_MAX_ + act;
	struct xspd_stat *stat = bpf_map_lookup_elem(&xspd_act, &nr);

	if (stat) {
		stat->packets++;
		stat->bytes += ctx->len;
	}
	return TC_ACT_UNSPEC;
}
