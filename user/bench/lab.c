/* SPDX-License-Identifier: GPL-2.0-only */
/* A namespace for the benchmark, set up by ioctl so that nothing needs to be installed. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/ipv6.h>
#include <net/if.h>
#include <net/route.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "bench/lab.h"
#include "util.h"

#define DEVICE "bench0"

/* linux/ipv6.h's struct in6_ifreq, which libc does not have. */
static int add_address6(int fd, uint32_t ifindex)
{
	struct in6_ifreq req = {.ifr6_prefixlen = 64, .ifr6_ifindex = (int)ifindex};

	inet_pton(AF_INET6, "2001:db8:ffff::1", &req.ifr6_addr);
	return ioctl(fd, SIOCSIFADDR, &req) < 0 ? -errno : 0;
}

static int add_route6(int fd, uint32_t ifindex)
{
	struct in6_rtmsg req = {
		.rtmsg_metric = 1,
		.rtmsg_flags = RTF_UP,
		.rtmsg_ifindex = (int)ifindex,
	};

	return ioctl(fd, SIOCADDRT, &req) < 0 ? -errno : 0;
}

static int add_address4(int fd)
{
	struct ifreq req = {.ifr_name = DEVICE};
	struct sockaddr_in *addr = (struct sockaddr_in *)&req.ifr_addr;

	addr->sin_family = AF_INET;
	addr->sin_addr.s_addr = htonl(0xc6336401); /* 198.51.100.1 */
	return ioctl(fd, SIOCSIFADDR, &req) < 0 ? -errno : 0;
}

static int add_route4(int fd)
{
	struct rtentry req = {.rt_flags = RTF_UP, .rt_dev = (char *)DEVICE};

	req.rt_dst.sa_family = AF_INET;
	req.rt_genmask.sa_family = AF_INET;
	return ioctl(fd, SIOCADDRT, &req) < 0 ? -errno : 0;
}

static int link_up(int fd, uint32_t *ret_ifindex)
{
	struct ifreq req = {.ifr_name = DEVICE};

	if (ioctl(fd, SIOCGIFINDEX, &req) < 0)
		return -errno;
	*ret_ifindex = (uint32_t)req.ifr_ifindex;
	if (ioctl(fd, SIOCGIFFLAGS, &req) < 0)
		return -errno;
	req.ifr_flags |= IFF_UP;
	return ioctl(fd, SIOCSIFFLAGS, &req) < 0 ? -errno : 0;
}

static int make_device(int *ret)
{
	struct ifreq req = {.ifr_name = DEVICE, .ifr_flags = IFF_TUN | IFF_NO_PI};
	xspd_autoclose int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);

	if (fd < 0 || ioctl(fd, TUNSETIFF, &req) < 0)
		return -errno;
	*ret = xspd_take_fd(&fd);
	return 0;
}

static int set_up(struct xspd_lab *lab)
{
	xspd_autoclose int fd4 = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	xspd_autoclose int fd6 = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int err;

	if (fd4 < 0)
		return -errno;
	err = make_device(&lab->tun);
	if (!err)
		err = link_up(fd4, &lab->oif);
	if (!err)
		err = add_address4(fd4);
	if (!err)
		err = add_route4(fd4);
	if (err || fd6 < 0) /* a kernel without IPv6 still measures IPv4 */
		return err;
	err = add_address6(fd6, lab->oif);
	return err ? err : add_route6(fd6, lab->oif);
}

int xspd_lab_new(struct xspd_lab **ret, uint32_t *ret_oif)
{
	struct xspd_lab *lab = calloc(1, sizeof(*lab));
	int err;

	if (!lab)
		return -ENOMEM;
	lab->netns = lab->tun = lab->netlink = -1;
	err = unshare(CLONE_NEWNET) < 0 ? -errno : set_up(lab);
	if (!err) {
		lab->netns = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
		err = lab->netns < 0 ? -errno : 0;
	}
	if (err < 0) {
		xspd_lab_free(lab);
		return err;
	}
	*ret_oif = lab->oif;
	*ret = lab;
	return 0;
}

int xspd_lab_enter(const struct xspd_lab *lab)
{
	return setns(lab->netns, CLONE_NEWNET) < 0 ? -errno : 0;
}

void xspd_lab_free(struct xspd_lab *lab)
{
	if (!lab)
		return;
	for (uint32_t i = 0; i < lab->socket_count; i++)
		close(lab->sockets[i].fd);
	free(lab->sockets);
	xspd_closep(&lab->netlink);
	xspd_closep(&lab->tun);
	xspd_closep(&lab->netns);
	free(lab);
}
