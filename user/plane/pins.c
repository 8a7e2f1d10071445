// SPDX-License-Identifier: GPL-2.0-only
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "plane/crash.h"
#include "plane/pins.h"
#include "util.h"
#include "xspd.skel.h"

static const char *const set_maps[] = {
	"xspd_conf", "xspd_policy", "xspd_info", "xspd_bucket", "xspd_list", "xspd_part",
	"xspd_ifid", "xspd_dst",    "xspd_src",	 "xspd_count",	"xspd_stat", "xspd_cache_cpu",
};
static const char *const entry_progs[] = {"xspd_tc_in", "xspd_tc_out", "xspd_xdp"};
const char *const xspd_lasting_maps[XSPD_LASTING] = {
	"xspd_jump_tc", "xspd_jump_xdp", "xspd_stat", "xspd_act",    "xspd_mode",
	"xspd_exempt",	"xspd_mark",	 "xspd_ring", "xspd_sample", "xspd_change"};

static int path_make(char *dir)
{
	for (char *slash = dir + 1; *slash; slash++) {
		if (*slash != '/')
			continue;
		*slash = '\0';
		if (mkdir(dir, 0700) < 0 && errno != EEXIST) {
			int err = -errno;

			*slash = '/';
			return err;
		}
		*slash = '/';
	}
	return mkdir(dir, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

static int object_get(const char *dir, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return bpf_obj_get(path);
}

static int object_pin(int fd, const char *dir, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (unlink(path) < 0 && errno != ENOENT)
		return -errno;
	if (bpf_obj_pin(fd, path) < 0)
		return -errno;
	xspd_crash_point("pins: one more");
	return 0;
}

/* All entry programs and both tables, or none: a half pinned directory is begun anew. */
static void pins_take(struct xspd_pins *pins)
{
	bool whole = true;

	for (size_t i = 0; i < XSPD_ARRAY_SIZE(entry_progs); i++) {
		xspd_autoclose int fd = object_get(pins->dir, entry_progs[i]);

		whole = whole && fd >= 0;
	}
	for (int i = 0; i < XSPD_LASTING; i++) {
		pins->lasting[i] = object_get(pins->dir, xspd_lasting_maps[i]);
		whole = whole && pins->lasting[i] >= 0;
	}
	pins->taken = whole;
	if (whole)
		return;
	for (int i = 0; i < XSPD_LASTING; i++) {
		xspd_closep(&pins->lasting[i]);
		pins->lasting[i] = -1;
	}
}

static int set_number(const char *name, uint32_t *ret)
{
	char extra;

	return sscanf(name, "set-%u%c", ret, &extra) == 1 ? 0 : -EINVAL;
}

static void numbers_read(struct xspd_pins *pins)
{
	DIR *dir = opendir(pins->dir);
	const struct dirent *entry;
	uint32_t nr;

	if (!dir)
		return;
	while ((entry = readdir(dir)))
		if (!set_number(entry->d_name, &nr) && nr > pins->last)
			pins->last = nr;
	closedir(dir);
}

int xspd_pins_open(struct xspd_pins *ret, const char *dir)
{
	struct xspd_pins pins = {.lock = -1};
	int err = -ENOMEM;

	for (int i = 0; i < XSPD_LASTING; i++)
		pins.lasting[i] = -1;
	pins.dir = strdup(dir);
	if (!pins.dir)
		return -ENOMEM;
	err = path_make(pins.dir);
	if (err)
		goto out;
	pins.lock = open(pins.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (pins.lock < 0 || flock(pins.lock, LOCK_EX | LOCK_NB) < 0) {
		err = errno == EWOULDBLOCK ? -EBUSY : -errno;
		goto out;
	}
	pins_take(&pins);
	numbers_read(&pins);
	*ret = pins;
	return 0;
out:
	xspd_closep(&pins.lock);
	free(pins.dir);
	return err;
}

void xspd_pins_close(struct xspd_pins *pins)
{
	if (!pins->dir)
		return;
	for (int i = 0; i < XSPD_LASTING; i++)
		xspd_closep(&pins->lasting[i]);
	xspd_closep(&pins->lock);
	free(pins->dir);
	pins->dir = NULL;
}

int xspd_pins_entries(struct xspd_pins *pins, const struct xspd_set *set)
{
	int err = 0;

	for (size_t i = 0; i < XSPD_LASTING && !err; i++) {
		struct bpf_map *map =
			bpf_object__find_map_by_name(set->skel->obj, xspd_lasting_maps[i]);

		err = object_pin(bpf_map__fd(map), pins->dir, xspd_lasting_maps[i]);
	}
	for (size_t i = 0; i < XSPD_ARRAY_SIZE(entry_progs) && !err; i++) {
		struct bpf_program *prog =
			bpf_object__find_program_by_name(set->skel->obj, entry_progs[i]);

		err = object_pin(bpf_program__fd(prog), pins->dir, entry_progs[i]);
		bpf_program__unload(prog);
	}
	return err;
}

int xspd_pins_set(struct xspd_pins *pins, const struct xspd_set *set)
{
	char dir[PATH_MAX], name[32], link[PATH_MAX], fresh[PATH_MAX];
	int err = 0;

	snprintf(name, sizeof(name), "set-%u", set->number);
	snprintf(dir, sizeof(dir), "%s/%s", pins->dir, name);
	snprintf(link, sizeof(link), "%s/maps", pins->dir);
	snprintf(fresh, sizeof(fresh), "%s/maps-new", pins->dir);
	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return -errno;
	for (size_t i = 0; i < XSPD_ARRAY_SIZE(set_maps) && !err; i++) {
		struct bpf_map *map = bpf_object__find_map_by_name(set->skel->obj, set_maps[i]);

		err = object_pin(bpf_map__fd(map), dir, set_maps[i]);
	}
	err = err ?: object_pin(bpf_program__fd(set->skel->progs.xspd_query), dir, "xspd_query");
	if (err)
		return err;
	if (unlink(fresh) < 0 && errno != ENOENT)
		return -errno;
	if (symlink(name, fresh) < 0)
		return -errno;
	xspd_crash_point("pins: link made");
	return rename(fresh, link) < 0 ? -errno : 0;
}

static void set_remove(const struct xspd_pins *pins, const char *name)
{
	char path[PATH_MAX];
	const struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/%s", pins->dir, name);
	dir = opendir(path);
	if (!dir)
		return;
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(dir), entry->d_name, 0);
	closedir(dir);
	rmdir(path);
}

void xspd_pins_prune(struct xspd_pins *pins, uint32_t keep)
{
	DIR *dir = opendir(pins->dir);
	const struct dirent *entry;
	uint32_t nr;

	if (!dir)
		return;
	while ((entry = readdir(dir)))
		if (!set_number(entry->d_name, &nr) && nr != keep) {
			set_remove(pins, entry->d_name);
			xspd_crash_point("pins: one set removed");
		}
	closedir(dir);
}

void xspd_pins_remove(struct xspd_pins *pins)
{
	char path[PATH_MAX];

	xspd_pins_prune(pins, 0);
	for (size_t i = 0; i < XSPD_ARRAY_SIZE(entry_progs); i++) {
		snprintf(path, sizeof(path), "%s/%s", pins->dir, entry_progs[i]);
		unlink(path);
	}
	for (size_t i = 0; i < XSPD_LASTING; i++) {
		snprintf(path, sizeof(path), "%s/%s", pins->dir, xspd_lasting_maps[i]);
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/maps-new", pins->dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/maps", pins->dir);
	unlink(path);
	/* its parents: the instance, and the root if no other is there */
	snprintf(path, sizeof(path), "%s", pins->dir);
	for (int i = 0; i < 3 && rmdir(path) == 0; i++)
		*strrchr(path, '/') = '\0';
}
