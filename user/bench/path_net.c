// SPDX-License-Identifier: GPL-2.0-only
/* The three namespaces of the path benchmark. */
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <spawn.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <bpf/libbpf.h>

#include "bench/path.h"
#include "util.h"

extern char **environ;

int xspd_path_run(char *const argv[], const char *input)
{
	xspd_autoclose int fd = memfd_create("input", MFD_CLOEXEC);
	size_t len = strlen(input);
	posix_spawn_file_actions_t actions;
	int err, status;
	pid_t pid;

	if (fd < 0 || write(fd, input, len) != (ssize_t)len || lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fd, STDIN_FILENO);
	err = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (err)
		return -err;
	if (waitpid(pid, &status, 0) < 0)
		return -errno;
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -EIO;
}

int xspd_path_enter(const struct xspd_path *path, enum xspd_path_node node)
{
	return setns(path->netns[node], CLONE_NEWNET) < 0 ? -errno : 0;
}

static int make_namespaces(struct xspd_path *path)
{
	for (int i = 0; i < XSPD_PATH_NODES; i++) {
		if (unshare(CLONE_NEWNET) < 0)
			return -errno;
		path->netns[i] = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
		if (path->netns[i] < 0)
			return -errno;
	}
	return 0;
}

static int write_text(int dir, const char *name, const char *text)
{
	xspd_autoclose int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		return -errno;
	return 0;
}

