// SPDX-License-Identifier: GPL-2.0-only
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include "nl/netfilter.h"
#include "nl/talk.h"
#include "util.h"

#define ATTEMPTS 5

/* linux/netfilter/nfnetlink_hook.h, of Linux 5.14 */
#define SUBSYS_HOOK	   12
#define HOOK_GET	   0
#define HOOK_NUMBER	   1
#define HOOK_FUNCTION_NAME 4
#define HOOK_MODULE_NAME   5
#define HOOK_CHAIN_INFO	   6

struct walk {
	xspd_nf_cb cb;
	void *ctx;
};

struct attrs {
	const struct nlattr *by[32];
};

static int attrs_read(const struct nlattr *attr, void *ctx)
{
	struct attrs *attrs = ctx;

	if (mnl_attr_get_type(attr) < XSPD_ARRAY_SIZE(attrs->by))
		attrs->by[mnl_attr_get_type(attr)] = attr;
	return MNL_CB_OK;
}

static const char *text_of(const struct attrs *attrs, uint16_t type)
{
	const struct nlattr *attr = attrs->by[type];

	return attr && mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0 ? mnl_attr_get_str(attr)
									 : "?";
}

static uint32_t number_of(const struct attrs *attrs, uint16_t type)
{
	const struct nlattr *attr = attrs->by[type];

	return attr && mnl_attr_validate(attr, MNL_TYPE_U32) >= 0 ? ntohl(mnl_attr_get_u32(attr))
								  : 0;
}

static const char *family_name(uint8_t family)
{
	switch (family) {
	case NFPROTO_INET:
		return "inet";
	case NFPROTO_IPV4:
		return "ip";
	case NFPROTO_ARP:
		return "arp";
	case NFPROTO_NETDEV:
		return "netdev";
	case NFPROTO_BRIDGE:
		return "bridge";
	case NFPROTO_IPV6:
		return "ip6";
	default:
		return "?";
	}
}

/* NULL if the message is not of @subsys, or too short. */
static const struct nfgenmsg *message_read(const struct nlmsghdr *nlh, uint8_t subsys,
					   struct attrs *ret)
{
	const struct nfgenmsg *head = mnl_nlmsg_get_payload(nlh);

	*ret = (struct attrs){};
	if (NFNL_SUBSYS_ID(nlh->nlmsg_type) != subsys ||
	    mnl_nlmsg_get_payload_len(nlh) < sizeof(*head) ||
	    mnl_attr_parse(nlh, sizeof(*head), attrs_read, ret) < 0)
		return NULL;
	return head;
}

static int chain_read(const struct nlmsghdr *nlh, void *ctx)
{
	const struct walk *walk = ctx;
	struct attrs chain, place = {};
	const struct nfgenmsg *head = message_read(nlh, NFNL_SUBSYS_NFTABLES, &chain);
	struct xspd_nf_hook hook = {};
	char name[400];

	/* other chains are jumped to from one with a hook */
	if (!head || !chain.by[NFTA_CHAIN_HOOK] ||
	    mnl_attr_parse_nested(chain.by[NFTA_CHAIN_HOOK], attrs_read, &place) < 0)
		return MNL_CB_OK;
	snprintf(name, sizeof(name), "nft %s %s %s", family_name(head->nfgen_family),
		 text_of(&chain, NFTA_CHAIN_TABLE), text_of(&chain, NFTA_CHAIN_NAME));
	hook.family = head->nfgen_family;
	hook.number = number_of(&place, NFTA_HOOK_HOOKNUM);
	hook.nat = !strcmp(text_of(&chain, NFTA_CHAIN_TYPE), "nat");
	hook.name = name;
	walk->cb(walk->ctx, &hook);
	return MNL_CB_OK;
}

static int flowtable_read(const struct nlmsghdr *nlh, void *ctx)
{
	const struct walk *walk = ctx;
	struct attrs table;
	const struct nfgenmsg *head = message_read(nlh, NFNL_SUBSYS_NFTABLES, &table);
	struct xspd_nf_hook hook = {.flowtable = true};
	char name[400];

	if (!head)
		return MNL_CB_OK;
	snprintf(name, sizeof(name), "nft flowtable %s %s %s", family_name(head->nfgen_family),
		 text_of(&table, NFTA_FLOWTABLE_TABLE), text_of(&table, NFTA_FLOWTABLE_NAME));
	hook.family = head->nfgen_family;
	hook.name = name;
	walk->cb(walk->ctx, &hook);
	return MNL_CB_OK;
}

