// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "bench/child.h"
#include "bench/fill.h"
#include "bench/lab.h"
#include "bench/start.h"
#include "util.h"

#define PATIENCE 60 /* s */

static int measure(struct xspd_child *child, uint32_t policies, struct xspd_bench_start *ret,
		   const char **ret_what)
{
	uint64_t begin = xspd_mono(), cpu;
	clockid_t clock;
	double ns;
	int err;

	*ret_what = "start the daemon";
	err = xspd_child_start(child);
	if (!err && clock_getcpuclockid(child->pid, &clock))
		err = -ESRCH;
	if (!err)
		err = xspd_child_await(child, policies, PATIENCE, &ns);
	if (err < 0)
		return err;
	ret->ready_ms = (double)(xspd_mono() - begin) / 1e6;
	cpu = xspd_now(clock);
	ret->cpu_ms = (double)cpu / 1e6;
	nanosleep(&(struct timespec){.tv_sec = XSPD_BENCH_IDLE_S}, NULL);
	ret->idle_ms = (double)(xspd_now(clock) - cpu) / 1e6;
	return 0;
}

int xspd_bench_start(const struct xspd_bench_set *set, struct xspd_bench_start *ret,
		     const char **ret_what)
{
	struct xspd_child child = {};
	uint32_t oif, refused = 0;
	struct xspd_lab *lab;
	double ns;
	int err;

	*ret_what = "make a network namespace";
	err = xspd_lab_new(&lab, &oif);
	if (err < 0)
		return err;
	*ret_what = "insert the policies";
	err = xspd_bench_insert(set, &ns, &refused);
	if (!err && refused)
		err = -EEXIST;
	if (!err)
		err = measure(&child, set->count, ret, ret_what);
	xspd_child_stop(&child);
	xspd_lab_free(lab);
	return err;
}