/* /sys of the thread's namespace, mounted nowhere: a descriptor, or a negative errno. */
static int open_sysfs(void)
{
	int fd;
	xspd_autoclose int fs = fsopen("sysfs", FSOPEN_CLOEXEC);

	if (fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	fd = fsmount(fs, FSMOUNT_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

/* Possible once the device is up, and there is a receive loop. */
static int make_thread(int sysfs, const char *device)
{
	char name[64];

	snprintf(name, sizeof(name), "class/net/%s/threaded", device);
	return write_text(sysfs, name, "1");
}

static int device(const char *name, uint32_t *ret_ifindex, uint8_t mac[6])
{
	xspd_autoclose int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq req = {};

	snprintf(req.ifr_name, sizeof(req.ifr_name), "%s", name);
	if (fd < 0 || ioctl(fd, SIOCGIFINDEX, &req) < 0)
		return -errno;
	*ret_ifindex = (uint32_t)req.ifr_ifindex;
	if (ioctl(fd, SIOCGIFHWADDR, &req) < 0)
		return -errno;
	memcpy(mac, req.ifr_hwaddr.sa_data, 6);
	return 0;
}

/* veth takes frames from XDP only where the other end runs NAPI, which GRO makes it do. */
static int enable_gro(const char *name)
{
	xspd_autoclose int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ethtool_value gro = {.cmd = ETHTOOL_SGRO, .data = 1};
	struct ifreq req = {.ifr_data = (void *)&gro};

	snprintf(req.ifr_name, sizeof(req.ifr_name), "%s", name);
	return fd < 0 || ioctl(fd, SIOCETHTOOL, &req) < 0 ? -errno : 0;
}

static int make_links(struct xspd_path *path)
{
	char text[1024];
	int pid = getpid();

	snprintf(text, sizeof(text),
		 "link add %s numrxqueues 1 numtxqueues 1 type veth peer name source "
		 "numrxqueues 1 numtxqueues 1 netns /proc/%d/fd/%d\n"
		 "link add %s numrxqueues 1 numtxqueues 1 type veth peer name %s "
		 "numrxqueues 1 numtxqueues 1 netns /proc/%d/fd/%d\n"
		 "link set lo up\n",
		 path->in, pid, path->netns[XSPD_PATH_SOURCE], path->out, path->sink, pid,
		 path->netns[XSPD_PATH_SINK]);
	return xspd_path_run((char *[]){"ip", "-batch", "-", NULL}, text);
}

/* Routes to all that flows come from and go to; neighbours that need not be asked. */
static int make_routes(const struct xspd_path *path)
{
	const uint8_t *s = path->source_mac, *k = path->sink_mac;
	char text[1024];

	snprintf(text, sizeof(text),
		 "address add 198.18.0.1/30 dev %s\naddress add 198.19.0.1/30 dev %s\n"
		 "link set %s up\nlink set %s up\n"
		 "neighbour add 198.18.0.2 dev %s lladdr %02x:%02x:%02x:%02x:%02x:%02x\n"
		 "neighbour add 198.19.0.2 dev %s lladdr %02x:%02x:%02x:%02x:%02x:%02x\n"
		 "route add 172.16.0.0/12 via 198.18.0.2\nroute add 10.0.0.0/7 via 198.19.0.2\n",
		 path->in, path->out, path->in, path->out, path->in, s[0], s[1], s[2], s[3], s[4],
		 s[5], path->out, k[0], k[1], k[2], k[3], k[4], k[5]);
	return xspd_path_run((char *[]){"ip", "-batch", "-", NULL}, text);
}

static int make_gateway(struct xspd_path *path)
{
	int err = xspd_path_enter(path, XSPD_PATH_GATEWAY);

	if (!err)
		err = make_links(path);
	if (!err)
		err = device(path->in, &path->in_if, path->in_mac);
	if (!err)
		err = device(path->out, &path->out_if, path->out_mac);
	if (!err)
		err = enable_gro(path->in);
	return err ? err : write_text(AT_FDCWD, "/proc/sys/net/ipv4/ip_forward", "1");
}

static int make_ends(struct xspd_path *path, const struct xspd_traffic *traffic)
{
	xspd_autoclose int sysfs = -1;
	int err = xspd_path_enter(path, XSPD_PATH_SOURCE);

	if (!err)
		err = xspd_path_run((char *[]){"ip", "link", "set", "source", "up", NULL}, "");
	if (!err)
		err = device("source", &path->source_if, path->source_mac);
	if (!err)
		err = xspd_path_enter(path, XSPD_PATH_SINK);
	if (!err)
		err = xspd_path_run((char *[]){"ip", "link", "set", path->sink, "up", NULL}, "");
	if (!err)
		err = device(path->sink, &path->sink_if, path->sink_mac);
	if (!err)
		err = bpf_xdp_attach((int)path->sink_if, traffic->sink, XDP_FLAGS_DRV_MODE, NULL);
	if (err)
		return err;
	sysfs = open_sysfs();
	return sysfs < 0 ? sysfs : make_thread(sysfs, path->sink);
}

int xspd_path_new(struct xspd_path *path, unsigned int nr, const struct xspd_traffic *traffic)
{
	int err;

	*path = (struct xspd_path){.netns = {-1, -1, -1}, .sysfs = -1};
	/* the kernel threads are named after the devices, and must tell who they belong to */
	snprintf(path->in, sizeof(path->in), "x%di%u", getpid(), nr);
	snprintf(path->out, sizeof(path->out), "x%do%u", getpid(), nr);
	snprintf(path->sink, sizeof(path->sink), "x%ds%u", getpid(), nr);
	err = make_namespaces(path);
	if (!err)
		err = make_gateway(path);
	if (!err)
		err = make_ends(path, traffic);
	if (!err)
		err = xspd_path_enter(path, XSPD_PATH_GATEWAY);
	if (!err)
		err = make_routes(path);
	if (!err)
		path->sysfs = err = open_sysfs();
	if (err >= 0)
		err = make_thread(path->sysfs, path->in);
	if (err)
		xspd_path_free(path);
	return err;
}

void xspd_path_free(struct xspd_path *path)
{
	xspd_closep(&path->sysfs);
	for (int i = 0; i < XSPD_PATH_NODES; i++)
		xspd_closep(&path->netns[i]);
	*path = (struct xspd_path){.netns = {-1, -1, -1}, .sysfs = -1};
}
