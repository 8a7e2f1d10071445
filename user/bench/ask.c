/* SPDX-License-Identifier: GPL-2.0-only */
/* Asking the kernel about flows without a packet, as fast as that can be done. */
#include <errno.h>
#include <netinet/in.h>
#include <linux/netlink.h>
#include <linux/xfrm.h>
#include <string.h>
#include <sys/socket.h>

#include "bench/lab.h"
#include "util.h"

/* What libc may be too old to know. */
#ifndef MSG_PROBE
#define MSG_PROBE 0x10
#endif
#ifndef IPV6_TRANSPARENT
#define IPV6_TRANSPARENT 75
#endif

#define BATCH 64 /* questions a system call */

static int open_socket(const struct xspd_flow *flow, int *ret)
{
	bool v6 = flow->family == XSPD_INET6;
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = flow->sport};
	struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6, .sin6_port = flow->sport};
	const struct sockaddr *addr = v6 ? (struct sockaddr *)&sin6 : (struct sockaddr *)&sin;
	socklen_t len = v6 ? sizeof(sin6) : sizeof(sin);
	xspd_autoclose int fd = -1;
	int on = 1;

	fd = socket(flow->family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (v6 && setsockopt(fd, SOL_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0)
		return -errno; /* or the port is taken for IPv4 as well */
	/* any source address, whether the machine has it or not */
	if (v6 ? setsockopt(fd, SOL_IPV6, IPV6_TRANSPARENT, &on, sizeof(on))
	       : setsockopt(fd, SOL_IP, IP_TRANSPARENT, &on, sizeof(on)))
		return -errno;
	if (bind(fd, addr, len) < 0)
		return -errno;
	*ret = xspd_take_fd(&fd);
	return 0;
}

/* Returns the descriptor; few distinct ports are asked for, so a scan will do. */
static int socket_for(struct xspd_lab *lab, const struct xspd_flow *flow)
{
	struct xspd_lab_socket *sockets;
	int fd = -1, err;

	for (uint32_t i = 0; i < lab->socket_count; i++)
		if (lab->sockets[i].sport == flow->sport && lab->sockets[i].family == flow->family)
			return lab->sockets[i].fd;
	sockets = realloc(lab->sockets, (lab->socket_count + 1) * sizeof(*sockets));
	if (!sockets)
		return -ENOMEM;
	lab->sockets = sockets;
	err = open_socket(flow, &fd);
	if (err < 0)
		return err;
	sockets[lab->socket_count++] = (struct xspd_lab_socket){
		.fd = fd,
		.sport = flow->sport,
		.family = flow->family,
	};
	return fd;
}

static void put_cmsg(struct msghdr *msg, int level, int type, const void *data, size_t len)
{
	struct cmsghdr *cmsg = (struct cmsghdr *)((char *)msg->msg_control + msg->msg_controllen);

	cmsg->cmsg_level = level;
	cmsg->cmsg_type = type;
	cmsg->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(cmsg), data, len);
	msg->msg_controllen += CMSG_SPACE(len);
}

/* One message of a batch: where to, and from where. */
struct probe {
	union {
		struct sockaddr_in sin;
		struct sockaddr_in6 sin6;
	} name;
	char control[CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(uint32_t))];
};

