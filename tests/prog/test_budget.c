// SPDX-License-Identifier: GPL-2.0-only
/* What the verifier makes of each program: a budget that a change must not exceed unnoticed. */
#include <bpf/bpf.h>
#include <criterion/criterion.h>

#include "plane/plane.h"
#include "util.h"

static const struct {
	const char *name;
	uint32_t insns;
} budget[] = {
	{"xspd_tc_in", 10},	{"xspd_tc_out", 10},	{"xspd_xdp", 10},
	{"xspd_do_in", 100000}, {"xspd_do_out", 60000}, {"xspd_do_xdp", 200000},
	{"xspd_query", 30000},
};

Test(budget, verified_instructions)
{
	struct xspd_plane_opts opts = {};
	struct xspd_plane *plane;

	cr_assert_eq(xspd_plane_new(&plane, &opts), 0);
	for (size_t i = 0; i < XSPD_ARRAY_SIZE(budget); i++) {
		struct bpf_prog_info info = {};
		__u32 len = sizeof(info);
		int fd = xspd_plane_prog_fd(plane, budget[i].name);

		cr_assert_geq(fd, 0, "%s is not loaded", budget[i].name);
		cr_assert_eq(bpf_obj_get_info_by_fd(fd, &info, &len), 0);
		cr_log_info("%s: %u of %u instructions verified", budget[i].name,
			    info.verified_insns, budget[i].insns);
		cr_expect_gt(info.verified_insns, 0);
		cr_expect_leq(info.verified_insns, budget[i].insns, "%s: %u", budget[i].name,
			      info.verified_insns);
	}
	xspd_plane_free(plane);
}
