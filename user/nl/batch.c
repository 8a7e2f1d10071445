// SPDX-License-Identifier: GPL-2.0-only
/* Many requests in few sends: netlink has answered a send when it returns. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "nl/socket.h"
#include "util.h"

/* As many refusals as the smallest usual receive buffer (208 KiB) can hold at 1.25 KiB each. */
#define BATCH_MESSAGES XSPD_BATCH_MESSAGES
#define BATCH_BYTES    (BATCH_MESSAGES * 768)

struct xspd_batch {
	struct xspd_nl *nl;
	xspd_batch_failed failed;
	void *ctx;
	unsigned int messages;
	size_t used;
	_Alignas(8) char buf[BATCH_BYTES + XSPD_BATCH_ROOM];
};

int xspd_batch_new(struct xspd_batch **ret, struct xspd_nl *nl, xspd_batch_failed failed, void *ctx)
{
	struct xspd_batch *batch = malloc(sizeof(*batch));
	int on = 1, fd = xspd_nl_fd(nl);

	if (!batch)
		return -ENOMEM;
	batch->nl = nl;
	batch->failed = failed;
	batch->ctx = ctx;
	batch->messages = 0;
	batch->used = 0;
	/* refusals without a copy of the request, but with the reason; both are optional */
	setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on));
	setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
	*ret = batch;
	return 0;
}

void xspd_batch_free(struct xspd_batch *batch)
{
	if (!batch)
		return;
	/* requests for SAs carry keys */
	explicit_bzero(batch->buf, sizeof(batch->buf));
	free(batch);
}

void *xspd_batch_room(struct xspd_batch *batch, uint32_t *ret_seq)
{
	int err;

	if (batch->messages == BATCH_MESSAGES || batch->used > BATCH_BYTES) {
		err = xspd_batch_flush(batch);
		if (err < 0) {
			errno = -err;
			return NULL;
		}
	}
	*ret_seq = ++batch->nl->seq;
	return batch->buf + batch->used;
}

void xspd_batch_commit(struct xspd_batch *batch, const struct nlmsghdr *nlh)
{
	batch->used += MNL_ALIGN(nlh->nlmsg_len);
	batch->messages++;
}

/* The kernel's sentence about a refusal, or NULL. */
static const char *extack_find(const struct nlmsghdr *nlh)
{
	const struct nlmsgerr *err = mnl_nlmsg_get_payload(nlh);
	size_t skip = sizeof(*err);
	struct nlattr *attr;

	if (!(nlh->nlmsg_flags & NLM_F_ACK_TLVS))
		return NULL;
	if (!(nlh->nlmsg_flags & NLM_F_CAPPED) && err->msg.nlmsg_len > sizeof(err->msg))
		skip += MNL_ALIGN(err->msg.nlmsg_len - sizeof(err->msg));
	if (skip > mnl_nlmsg_get_payload_len(nlh))
		return NULL;
	mnl_attr_for_each (attr, nlh, skip)
		if (mnl_attr_get_type(attr) == NLMSGERR_ATTR_MSG &&
		    mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) == 0)
			return mnl_attr_get_str(attr);
	return NULL;
}

static void refusals_walk(struct xspd_batch *batch, int len)
{
	const struct nlmsghdr *nlh = (const void *)batch->nl->buf;
	struct xspd_event event;

	for (; xspd_nl_message_ok(nlh, len); nlh = mnl_nlmsg_next(nlh, &len))
		if (xspd_nl_decode(nlh, &event) == 0 && event.kind == XSPD_EVENT_ERROR &&
		    event.error < 0 && batch->failed)
			batch->failed(batch->ctx, event.seq, event.error, extack_find(nlh));
}

int xspd_batch_flush(struct xspd_batch *batch)
{
	size_t used = batch->used;
	ssize_t len;

	batch->used = 0;
	batch->messages = 0;
	if (!used)
		return 0;
	if (mnl_socket_sendto(batch->nl->sock, batch->buf, used) < 0)
		return -errno;
	/* the kernel worked through it inside sendto(): whatever it says is queued by now */
	while ((len = xspd_nl_datagram(batch->nl)) > 0)
		refusals_walk(batch, len);
	return len;
}