static struct nlmsghdr *dump_put(void *buf, uint8_t subsys, uint8_t type, uint8_t family)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct nfgenmsg *head;

	nlh->nlmsg_type = (uint16_t)(subsys << 8 | type);
	nlh->nlmsg_flags = NLM_F_DUMP;
	head = mnl_nlmsg_put_extra_header(nlh, sizeof(*head));
	head->nfgen_family = family;
	head->version = NFNETLINK_V0;
	return nlh;
}

/* What the kernel answers that has no such subsystem, or not this message. */
static bool absent(int err)
{
	return err == -EINVAL || err == -EOPNOTSUPP || err == -EPROTONOSUPPORT;
}

static int tables_dump(uint8_t type, mnl_cb_t read, struct walk *walk)
{
	char buf[256] __attribute__((aligned(4)));
	int err = -EINTR;

	/* changed meanwhile: what it told so far was there all the same */
	for (int i = 0; i < ATTEMPTS && err == -EINTR; i++)
		err = xspd_nl_talk(NETLINK_NETFILTER,
				   dump_put(buf, NFNL_SUBSYS_NFTABLES, type, NFPROTO_UNSPEC), read,
				   walk);
	return absent(err) ? 0 : err;
}

int xspd_nf_tables(xspd_nf_cb cb, void *ctx)
{
	struct walk walk = {.cb = cb, .ctx = ctx};
	int err = tables_dump(NFT_MSG_GETCHAIN, chain_read, &walk);

	return err ?: tables_dump(NFT_MSG_GETFLOWTABLE, flowtable_read, &walk);
}

/* Judges what local sockets send, and lets pass what has none: nothing that is forwarded. */
static bool sockets_only(const struct attrs *attrs)
{
	return !attrs->by[HOOK_MODULE_NAME] && attrs->by[HOOK_FUNCTION_NAME] &&
	       !strcmp(text_of(attrs, HOOK_FUNCTION_NAME), "apparmor_ip_postroute");
}

static int hook_read(const struct nlmsghdr *nlh, void *ctx)
{
	const struct walk *walk = ctx;
	struct attrs attrs;
	const struct nfgenmsg *head = message_read(nlh, SUBSYS_HOOK, &attrs);
	struct xspd_nf_hook hook = {};
	char name[200];

	if (!head || attrs.by[HOOK_CHAIN_INFO] || sockets_only(&attrs))
		return MNL_CB_OK;
	snprintf(name, sizeof(name), "%s of %s",
		 attrs.by[HOOK_FUNCTION_NAME] ? text_of(&attrs, HOOK_FUNCTION_NAME) : "a function",
		 attrs.by[HOOK_MODULE_NAME] ? text_of(&attrs, HOOK_MODULE_NAME) : "the kernel");
	hook.family = head->nfgen_family;
	hook.number = number_of(&attrs, HOOK_NUMBER);
	hook.nat = strstr(name, "nat") != NULL;
	hook.name = name;
	walk->cb(walk->ctx, &hook);
	return MNL_CB_OK;
}

int xspd_nf_hooks(xspd_nf_cb cb, void *ctx)
{
	static const uint8_t families[] = {NFPROTO_IPV4, NFPROTO_IPV6};
	static bool none; /* asking would make the kernel look for a module every time */
	struct walk walk = {.cb = cb, .ctx = ctx};

	for (size_t i = 0; i < XSPD_ARRAY_SIZE(families) && !none; i++)
		for (uint32_t number = NF_INET_PRE_ROUTING; number <= NF_INET_POST_ROUTING;
		     number++) {
			char buf[256] __attribute__((aligned(4)));
			struct nlmsghdr *nlh = dump_put(buf, SUBSYS_HOOK, HOOK_GET, families[i]);
			int err;

			mnl_attr_put_u32(nlh, HOOK_NUMBER, htonl(number));
			err = xspd_nl_talk(NETLINK_NETFILTER, nlh, hook_read, &walk);
			if (absent(err)) {
				none = i == 0 && number == NF_INET_PRE_ROUTING;
				break;
			}
			/* EINTR: the hooks changed while they were read; it is called again soon */
			if (err && err != -EINTR && err != -ENOENT)
				return err;
		}
	return 0;
}

int xspd_nf_watch(void)
{
	struct sockaddr_nl addr = {.nl_family = AF_NETLINK,
				   .nl_groups = 1u << (NFNLGRP_NFTABLES - 1)};
	xspd_autoclose int fd =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_NETFILTER);

	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return -1;
	return xspd_take_fd(&fd);
}

void xspd_nf_watched(int fd)
{
	char one;

	/* which messages were lost does not matter either */
	for (int i = 0; i < 100000; i++)
		if (recv(fd, &one, sizeof(one), MSG_TRUNC) < 0 && errno != ENOBUFS &&
		    errno != EINTR)
			return;
}
