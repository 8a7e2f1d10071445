/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of nl/ share about a socket. */
#ifndef XSPD_NL_SOCKET_H
#define XSPD_NL_SOCKET_H

#include <libmnl/libmnl.h>
#include "nl/nl.h"

/* The kernel fills dump datagrams up to 32 KiB when the reader offers as much. */
#define XSPD_NL_BUF 65536

struct xspd_nl {
	struct mnl_socket *sock;
	uint32_t seq; /* of the last request */
	_Alignas(8) char buf[XSPD_NL_BUF];
};

/*
 * One datagram of the kernel into nl->buf.
 * Return: its length, 0 if nothing is queued, or a negative errno.
 */
ssize_t xspd_nl_datagram(struct xspd_nl *nl);

/* 0 once something can be read, -ETIMEDOUT, or another negative errno. */
int xspd_nl_wait(struct xspd_nl *nl);

/* Does a whole message stand in the next @len bytes? mnl_nlmsg_ok() takes lengths above INT_MAX for
 * negative. */
static inline bool xspd_nl_message_ok(const struct nlmsghdr *nlh, int len)
{
	return mnl_nlmsg_ok(nlh, len) && nlh->nlmsg_len <= (unsigned int)len;
}

static inline struct nlmsghdr *xspd_nl_header(void *buf, uint16_t type, uint16_t flags,
					      uint32_t seq)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_REQUEST | flags;
	nlh->nlmsg_seq = seq;
	return nlh;
}

#endif
