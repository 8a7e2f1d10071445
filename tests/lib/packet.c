// SPDX-License-Identifier: GPL-2.0-only
#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/xfrm.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "lib/netns.h"
#include "lib/packet.h"
#include "util.h"

#define ETH_P_MARKER 0x88b5 /* "local experimental": ends each question */
#define TABLE_LOCAL  4711   /* a routing table in which every address is ours */

/* A veth pair: frames sent on one end come in by the other. */
struct packet_entry {
	int send;
	int seen; /* a tap on the other end, for the markers */
	uint8_t mac[ETH_ALEN];
};

struct packet_way {
	struct packet_entry local, forward;
	uint32_t away; /* device that forwarded packets leave by */
	uint32_t marker;
};

static int entry_socket(const char *dev, uint16_t proto)
{
	struct sockaddr_ll addr = {.sll_family = AF_PACKET, .sll_protocol = htons(proto)};
	xspd_autoclose int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	addr.sll_ifindex = (int)if_nametoindex(dev);
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return -errno;
	return xspd_take_fd(&fd);
}

static int entry_open(struct packet_entry *entry, const char *dev)
{
	struct ifreq ifr = {};
	char peer[IFNAMSIZ];

	if (!netns_device(dev))
		return -EIO;
	snprintf(peer, sizeof(peer), "%.10s-p", dev);
	entry->send = entry_socket(dev, 0);
	if (entry->send < 0)
		return entry->send;
	entry->seen = entry_socket(peer, ETH_P_MARKER);
	if (entry->seen < 0)
		return entry->seen;
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", peer);
	if (ioctl(entry->send, SIOCGIFHWADDR, &ifr) < 0)
		return -errno;
	memcpy(entry->mac, ifr.ifr_hwaddr.sa_data, ETH_ALEN);
	return 0;
}

static int way_open(struct packet_way *way)
{
	cpu_set_t cpus;
	int err;

	err = entry_open(&way->forward, "pass0");
	if (!err)
		err = entry_open(&way->local, "home0");
	if (err)
		return err;
	way->away = netns_device("away0");
	CPU_ZERO(&cpus);
	CPU_SET(sched_getcpu(), &cpus);
	if (!way->away || sched_setaffinity(0, sizeof(cpus), &cpus) < 0)
		return -EIO;
	return netns_run("for f in -4 -6; do ip $f route add local default dev lo table %d && "
			 "ip $f rule add iif home0-p lookup %d pref 10 || exit; done",
			 TABLE_LOCAL, TABLE_LOCAL);
}

int packet_way_new(struct packet_way **ret)
{
	struct packet_way *way = calloc(1, sizeof(*way));
	int err;

	if (!way)
		return -ENOMEM;
	way->forward.send = way->forward.seen = way->local.send = way->local.seen = -1;
	err = way_open(way);
	if (err)
		packet_way_free(way);
	else
		*ret = way;
	return err;
}

void packet_way_free(struct packet_way *way)
{
	if (!way)
		return;
	xspd_closep(&way->forward.send);
	xspd_closep(&way->forward.seen);
	xspd_closep(&way->local.send);
	xspd_closep(&way->local.seen);
	free(way);
}

uint32_t packet_way_oif(const struct packet_way *way, uint8_t dir)
{
	return dir == XSPD_IN ? 1 : way->away;
}

/* A frame that no protocol takes; the tap sees it after the stack is done with what came before. */
static int entry_wait(struct packet_entry *entry, uint32_t marker)
{
	uint8_t frame[64] = {};
	struct ethhdr *eth = (void *)frame;
	struct pollfd poll_fd = {.fd = entry->seen, .events = POLLIN};
	uint32_t got = marker - 1;

	memcpy(eth->h_dest, entry->mac, ETH_ALEN);
	eth->h_proto = htons(ETH_P_MARKER);
	memcpy(frame + sizeof(*eth), &marker, sizeof(marker));
	if (send(entry->send, frame, sizeof(frame), 0) < 0)
		return -errno;
	while (got != marker) {
		if (poll(&poll_fd, 1, 2000) != 1)
			return -ETIMEDOUT;
		if (recv(entry->seen, frame, sizeof(frame), 0) < 0)
			return -errno;
		memcpy(&got, frame + sizeof(*eth), sizeof(got));
	}
	return 0;
}

int packet_send(struct packet_way *way, const struct xspd_flow *flow)
{
	struct packet_entry *entry = flow->dir == XSPD_IN ? &way->local : &way->forward;
	uint8_t frame[PACKET_MAX];
	size_t len = packet_build(frame, flow);

	memcpy(frame, entry->mac, ETH_ALEN);
	if (setsockopt(entry->send, SOL_SOCKET, SO_MARK, &flow->mark, sizeof(flow->mark)) < 0 ||
	    send(entry->send, frame, len, 0) < 0)
		return -errno;
	return entry_wait(entry, ++way->marker);
}

static bool used_decode(const struct nlmsghdr *nlh, struct packet_used *ret)
{
	struct xfrm_userpolicy_info info;
	const struct xfrm_userpolicy_type *type;
	const struct xfrm_user_tmpl *tmpl;
	const struct nlattr *attr;

	memcpy(&info, NLMSG_DATA(nlh), sizeof(info)); /* only 4 bytes aligned, it wants 8 */
	if (!info.curlft.use_time || info.dir >= XSPD_DIR_MAX_)
		return false;
	*ret = (struct packet_used){.index = info.index, .dir = info.dir};
	mnl_attr_for_each (attr, nlh, sizeof(info)) {
		if (mnl_attr_get_type(attr) == XFRMA_TMPL) {
			tmpl = mnl_attr_get_payload(attr);
			ret->reqid = tmpl->reqid;
		} else if (mnl_attr_get_type(attr) == XFRMA_POLICY_TYPE) {
			type = mnl_attr_get_payload(attr);
			ret->type = type->type;
		}
	}
	return true;
}

int packet_used(struct packet_used *ret, size_t max, size_t *ret_count)
{
	struct {
		struct nlmsghdr nlh;
		char body[64];
	} req = {.nlh = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct xfrm_userpolicy_id)),
			 .nlmsg_type = XFRM_MSG_GETPOLICY,
			 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP}};
	xspd_autoclose int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_XFRM);
	static char buf[65536];
	struct packet_used used;
	size_t count = 0;

	if (fd < 0 || send(fd, &req, req.nlh.nlmsg_len, 0) < 0)
		return -errno;
	for (;;) {
		int len = (int)recv(fd, buf, sizeof(buf), 0);
		const struct nlmsghdr *nlh = (void *)buf;

		if (len < 0)
			return -errno;
		for (; mnl_nlmsg_ok(nlh, len); nlh = mnl_nlmsg_next(nlh, &len)) {
			if (nlh->nlmsg_type == NLMSG_DONE) {
				*ret_count = count;
				return 0;
			}
			if (nlh->nlmsg_type == NLMSG_ERROR)
				return -EIO;
			if (used_decode(nlh, &used) && count++ < max)
				ret[count - 1] = used;
		}
	}
}
