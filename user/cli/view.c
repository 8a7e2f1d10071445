// SPDX-License-Identifier: GPL-2.0-only
/* Opening, and reading from, the pinned set in service. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <linux/magic.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "cli/view.h"
#include "util.h"

#define ATTEMPTS 20

void cli_pin_path(char *buf, size_t size, const char *instance, const char *name)
{
	snprintf(buf, size, XSPD_PIN_ROOT "/%s/v%d%s%s", instance, XSPD_ABI_VERSION,
		 name ? "/" : "", name ? name : "");
}

static int open_pin(const struct cli_view *view, const char *name, uint32_t flags)
{
	LIBBPF_OPTS(bpf_obj_get_opts, opts, .file_flags = flags);
	char path[320];
	int fd;

	snprintf(path, sizeof(path), "%s/%s/%s", view->dir, view->set, name);
	fd = bpf_obj_get_opts(path, &opts);
	return fd < 0 ? -errno : fd;
}

/* Map all of a BPF_F_MMAPABLE array, for reading (the kernel wants a writable fd for a shared
 * mapping). */
static int map_pin(const struct cli_view *view, const char *name, uint32_t value_size,
		   const void **ret, size_t *ret_size, uint32_t *ret_entries)
{
	xspd_autoclose int fd = open_pin(view, name, 0);
	struct bpf_map_info info = {};
	uint32_t len = sizeof(info);
	size_t size;
	void *addr;

	if (fd < 0)
		return fd;
	if (bpf_obj_get_info_by_fd(fd, &info, &len) < 0)
		return -errno;
	if (info.value_size != value_size)
		return -EPROTO;
	size = (size_t)info.max_entries * ((value_size + 7) / 8 * 8);
	addr = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	if (addr == MAP_FAILED)
		return -errno;
	*ret = addr;
	*ret_size = size;
	*ret_entries = info.max_entries;
	return 0;
}

static int open_set(struct cli_view *view)
{
	uint32_t entries, slots;
	int err;

	err = map_pin(view, "xspd_conf", sizeof(*view->conf), (const void **)&view->conf,
		      &view->conf_size, &entries);
	if (!err && view->conf->abi != XSPD_ABI_VERSION)
		err = -EPROTO;
	if (!err)
		err = map_pin(view, "xspd_info", sizeof(*view->info), (const void **)&view->info,
			      &view->info_size, &view->slots);
	if (!err)
		err = map_pin(view, "xspd_policy", sizeof(*view->policy),
			      (const void **)&view->policy, &view->policy_size, &slots);
	if (!err && slots < view->slots)
		view->slots = slots;
	if (!err && (view->count_fd = open_pin(view, "xspd_count", BPF_F_RDONLY)) < 0)
		err = view->count_fd;
	if (!err && (view->stat_fd = open_pin(view, "xspd_stat", BPF_F_RDONLY)) < 0)
		err = view->stat_fd;
	if (!err && (view->query_fd = open_pin(view, "xspd_query", 0)) < 0)
		err = view->query_fd;
	return err;
}

static int read_link(const struct cli_view *view, char *buf, size_t size)
{
	char path[200];
	ssize_t len;

	snprintf(path, sizeof(path), "%s/maps", view->dir);
	len = readlink(path, buf, size - 1);
	if (len < 0)
		return -errno;
	buf[len] = '\0';
	return 0;
}

/* The directory of another ABI version, if that is what the instance has. */
static bool other_version(const char *instance, char *buf, size_t size)
{
	struct dirent *entry;
	bool found = false;
	char path[128];
	DIR *dir;

	snprintf(path, sizeof(path), XSPD_PIN_ROOT "/%s", instance);
	dir = opendir(path);
	while (dir && !found && (entry = readdir(dir))) {
		if (entry->d_name[0] != 'v' || !strspn(entry->d_name + 1, "0123456789"))
			continue;
		snprintf(buf, size, "%s", entry->d_name);
		found = true;
	}
	if (dir)
		closedir(dir);
	return found;
}

