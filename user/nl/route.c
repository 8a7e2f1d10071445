// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "nl/route.h"
#include "util.h"

#define RECV_MAX 65536
#define RCVBUF	 (4 << 20)
#define ATTEMPTS 3

static int is_metrics(const struct nlattr *attr, void *data)
{
	const struct nlattr **metrics = data;

	if (mnl_attr_get_type(attr) == RTA_METRICS)
		*metrics = attr;
	return MNL_CB_OK;
}

static int is_mtu(const struct nlattr *attr, void *data)
{
	uint32_t *mtu = data;

	if (mnl_attr_get_type(attr) == RTAX_MTU && mnl_attr_validate(attr, MNL_TYPE_U32) >= 0)
		*mtu = mnl_attr_get_u32(attr);
	return MNL_CB_OK;
}

/* Of one route message, 0: it has none. */
static uint32_t message_mtu(const struct nlmsghdr *nlh)
{
	const struct nlattr *metrics = NULL;
	uint32_t mtu = 0;

	if (nlh->nlmsg_type != RTM_NEWROUTE && nlh->nlmsg_type != RTM_DELROUTE)
		return 0;
	if (nlh->nlmsg_len < MNL_NLMSG_HDRLEN + sizeof(struct rtmsg))
		return 0;
	mnl_attr_parse(nlh, sizeof(struct rtmsg), is_metrics, &metrics);
	if (metrics)
		mnl_attr_parse_nested(metrics, is_mtu, &mtu);
	return mtu;
}

/* What one datagram of a dump holds: 1 if it was the last, 0, or a negative errno. */
static int take(char *buf, int len, uint32_t *least, bool *interrupted)
{
	const struct nlmsghdr *nlh = (void *)buf;

	for (; mnl_nlmsg_ok(nlh, len); nlh = mnl_nlmsg_next(nlh, &len)) {
		uint32_t mtu = message_mtu(nlh);

		*interrupted |= nlh->nlmsg_flags & NLM_F_DUMP_INTR;
		if (nlh->nlmsg_type == NLMSG_DONE)
			return 1;
		if (nlh->nlmsg_type == NLMSG_ERROR)
			return -EIO;
		if (mtu && (!*least || mtu < *least))
			*least = mtu;
	}
	return 0;
}

static int dump(uint8_t family, uint32_t *least, bool *interrupted)
{
	struct {
		struct nlmsghdr nlh;
		struct rtmsg rtm;
	} req = {
		.nlh = {.nlmsg_len = NLMSG_LENGTH(sizeof(req.rtm)),
			.nlmsg_type = RTM_GETROUTE,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.rtm.rtm_family = family,
	};
	xspd_autoclose int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	_Alignas(NLMSG_ALIGNTO) char buf[RECV_MAX];
	int end = 0;

	if (fd < 0 || send(fd, &req, req.nlh.nlmsg_len, 0) < 0)
		return -errno;
	while (!end) {
		int len = (int)recv(fd, buf, sizeof(buf), 0);

		if (len < 0 && errno == EINTR)
			continue;
		if (len < 0)
			return -errno;
		end = take(buf, len, least, interrupted);
	}
	return end < 0 ? end : 0;
}

/*
 * A dump that routes changed under may have missed one. Where they never rest the last
 * attempt has to do: what changed is told to the watch, and what was found in any of them counts.
 */
int xspd_route_mtu(uint32_t *ret)
{
	bool interrupted = true;
	uint32_t least = 0;
	int err = 0;

	for (int i = 0; i < ATTEMPTS && interrupted && !err; i++) {
		interrupted = false;
		err = dump(AF_INET, &least, &interrupted);
		err = err ?: dump(AF_INET6, &least, &interrupted);
	}
	if (!err)
		*ret = least;
	return err;
}

int xspd_route_watch(void)
{
	struct sockaddr_nl addr = {.nl_family = AF_NETLINK,
				   .nl_groups = RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE};
	xspd_autoclose int fd =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	int size = RCVBUF;

	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	return xspd_take_fd(&fd);
}

bool xspd_route_watched(int fd)
{
	_Alignas(NLMSG_ALIGNTO) char buf[RECV_MAX];
	bool touched = false;

	for (;;) {
		const struct nlmsghdr *nlh = (void *)buf;
		int len = (int)recv(fd, buf, sizeof(buf), 0);

		if (len < 0 && errno == EINTR)
			continue;
		if (len < 0 && errno != ENOBUFS)
			return touched;
		touched |= len < 0;
		for (; mnl_nlmsg_ok(nlh, len); nlh = mnl_nlmsg_next(nlh, &len))
			touched |= message_mtu(nlh) != 0;
	}
}
