// SPDX-License-Identifier: GPL-2.0-only
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/xfrm.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/oracle_send.h"
#include "util.h"

#ifndef MSG_PROBE
#define MSG_PROBE 0x10 /* linux/socket.h, not exported: do not send, only probe the path */
#endif

#define SENDER_SOCKETS 64 /* source ports kept open */

struct oracle_sender {
	int acquire;
	struct sender_socket {
		int fd; /* -1: free */
		__be16 sport;
		uint8_t family;
	} socket[SENDER_SOCKETS];
	unsigned int next; /* to be closed when one more is needed */
};

int oracle_sender_new(struct oracle_sender **ret)
{
	struct sockaddr_nl addr = {.nl_family = AF_NETLINK,
				   .nl_groups = 1u << (XFRMNLGRP_ACQUIRE - 1)};
	xspd_autofree struct oracle_sender *sender = calloc(1, sizeof(*sender));
	xspd_autoclose int fd = -1;

	if (!sender)
		return -ENOMEM;
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_XFRM);
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return -errno;
	for (unsigned int i = 0; i < SENDER_SOCKETS; i++)
		sender->socket[i].fd = -1;
	sender->acquire = xspd_take_fd(&fd);
	*ret = xspd_take(sender);
	return 0;
}

void oracle_sender_free(struct oracle_sender *sender)
{
	if (!sender)
		return;
	for (unsigned int i = 0; i < SENDER_SOCKETS; i++)
		xspd_closep(&sender->socket[i].fd);
	close(sender->acquire);
	free(sender);
}

static socklen_t sender_address(struct sockaddr_storage *ret, uint8_t family, const void *addr,
				__be16 port)
{
	struct sockaddr_in6 *v6 = (void *)ret;
	struct sockaddr_in *v4 = (void *)ret;

	memset(ret, 0, sizeof(*ret));
	ret->ss_family = family;
	if (family == AF_INET) {
		v4->sin_port = port;
		if (addr)
			memcpy(&v4->sin_addr, addr, sizeof(v4->sin_addr));
		return sizeof(*v4);
	}
	v6->sin6_port = port;
	if (addr)
		memcpy(&v6->sin6_addr, addr, sizeof(v6->sin6_addr));
	return sizeof(*v6);
}

static int sender_open(uint8_t family, __be16 sport)
{
	struct sockaddr_storage addr;
	socklen_t len = sender_address(&addr, family, NULL, sport);
	xspd_autoclose int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int one = 1;

	if (fd < 0)
		return -errno;
	if (family == AF_INET) {
		if (setsockopt(fd, SOL_IP, IP_TRANSPARENT, &one, sizeof(one)) < 0)
			return -errno;
	} else if (setsockopt(fd, SOL_IPV6, IPV6_TRANSPARENT, &one, sizeof(one)) < 0 ||
		   setsockopt(fd, SOL_IPV6, IPV6_V6ONLY, &one, sizeof(one)) < 0) {
		return -errno;
	}
	if (bind(fd, (struct sockaddr *)&addr, len) < 0)
		return -errno;
	return xspd_take_fd(&fd);
}

static int sender_socket(struct oracle_sender *sender, const struct xspd_flow *flow)
{
	struct sender_socket *s;

	for (unsigned int i = 0; i < SENDER_SOCKETS; i++) {
		s = &sender->socket[i];
		if (s->fd >= 0 && s->sport == flow->sport && s->family == flow->family)
			return s->fd;
	}
	s = &sender->socket[sender->next++ % SENDER_SOCKETS];
	xspd_closep(&s->fd);
	s->fd = sender_open(flow->family, flow->sport);
	s->sport = flow->sport;
	s->family = flow->family;
	return s->fd;
}

static void sender_control(struct msghdr *msg, const struct xspd_flow *flow)
{
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg);
	struct in6_pktinfo v6 = {};
	struct in_pktinfo v4 = {};

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SO_MARK;
	cmsg->cmsg_len = CMSG_LEN(sizeof(flow->mark));
	memcpy(CMSG_DATA(cmsg), &flow->mark, sizeof(flow->mark));
	cmsg = CMSG_NXTHDR(msg, cmsg);
	if (flow->family == AF_INET) {
		memcpy(&v4.ipi_spec_dst, flow->saddr, sizeof(v4.ipi_spec_dst));
		cmsg->cmsg_level = SOL_IP;
		cmsg->cmsg_type = IP_PKTINFO;
		cmsg->cmsg_len = CMSG_LEN(sizeof(v4));
		memcpy(CMSG_DATA(cmsg), &v4, sizeof(v4));
		msg->msg_controllen = CMSG_SPACE(sizeof(flow->mark)) + CMSG_SPACE(sizeof(v4));
	} else {
		memcpy(&v6.ipi6_addr, flow->saddr, sizeof(v6.ipi6_addr));
		cmsg->cmsg_level = SOL_IPV6;
		cmsg->cmsg_type = IPV6_PKTINFO;
		cmsg->cmsg_len = CMSG_LEN(sizeof(v6));
		memcpy(CMSG_DATA(cmsg), &v6, sizeof(v6));
	}
}

/* The ACQUIRE is queued before sendmsg() returns. */
static int sender_acquired(struct oracle_sender *sender, uint32_t *ret_index)
{
	char buf[8192];
	const struct nlmsghdr *nlh = (void *)buf;
	const struct xfrm_user_acquire *acquire = NLMSG_DATA(nlh);
	uint32_t index = 0;

	while (recv(sender->acquire, buf, sizeof(buf), 0) > 0)
		if (nlh->nlmsg_type == XFRM_MSG_ACQUIRE && !index)
			index = acquire->policy.index;
	if (errno != EAGAIN)
		return -errno;
	*ret_index = index;
	return 0;
}

int oracle_sender_ask(struct oracle_sender *sender, const struct xspd_flow *flow,
		      uint32_t *ret_index)
{
	struct sockaddr_storage to;
	union {
		char buf[CMSG_SPACE(sizeof(uint32_t)) + CMSG_SPACE(sizeof(struct in6_pktinfo))];
		struct cmsghdr align;
	} control = {};
	struct msghdr msg = {
		.msg_name = &to, .msg_control = control.buf, .msg_controllen = sizeof(control.buf)};
	int fd;

	if (flow->dir != XSPD_OUT || flow->proto != IPPROTO_UDP || flow->if_id)
		return -EOPNOTSUPP;
	fd = sender_socket(sender, flow);
	if (fd < 0)
		return fd;
	msg.msg_namelen = sender_address(&to, flow->family, flow->daddr, flow->dport);
	sender_control(&msg, flow);
	if (sendmsg(fd, &msg, MSG_CONFIRM | MSG_PROBE) < 0)
		return -errno;
	return sender_acquired(sender, ret_index);
}
