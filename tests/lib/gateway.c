// SPDX-License-Identifier: GPL-2.0-only
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/xfrm.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>

#include "lib/gateway.h"
#include "lib/gateway_out.h"
#include "lib/netns.h"
#include "nl/nl.h"
#include "util.h"

#define ETH_P_MARKER 0x88b5
/* Each frame makes at most a few; a veth's ring holds 256 */
#define BATCH	32
#define RCVBUF	(64 << 20)
#define SOCKETS 64

struct end {
	uint32_t ifindex;
	uint8_t mac[ETH_ALEN];
	int send;    /* into the device, by its far end */
	int seen;    /* markers that arrived by it */
	int back;    /* markers the other way */
	int capture; /* what comes out at the far end */
};

struct gateway {
	struct end end[GATEWAY_SIDES];
	int socket[SOCKETS];
	int sockets;
	uint64_t raw_v4; /* which of them receive the IP header too */
	int acquires;
	uint32_t marker, mark;
	unsigned int sent;
	struct gateway_out *out;
};

static const char names[GATEWAY_SIDES] = {'c', 's', 't'};

/* --- sockets ------------------------------------------------------------------- */

static int packet_socket(const char *dev, uint16_t proto)
{
	struct sockaddr_ll addr = {.sll_family = AF_PACKET, .sll_protocol = htons(proto)};
	xspd_autoclose int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	int on = 1, size = RCVBUF;

	addr.sll_ifindex = (int)if_nametoindex(dev);
	if (fd < 0 || setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0 ||
	    bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return -errno;
	if (!proto && setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof(on)) < 0)
		return -errno;
	return xspd_take_fd(&fd);
}

static int end_open(struct end *end, char letter)
{
	char near[] = {letter, '0', 0}, far[] = {letter, '1', 0};

	end->ifindex = if_nametoindex(near);
	memcpy(end->mac, (uint8_t[]){2, 0, 0, 0, 0, (uint8_t)letter}, ETH_ALEN);
	if ((end->send = packet_socket(far, 0)) < 0)
		return end->send;
	if ((end->seen = packet_socket(near, ETH_P_MARKER)) < 0)
		return end->seen;
	if ((end->back = packet_socket(near, 0)) < 0)
		return end->back;
	if ((end->capture = packet_socket(far, ETH_P_ALL)) < 0)
		return end->capture;
	return 0;
}

/* What an IKE daemon gives its sockets: whatever the SPD says, this one is let through. */
static int bypass(int fd, int family)
{
	struct xfrm_userpolicy_info info = {.sel.family = (uint16_t)family};
	int level = family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6;
	int option = family == AF_INET ? 17 : 35; /* IP_XFRM_POLICY, IPV6_XFRM_POLICY */

	for (info.dir = XFRM_POLICY_IN; info.dir <= XFRM_POLICY_OUT; info.dir++)
		if (setsockopt(fd, level, option, &info, sizeof(info)) < 0)
			return -errno;
	return 0;
}

static int local_socket(struct gateway *gw, int family, int type, int proto, uint16_t port)
{
	xspd_autoclose int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, proto);
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
	int on = 1, size = RCVBUF;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0)
		return -errno;
	if (family == AF_INET6 && type == SOCK_DGRAM &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0)
		return -errno;
	if (port && bind(fd, family == AF_INET ? (void *)&v4 : (void *)&v6,
			 family == AF_INET ? sizeof(v4) : sizeof(v6)) < 0)
		return -errno;
	if ((port == 500 || port == 4500 || port == GATEWAY_EXEMPT) && bypass(fd, family))
		return -errno;
	if (family == AF_INET && type == SOCK_RAW)
		gw->raw_v4 |= 1ull << gw->sockets;
	gw->socket[gw->sockets++] = xspd_take_fd(&fd);
	return 0;
}

static int local_sockets(struct gateway *gw)
{
	static const uint16_t ports[] = {500, 4500, GATEWAY_EXEMPT, 53, 8080};
	/* the others are answered with errors */
	static const uint8_t protos[] = {1, 6, 17, 47, 50, 51, 58, 132, 136, 253};
	int err = 0;

	for (size_t f = 0; f < 2 && !err; f++) {
		int family = f ? AF_INET6 : AF_INET;

		for (size_t i = 0; i < XSPD_ARRAY_SIZE(ports) && !err; i++)
			err = local_socket(gw, family, SOCK_DGRAM, 0, ports[i]);
		for (size_t i = 0; i < XSPD_ARRAY_SIZE(protos) && !err; i++)
			err = local_socket(gw, family, SOCK_RAW, protos[i], 0);
	}
	return err;
}

