// SPDX-License-Identifier: GPL-2.0-only
/* A file into memory, and whether it is one of ours: nothing is changed before that is known. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "snapshot/load.h"
#include "util.h"

static int read_some(int fd, struct xspd_vault *file, size_t size)
{
	ssize_t n;

	while (file->used < size) {
		n = read(fd, file->at + file->used, size - file->used);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return 0; /* shorter than it was: the check will tell */
		file->used += (size_t)n;
	}
	return 0;
}

static int file_read(int fd, size_t size, struct xspd_snap *snap, enum xspd_snap_fault *ret_fault)
{
	size_t head = sizeof(snap->header);
	int err = xspd_vault_reserve(&snap->file, head);

	if (!err)
		err = read_some(fd, &snap->file, head);
	if (err)
		return err;
	/* do not fill the memory with what is none */
	*ret_fault = xspd_snap_check(snap->file.at, snap->file.used, &snap->header);
	if (*ret_fault && (*ret_fault != XSPD_SNAP_TRUNCATED || snap->file.used < head))
		return -EBADMSG;
	if (size > head)
		err = xspd_vault_reserve(&snap->file, size - head);
	if (snap->header.flags & XSPD_SNAP_KEYS)
		xspd_vault_lock(&snap->file);
	if (!err)
		err = read_some(fd, &snap->file, size);
	if (err)
		return err;
	*ret_fault = xspd_snap_check(snap->file.at, snap->file.used, &snap->header);
	return *ret_fault ? -EBADMSG : 0;
}

int xspd_snap_read(const char *path, struct xspd_snap *ret, enum xspd_snap_fault *ret_fault)
{
	/* a pipe would have us wait */
	xspd_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	int err;

	*ret = (struct xspd_snap){};
	*ret_fault = XSPD_SNAP_FINE;
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode)) {
		*ret_fault = XSPD_SNAP_FOREIGN;
		return -EBADMSG;
	}
	err = file_read(fd, (size_t)st.st_size, ret, ret_fault);
	if (err)
		xspd_vault_empty(&ret->file);
	return err;
}

void xspd_snap_drop(struct xspd_snap *snap)
{
	xspd_vault_empty(&snap->file);
}