static int explain_missing(const struct cli_view *view)
{
	char version[256];
	struct statfs fs;

	if (statfs("/sys/fs/bpf", &fs) < 0 || (uint32_t)fs.f_type != BPF_FS_MAGIC)
		return cli_fail("instance %s: no bpffs on /sys/fs/bpf; use --netns NAME "
				"instead of 'ip netns exec', or start 'xspd run'",
				view->instance);
	if (other_version(view->instance, version, sizeof(version)) &&
	    strtoul(version + 1, NULL, 10) != XSPD_ABI_VERSION)
		return cli_fail("instance %s: pins of another version (%s, this xspd has v%d); "
				"use the xspd that made them, or start this one's 'xspd run'",
				view->instance, version, XSPD_ABI_VERSION);
	return cli_fail("instance %s: no pins in %s; start 'xspd run', or name another with "
			"--netns or --instance",
			view->instance, view->dir);
}

static int explain(const struct cli_view *view, int err)
{
	switch (-err) {
	case ENOENT:
	case ENOTDIR:
		return explain_missing(view);
	case EPERM:
	case EACCES:
		return cli_fail("instance %s: %s: not permitted; run as root", view->instance,
				view->dir);
	case EPROTO:
		return cli_fail("instance %s: %s: pins of another version (this xspd has ABI "
				"%d); use the xspd that made them, or restart 'xspd run'",
				view->instance, view->dir, XSPD_ABI_VERSION);
	default:
		return cli_fail("instance %s: %s: %s", view->instance, view->dir, strerror(-err));
	}
}

/* On failure *@ret tells where. */
static int view_open(struct cli_view *ret, const char *instance)
{
	struct timespec pause = {.tv_nsec = 20000000};
	struct cli_view view = {.instance = instance};
	int err = 0;

	cli_pin_path(view.dir, sizeof(view.dir), instance, NULL);
	for (int i = 0; i < ATTEMPTS; i++) {
		view.count_fd = view.stat_fd = view.query_fd = -1;
		err = read_link(&view, view.set, sizeof(view.set));
		if (err)
			break;
		err = open_set(&view);
		if (!err) {
			view.cpus = (uint32_t)libbpf_num_possible_cpus();
			*ret = view;
			return 0;
		}
		cli_view_close(&view);
		if (err != -ENOENT) /* else a new set was put into service just now */
			break;
		nanosleep(&pause, NULL);
	}
	*ret = view;
	return err;
}

int cli_view_open(struct cli_view *ret, const char *instance)
{
	struct cli_view view;
	int err = view_open(&view, instance);

	if (err)
		return explain(&view, err);
	*ret = view;
	return XSPD_DONE;
}

int cli_view_try(struct cli_view *ret, const char *instance)
{
	struct cli_view view;
	int err = view_open(&view, instance);

	if (!err)
		*ret = view;
	return err;
}

void cli_view_close(struct cli_view *view)
{
	int *fds[] = {&view->count_fd, &view->stat_fd, &view->query_fd};

	if (view->conf)
		munmap((void *)view->conf, view->conf_size);
	if (view->info)
		munmap((void *)view->info, view->info_size);
	if (view->policy)
		munmap((void *)view->policy, view->policy_size);
	view->conf = NULL;
	view->info = NULL;
	view->policy = NULL;
	for (size_t i = 0; i < XSPD_ARRAY_SIZE(fds); i++) {
		xspd_closep(fds[i]);
		*fds[i] = -1;
	}
}

bool cli_view_stale(const struct cli_view *view)
{
	char set[sizeof(view->set)];

	return read_link(view, set, sizeof(set)) == 0 && strcmp(set, view->set);
}

int cli_view_follow(struct cli_view *view)
{
	const char *instance = view->instance;

	if (!cli_view_stale(view))
		return XSPD_DONE;
	cli_view_close(view);
	return cli_view_open(view, instance);
}

uint64_t cli_view_generation(const struct cli_view *view)
{
	struct timespec pause = {.tv_nsec = 100000};
	uint64_t generation = 0;

	for (int i = 0; i < ATTEMPTS; i++) {
		generation = __atomic_load_n(&view->conf->generation, __ATOMIC_ACQUIRE);
		if (!(generation & 1))
			break;
		nanosleep(&pause, NULL);
	}
	return generation;
}

