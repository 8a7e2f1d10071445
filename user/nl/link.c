// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <net/if_arp.h>
#include <string.h>
#include <linux/genetlink.h>

#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include "nl/link.h"
#include "nl/talk.h"

/* linux/netdev.h */
#define NETDEV_FAMILY		  "netdev"
#define NETDEV_CMD_DEV_GET	  1
#define NETDEV_A_DEV_IFINDEX	  1
#define NETDEV_A_DEV_XDP_FEATURES 3

/* linux/if_link.h, which kernel headers before 6.1 lack */
#define XFRM_COLLECT_METADATA 3

static int data_read(const struct nlattr *attr, void *ctx)
{
	struct xspd_link *link = ctx;

	if (mnl_attr_get_type(attr) == XFRM_COLLECT_METADATA)
		link->collect_md = !strcmp(link->kind, "xfrm");
	return MNL_CB_OK;
}

static int kind_read(const struct nlattr *attr, void *ctx)
{
	struct xspd_link *link = ctx;

	if (mnl_attr_get_type(attr) == IFLA_INFO_KIND &&
	    mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0)
		strncpy(link->kind, mnl_attr_get_str(attr), sizeof(link->kind) - 1);
	/* it follows the kind */
	if (mnl_attr_get_type(attr) == IFLA_INFO_DATA)
		mnl_attr_parse_nested(attr, data_read, link);
	return MNL_CB_OK;
}

static int link_attr(const struct nlattr *attr, void *ctx)
{
	struct xspd_link *link = ctx;

	switch (mnl_attr_get_type(attr)) {
	case IFLA_MASTER:
		if (mnl_attr_validate(attr, MNL_TYPE_U32) >= 0)
			link->master = mnl_attr_get_u32(attr);
		break;
	case IFLA_ADDRESS:
		if (mnl_attr_get_payload_len(attr) != sizeof(link->mac))
			link->ether = false;
		else
			memcpy(link->mac, mnl_attr_get_payload(attr), sizeof(link->mac));
		break;
	case IFLA_QDISC:
		if (mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0)
			strncpy(link->qdisc, mnl_attr_get_str(attr), sizeof(link->qdisc) - 1);
		break;
	case IFLA_LINKINFO:
		mnl_attr_parse_nested(attr, kind_read, link);
		break;
	}
	return MNL_CB_OK;
}

static int link_read(const struct nlmsghdr *nlh, void *ctx)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	struct xspd_link *link = ctx;

	if (nlh->nlmsg_type != RTM_NEWLINK || mnl_nlmsg_get_payload_len(nlh) < sizeof(*ifi))
		return MNL_CB_OK;
	link->ifindex = (uint32_t)ifi->ifi_index;
	link->flags = ifi->ifi_flags;
	link->ether = ifi->ifi_type == ARPHRD_ETHER;
	return mnl_attr_parse(nlh, sizeof(*ifi), link_attr, link);
}

int xspd_link_get(const char *name, struct xspd_link *ret)
{
	char buf[256] __attribute__((aligned(4)));
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct xspd_link link = {};
	struct ifinfomsg *ifi;
	int err;

	nlh->nlmsg_type = RTM_GETLINK;
	ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));
	ifi->ifi_family = AF_UNSPEC;
	if (!mnl_attr_put_strz_check(nlh, sizeof(buf), IFLA_IFNAME, name))
		return -ENODEV;
	err = xspd_nl_talk(NETLINK_ROUTE, nlh, link_read, &link);
	if (err)
		return err;
	*ret = link;
	return 0;
}

static int family_attr(const struct nlattr *attr, void *ctx)
{
	if (mnl_attr_get_type(attr) == CTRL_ATTR_FAMILY_ID &&
	    mnl_attr_validate(attr, MNL_TYPE_U16) >= 0)
		*(uint16_t *)ctx = mnl_attr_get_u16(attr);
	return MNL_CB_OK;
}

static int family_read(const struct nlmsghdr *nlh, void *ctx)
{
	return mnl_attr_parse(nlh, sizeof(struct genlmsghdr), family_attr, ctx);
}

static int features_attr(const struct nlattr *attr, void *ctx)
{
	if (mnl_attr_get_type(attr) == NETDEV_A_DEV_XDP_FEATURES &&
	    mnl_attr_validate(attr, MNL_TYPE_U64) >= 0)
		*(uint64_t *)ctx = mnl_attr_get_u64(attr);
	return MNL_CB_OK;
}

static int features_read(const struct nlmsghdr *nlh, void *ctx)
{
	return mnl_attr_parse(nlh, sizeof(struct genlmsghdr), features_attr, ctx);
}

static struct nlmsghdr *generic_put(void *buf, uint16_t family, uint8_t command)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct genlmsghdr *genl;

	nlh->nlmsg_type = family;
	genl = mnl_nlmsg_put_extra_header(nlh, sizeof(*genl));
	genl->cmd = command;
	genl->version = 1;
	return nlh;
}

int xspd_link_xdp(uint32_t ifindex, uint64_t *ret)
{
	char buf[256] __attribute__((aligned(4)));
	struct nlmsghdr *nlh = generic_put(buf, GENL_ID_CTRL, CTRL_CMD_GETFAMILY);
	uint16_t family = 0;
	int err;

	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, NETDEV_FAMILY);
	err = xspd_nl_talk(NETLINK_GENERIC, nlh, family_read, &family);
	if (err == -ENOENT || (!err && !family))
		return -EOPNOTSUPP;
	if (err)
		return err;
	*ret = 0;
	nlh = generic_put(buf, family, NETDEV_CMD_DEV_GET);
	mnl_attr_put_u32(nlh, NETDEV_A_DEV_IFINDEX, ifindex);
	return xspd_nl_talk(NETLINK_GENERIC, nlh, features_read, ret);
}