/* --- the namespace ------------------------------------------------------------- */

static int sysctls(uint32_t options)
{
	bool rp_filter = options & GATEWAY_RP_FILTER;
	const char *const knobs[][2] = {
		{"net/ipv4/ip_forward", "1"},
		{"net/ipv6/conf/all/forwarding", "1"},
		{"net/ipv6/conf/default/accept_dad", "0"},
		{"net/ipv6/conf/default/router_solicitations", "0"},
		{"net/ipv4/conf/all/rp_filter", rp_filter ? "1" : "0"},
		{"net/ipv4/conf/default/rp_filter", rp_filter ? "1" : "0"},
		{"net/ipv4/conf/all/send_redirects", "0"},
		{"net/ipv4/conf/default/send_redirects", "0"},
		/* answers that do not hang on time or chance */
		{"net/ipv4/icmp_ratemask", "0"},
		{"net/ipv4/icmp_ratelimit", "0"},
		{"net/ipv6/icmp/ratelimit", "0"},
		{"net/ipv6/icmp/ratemask", "255"},
		{"net/ipv6/auto_flowlabels", "0"},
		{"net/ipv4/ipfrag_time", "3600"},
		{"net/ipv4/ipfrag_max_dist", "0"},
		{"net/ipv4/ipfrag_high_thresh", "67108864"},
		{"net/ipv6/ip6frag_time", "3600"},
		{"net/ipv6/ip6frag_high_thresh", "67108864"},
		{"net/core/xfrm_acq_expires", "3600"},
	};
	int err = 0;

	for (size_t i = 0; i < XSPD_ARRAY_SIZE(knobs) && !err; i++) {
		err = netns_sysctl(knobs[i][0], knobs[i][1]);
		if (err)
			fprintf(stderr, "%s: %s\n", knobs[i][0], strerror(-err));
	}
	return err;
}

static int device(char letter, int mtu)
{
	char path[64];
	int err;

	err = netns_run("ip link add %c0 address 02:00:00:00:00:%02x mtu %d type veth peer name "
			"%c1 address 02:00:00:00:01:%02x mtu %d",
			letter, letter, mtu, letter, letter, mtu);
	snprintf(path, sizeof(path), "net/ipv6/conf/%c1/disable_ipv6", letter);
	if (!err)
		err = netns_sysctl(path, "1");
	/* nobody is asked for: packets to neighbours that are not there are dropped at once */
	for (int v6 = 0; v6 < 2 && !err; v6++) {
		snprintf(path, sizeof(path), "net/ipv%c/neigh/%c0/mcast_solicit", v6 ? '6' : '4',
			 letter);
		err = netns_sysctl(path, "0");
	}
	if (err)
		return err;
	return netns_run("ip link set %c0 addrgenmode none && ip link set %c1 arp off up && "
			 "ip link set %c0 up",
			 letter, letter, letter);
}

