// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <linux/if_link.h>
#include <string.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "bench/path.h"
#include "util.h"

/* What libbpf may be too old to know. */
#define TCX_INGRESS ((enum bpf_attach_type)46)

static int set_mode(const struct xspd_path_rig *rig, uint32_t ifindex, const uint8_t mac[6],
		    uint32_t flags)
{
	struct xspd_mode_key key = {.ifindex = ifindex, .hook = XSPD_HOOK_XDP};
	struct xspd_mode mode = {.flags = flags};
	int map = xspd_plane_map_fd(rig->plane, "xspd_mode");

	memcpy(mode.mac, mac, sizeof(mode.mac));
	return bpf_map_update_elem(map, &key, &mode, BPF_ANY) < 0 ? -errno : 0;
}

/* As `xspd attach` does it: by TCX where there is that. */
static int set_tc(struct xspd_path_rig *rig, bool on)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)rig->path.in_if,
		    .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, opts, .prog_fd = rig->tc, .handle = 1, .priority = 1);
	int err;

	if (!on && rig->link >= 0) {
		xspd_closep(&rig->link);
		return 0;
	}
	if (!on) {
		hook.attach_point |= BPF_TC_EGRESS; /* the qdisc itself */
		return bpf_tc_hook_destroy(&hook);
	}
	rig->link = bpf_link_create(rig->tc, hook.ifindex, TCX_INGRESS, NULL);
	if (rig->link >= 0 || errno != EINVAL)
		return rig->link < 0 ? -errno : 0;
	err = bpf_tc_hook_create(&hook);
	return err ? err : bpf_tc_attach(&hook, &opts);
}

static int set_xdp(const struct xspd_path_rig *rig, uint32_t flags, bool on)
{
	const struct xspd_path *path = &rig->path;
	int err;

	err = set_mode(rig, path->in_if, path->in_mac, on ? flags : 0);
	if (!err)
		err = set_mode(rig, path->out_if, path->out_mac, on ? flags : 0);
	return err ? err
		   : bpf_xdp_attach((int)path->in_if, on ? rig->xdp : -1, XDP_FLAGS_DRV_MODE, NULL);
}

int xspd_path_switch(struct xspd_path_rig *rig, enum xspd_path_way way, bool on)
{
	switch (way) {
	case XSPD_PATH_BYPASS:
		return set_xdp(rig, XSPD_MODE_BYPASS, on);
	case XSPD_PATH_ENFORCE:
		return set_xdp(rig, XSPD_MODE_ENFORCE, on);
	case XSPD_PATH_OBSERVE_XDP:
	case XSPD_PATH_XDP_DROP:
	case XSPD_PATH_XDP_REDIRECT:
		return set_xdp(rig, 0, on);
	case XSPD_PATH_OBSERVE:
	case XSPD_PATH_TC_PASS:
		return set_tc(rig, on);
	default:
		return 0;
	}
}
