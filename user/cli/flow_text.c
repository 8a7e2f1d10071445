// SPDX-License-Identifier: GPL-2.0-only
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>

#include "cli/flow.h"
#include "cli/selector.h"
#include "reason.h"

static int ports_text(const struct xspd_flow *flow, char *buf, size_t size)
{
	unsigned int sport = ntohs(flow->sport), dport = ntohs(flow->dport);

	if (flow->frag)
		return snprintf(buf, size, " frag %s",
				flow->frag == XSPD_FRAG_FIRST ? "first" : "later");
	if (cli_proto_has_ports(flow->proto))
		return snprintf(buf, size, " sport %u dport %u", sport, dport);
	if (flow->proto == (flow->family == XSPD_INET6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP))
		return snprintf(buf, size, " type %u code %u", sport, dport);
	if (flow->proto == IPPROTO_GRE)
		return snprintf(buf, size, " key %u", sport << 16 | dport);
	return 0;
}

static int device_text(const struct xspd_flow *flow, char *buf, size_t size)
{
	char name[IF_NAMESIZE];

	/* what "dir in" is asked with anyway */
	if (!flow->oif || (flow->dir == XSPD_IN && flow->oif == 1))
		return 0;
	if (if_indextoname(flow->oif, name))
		return snprintf(buf, size, " dev %s", name);
	return snprintf(buf, size, " dev if%u", flow->oif);
}

void cli_flow_text(const struct xspd_flow *flow, char *buf, size_t size)
{
	int family = flow->family == XSPD_INET6 ? AF_INET6 : AF_INET;
	char src[INET6_ADDRSTRLEN], dst[INET6_ADDRSTRLEN], text[256];
	int n;

	n = snprintf(text, sizeof(text), "dir %s src %s dst %s", xspd_dir_name(flow->dir),
		     inet_ntop(family, flow->saddr, src, sizeof(src)),
		     inet_ntop(family, flow->daddr, dst, sizeof(dst)));
	if (flow->proto)
		n += snprintf(text + n, sizeof(text) - n, " proto %s", cli_proto_name(flow->proto));
	n += ports_text(flow, text + n, sizeof(text) - n);
	if (flow->mark)
		n += snprintf(text + n, sizeof(text) - n, " mark 0x%x", flow->mark);
	if (flow->if_id)
		n += snprintf(text + n, sizeof(text) - n, " if_id 0x%x", flow->if_id);
	device_text(flow, text + n, sizeof(text) - n);
	snprintf(buf, size, "%s", text);
}
