// SPDX-License-Identifier: GPL-2.0-only
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/netns.h"
#include "lib/pinned.h"

/* Its daemon must neither die nor answer wrongly, nor is it in the way of another of that name. */
Test(netns_gone, its_daemon_outlives_it)
{
	char ns[32], pin[64], binary[256];
	const char *o = getenv("O");
	struct xspd_flow flow = {.family = XSPD_INET, .dir = XSPD_OUT};
	struct xspd_answer answer = {};
	struct pinned view;
	pid_t pid;

	snprintf(binary, sizeof(binary), "%s/xspd", o ? o : "build");
	cr_assert_eq(access(binary, X_OK), 0, "%s: not there", binary);
	snprintf(ns, sizeof(ns), "gone-%d", getpid());
	snprintf(pin, sizeof(pin), "/sys/fs/bpf/xspd/%s/v1", ns);
	cr_assert_eq(netns_run("ip netns add %s && ip -n %s xfrm policy add src 0.0.0.0/0 "
			       "dst 0.0.0.0/0 dir out action block",
			       ns, ns),
		     0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		freopen("/dev/null", "w", stderr);
		execl(binary, binary, "run", "--netns", ns, NULL);
		_exit(127);
	}
	pinned_init(&view, pin);
	for (int i = 0; i < 600 && (pinned_follow(&view) || !pinned_sure(&view)); i++)
		usleep(50000);
	cr_assert(pinned_sure(&view), "no daemon in %s", ns);
	cr_assert_eq(pinned_ask(&view, &flow, &answer), 0);
	cr_assert_eq(answer.verdict, XSPD_DENY);
	cr_assert_eq(netns_run("ip netns del %s", ns), 0);
	usleep(1500000);
	cr_assert_eq(waitpid(pid, NULL, WNOHANG), 0, "it died of it");
	cr_assert_eq(pinned_ask(&view, &flow, &answer), 0);
	cr_assert(answer.verdict == XSPD_DENY || answer.verdict == XSPD_DEFER);
	kill(pid, SIGTERM);
	waitpid(pid, NULL, 0);
	cr_assert_eq(pinned_ask(&view, &flow, &answer), 0);
	cr_assert_eq(answer.verdict, XSPD_DEFER);
	pinned_close(&view);
	netns_run("rm -rf /sys/fs/bpf/xspd/%s; rmdir /sys/fs/bpf/xspd 2>/dev/null || :", ns);
}
