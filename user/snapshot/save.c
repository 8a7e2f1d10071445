// SPDX-License-Identifier: GPL-2.0-only
/* A file that is whole or not there. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "nl/nl.h"
#include "snapshot/save.h"
#include "util.h"

#define CHUNK (4u << 20)

static int write_all(int fd, const char *at, size_t size, const volatile sig_atomic_t *stop)
{
	ssize_t n;

	while (size) {
		if (*stop)
			return -EINTR;
		n = write(fd, at, size < CHUNK ? size : CHUNK);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			at += n;
			size -= (size_t)n;
		}
	}
	return 0;
}

static int write_file(int fd, const struct xspd_snap_header *header,
		      const struct xspd_vault *states, const struct xspd_vault *policies,
		      const volatile sig_atomic_t *stop)
{
	int err = write_all(fd, (const char *)header, sizeof(*header), stop);

	if (!err)
		err = write_all(fd, states->at, states->used, stop);
	if (!err)
		err = write_all(fd, policies->at, policies->used, stop);
	if (!err && fsync(fd) < 0)
		err = -errno;
	if (!err && *stop)
		err = -EINTR;
	return err;
}

/* The new name lasts when its directory is on the disk, too. */
static int directory_sync(const char *path)
{
	const char *slash = strrchr(path, '/');
	xspd_autofree char *dir =
		slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
	xspd_autoclose int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (!dir)
		return -ENOMEM;
	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

static int sizes_check(const struct xspd_vault *vault)
{
	for (size_t i = 0; i < vault->count; i++)
		if (xspd_vault_get(vault, i)->nlmsg_len > XSPD_BATCH_ROOM)
			return -EMSGSIZE;
	return vault->count > UINT32_MAX ? -EMSGSIZE : 0;
}

static void header_fill(struct xspd_snap_header *header, uint32_t flags,
			const struct xspd_vault *states, const struct xspd_vault *policies)
{
	*header = (struct xspd_snap_header){
		.flags = flags,
		.states = (uint32_t)states->count,
		.policies = (uint32_t)policies->count,
		.body_size = states->used + policies->used,
		.saved = xspd_now(CLOCK_REALTIME),
	};
	header->body_crc = xspd_snap_crc(0, states->at, states->used);
	header->body_crc = xspd_snap_crc(header->body_crc, policies->at, policies->used);
	xspd_snap_seal(header);
}

/* A device or a pipe of that name is not to be replaced by a file. */
static int target_check(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	return S_ISREG(st.st_mode) ? 0 : -EEXIST;
}

int xspd_snap_save(const char *path, uint32_t flags, const struct xspd_vault *states,
		   const struct xspd_vault *policies, const volatile sig_atomic_t *stop,
		   struct xspd_snap_header *ret)
{
	struct xspd_snap_header header;
	xspd_autoclose int fd = -1;
	char temp[PATH_MAX];
	int err = target_check(path);

	if (!err && (size_t)snprintf(temp, sizeof(temp), "%s.XXXXXX", path) >= sizeof(temp))
		err = -ENAMETOOLONG;
	if (!err)
		err = sizes_check(states);
	if (!err)
		err = sizes_check(policies);
	if (err)
		return err;
	header_fill(&header, flags, states, policies);
	fd = mkostemp(temp, O_CLOEXEC); /* 0600 from its first moment on */
	if (fd < 0)
		return -errno;
	err = write_file(fd, &header, states, policies, stop);
	if (!err && rename(temp, path) < 0)
		err = -errno;
	if (err) {
		unlink(temp);
		return err;
	}
	*ret = header;
	return directory_sync(path);
}
