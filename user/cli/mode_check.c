// SPDX-License-Identifier: GPL-2.0-only
/* Devices on which dropping or forwarding early would not be what the kernel does. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/mode.h"
#include "daemon/env.h"
#include "nl/link.h"
#include "plane/plane.h"

static int check_device(const char *dev, const char *what, const struct xspd_link *link)
{
	char master[IF_NAMESIZE];

	if (link->flags & IFF_LOOPBACK)
		return cli_fail("%s: %s: a loopback device: IPv4 goes unchecked there; %s is for "
				"devices of a network",
				dev, what, what);
	if (link->master)
		return cli_fail("%s: %s: it belongs to %s, where its packets are taken up; attach "
				"to that one",
				dev, what,
				if_indextoname(link->master, master) ?: "another device");
	return XSPD_DONE;
}

static int check_redirect(const char *dev, const struct xspd_link *link)
{
	uint64_t features;
	int err = xspd_link_xdp(link->ifindex, &features);

	if (!link->ether)
		return cli_fail("%s: bypass: not an Ethernet device", dev);
	if (err == -EOPNOTSUPP) /* before 6.3: what cannot be sent there is lost */
		cli_notice("%s: bypass: this kernel does not tell whether the device takes "
			   "redirected packets; see that they arrive",
			   dev);
	else if (err)
		return cli_fail("%s: bypass: XDP features: %s", dev, strerror(-err));
	else if (!(features & XSPD_XDP_ACT_NDO_XMIT) && !strcmp(link->kind, "veth"))
		return cli_fail(
			"%s: bypass: a veth takes redirected packets (ndo_xdp_xmit) only "
			"while it is up and its peer has GRO or an XDP program; 'ethtool -K "
			"PEER gro on' at the other end",
			dev);
	else if (!(features & XSPD_XDP_ACT_NDO_XMIT))
		return cli_fail("%s: bypass: its driver does not take redirected packets "
				"(ndo_xdp_xmit)",
				dev);
	return XSPD_DONE;
}

static int check_netfilter(const char *dev)
{
	const uint32_t passed = XSPD_ENV_NETFILTER_PRE | XSPD_ENV_NETFILTER_ANY;
	struct xspd_env_found found;
	char more[32] = "";

	/* what cannot be looked at is in it, by name */
	xspd_env_scan(&found, passed);
	if (!(found.bits & passed))
		return XSPD_DONE;
	if (found.more)
		snprintf(more, sizeof(more), " and %u more", found.more);
	return cli_fail("%s: bypass: forwarded packets would miss netfilter: %s%s; "
			"--ignore-netfilter if they may",
			dev, found.names, more);
}

static int check_steer(const char *dev)
{
	struct xspd_link link;
	int err = xspd_link_get(dev, &link);

	if (err)
		return cli_fail("%s: %s%s", dev, strerror(-err),
				err == -ENODEV ? "; 'ip link' lists them" : "");
	if (!link.collect_md)
		return cli_fail("%s: steer: not a collect-metadata xfrm interface; 'ip link add "
				"NAME type xfrm external' makes one",
				dev);
	if (strcmp(link.qdisc, "noqueue") && strcmp(link.qdisc, "noop"))
		return cli_fail("%s: steer: packets would change tunnels in its queue (qdisc %s); "
				"'tc qdisc replace dev %s root noqueue'",
				dev, link.qdisc, dev);
	if (!xspd_steer_kernel())
		return cli_fail("%s: steer: this kernel does not let programs set if_ids "
				"(bpf_skb_set_xfrm_info, Linux 6.2 and later)",
				dev);
	return XSPD_DONE;
}

int cli_mode_check(const char *dev, enum xspd_hook hook, uint32_t flags, struct xspd_mode *ret)
{
	const char *what = flags & XSPD_MODE_BYPASS    ? "bypass"
			   : flags & XSPD_MODE_ENFORCE ? "enforce"
						       : "guard";
	struct xspd_mode mode = {.flags = flags};
	struct xspd_link link;
	int rc = XSPD_DONE, err;

	if (flags & (XSPD_MODE_ENFORCE | XSPD_MODE_BYPASS | XSPD_MODE_GUARD)) {
		err = xspd_link_get(dev, &link);
		if (err)
			return cli_fail("%s: %s%s", dev, strerror(-err),
					err == -ENODEV ? "; 'ip link' lists them" : "");
		rc = check_device(dev, what, &link);
		memcpy(mode.mac, link.mac, sizeof(mode.mac));
		/* what came out of IPsec shows only in generic mode: assume that until it is known
		 */
		if (hook == XSPD_HOOK_XDP)
			mode.flags |= XSPD_MODE_SECPATH;
	}
	if (flags & XSPD_MODE_STEER)
		rc = check_steer(dev);
	if (!rc && flags & XSPD_MODE_BYPASS)
		rc = check_redirect(dev, &link);
	if (!rc && flags & XSPD_MODE_BYPASS && !(flags & XSPD_MODE_NETFILTER))
		rc = check_netfilter(dev);
	if (!rc)
		*ret = mode;
	return rc;
}
