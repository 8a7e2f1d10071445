// SPDX-License-Identifier: GPL-2.0-only
/* One sample: frames from the source, and the gateway's CPU time while they pass. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "bench/path.h"
#include "util.h"

#define FRAME	  60   /* octets, as on a wire without the checksum */
#define BURST	  4096 /* frames a system call */
#define BATCH	  64   /* of them at a time: what the gateway takes in one turn */
#define POLL_NS	  5000000
#define PATIENCE  50 /* times the CPU time that was asked for */
#define DRAIN_NS  10000000
#define DRAIN_MAX 500 /* times */
#define CALM	  6   /* times without a change */

int xspd_traffic_new(struct xspd_traffic *traffic)
{
	struct xspd_plane_opts opts = {.capacity = 1, .bench = true};
	int err;

	*traffic = (struct xspd_traffic){};
	err = xspd_plane_new(&traffic->plane, &opts);
	if (err)
		return err;
	traffic->frame = xspd_plane_prog_fd(traffic->plane, "xspd_frame");
	traffic->sink = xspd_plane_prog_fd(traffic->plane, "xspd_sink");
	traffic->source = xspd_plane_map_fd(traffic->plane, "xspd_source");
	traffic->sunk = xspd_plane_map_fd(traffic->plane, "xspd_sunk");
	traffic->flows = mmap(NULL, sizeof(struct xspd_flow) * XSPD_ASK_MAX, PROT_READ | PROT_WRITE,
			      MAP_SHARED, xspd_plane_map_fd(traffic->plane, "xspd_flows"), 0);
	if (traffic->flows == MAP_FAILED) {
		traffic->flows = NULL;
		err = -errno;
		xspd_traffic_free(traffic);
	}
	return err;
}

void xspd_traffic_free(struct xspd_traffic *traffic)
{
	if (traffic->flows)
		munmap(traffic->flows, sizeof(struct xspd_flow) * XSPD_ASK_MAX);
	xspd_plane_free(traffic->plane);
	*traffic = (struct xspd_traffic){};
}

static int sunk(const struct xspd_traffic *traffic, uint64_t *ret)
{
	int cpus = libbpf_num_possible_cpus();
	xspd_autofree struct xspd_stat *stat = calloc((size_t)cpus, sizeof(*stat));
	uint32_t zero = 0;

	if (!stat)
		return -ENOMEM;
	if (bpf_map_lookup_elem(traffic->sunk, &zero, stat) < 0)
		return -errno;
	*ret = 0;
	for (int i = 0; i < cpus; i++)
		*ret += stat[i].packets;
	return 0;
}

static int received(const struct xspd_path *path, uint64_t *ret)
{
	xspd_autoclose int fd = -1;
	char text[64];
	ssize_t len;

	snprintf(text, sizeof(text), "class/net/%s/statistics/rx_packets", path->in);
	fd = openat(path->sysfs, text, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	len = read(fd, text, sizeof(text) - 1);
	if (len < 0)
		return -errno;
	text[len] = '\0';
	*ret = strtoull(text, NULL, 10);
	return 0;
}

/* The kernel thread that receives for @device: "napi/DEVICE-NUMBER". */
static int find_napi(const char *device, pid_t *ret)
{
	DIR *proc = opendir("/proc");
	const struct dirent *entry;
	char want[32], path[300], comm[64];
	int err = -ESRCH;

	if (!proc)
		return -errno;
	snprintf(want, sizeof(want), "napi/%s-", device);
	while (err && (entry = readdir(proc))) {
		xspd_autofclose FILE *file = NULL;

		if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		file = fopen(path, "re");
		if (!file || !fgets(comm, sizeof(comm), file) || strncmp(comm, want, strlen(want)))
			continue;
		*ret = atoi(entry->d_name);
		err = 0;
	}
	closedir(proc);
	return err;
}

/* CPU time of another process, as clock_getcpuclockid(3) makes it. */
static clockid_t cpu_clock(pid_t pid)
{
	return (clockid_t)(~(unsigned int)pid << 3 | 2);
}

/* The last CPU is as good as any. */
static void pin(pid_t pid)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((int)sysconf(_SC_NPROCESSORS_ONLN) - 1, &set);
	sched_setaffinity(pid, sizeof(set), &set);
}