static void probe_init(struct probe *probe, struct msghdr *msg, const struct xspd_flow *flow)
{
	*msg = (struct msghdr){.msg_name = &probe->name, .msg_control = probe->control};
	if (flow->family == XSPD_INET6) {
		struct in6_pktinfo info = {};

		probe->name.sin6 = (struct sockaddr_in6){
			.sin6_family = AF_INET6,
			.sin6_port = flow->dport,
		};
		memcpy(&probe->name.sin6.sin6_addr, flow->daddr, 16);
		memcpy(&info.ipi6_addr, flow->saddr, 16);
		msg->msg_namelen = sizeof(probe->name.sin6);
		put_cmsg(msg, SOL_IPV6, IPV6_PKTINFO, &info, sizeof(info));
	} else {
		struct in_pktinfo info = {.ipi_spec_dst.s_addr = flow->saddr[0]};

		probe->name.sin = (struct sockaddr_in){
			.sin_family = AF_INET,
			.sin_port = flow->dport,
			.sin_addr.s_addr = flow->daddr[0],
		};
		msg->msg_namelen = sizeof(probe->name.sin);
		put_cmsg(msg, SOL_IP, IP_PKTINFO, &info, sizeof(info));
	}
	if (flow->mark)
		put_cmsg(msg, SOL_SOCKET, SO_MARK, &flow->mark, sizeof(flow->mark));
}

/* A block policy ends a batch early with EPERM: that was an answer too, go on behind it. */
static int send_batch(int fd, struct mmsghdr *msgs, uint32_t count)
{
	uint32_t done = 0;
	int n;

	while (done < count) {
		n = sendmmsg(fd, msgs + done, count - done, MSG_CONFIRM | MSG_PROBE);
		if (n < 0 && errno != EPERM)
			return -errno;
		done += n < 0 ? 1 : (uint32_t)n;
	}
	return 0;
}

static bool same_socket(const struct xspd_flow *a, const struct xspd_flow *b)
{
	return a->sport == b->sport && a->family == b->family;
}

static int time_send(struct xspd_lab *lab, const struct xspd_flow *flows, uint32_t count)
{
	struct probe probes[BATCH] = {};
	struct mmsghdr msgs[BATCH] = {};
	int fd = -1, err;

	for (uint32_t done = 0, n; done < count; done += n) {
		if (!done || !same_socket(&flows[done - 1], &flows[done]))
			fd = socket_for(lab, &flows[done]);
		if (fd < 0)
			return fd;
		for (n = 0; n < BATCH && done + n < count; n++) {
			if (!same_socket(&flows[done], &flows[done + n]))
				break;
			probe_init(&probes[n], &msgs[n].msg_hdr, &flows[done + n]);
		}
		err = send_batch(fd, msgs, n);
		if (err < 0)
			return err;
	}
	return 0;
}

struct migrate_msg {
	struct nlmsghdr nlh;
	struct xfrm_userpolicy_id id;
	struct nlattr type_hdr;
	struct xfrm_userpolicy_type type;
	uint8_t pad[2];
	struct nlattr if_id_hdr;
	uint32_t if_id;
	struct nlattr migrate_hdr;
	struct xfrm_user_migrate migrate;
};

/*
 * The answers are never read: the first ones fill the smallest of buffers,
 * the others are dropped, at the same price in every SPD.
 */
static int open_netlink(int *ret)
{
	struct sockaddr_nl addr = {.nl_family = AF_NETLINK};
	xspd_autoclose int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_XFRM);
	int on = 1, least = 0;

	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return -errno;
	if (setsockopt(fd, SOL_NETLINK, NETLINK_NO_ENOBUFS, &on, sizeof(on)) < 0 ||
	    setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least)) < 0)
		return -errno;
	*ret = xspd_take_fd(&fd);
	return 0;
}

/* From a template to the same template: no policy has it, so nothing can be changed. */
static void migrate_init(struct migrate_msg *msg)
{
	*msg = (struct migrate_msg){
		.nlh.nlmsg_len = sizeof(*msg),
		.nlh.nlmsg_type = XFRM_MSG_MIGRATE,
		.nlh.nlmsg_flags = NLM_F_REQUEST,
		.type_hdr = {sizeof(struct nlattr) + sizeof(msg->type), XFRMA_POLICY_TYPE},
		.if_id_hdr = {sizeof(struct nlattr) + sizeof(msg->if_id), XFRMA_IF_ID},
		.migrate_hdr = {sizeof(struct nlattr) + sizeof(msg->migrate), XFRMA_MIGRATE},
		.migrate =
			{
				.old_daddr.a4 = htonl(0xc0000201),
				.old_saddr.a4 = htonl(0xc0000202),
				.new_daddr.a4 = htonl(0xc0000201),
				.new_saddr.a4 = htonl(0xc0000202),
				.proto = IPPROTO_ESP,
				.mode = XFRM_MODE_TUNNEL,
				.reqid = ~0u,
				.old_family = AF_INET,
				.new_family = AF_INET,
			},
	};
}

