// SPDX-License-Identifier: GPL-2.0-only
/* The NETLINK_XFRM socket: open it, and read what is queued. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "nl/socket.h"
#include "util.h"

/* The kernel answers requests inside sendmsg(); this much later it never will. */
#define REPLY_TIMEOUT_MS 5000

/* Room a queued message takes at the least: one skb and its smallest data area. */
#define SKB_TRUESIZE_MIN 256

static void rcvbuf_set(int fd, int bytes)
{
	/* FORCE wants CAP_NET_ADMIN in the initial namespace; the other is capped, not refused */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
}

int xspd_nl_open(struct xspd_nl **ret, uint32_t groups, int rcvbuf)
{
	struct xspd_nl *nl = calloc(1, sizeof(*nl));
	int err;

	if (!nl)
		return -ENOMEM;
	nl->sock = mnl_socket_open2(NETLINK_XFRM, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (!nl->sock)
		goto fail;
	if (rcvbuf > 0)
		rcvbuf_set(mnl_socket_get_fd(nl->sock), rcvbuf);
	if (mnl_socket_bind(nl->sock, groups, MNL_SOCKET_AUTOPID) < 0)
		goto fail;
	*ret = nl;
	return 0;
fail:
	err = -errno;
	xspd_nl_free(nl);
	return err;
}

void xspd_nl_free(struct xspd_nl *nl)
{
	if (!nl)
		return;
	if (nl->sock)
		mnl_socket_close(nl->sock);
	/* SA messages may have passed through it */
	explicit_bzero(nl->buf, sizeof(nl->buf));
	free(nl);
}

int xspd_nl_fd(const struct xspd_nl *nl)
{
	return mnl_socket_get_fd(nl->sock);
}

ssize_t xspd_nl_datagram(struct xspd_nl *nl)
{
	struct sockaddr_nl from;
	socklen_t from_len;
	ssize_t len;

	do {
		from_len = sizeof(from);
		len = recvfrom(xspd_nl_fd(nl), nl->buf, sizeof(nl->buf), MSG_TRUNC,
			       (struct sockaddr *)&from, &from_len);
		/* other processes may write to our port: only the kernel is believed */
	} while ((len < 0 && errno == EINTR) || (len >= 0 && from.nl_pid != 0));
	if (len < 0)
		return errno == EAGAIN ? 0 : -errno;
	/* cut off: what is missing is as lost as if the queue had been full */
	return (size_t)len > sizeof(nl->buf) ? -ENOBUFS : len;
}

int xspd_nl_wait(struct xspd_nl *nl)
{
	struct pollfd pfd = {.fd = xspd_nl_fd(nl), .events = POLLIN};
	int n;

	do
		n = poll(&pfd, 1, REPLY_TIMEOUT_MS);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return n ? 0 : -ETIMEDOUT;
}

/*
 * What is queued when messages are lost is older than the loss, so that nobody
 * may mistake it for news of after it.  The kernel queues nothing more until
 * the queue was empty once; the bound is for a kernel that refills it as fast
 * as it is read.
 */
static void queue_discard(struct xspd_nl *nl)
{
	socklen_t len = sizeof(int);
	int bytes = 0, most;

	getsockopt(xspd_nl_fd(nl), SOL_SOCKET, SO_RCVBUF, &bytes, &len);
	for (most = bytes / SKB_TRUESIZE_MIN + 1; most > 0; most--) {
		ssize_t n = xspd_nl_datagram(nl);

		if (n == 0 || (n < 0 && n != -ENOBUFS))
			return;
	}
}

static void message_read(const struct nlmsghdr *nlh, struct xspd_event *ret)
{
	if (xspd_nl_decode(nlh, ret) < 0)
		*ret = (struct xspd_event){.kind = XSPD_EVENT_UNMODELLED,
					   .nlmsg_type = nlh->nlmsg_type,
					   .seq = nlh->nlmsg_seq,
					   .msg = nlh};
}

static int datagram_walk(struct xspd_nl *nl, int len, xspd_nl_cb cb, void *ctx)
{
	const struct nlmsghdr *nlh = (const void *)nl->buf;
	struct xspd_event event;
	int err = 0;

	for (; err >= 0 && xspd_nl_message_ok(nlh, len); nlh = mnl_nlmsg_next(nlh, &len)) {
		message_read(nlh, &event);
		err = cb(ctx, &event);
	}
	if (err >= 0 && len > 0) { /* no whole message */
		event = (struct xspd_event){.kind = XSPD_EVENT_UNMODELLED};
		err = cb(ctx, &event);
	}
	return err < 0 ? err : 0;
}

int xspd_nl_recv(struct xspd_nl *nl, unsigned int max, xspd_nl_cb cb, void *ctx)
{
	unsigned int n;
	ssize_t len;
	int err;

	for (n = 0; n < max; n++) {
		len = xspd_nl_datagram(nl);
		if (len == -ENOBUFS)
			queue_discard(nl);
		if (len < 0)
			return len;
		if (len == 0)
			break;
		err = datagram_walk(nl, len, cb, ctx);
		if (err < 0)
			return err;
	}
	return n;
}
