// SPDX-License-Identifier: GPL-2.0-only
/* Packets that are under way while their policy is updated in place are counted, once. */
#include <criterion/criterion.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/casefile.h"
#include "lib/mirror.h"
#include "util.h"

static struct mirror *mirror;
static uint32_t index_;

/* A packet counted by the record in @slot, on the first CPU. */
static void count_late(uint32_t slot)
{
	struct xspd_count *counts = calloc((size_t)libbpf_num_possible_cpus(), sizeof(*counts));

	cr_assert_not_null(counts);
	counts[0] = (struct xspd_count){.packets = 1, .bytes = 100};
	cr_assert_eq(bpf_map_update_elem(xspd_plane_map_fd(mirror->plane, "xspd_count"), &slot,
					 counts, BPF_ANY),
		     0);
	free(counts);
}

/* An update in place, and a packet that has found the policy as it was before. */
static uint32_t update(uint8_t flags)
{
	struct xspd_pol pol = *xspd_spd_find(mirror->spd, index_);
	uint32_t slot = pol.slot;

	pol.flags = flags;
	cr_assert_eq(xspd_spd_upsert(mirror->spd, &pol), 0);
	cr_assert_neq(xspd_spd_find(mirror->spd, index_)->slot, slot);
	count_late(slot);
	return xspd_spd_find(mirror->spd, index_)->slot;
}

static void begin(void)
{
	const struct xspd_plane_opts opts = {.capacity = 64, .lease_ms = 60000};

	cr_assert_eq(mirror_new(&mirror, 0, &opts), 0, "needs root");
	index_ = mirror_add(mirror, case_pol("dir out src 10.1.0.0/16 dst 10.2.0.0/16 priority 1 "
					     "action allow"));
}

Test(counts, settled_while_nothing_else_changes)
{
	uint64_t end = xspd_mono() + 10000000000ull;
	struct xspd_count count;
	uint32_t slot;

	begin();
	update(XFRM_POLICY_ICMP); /* and one more, before the first is settled */
	slot = update(0);
	while (xspd_plane_settle(mirror->plane)) {
		cr_assert_lt(xspd_mono(), end, "never settled");
		usleep(1000);
	}
	cr_assert_eq(xspd_plane_count(mirror->plane, slot, &count), 0);
	cr_expect_eq(count.packets, 2);
	cr_expect_eq(count.bytes, 200);
	mirror_free(mirror);
}

Test(counts, settled_at_the_end)
{
	struct xspd_info info;
	uint32_t slot;
	int fd;

	begin();
	slot = update(XFRM_POLICY_ICMP);
	fd = fcntl(xspd_plane_map_fd(mirror->plane, "xspd_info"), F_DUPFD_CLOEXEC, 3);
	mirror_free(mirror);
	cr_assert_eq(bpf_map_lookup_elem(fd, &slot, &info), 0);
	cr_expect_eq(info.base_packets, 1);
	cr_expect_eq(info.base_bytes, 100);
	close(fd);
}
