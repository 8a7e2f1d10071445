// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "snapshot/vault.h"

#define ROOM_LEAST (1u << 20)

/* Pages, since mremap() moves them where realloc() would leave a copy behind. */
int xspd_vault_reserve(struct xspd_vault *vault, size_t more)
{
	size_t room = vault->room ? vault->room : ROOM_LEAST;
	void *at;

	if (more > SIZE_MAX / 4 - vault->used)
		return -ENOMEM;
	while (room < vault->used + more)
		room *= 2;
	if (room == vault->room)
		return 0;
	if (vault->at)
		at = mremap(vault->at, vault->room, room, MREMAP_MAYMOVE);
	else
		at = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return -ENOMEM;
	madvise(at, room, MADV_DONTDUMP);
	vault->at = at;
	vault->room = room;
	return 0;
}

static int message_note(struct xspd_vault *vault, size_t at)
{
	size_t room = vault->message_room ? 2 * vault->message_room : 1024;
	size_t *message;

	if (vault->count == vault->message_room) {
		message = realloc(vault->message, room * sizeof(*message));
		if (!message)
			return -ENOMEM;
		vault->message = message;
		vault->message_room = room;
	}
	vault->message[vault->count++] = at;
	return 0;
}

int xspd_vault_append(struct xspd_vault *vault, const struct nlmsghdr *nlh)
{
	size_t size = NLMSG_ALIGN(nlh->nlmsg_len);
	int err = xspd_vault_reserve(vault, size);

	if (!err)
		err = message_note(vault, vault->used);
	if (err)
		return err;
	memset(vault->at + vault->used + size - NLMSG_ALIGNTO, 0, NLMSG_ALIGNTO);
	memcpy(vault->at + vault->used, nlh, nlh->nlmsg_len);
	vault->used += size;
	return 0;
}

struct nlmsghdr *xspd_vault_get(const struct xspd_vault *vault, size_t nr)
{
	return (void *)(vault->at + vault->message[nr]);
}

void xspd_vault_lock(struct xspd_vault *vault)
{
	if (vault->at)
		mlock(vault->at, vault->room);
}

void xspd_vault_empty(struct xspd_vault *vault)
{
	if (vault->at) {
		explicit_bzero(vault->at, vault->used);
		munmap(vault->at, vault->room);
	}
	free(vault->message);
	*vault = (struct xspd_vault){};
}
