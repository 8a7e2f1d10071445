/* SPDX-License-Identifier: GPL-2.0-only */
/* What the kernel tells of a device: rtnetlink, and the netdev family for XDP. */
#ifndef XSPD_NL_LINK_H
#define XSPD_NL_LINK_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

struct xspd_link {
	uint32_t ifindex;
	uint32_t flags;	 /* IFF_LOOPBACK, ... */
	uint32_t master; /* ifindex of its bridge, bond, VRF; 0: none */
	bool ether;	 /* Ethernet frames, with the address below */
	uint8_t mac[6];
	bool collect_md;	 /* kind "xfrm": takes the if_id from each packet */
	char qdisc[IF_NAMESIZE]; /* "noqueue", "noop" while it has never been up, ... */
	char kind[IF_NAMESIZE]; /* "veth", "bridge", ...; empty for hardware */
};

/* 0, -ENODEV, or another negative errno. */
int xspd_link_get(const char *name, struct xspd_link *ret);

/* enum netdev_xdp_act of linux/netdev.h, which kernel headers before 6.3 lack */
#define XSPD_XDP_ACT_NDO_XMIT 4u

/* What XDP can do there. 0, -EOPNOTSUPP if the kernel (before 6.3) cannot tell, or negative errno.
 */
int xspd_link_xdp(uint32_t ifindex, uint64_t *ret);

#endif