bool cli_view_info(const struct cli_view *view, uint32_t slot, struct xspd_info *ret)
{
	const struct xspd_info *info = &view->info[slot];

	if (!__atomic_load_n(&info->index, __ATOMIC_ACQUIRE))
		return false;
	*ret = *info;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (ret->type >= XSPD_TYPE_MAX_)
		return false; /* lingers for the guard, and is no policy any more */
	/* a packet may have met it just now */
	ret->hit = __atomic_load_n(&info->hit, __ATOMIC_RELAXED);
	return ret->index && !memcmp(ret, info, sizeof(*ret));
}

int cli_view_count(const struct cli_view *view, uint32_t slot, const struct xspd_info *info,
		   struct xspd_count *ret)
{
	struct xspd_count cpu[view->cpus];
	struct xspd_count sum = {.packets = info->base_packets,
				 .bytes = info->base_bytes,
				 .acted = info->base_acted};

	if (bpf_map_lookup_elem(view->count_fd, &slot, cpu) < 0)
		return -errno;
	for (uint32_t i = 0; i < view->cpus; i++) {
		sum.packets += cpu[i].packets;
		sum.bytes += cpu[i].bytes;
		sum.acted += cpu[i].acted;
		if (cpu[i].last > sum.last)
			sum.last = cpu[i].last;
	}
	*ret = sum;
	return 0;
}

/* Elements @first and on of a per-CPU array of xspd_stat, added to @ret. */
static int stats_add(int map, uint32_t first, uint32_t count, uint32_t cpus, struct xspd_stat *ret)
{
	struct xspd_stat cpu[cpus];

	for (uint32_t n = 0; n < count; n++) {
		uint32_t key = first + n;

		if (bpf_map_lookup_elem(map, &key, cpu) < 0)
			return -errno;
		for (uint32_t i = 0; i < cpus; i++) {
			ret[n].packets += cpu[i].packets;
			ret[n].bytes += cpu[i].bytes;
		}
	}
	return 0;
}

int cli_view_stat(const struct cli_view *view, enum xspd_hook hook, enum xspd_reason reason,
		  struct xspd_stat *ret)
{
	struct xspd_stat sum = {};
	int err = 0;

	for (uint32_t asked = 0; asked < XSPD_ASKED_MAX_ && !err; asked++)
		err = stats_add(view->stat_fd,
				(asked * XSPD_HOOK_MAX_ + hook) * XSPD_R_MAX_ + reason, 1,
				view->cpus, &sum);
	if (!err)
		*ret = sum;
	return err;
}

int cli_view_stats(const struct cli_view *view, struct xspd_stat *ret)
{
	return stats_add(view->stat_fd, 0, XSPD_ASKED_MAX_ * XSPD_HOOK_MAX_ * XSPD_R_MAX_,
			 view->cpus, ret);
}

int cli_view_acts(const struct cli_view *view, struct xspd_stat *ret)
{
	xspd_autoclose int map = -1;
	char path[256];

	cli_pin_path(path, sizeof(path), view->instance, "xspd_act");
	map = bpf_obj_get(path);
	if (map < 0)
		return -errno;
	return stats_add(map, 0, XSPD_HOOK_MAX_ * XSPD_A_MAX_, view->cpus, ret);
}

void cli_view_cache(const struct cli_view *view, uint64_t *hits, uint64_t *misses)
{
	struct xspd_cache_cpu cpu[view->cpus];
	xspd_autoclose int map = -1;
	uint32_t zero = 0;
	char path[320];

	*hits = *misses = 0;
	snprintf(path, sizeof(path), "%s/%s/xspd_cache_cpu", view->dir, view->set);
	map = bpf_obj_get(path);
	if (map < 0 || bpf_map_lookup_elem(map, &zero, cpu) < 0)
		return;
	for (uint32_t i = 0; i < view->cpus; i++) {
		*hits += cpu[i].hits;
		*misses += cpu[i].misses;
	}
}
