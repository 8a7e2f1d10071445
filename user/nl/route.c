// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "nl/route.h"
#include "util.h"

#define RECV_MAX 65536
#define RCVBUF	 (4 << 20)
#define ATTEMPTS 3

#define RTMGRP_IPV6_RULE (1 << (RTNLGRP_IPV6_RULE - 1)) /* not in the header */

struct attrs {
	const struct nlattr *metrics;
	bool many;
};

static int is_special(const struct nlattr *attr, void *data)
{
	struct attrs *attrs = data;

	if (mnl_attr_get_type(attr) == RTA_METRICS)
		attrs->metrics = attr;
	if (mnl_attr_get_type(attr) == RTA_MULTIPATH || mnl_attr_get_type(attr) == RTA_NH_ID)
		attrs->many = true;
	return MNL_CB_OK;
}

static int is_mtu(const struct nlattr *attr, void *data)
{
	uint32_t *mtu = data;

	if (mnl_attr_get_type(attr) == RTAX_MTU && mnl_attr_validate(attr, MNL_TYPE_U32) >= 0)
		*mtu = mnl_attr_get_u32(attr);
	return MNL_CB_OK;
}

static enum xspd_rules hidden(uint16_t type)
{
	switch (type) {
	case FRA_FWMARK:
	case FRA_FWMASK:
		return XSPD_RULES_MARK;
	case FRA_TUN_ID:
		return XSPD_RULES_TUNNEL;
	default:
		return XSPD_RULES_SEEN;
	}
}

static int is_hidden(const struct nlattr *attr, void *data)
{
	enum xspd_rules *rules = data, by = hidden(mnl_attr_get_type(attr));

	*rules = by > *rules ? by : *rules;
	return MNL_CB_OK;
}

/* What one message of a route or a rule has of it. */
static struct xspd_routes message_routes(const struct nlmsghdr *nlh)
{
	const struct rtmsg *rtm = mnl_nlmsg_get_payload(nlh);
	struct attrs attrs = {};
	struct xspd_routes ret = {};

	if (nlh->nlmsg_len < MNL_NLMSG_HDRLEN + sizeof(*rtm))
		return ret;
	if (nlh->nlmsg_type == RTM_NEWRULE || nlh->nlmsg_type == RTM_DELRULE) {
		_Static_assert(sizeof(struct fib_rule_hdr) == sizeof(*rtm), "one header for both");
		mnl_attr_parse(nlh, sizeof(*rtm), is_hidden, &ret.rules);
		return ret;
	}
	if (nlh->nlmsg_type != RTM_NEWROUTE && nlh->nlmsg_type != RTM_DELROUTE)
		return ret;
	mnl_attr_parse(nlh, sizeof(*rtm), is_special, &attrs);
	if (attrs.metrics)
		mnl_attr_parse_nested(attrs.metrics, is_mtu, &ret.mtu);
	ret.many = attrs.many && rtm->rtm_family == AF_INET;
	return ret;
}

/* What the end of a dump, or an error in its place, says: 0 or a negative errno. */
static int ended(const struct nlmsghdr *nlh)
{
	const int *err = mnl_nlmsg_get_payload(nlh);

	if (nlh->nlmsg_len < MNL_NLMSG_HDRLEN + sizeof(*err))
		return nlh->nlmsg_type == NLMSG_ERROR ? -EBADMSG : 0;
	return *err;
}

/* What one datagram of a dump holds: 1 if it was the last, 0, or a negative errno. */
static int take(char *buf, int len, struct xspd_routes *found, bool *interrupted)
{
	const struct nlmsghdr *nlh = (void *)buf;

	for (; mnl_nlmsg_ok(nlh, len); nlh = mnl_nlmsg_next(nlh, &len)) {
		struct xspd_routes routes = message_routes(nlh);

		*interrupted |= nlh->nlmsg_flags & NLM_F_DUMP_INTR;
		if (nlh->nlmsg_type == NLMSG_DONE || nlh->nlmsg_type == NLMSG_ERROR)
			return ended(nlh) ?: 1;
		if (routes.mtu && (!found->mtu || routes.mtu < found->mtu))
			found->mtu = routes.mtu;
		found->many |= routes.many;
		found->rules = routes.rules > found->rules ? routes.rules : found->rules;
	}
	return 0;
}

static int dump(uint16_t type, uint8_t family, struct xspd_routes *found, bool *interrupted)
{
	struct {
		struct nlmsghdr nlh;
		struct rtmsg rtm;
	} req = {
		.nlh = {.nlmsg_len = NLMSG_LENGTH(sizeof(req.rtm)),
			.nlmsg_type = type,
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
		end = take(buf, len, found, interrupted);
	}
	return end < 0 ? end : 0;
}

/* A kernel without rules, or without IPv6, has none. */
static int dump_rules(uint8_t family, struct xspd_routes *found, bool *interrupted)
{
	int err = dump(RTM_GETRULE, family, found, interrupted);

	return err == -EOPNOTSUPP || err == -EAFNOSUPPORT ? 0 : err;
}

/*
 * A dump that routes changed under may have missed one. Where they never rest the last
 * attempt has to do: what changed is told to the watch, and what was found in any of them counts.
 */
int xspd_routes_scan(struct xspd_routes *ret)
{
	struct xspd_routes found = {};
	bool interrupted = true;
	int err = 0;

	for (int i = 0; i < ATTEMPTS && interrupted && !err; i++) {
		interrupted = false;
		err = dump(RTM_GETROUTE, AF_INET, &found, &interrupted);
		err = err ?: dump(RTM_GETROUTE, AF_INET6, &found, &interrupted);
		err = err ?: dump_rules(AF_INET, &found, &interrupted);
		err = err ?: dump_rules(AF_INET6, &found, &interrupted);
	}
	if (!err)
		*ret = found;
	return err;
}

int xspd_route_watch(void)
{
	struct sockaddr_nl addr = {.nl_family = AF_NETLINK,
				   .nl_groups = RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE |
						RTMGRP_IPV4_RULE | RTMGRP_IPV6_RULE};
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
		for (; mnl_nlmsg_ok(nlh, len); nlh = mnl_nlmsg_next(nlh, &len)) {
			struct xspd_routes routes = message_routes(nlh);

			touched |= routes.mtu || routes.many || routes.rules;
		}
	}
}
