// SPDX-License-Identifier: GPL-2.0-only
/* Frames for packet.h. */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <netinet/in.h>
#include <string.h>

#include "lib/packet.h"

#define PACKET_ID 0x5a5a

struct frag_hdr6 {
	uint8_t nexthdr;
	uint8_t reserved;
	__be16 off;
	__be32 id;
};

static uint32_t sum_add(uint32_t sum, const void *data, size_t len)
{
	const uint8_t *byte = data;

	for (size_t i = 0; i < len; i++)
		sum += i & 1 ? byte[i] : (uint32_t)byte[i] << 8;
	return sum;
}

static __be16 sum_fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

/* Where the checksum lies in the transport header, 0: none that matters. */
static size_t sum_offset(uint8_t proto)
{
	switch (proto) {
	case IPPROTO_TCP:
		return 16;
	case IPPROTO_UDP:
	case IPPROTO_UDPLITE:
		return 6;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		return 2;
	default:
		return 0;
	}
}

static void put_checksum(uint8_t *l4, size_t len, const struct xspd_flow *flow)
{
	size_t at = sum_offset(flow->proto), alen = flow->family == XSPD_INET ? 4 : 16;
	uint32_t sum = 0;
	__be16 folded;

	if (!at)
		return;
	if (flow->proto != IPPROTO_ICMP) {
		sum = sum_add(sum, flow->saddr, alen);
		sum = sum_add(sum, flow->daddr, alen);
		sum += flow->proto + len;
	}
	folded = sum_fold(sum_add(sum, l4, len));
	if (!folded) /* "none" to UDP */
		folded = 0xffff;
	memcpy(l4 + at, &folded, sizeof(folded));
}

static size_t put_gre(uint8_t *l4, const struct xspd_flow *flow)
{
	l4[2] = 0x08; /* IPv4 inside */
	if (!flow->sport && !flow->dport)
		return 4 + 20;
	l4[0] = 0x20; /* key present */
	memcpy(l4 + 4, &flow->sport, 2);
	memcpy(l4 + 6, &flow->dport, 2);
	return 8 + 20;
}

static size_t put_l4(uint8_t *l4, const struct xspd_flow *flow)
{
	__be16 len = htons(16);

	switch (flow->proto) {
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		l4[0] = (uint8_t)ntohs(flow->sport);
		l4[1] = (uint8_t)ntohs(flow->dport);
		return 16;
	case IPPROTO_GRE:
		return put_gre(l4, flow);
	case IPPROTO_TCP:
		l4[12] = 5 << 4;
		l4[13] = 0x02; /* SYN */
		break;
	case IPPROTO_UDP:
	case IPPROTO_UDPLITE:
		memcpy(l4 + 4, &len, 2);
		break;
	case IPPROTO_SCTP:
		break;
	default:
		return 24;
	}
	memcpy(l4, &flow->sport, 2);
	memcpy(l4 + 2, &flow->dport, 2);
	return flow->proto == IPPROTO_TCP ? 20 : flow->proto == IPPROTO_SCTP ? 24 : 16;
}

static size_t put_ipv4(uint8_t *l3, const struct xspd_flow *flow)
{
	struct iphdr *ip = (void *)l3;
	size_t len = put_l4(l3 + sizeof(*ip), flow);

	put_checksum(l3 + sizeof(*ip), len, flow);
	ip->version = 4;
	ip->ihl = 5;
	ip->tot_len = htons(sizeof(*ip) + len);
	ip->id = htons(PACKET_ID);
	if (flow->frag == XSPD_FRAG_FIRST)
		ip->frag_off = htons(0x2000); /* more fragments */
	else if (flow->frag == XSPD_FRAG_LATER)
		ip->frag_off = htons(100);
	ip->ttl = 64;
	ip->protocol = flow->proto;
	memcpy(&ip->saddr, flow->saddr, 4);
	memcpy(&ip->daddr, flow->daddr, 4);
	ip->check = sum_fold(sum_add(0, ip, sizeof(*ip)));
	return sizeof(*ip) + len;
}

static size_t put_ipv6(uint8_t *l3, const struct xspd_flow *flow)
{
	struct ipv6hdr *ip = (void *)l3;
	uint8_t *l4 = l3 + sizeof(*ip);
	struct frag_hdr6 *frag = (void *)l4;
	size_t len;

	if (flow->frag)
		l4 += sizeof(*frag);
	len = put_l4(l4, flow);
	put_checksum(l4, len, flow);
	ip->version = 6;
	ip->nexthdr = flow->frag ? IPPROTO_FRAGMENT : flow->proto;
	ip->hop_limit = flow->proto == IPPROTO_ICMPV6 ? 255 : 64;
	memcpy(&ip->saddr, flow->saddr, 16);
	memcpy(&ip->daddr, flow->daddr, 16);
	if (flow->frag) {
		frag->nexthdr = flow->proto;
		frag->off = htons(flow->frag == XSPD_FRAG_FIRST ? 1 : 100 << 3);
		frag->id = htonl(PACKET_ID);
		len += sizeof(*frag);
	}
	ip->payload_len = htons((uint16_t)len);
	return sizeof(*ip) + len;
}

size_t packet_build(void *buf, const struct xspd_flow *flow)
{
	_Alignas(8) uint8_t l3[PACKET_MAX - sizeof(struct ethhdr)] = {}; /* it is not, in a frame */
	struct ethhdr *eth = buf;
	size_t len = flow->family == XSPD_INET ? put_ipv4(l3, flow) : put_ipv6(l3, flow);

	memset(eth, 0, sizeof(*eth));
	eth->h_proto = htons(flow->family == XSPD_INET ? ETH_P_IP : ETH_P_IPV6);
	memcpy(eth + 1, l3, len);
	return sizeof(*eth) + len;
}