static int addresses(void)
{
	static const char *const lines[] = {
		"addr add 192.0.2.1/24 brd + dev c0",
		"addr add 198.51.100.1/24 brd + dev s0",
		"addr add 203.0.113.1/24 dev t0",
		"addr add fd00:c::1/64 dev c0 nodad",
		"addr add fd00:5::1/64 dev s0 nodad",
		"addr add fd00:7::1/64 dev t0 nodad",
		"addr add " GATEWAY_V4_C "/32 dev c0",
		"addr add " GATEWAY_V4_S "/32 dev s0",
		"addr add " GATEWAY_V6_C "/128 dev c0 nodad",
		"addr add " GATEWAY_V6_S "/128 dev s0 nodad",
		"neigh add 192.0.2.2 lladdr 02:00:00:00:02:01 dev c0 nud permanent",
		"neigh add 198.51.100.2 lladdr 02:00:00:00:02:02 dev s0 nud permanent",
		"neigh add 203.0.113.2 lladdr 02:00:00:00:02:03 dev t0 nud permanent",
		"neigh add fd00:c::2 lladdr 02:00:00:00:02:01 dev c0 nud permanent",
		"neigh add fd00:5::2 lladdr 02:00:00:00:02:02 dev s0 nud permanent",
		"neigh add fd00:7::2 lladdr 02:00:00:00:02:03 dev t0 nud permanent",
		"route add 10.0.0.0/9 via 192.0.2.2",
		"route add 10.128.0.0/9 via 198.51.100.2",
		"route add 10.129.0.0/16 via 203.0.113.2",
		"route add 10.128.255.0/24 via 198.51.100.99",
		"route add 10.128.2.0/24 via 198.51.100.2 mtu 1000",
		"route add unreachable 10.128.129.0/24",
		"route add prohibit 10.128.127.0/24",
		"route add blackhole 10.128.128.0/24",
		"route add 2001:db8::/33 via fd00:c::2",
		"route add 2001:db8:8000::/33 via fd00:5::2",
		"route add 2001:db8:8000:8000::/49 via fd00:7::2",
		"route add 2001:db8:8000:7fff::/64 via fd00:5::99",
		"route add 2001:db8:8000:1::/64 via fd00:5::2 mtu 1300",
		"route add unreachable 2001:db8:8000:0:8000::/80",
		"route add prohibit 2001:db8:8000:0:7fff::/80",
	};
	char batch[] = "/tmp/xspd-gateway-XXXXXX";
	int fd = mkstemp(batch), err;

	if (fd < 0)
		return -errno;
	for (size_t i = 0; i < XSPD_ARRAY_SIZE(lines); i++)
		dprintf(fd, "%s\n", lines[i]);
	close(fd);
	err = netns_run("ip -batch %s", batch);
	unlink(batch);
	return err;
}

/* veth takes redirected frames only if the other end has a program too. */
static int pass_all(char letter)
{
	static const struct bpf_insn insns[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = XDP_PASS},
		{.code = BPF_JMP | BPF_EXIT},
	};
	char far[] = {letter, '1', 0};
	xspd_autoclose int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "pass", "GPL", insns, 2, NULL);

	if (fd < 0)
		return fd;
	return bpf_xdp_attach((int)if_nametoindex(far), fd, XDP_FLAGS_DRV_MODE, NULL);
}

static int gateway_open(struct gateway *gw, uint32_t options)
{
	static const int mtus[GATEWAY_SIDES] = {1500, 1500, 1300};
	cpu_set_t cpus;
	int err = netns_enter(), i;

	CPU_ZERO(&cpus);
	CPU_SET(sched_getcpu(), &cpus);
	if (!err && sched_setaffinity(0, sizeof(cpus), &cpus) < 0)
		err = -errno;
	if (!err)
		err = sysctls(options);
	for (i = 0; i < GATEWAY_SIDES && !err; i++)
		err = device(names[i], mtus[i]) ?: pass_all(names[i]) ?: end_open(&gw->end[i],
										   names[i]);
	if (!err)
		err = addresses();
	if (!err && options & GATEWAY_DEFAULT)
		err = netns_run("ip route add default via 203.0.113.2 && "
				"ip route add default via fd00:7::2");
	if (!err)
		err = local_sockets(gw);
	gw->acquires = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_XFRM);
	if (!err) {
		struct sockaddr_nl addr = {.nl_family = AF_NETLINK,
					   .nl_groups = 1u << (XFRMNLGRP_ACQUIRE - 1)};
		int size = RCVBUF;

		setsockopt(gw->acquires, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
		err = bind(gw->acquires, (void *)&addr, sizeof(addr)) < 0 ? -errno : 0;
	}
	return err;
}

int gateway_new(struct gateway **ret, uint32_t options)
{
	struct gateway *gw = calloc(1, sizeof(*gw));
	int err;

	if (!gw)
		return -ENOMEM;
	for (int i = 0; i < GATEWAY_SIDES; i++)
		gw->end[i].send = gw->end[i].seen = gw->end[i].back = gw->end[i].capture = -1;
	gw->acquires = -1;
	gw->out = calloc(1, sizeof(*gw->out));
	err = gw->out ? gateway_open(gw, options) : -ENOMEM;
	if (err)
		gateway_free(gw);
	else
		*ret = gw;
	return err;
}