static void migrate_set_flow(struct migrate_msg *msg, const struct xspd_flow *flow)
{
	struct xfrm_selector *sel = &msg->id.sel;

	memcpy(&sel->daddr, flow->daddr, sizeof(sel->daddr));
	memcpy(&sel->saddr, flow->saddr, sizeof(sel->saddr));
	sel->dport = flow->dport;
	sel->sport = flow->sport;
	sel->family = flow->family;
	sel->prefixlen_d = sel->prefixlen_s = flow->family == XSPD_INET6 ? 128 : 32;
	sel->proto = flow->proto;
	sel->ifindex = (int)flow->oif;
	msg->id.dir = flow->dir;
	msg->if_id = flow->if_id;
}

static int time_migrate(struct xspd_lab *lab, const struct xspd_flow *flows, uint32_t count)
{
	struct migrate_msg msgs[BATCH];

	for (uint32_t i = 0; i < BATCH; i++)
		migrate_init(&msgs[i]);
	for (uint32_t done = 0; done < count;) {
		uint32_t n = count - done < BATCH ? count - done : BATCH;

		for (uint32_t i = 0; i < n; i++)
			migrate_set_flow(&msgs[i], &flows[done + i]);
		if (send(lab->netlink, msgs, n * sizeof(*msgs), 0) < 0)
			return -errno;
		done += n;
	}
	return 0;
}

int xspd_lab_time(struct xspd_lab *lab, enum xspd_lab_way way, const struct xspd_flow *flows,
		  uint32_t count, double *ret_ns)
{
	uint64_t start;
	int err = xspd_lab_enter(lab); /* sockets are opened on the way */

	if (err < 0)
		return err;
	if (way == XSPD_LAB_MIGRATE && lab->netlink < 0) {
		err = open_netlink(&lab->netlink);
		if (err < 0)
			return err;
	}
	start = xspd_mono();
	err = way == XSPD_LAB_SEND ? time_send(lab, flows, count) : time_migrate(lab, flows, count);
	if (err < 0)
		return err;
	*ret_ns = (double)(xspd_mono() - start) / count;
	return 0;
}

/* The kernel's answer to one question, read from a socket of its own. */
static int migrate_ask(int fd, const struct migrate_msg *msg)
{
	struct {
		struct nlmsghdr nlh;
		struct nlmsgerr err;
	} answer = {};
	struct timeval patience = {.tv_sec = 5};

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (send(fd, msg, sizeof(*msg), 0) < 0 || recv(fd, &answer, sizeof(answer), 0) < 0)
		return -errno;
	return answer.nlh.nlmsg_type == NLMSG_ERROR ? answer.err.error : -EBADMSG;
}

int xspd_lab_migrate_works(void)
{
	struct xspd_flow flow = {.family = XSPD_INET, .dir = XSPD_OUT, .if_id = ~0u};
	xspd_autoclose int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_XFRM);
	struct migrate_msg msg;
	int err;

	if (!xspd_kernel_since(6, 12)) /* it compares selectors */
		return -EOPNOTSUPP;
	if (fd < 0)
		return -errno;
	migrate_init(&msg);
	migrate_set_flow(&msg, &flow);
	err = migrate_ask(fd, &msg);
	/* not found, or found and without such a template */
	if (err == -ENOENT || err == -ENODATA)
		return 0;
	return err == -EPERM ? err : -EOPNOTSUPP;
}
