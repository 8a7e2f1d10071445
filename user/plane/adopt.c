// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pins of another ABI version of the same instance.  They are left alone until our own set is in
 * service.  Then its links get our entry programs and become ours; filters attached by hand from
 * its pins cannot be told to follow, so its jump tables lead to the set of now.  What has a living
 * daemon, or does not look like ours, stays as it is.
 */
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

#include "plane/pins.h"
#include "util.h"
#include "xspd.skel.h"

/* @buf has room for PATH_MAX. */
static int join(char *buf, const char *dir, const char *name)
{
	return snprintf(buf, PATH_MAX, "%s/%s", dir, name) >= PATH_MAX ? -ENAMETOOLONG : 0;
}

static int get(const char *dir, const char *name)
{
	char path[PATH_MAX];

	return join(path, dir, name) ? -1 : bpf_obj_get(path);
}

/* Our entry program that stands for the one of the same name in @old, by the link's hook. */
static int entry_for(const struct xspd_pins *pins, const char *link)
{
	const char *hook = strrchr(link, '-');

	if (hook && !strcmp(hook, "-xdp"))
		return get(pins->dir, "xspd_xdp");
	return get(pins->dir, hook && !strcmp(hook, "-egress") ? "xspd_tc_out" : "xspd_tc_in");
}

static int link_move(const struct xspd_pins *pins, const char *old, const char *links,
		     const char *name)
{
	char from[PATH_MAX], to[PATH_MAX];
	xspd_autoclose int link = get(old, name), prog = entry_for(pins, name);

	if (join(from, old, name) || join(to, links, name))
		return -ENAMETOOLONG;
	if (link >= 0 && (prog < 0 || bpf_link_update(link, prog, NULL) < 0))
		return -errno;
	return rename(from, to) < 0 ? -errno : 0;
}

static int links_move(const struct xspd_pins *pins, const char *old)
{
	char from[PATH_MAX], to[PATH_MAX];
	const struct dirent *entry;
	int err = 0;
	DIR *dir;

	if (join(from, old, "links") || join(to, pins->dir, "links"))
		return -ENAMETOOLONG;
	dir = opendir(from);
	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	if (mkdir(to, 0700) < 0 && errno != EEXIST)
		err = -errno;
	while (!err && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			err = link_move(pins, from, to, entry->d_name);
	closedir(dir);
	return err;
}

static int jump_lead(const char *old, const char *table, uint32_t at,
		     const struct bpf_program *prog)
{
	xspd_autoclose int map = get(old, table);
	int fd = bpf_program__fd(prog);

	return map < 0 || bpf_map_update_elem(map, &at, &fd, BPF_ANY) < 0 ? -errno : 0;
}

/* 0, or a negative errno: then it stays. */
static int adopt(const struct xspd_pins *pins, const struct xspd_set *set, const char *old)
{
	struct xspd_pins remove = {.dir = (char *)old, .lock = -1};
	char links[PATH_MAX];
	xspd_autoclose int lock = open(old, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int err;

	if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	err = join(links, old, "links");
	err = err ?: jump_lead(old, "xspd_jump_tc", 0, set->prog_in);
	err = err ?: jump_lead(old, "xspd_jump_tc", 1, set->skel->progs.xspd_do_out);
	err = err ?: jump_lead(old, "xspd_jump_xdp", 0, set->prog_xdp);
	err = err ?: links_move(pins, old);
	if (err)
		return err;
	rmdir(links);
	xspd_pins_remove(&remove);
	return 0;
}

unsigned int xspd_pins_adopt(const struct xspd_pins *pins, const struct xspd_set *set)
{
	const char *own = strrchr(pins->dir, '/');
	char parent[PATH_MAX], old[PATH_MAX];
	const struct dirent *entry;
	unsigned int left = 0;
	DIR *dir;

	if (!own)
		return 0;
	snprintf(parent, sizeof(parent), "%.*s", (int)(own - pins->dir), pins->dir);
	dir = opendir(parent);
	while (dir && (entry = readdir(dir))) {
		const char *name = entry->d_name;

		if (name[0] != 'v' || !name[1] || name[1 + strspn(name + 1, "0123456789")] ||
		    !strcmp(name, own + 1))
			continue;
		left += join(old, parent, name) || adopt(pins, set, old) < 0;
	}
	if (dir)
		closedir(dir);
	return left;
}