void gateway_free(struct gateway *gw)
{
	if (!gw)
		return;
	for (int i = 0; i < GATEWAY_SIDES; i++) {
		xspd_closep(&gw->end[i].send);
		xspd_closep(&gw->end[i].seen);
		xspd_closep(&gw->end[i].back);
		xspd_closep(&gw->end[i].capture);
	}
	for (int i = 0; i < gw->sockets; i++)
		xspd_closep(&gw->socket[i]);
	xspd_closep(&gw->acquires);
	gateway_out_free(gw->out);
	free(gw);
}

uint32_t gateway_ifindex(const struct gateway *gw, enum gateway_side side)
{
	return gw->end[side].ifindex;
}

const uint8_t *gateway_mac(const struct gateway *gw, enum gateway_side side)
{
	return gw->end[side].mac;
}

/* --- traffic ------------------------------------------------------------------- */

/* A frame that no protocol takes, by socket @by; seen by tap @tap behind all that went before. */
static int marker_wait(struct gateway *gw, int by, int tap)
{
	uint8_t frame[64] = {2, 0, 0, 0, 9, 9, 2, 0, 0, 0, 9, 9, 0x88, 0xb5};
	struct pollfd poll_fd = {.fd = tap, .events = POLLIN};
	uint32_t want = ++gw->marker, got = 0;

	memcpy(frame + ETH_HLEN, &want, sizeof(want));
	if (send(by, frame, sizeof(frame), 0) < 0)
		return -errno;
	while (got != want) {
		if (poll(&poll_fd, 1, 5000) != 1)
			return -ETIMEDOUT;
		if (recv(tap, frame, sizeof(frame), 0) < 0)
			return -errno;
		if (frame[12] == 0x88 && frame[13] == 0xb5)
			memcpy(&got, frame + ETH_HLEN, sizeof(got));
	}
	return 0;
}

static void collect(struct gateway *gw)
{
	static uint8_t buf[4096];
	struct sockaddr_storage from;
	socklen_t from_len;
	ssize_t len;
	int i;

	for (i = 0; i < GATEWAY_SIDES; i++)
		while ((len = recv(gw->end[i].capture, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
			gateway_out_frame(gw->out, i, buf, (size_t)len);
	for (i = 0; i < gw->sockets; i++)
		while (from_len = sizeof(from), memset(&from, 0, sizeof(from)),
		       (len = recvfrom(gw->socket[i], buf + sizeof(from),
				       sizeof(buf) - sizeof(from), 0, (void *)&from, &from_len)) >=
			       0) {
			memcpy(buf, &from, sizeof(from));
			if (gw->raw_v4 & 1ull << i)
				gateway_out_forget(buf + sizeof(from), (size_t)len);
			gateway_out_local(gw->out, i, buf, sizeof(from) + (size_t)len);
		}
	while ((len = recv(gw->acquires, buf, sizeof(buf), 0)) > 0)
		gw->out->acquires++;
}

static int settle(struct gateway *gw)
{
	int err = marker_wait(gw, gw->end[GATEWAY_C].send, gw->end[GATEWAY_C].seen);

	if (!err)
		err = marker_wait(gw, gw->end[GATEWAY_S].send, gw->end[GATEWAY_S].seen);
	collect(gw);
	return err;
}

int gateway_send(struct gateway *gw, enum gateway_side side, uint32_t mark, const void *frame,
		 size_t len)
{
	struct end *end = &gw->end[side];

	if (setsockopt(end->send, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)) < 0 ||
	    send(end->send, frame, len, 0) < 0)
		return -errno;
	return ++gw->sent % BATCH ? 0 : settle(gw);
}

int gateway_finish(struct gateway *gw)
{
	struct tpacket_stats stats;
	socklen_t len = sizeof(stats);
	int err = settle(gw);

	for (int i = 0; i < GATEWAY_SIDES && !err; i++) {
		struct end *end = &gw->end[i];
		char far[] = {names[i], '1', 0};
		xspd_autoclose int tap = packet_socket(far, ETH_P_MARKER);

		err = tap < 0 ? tap : marker_wait(gw, end->back, tap);
		if (!err && getsockopt(end->capture, SOL_PACKET, PACKET_STATISTICS, &stats, &len))
			err = -errno;
		if (!err && stats.tp_drops)
			err = -ENOBUFS;
	}
	collect(gw);
	gateway_out_sort(gw->out);
	return err;
}

struct gateway_out *gateway_take(struct gateway *gw)
{
	struct gateway_out *out = gw->out;

	gw->out = NULL;
	return out;
}
