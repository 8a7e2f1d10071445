// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <sys/time.h>

#include "nl/talk.h"
#include "util.h"

/* The kernel answers inside sendmsg(); what takes longer never comes. */
#define REPLY_TIMEOUT_S 5

/* Dumps come in datagrams of at most 32 KB. */
#define BUFFER (64 << 10)

/* Of a dump: libmnl's own callback takes one that ended by an error for a whole one. */
static int done_read(const struct nlmsghdr *nlh, void *ctx)
{
	const int *err = mnl_nlmsg_get_payload(nlh);

	(void)ctx;
	if (nlh->nlmsg_len < MNL_NLMSG_HDRLEN + sizeof(*err) || *err >= 0)
		return MNL_CB_STOP;
	errno = -*err;
	return MNL_CB_ERROR;
}

/* As libmnl's: an error, or the acknowledgement. */
static int error_read(const struct nlmsghdr *nlh, void *ctx)
{
	const struct nlmsgerr *err = mnl_nlmsg_get_payload(nlh);

	(void)ctx;
	errno = nlh->nlmsg_len < mnl_nlmsg_size(sizeof(*err)) ? EBADMSG : abs(err->error);
	return errno ? MNL_CB_ERROR : MNL_CB_STOP;
}

static mnl_cb_t control[NLMSG_DONE + 1] = {
	[NLMSG_ERROR] = error_read,
	[NLMSG_DONE] = done_read,
};

static int answer_read(struct mnl_socket *sock, char *buf, uint32_t seq, mnl_cb_t cb, void *ctx)
{
	uint32_t port = mnl_socket_get_portid(sock);
	int rc = MNL_CB_OK;

	while (rc > MNL_CB_STOP) {
		ssize_t len = mnl_socket_recvfrom(sock, buf, BUFFER);

		if (len < 0 && errno == EINTR)
			continue;
		if (len < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		rc = mnl_cb_run2(buf, (size_t)len, seq, port, cb, ctx, control,
				 XSPD_ARRAY_SIZE(control));
	}
	return rc < 0 ? -errno : 0;
}

int xspd_nl_talk(int bus, struct nlmsghdr *nlh, mnl_cb_t cb, void *ctx)
{
	struct timeval timeout = {.tv_sec = REPLY_TIMEOUT_S};
	struct mnl_socket *sock = mnl_socket_open2(bus, SOCK_CLOEXEC);
	xspd_autofree char *buf = malloc(BUFFER);
	int err = 0;

	if (!sock || !buf) {
		err = sock ? -ENOMEM : -errno;
		goto out;
	}
	setsockopt(mnl_socket_get_fd(sock), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	nlh->nlmsg_flags |= NLM_F_REQUEST;
	/* a lone answer needs an end to wait for */
	if ((nlh->nlmsg_flags & NLM_F_DUMP) != NLM_F_DUMP)
		nlh->nlmsg_flags |= NLM_F_ACK;
	nlh->nlmsg_seq = 1;
	if (mnl_socket_bind(sock, 0, MNL_SOCKET_AUTOPID) < 0 ||
	    mnl_socket_sendto(sock, nlh, nlh->nlmsg_len) < 0)
		err = -errno;
	else
		err = answer_read(sock, buf, 1, cb, ctx);
out:
	if (sock)
		mnl_socket_close(sock);
	return err;
}
