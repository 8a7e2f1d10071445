// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "lib/netns.h"
#include "util.h"

int netns_run(const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (system(line) == 0)
		return 0;
	fprintf(stderr, "failed: %s\n", line);
	return -EIO;
}

int netns_sysctl(const char *path, const char *value)
{
	char name[256];
	xspd_autoclose int fd = -1;

	snprintf(name, sizeof(name), "/proc/sys/%s", path);
	fd = open(name, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return write(fd, value, strlen(value)) < 0 ? -errno : 0;
}

int netns_enter(void)
{
	if (unshare(CLONE_NEWNET) < 0)
		return -errno;
	return netns_run("ip link set lo up");
}

uint32_t netns_device(const char *name)
{
	uint32_t ifindex = if_nametoindex(name);

	if (ifindex)
		return ifindex;
	if (netns_run("ip link add %s type veth peer name %s-p", name, name) ||
	    netns_run("ip link set %s arp off up && ip link set %s-p up", name, name))
		return 0;
	return if_nametoindex(name);
}

int netns_routes(void)
{
	static const char *const knobs[][2] = {
		{"net/ipv4/ip_forward", "1"},
		{"net/ipv6/conf/all/forwarding", "1"},
		{"net/ipv4/conf/all/rp_filter", "0"},
		{"net/ipv4/conf/default/rp_filter", "0"},
		{"net/ipv4/conf/all/accept_local", "1"},
		{"net/ipv4/conf/default/accept_local", "1"},
		{"net/ipv6/conf/all/accept_dad", "0"},
		{"net/ipv6/conf/default/accept_dad", "0"},
		{"net/ipv6/conf/default/router_solicitations", "0"},
		/* no link-local address, so nothing that the kernel would say of its own accord */
		{"net/ipv6/conf/default/addr_gen_mode", "1"},
	};
	int err;

	for (size_t i = 0; i < XSPD_ARRAY_SIZE(knobs); i++) {
		err = netns_sysctl(knobs[i][0], knobs[i][1]);
		if (err)
			return err;
	}
	if (!netns_device("away0"))
		return -EIO;
	return netns_run("ip route add default dev away0 && ip -6 route add default dev away0");
}
