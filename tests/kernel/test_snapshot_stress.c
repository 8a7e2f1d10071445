// SPDX-License-Identifier: GPL-2.0-only
/* Snapshots while things happen: a signal, a file in the way, changes at full speed. */
#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/netns.h"
#include "lib/snap.h"
#include "snapshot/collect.h"
#include "snapshot/save.h"

#define MANY 5000

TestSuite(snapshot_stress, .fini = snap_fini);

Test(snapshot_stress, stopped_and_repeated)
{
	struct xspd_load_result result;
	struct snap_list a, b;

	snap_enter();
	snap_fill(MANY);
	a = snap_list();
	snap_save();
	snap_enter();
	snap_told.stop_at = 2000;
	cr_assert_eq(snap_load(false, &result), -EINTR);
	cr_expect(result.policies > 1000 && result.policies < MANY, "%u", result.policies);
	cr_expect_eq(result.policies + result.left, MANY);
	b = snap_list();
	cr_expect_eq(b.count, result.policies, "what is told is what is there");
	free(b.at);
	snap_told.stop_at = 0;
	cr_assert_eq(snap_load(false, &result), 0);
	cr_expect_gt(result.policies_unchanged, 1000);
	b = snap_list();
	snap_expect_same(&a, &b);
	free(a.at);
	free(b.at);
}

Test(snapshot_stress, a_file_is_whole_or_as_it_was)
{
	struct xspd_vault none = {}, policies = {};
	struct xspd_snap_header header;
	struct stat before, after;
	char missing[64];

	umask(0);
	snap_enter();
	snap_fill(100);
	snap_save();
	cr_assert_eq(stat(snap_path, &before), 0);
	cr_expect_eq(before.st_mode, S_IFREG | 0600);
	cr_assert_eq(chmod(snap_path, 0644), 0);
	cr_assert_eq(xspd_collect_policies(&policies), 0);
	snap_stop = 1;
	cr_expect_eq(xspd_snap_save(snap_path, 0, &none, &policies, &snap_stop, &header), -EINTR);
	snap_stop = 0;
	cr_assert_eq(stat(snap_path, &after), 0);
	cr_expect(before.st_ino == after.st_ino && before.st_size == after.st_size);
	cr_assert_eq(xspd_snap_save(snap_path, 0, &none, &policies, &snap_stop, &header), 0);
	cr_assert_eq(stat(snap_path, &after), 0);
	cr_expect_eq(after.st_mode, S_IFREG | 0600, "not the mode of what was there");
	cr_expect_neq(before.st_ino, after.st_ino);
	snprintf(missing, sizeof(missing), "%s/x", snap_path);
	cr_expect_eq(xspd_snap_save(missing, 0, &none, &policies, &snap_stop, &header), -ENOTDIR);
	cr_expect_eq(xspd_snap_save("/dev/null", 0, &none, &policies, &snap_stop, &header),
		     -EEXIST);
	cr_expect_neq(netns_run("ls %s.* >/dev/null 2>&1", snap_path), 0,
		      "something was left behind");
	xspd_vault_empty(&policies);
}

/*
 * Policies that are updated jump to the head of the kernel's list, behind the
 * back of a dump: a plain one misses them.  The priority counts the changes, so that it
 * tells the order by age.
 */
static void churn(uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		struct xspd_pol pol = snap_policy(1 + i % MANY);

		pol.priority = i;
		snap_put(&pol, XFRM_MSG_UPDPOLICY);
		if (i % 32 == 0)
			snap_flush();
	}
	snap_flush();
}

static void expect_by_age(const struct xspd_vault *policies)
{
	uint32_t last = 0, wrong = 0;

	cr_expect_eq(policies->count, MANY, "%zu", policies->count);
	for (size_t i = 0; i < policies->count; i++) {
		const struct xfrm_userpolicy_info *info = NLMSG_DATA(xspd_vault_get(policies, i));

		wrong += i && info->priority <= last;
		last = info->priority;
	}
	cr_expect_eq(wrong, 0, "out of order at %u places", wrong);
}

Test(snapshot_stress, nothing_is_missed_under_fire)
{
	uint32_t busy = 0, plain_missed = 0;
	pid_t child;

	snap_enter();
	churn(0, MANY);
	child = fork();
	if (!child)
		churn(MANY, ~0u);
	usleep(50000);
	for (int round = 0; round < 20; round++) {
		struct xspd_vault policies = {};
		struct snap_list list = snap_list();
		int err = xspd_collect_policies(&policies);

		plain_missed += list.count < MANY;
		free(list.at);
		cr_expect(!err || err == -EBUSY, "%d", err);
		if (err)
			busy++;
		else
			expect_by_age(&policies);
		xspd_vault_empty(&policies);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	cr_expect_lt(busy, 20, "never calm enough");
	cr_expect_gt(plain_missed, 0, "the test did not test");
}