/* Before all others on that CPU, as soon as there is anything to receive. */
static int find_thread(const char *device, pid_t *ret)
{
	const struct sched_param param = {.sched_priority = 1};
	int err = find_napi(device, ret);

	if (err)
		return err;
	pin(*ret);
	return sched_setscheduler(*ret, SCHED_FIFO, &param) < 0 ? -errno : 0;
}

struct sender {
	const struct xspd_path *path;
	const struct xspd_traffic *traffic;
	pthread_t thread;
	atomic_bool stop;
	int err;
};

static void *send_frames(void *ctx)
{
	struct sender *sender = ctx;
	char frame[FRAME] = {};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = sizeof(frame),
		    .repeat = BURST, .batch_size = BATCH, .flags = BPF_F_TEST_XDP_LIVE_FRAMES);

	pin(0);
	sender->err = xspd_path_enter(sender->path, XSPD_PATH_SOURCE);
	while (!sender->err && !atomic_load(&sender->stop))
		if (bpf_prog_test_run_opts(sender->traffic->frame, &opts) < 0)
			sender->err = -errno;
	return NULL;
}

static int start(struct sender *sender)
{
	const struct xspd_path *path = sender->path;
	struct xspd_source source = {
		.ifindex = path->source_if,
		.count = sender->traffic->count,
	};
	uint32_t zero = 0;

	memcpy(source.macs, path->in_mac, 6);
	memcpy(source.macs + 6, path->source_mac, 6);
	if (bpf_map_update_elem(sender->traffic->source, &zero, &source, BPF_ANY) < 0)
		return -errno;
	return -pthread_create(&sender->thread, NULL, send_frames, sender);
}

static void rest(long ns)
{
	nanosleep(&(struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000}, NULL);
}

static void await_cpu(clockid_t clock, uint64_t since, unsigned int ms)
{
	uint64_t end = xspd_mono() + (uint64_t)ms * PATIENCE * 1000000;

	do
		rest(POLL_NS);
	while (xspd_now(clock) - since < ms * 1000000ull && xspd_mono() < end);
}

struct reading {
	uint64_t received, sunk, cpu, wall;
};

static int take(const struct xspd_path *path, const struct xspd_traffic *traffic, clockid_t clock,
		struct reading *ret)
{
	int err = received(path, &ret->received);

	ret->cpu = xspd_now(clock);
	ret->wall = xspd_mono();
	return err ? err : sunk(traffic, &ret->sunk);
}

static bool same(const struct reading *a, const struct reading *b)
{
	return a->received == b->received && a->sunk == b->sunk && a->cpu == b->cpu;
}

/*
 * Until all that was received is delivered, or nothing has happened for a while: a thread that goes
 * before all others is held up itself when it takes too long.
 */
static int drain(const struct xspd_path *path, const struct xspd_traffic *traffic, clockid_t clock,
		 const struct reading *before, struct reading *ret)
{
	struct reading last = *before;
	unsigned int calm = 0;

	for (int i = 0; i < DRAIN_MAX && calm < CALM; i++) {
		int err = take(path, traffic, clock, ret);

		if (err)
			return err;
		calm = same(ret, &last) ? calm + 1 : 0;
		if (calm && ret->received - before->received == ret->sunk - before->sunk)
			return 0;
		last = *ret;
		rest(DRAIN_NS);
	}
	return calm < CALM ? -ETIMEDOUT : 0;
}

int xspd_path_sample(const struct xspd_path *path, const struct xspd_traffic *traffic,
		     unsigned int ms, struct xspd_path_sample *ret)
{
	struct sender sender = {.path = path, .traffic = traffic};
	struct reading before, after;
	clockid_t clock;
	pid_t gateway = 0, sink = 0;
	int err = find_thread(path->in, &gateway);

	if (!err)
		err = find_thread(path->sink, &sink);
	if (err)
		return err;
	clock = cpu_clock(gateway);
	err = take(path, traffic, clock, &before);
	if (!err)
		err = start(&sender);
	if (err)
		return err;
	await_cpu(clock, before.cpu, ms);
	atomic_store(&sender.stop, true);
	pthread_join(sender.thread, NULL);
	err = sender.err ?: drain(path, traffic, clock, &before, &after);
	if (err)
		return err;
	ret->received = after.received - before.received;
	ret->delivered = after.sunk - before.sunk;
	ret->cpu_ns = (double)(after.cpu - before.cpu);
	ret->wall_ns = (double)(after.wall - before.wall);
	return 0;
}
