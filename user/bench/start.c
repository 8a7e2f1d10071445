// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <bpf/bpf.h>

#include "bench/fill.h"
#include "bench/lab.h"
#include "bench/child.h"
#include "bench/start.h"
#include "util.h"

#define PINS	 "/sys/fs/bpf/xspd"
#define POLL_US	 500
#define PATIENCE 60000000000ull

struct start {
	char instance[32];
	pid_t pid; /* 0: not running */
	clockid_t clock;
};

static void rest_us(long us)
{
	nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

static int launch(struct start *start)
{
	char *argv[] = {"xspd", "run", "--instance", start->instance, NULL};
	pid_t pid = xspd_child_spawn("/proc/self/exe", argv);

	if (pid < 0)
		return pid;
	start->pid = pid;
	return clock_getcpuclockid(pid, &start->clock) ? -ESRCH : 0;
}

/* The record that `xspd status` shows; false while there is none. */
static bool read_conf(const struct start *start, struct xspd_conf *ret)
{
	xspd_autoclose int fd = -1;
	uint32_t zero = 0;
	char path[96];

	snprintf(path, sizeof(path), PINS "/%s/v%u/maps/xspd_conf", start->instance,
		 XSPD_ABI_VERSION);
	fd = bpf_obj_get(path);
	return fd >= 0 && bpf_map_lookup_elem(fd, &zero, ret) == 0;
}

static int await(struct start *start, uint32_t policies)
{
	uint64_t end = xspd_now(CLOCK_MONOTONIC) + PATIENCE;
	struct xspd_conf conf;

	while (!read_conf(start, &conf) || conf.doubt || conf.policies != policies) {
		if (waitpid(start->pid, NULL, WNOHANG) == start->pid) {
			start->pid = 0;
			return -ECHILD;
		}
		if (xspd_now(CLOCK_MONOTONIC) > end)
			return -ETIMEDOUT;
		rest_us(POLL_US);
	}
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void clean_up(struct start *start)
{
	char path[64];

	if (start->pid) {
		kill(start->pid, SIGTERM);
		waitpid(start->pid, NULL, 0);
	}
	snprintf(path, sizeof(path), PINS "/%s", start->instance);
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int measure(struct start *start, uint32_t policies, struct xspd_bench_start *ret,
		   const char **ret_what)
{
	uint64_t begin = xspd_now(CLOCK_MONOTONIC), cpu;
	int err;

	*ret_what = "start the daemon";
	err = launch(start);
	if (!err)
		err = await(start, policies);
	if (err < 0)
		return err;
	ret->ready_ms = (double)(xspd_now(CLOCK_MONOTONIC) - begin) / 1e6;
	cpu = xspd_now(start->clock);
	ret->cpu_ms = (double)cpu / 1e6;
	nanosleep(&(struct timespec){.tv_sec = XSPD_BENCH_IDLE_S}, NULL);
	ret->idle_ms = (double)(xspd_now(start->clock) - cpu) / 1e6;
	return 0;
}

int xspd_bench_start(const struct xspd_bench_set *set, struct xspd_bench_start *ret,
		     const char **ret_what)
{
	struct start start = {};
	uint32_t oif, refused = 0;
	struct xspd_lab *lab;
	double ns;
	int err;

	snprintf(start.instance, sizeof(start.instance), "bench-%d", (int)getpid());
	*ret_what = "make a network namespace";
	err = xspd_lab_new(&lab, &oif);
	if (err < 0)
		return err;
	*ret_what = "insert the policies";
	err = xspd_bench_insert(set, &ns, &refused);
	if (!err && refused)
		err = -EEXIST;
	if (!err)
		err = measure(&start, set->count, ret, ret_what);
	clean_up(&start);
	xspd_lab_free(lab);
	return err;
}
