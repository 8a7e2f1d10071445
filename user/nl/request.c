// SPDX-License-Identifier: GPL-2.0-only
/* Requests and their answers, on a socket of their own. */
#include <errno.h>
#include <string.h>
#include <linux/xfrm.h>

#include "nl/socket.h"
#include "util.h"

static int request_send(struct xspd_nl *nl, const struct nlmsghdr *nlh)
{
	if (mnl_socket_sendto(nl->sock, nlh, nlh->nlmsg_len) < 0)
		return -errno;
	return 0;
}

/* An answer is over: with the wanted message (dumps: DONE), or with an error. */
struct answer {
	uint32_t seq;
	enum xspd_event_kind last; /* the kind that ends it */
	xspd_nl_cb cb;
	void *ctx;
	bool over;
	uint16_t raw; /* messages of this type are passed on, though nothing is read out of them */
};

static int answer_take(void *ctx, const struct xspd_event *event)
{
	struct answer *answer = ctx;
	int err;

	if (event->seq != answer->seq || answer->over)
		return 0; /* left over from a request that was given up */
	if (event->kind == XSPD_EVENT_ERROR && event->error < 0)
		return event->error;
	if (event->kind == XSPD_EVENT_DONE && event->error < 0)
		return event->error;
	answer->over = event->kind == answer->last;
	if (event->kind == XSPD_EVENT_DONE ||
	    (event->kind == XSPD_EVENT_NONE && event->nlmsg_type != answer->raw))
		return 0;
	err = answer->cb(answer->ctx, event);
	return err < 0 ? err : 0;
}

static int answer_wait(struct xspd_nl *nl, struct answer *answer)
{
	int n, err;

	while (!answer->over) {
		n = xspd_nl_recv(nl, 1, answer_take, answer);
		if (n < 0)
			return n;
		if (n == 0) {
			err = xspd_nl_wait(nl);
			if (err < 0)
				return err;
		}
	}
	return 0;
}

int xspd_nl_request_dump(struct xspd_nl *nl, uint32_t seq)
{
	char buf[NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(struct xfrm_userpolicy_id))] = {};
	struct nlmsghdr *nlh = xspd_nl_header(buf, XFRM_MSG_GETPOLICY, NLM_F_DUMP, seq);

	mnl_nlmsg_put_extra_header(nlh, sizeof(struct xfrm_userpolicy_id));
	return request_send(nl, nlh);
}

int xspd_nl_dump(struct xspd_nl *nl, xspd_nl_cb cb, void *ctx)
{
	struct answer answer = {++nl->seq, XSPD_EVENT_DONE, cb, ctx, false, 0};
	int err = xspd_nl_request_dump(nl, answer.seq);

	return err < 0 ? err : answer_wait(nl, &answer);
}

int xspd_nl_dump_states(struct xspd_nl *nl, xspd_nl_cb cb, void *ctx)
{
	struct answer answer = {++nl->seq, XSPD_EVENT_DONE, cb, ctx, false, XFRM_MSG_NEWSA};
	char buf[NLMSG_HDRLEN] = {};
	int err = request_send(nl, xspd_nl_header(buf, XFRM_MSG_GETSA, NLM_F_DUMP, answer.seq));

	return err < 0 ? err : answer_wait(nl, &answer);
}

static int event_copy(void *ctx, const struct xspd_event *event)
{
	memcpy(ctx, event, sizeof(*event));
	return 0;
}

static int request_one(struct xspd_nl *nl, const struct nlmsghdr *nlh, enum xspd_event_kind kind,
		       struct xspd_event *ret)
{
	struct answer answer = {nlh->nlmsg_seq, kind, event_copy, ret, false, 0};
	int err = request_send(nl, nlh);

	return err < 0 ? err : answer_wait(nl, &answer);
}

int xspd_nl_spdinfo(struct xspd_nl *nl, struct xspd_spdinfo *ret)
{
	char buf[NLMSG_HDRLEN + sizeof(uint32_t)] = {};
	struct nlmsghdr *nlh = xspd_nl_header(buf, XFRM_MSG_GETSPDINFO, 0, ++nl->seq);
	struct xspd_event event;
	int err;

	mnl_nlmsg_put_extra_header(nlh, sizeof(uint32_t));
	err = request_one(nl, nlh, XSPD_EVENT_SPDINFO, &event);
	if (err < 0)
		return err;
	*ret = event.info;
	return 0;
}

int xspd_nl_set_hthresh(struct xspd_nl *nl, const struct xspd_spdinfo *info)
{
	struct xfrmu_spdhthresh bits4 = {info->lbits4, info->rbits4};
	struct xfrmu_spdhthresh bits6 = {info->lbits6, info->rbits6};
	_Alignas(8) char buf[128] = {};
	struct nlmsghdr *nlh = xspd_nl_header(buf, XFRM_MSG_NEWSPDINFO, NLM_F_ACK, ++nl->seq);
	struct xspd_event event;

	mnl_nlmsg_put_extra_header(nlh, sizeof(uint32_t));
	mnl_attr_put(nlh, XFRMA_SPD_IPV4_HTHRESH, sizeof(bits4), &bits4);
	mnl_attr_put(nlh, XFRMA_SPD_IPV6_HTHRESH, sizeof(bits6), &bits6);
	return request_one(nl, nlh, XSPD_EVENT_ERROR, &event);
}

int xspd_nl_defaults(struct xspd_nl *nl, uint32_t *ret)
{
	size_t size = sizeof(struct xfrm_userpolicy_default);
	char buf[NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(struct xfrm_userpolicy_default))] = {};
	struct nlmsghdr *nlh = xspd_nl_header(buf, XFRM_MSG_GETDEFAULT, 0, ++nl->seq);
	struct xspd_event event;
	int err;

	mnl_nlmsg_put_extra_header(nlh, size);
	err = request_one(nl, nlh, XSPD_EVENT_DEFAULTS, &event);
	if (err == -EINVAL) { /* before 5.14 there is nothing but accept */
		*ret = 0;
		return 0;
	}
	if (err < 0)
		return err;
	*ret = event.defaults;
	return 0;
}

int xspd_nl_policy(struct xspd_nl *nl, uint32_t index, const struct xspd_pol *like,
		   struct xspd_pol *ret)
{
	_Alignas(8) char buf[512] = {};
	struct nlmsghdr *nlh = xspd_nl_header(buf, XFRM_MSG_GETPOLICY, 0, ++nl->seq);
	struct xfrm_userpolicy_type type = {.type = like->type};
	struct xfrm_mark mark = {like->mark, like->mark_mask};
	struct xfrm_userpolicy_id *id;
	struct xspd_event event;
	int err;

	id = mnl_nlmsg_put_extra_header(nlh, sizeof(*id));
	id->index = index;
	id->dir = like->dir;
	if (like->type)
		mnl_attr_put(nlh, XFRMA_POLICY_TYPE, sizeof(type), &type);
	if (mark.v | mark.m)
		mnl_attr_put(nlh, XFRMA_MARK, sizeof(mark), &mark);
	if (like->if_id)
		mnl_attr_put_u32(nlh, XFRMA_IF_ID, like->if_id);
	err = request_one(nl, nlh, XSPD_EVENT_POLICY, &event);
	if (err < 0)
		return err;
	*ret = event.pol;
	return 0;
}
