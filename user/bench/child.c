// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <bpf/bpf.h>

#include "bench/child.h"
#include "daemon/daemon.h"
#include "util.h"

#define PINS	"/sys/fs/bpf/xspd"
#define POLL_NS 500000

pid_t xspd_child_spawn(const char *path, char *const argv[])
{
	pid_t pid = fork();
	int null;

	if (pid < 0)
		return -errno;
	if (pid)
		return pid;
	null = open("/dev/null", O_RDWR);
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	execvp(path, argv);
	_exit(127);
}

int xspd_child_start(struct xspd_child *child)
{
	static unsigned int number;
	char *argv[] = {"xspd", "run", "--instance", child->instance, NULL};
	pid_t pid;

	snprintf(child->instance, sizeof(child->instance), "bench-%d-%u", (int)getpid(), number++);
	pid = xspd_child_spawn("/proc/self/exe", argv);
	if (pid < 0)
		return pid;
	child->pid = pid;
	return 0;
}

/* The socket as the daemon opens it; the parent goes on once it is there. */
static void listen_main(bool reads, int ready)
{
	static char buf[32768];
	struct xspd_nl *nl;
	struct pollfd pfd = {.events = POLLIN};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (xspd_nl_open(&nl, XSPD_NL_GROUPS, XSPD_DAEMON_RCVBUF) || write(ready, "", 1) != 1)
		return;
	pfd.fd = xspd_nl_fd(nl);
	while (reads && poll(&pfd, 1, -1) >= 0)
		while (recv(pfd.fd, buf, sizeof(buf), 0) > 0)
			;
	pause();
}

int xspd_child_listen(struct xspd_child *child, bool reads)
{
	int ready[2];
	char byte;
	ssize_t n;

	if (pipe2(ready, O_CLOEXEC) < 0)
		return -errno;
	*child = (struct xspd_child){.pid = fork()};
	if (!child->pid) {
		signal(SIGTERM, SIG_DFL);
		listen_main(reads, ready[1]);
		_exit(127);
	}
	close(ready[1]);
	n = child->pid < 0 ? 0 : read(ready[0], &byte, 1);
	close(ready[0]);
	if (child->pid < 0)
		child->pid = 0;
	return n == 1 ? 0 : -ECHILD;
}

int xspd_child_pin(const struct xspd_child *child, const char *name)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), PINS "/%s/v%u/maps/%s", child->instance, XSPD_ABI_VERSION,
		 name);
	fd = bpf_obj_get(path);
	return fd < 0 ? -errno : fd;
}

int xspd_child_conf(const struct xspd_child *child, struct xspd_conf *ret)
{
	xspd_autoclose int fd = xspd_child_pin(child, "xspd_conf");
	uint32_t zero = 0;

	if (fd < 0)
		return fd;
	return bpf_map_lookup_elem(fd, &zero, ret) < 0 ? -errno : 0;
}

int xspd_child_await(struct xspd_child *child, uint32_t policies, unsigned int seconds,
		     double *ret_ns)
{
	uint64_t start = xspd_mono(), end = start + seconds * 1000000000ull;
	struct xspd_conf conf;

	while (xspd_child_conf(child, &conf) || conf.doubt || conf.policies != policies) {
		if (waitpid(child->pid, NULL, WNOHANG) == child->pid) {
			child->pid = 0;
			return -ECHILD;
		}
		if (xspd_mono() > end)
			return -ETIMEDOUT;
		nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
	}
	*ret_ns = (double)(xspd_mono() - start);
	return 0;
}

uint32_t xspd_child_count(const struct xspd_child *child)
{
	xspd_autoclose int fd = xspd_child_pin(child, "xspd_info");
	struct bpf_map_info about = {};
	uint32_t len = sizeof(about), count = 0;
	const struct xspd_info *info;
	size_t size;

	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &about, &len) < 0 ||
	    about.value_size != sizeof(*info))
		return 0;
	size = (size_t)about.max_entries * sizeof(*info);
	info = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	if (info == MAP_FAILED)
		return 0;
	for (uint32_t i = 0; i < about.max_entries; i++)
		count += info[i].index != 0;
	munmap((void *)info, size);
	return count;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void xspd_child_stop(struct xspd_child *child)
{
	char path[96];

	if (child->pid) {
		kill(child->pid, SIGTERM);
		waitpid(child->pid, NULL, 0);
		child->pid = 0;
	}
	if (!*child->instance)
		return;
	snprintf(path, sizeof(path), PINS "/%s", child->instance);
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
