// SPDX-License-Identifier: GPL-2.0-only
/* The program that watches the kernel's own lookups, for `xspd verify`. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "cli/verify.h"
#include "cli/view.h"
#include "util.h"
#include "verify.skel.h"

#define LOOKUP "xfrm_policy_lookup_bytype"

struct verify_trace {
	struct verify_bpf *skel;
	struct bpf_link *link;
};

/* The maps of the set in service, and none that the program does not use. */
static int maps_use(struct verify_bpf *skel, const struct cli_view *view)
{
	static const char *const used[] = {"xspd_conf",	  "xspd_policy", "xspd_info",
					   "xspd_bucket", "xspd_list",	 "xspd_part",
					   "xspd_ifid",	  "xspd_dst",	 "xspd_src"};
	struct bpf_map *map;
	char path[320];

	bpf_object__for_each_map(map, skel->obj) if (!bpf_map__is_internal(map))
		bpf_map__set_autocreate(map, false);
	for (size_t i = 0; i < XSPD_ARRAY_SIZE(used); i++) {
		xspd_autoclose int fd = -1;

		snprintf(path, sizeof(path), "%s/%s/%s", view->dir, view->set, used[i]);
		fd = bpf_obj_get(path);
		map = bpf_object__find_map_by_name(skel->obj, used[i]);
		if (fd < 0 || !map || bpf_map__reuse_fd(map, fd) ||
		    bpf_map__set_autocreate(map, true))
			return -errno;
	}
	return 0;
}

static int trace_open(struct verify_trace *trace, const char *instance)
{
	struct cli_view view;
	int err;

	if (cli_view_open(&view, instance))
		return -ENOENT;
	trace->skel = verify_bpf__open();
	err = trace->skel ? maps_use(trace->skel, &view) : -errno;
	if (!err) {
		trace->skel->rodata->xspd_buckets = view.conf->buckets;
		trace->skel->rodata->xspd_netns = (uint32_t)view.conf->netns_ino;
		err = verify_bpf__load(trace->skel);
	}
	cli_view_close(&view);
	if (err)
		return err;
	trace->link = bpf_program__attach_trace(trace->skel->progs.xspd_looked_up);
	return trace->link ? 0 : -errno;
}

static void trace_free(struct verify_trace *trace)
{
	bpf_link__destroy(trace->link);
	verify_bpf__destroy(trace->skel);
	free(trace);
}

struct verify_trace *verify_trace_start(const char *instance, const char **ret_how)
{
	struct verify_trace *trace = calloc(1, sizeof(*trace));
	int err;

	*ret_how = "no such function in the kernel's BTF";
	if (!trace || libbpf_find_vmlinux_btf_id(LOOKUP, BPF_TRACE_FEXIT) <= 0) {
		free(trace);
		return NULL;
	}
	err = trace_open(trace, instance);
	*ret_how = err ? "not permitted" : "each lookup compared";
	if (!err)
		return trace;
	trace_free(trace);
	return NULL;
}

void verify_trace_stop(struct verify_trace *trace, struct verify_looked *ret)
{
	const struct verify_bpf__bss *bss = trace->skel->bss;

	bpf_link__destroy(trace->link);
	trace->link = NULL;
	*ret = (struct verify_looked){
		.same = bss->xspd_same, .open = bss->xspd_open, .differ = bss->xspd_differ};
	for (uint64_t i = 0; i < ret->differ && i < VERIFY_DIFFER; i++) {
		ret->flow[i] = bss->xspd_differ_flow[i];
		ret->kernel[i] = bss->xspd_differ_kernel[i];
		ret->ours[i] = bss->xspd_differ_ours[i];
	}
	trace_free(trace);
}
