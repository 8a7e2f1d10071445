// SPDX-License-Identifier: GPL-2.0-only
/*
 * Any bytes through bpf/lib/parse.h: nothing past the end is read, the caller's fields
 * stay, and what is filled is what the plain dissection says.  The first byte
 * picks where the packet starts: 0 Ethernet, 1 IPv4, 2 IPv6, 3 behind a VLAN's ethertype.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/parse.h"
#include "../lib/dissect.h"

static void check(bool good)
{
	if (!good)
		abort();
}

static void same(const struct xspd_flow *flow, const struct xspd_flow *want)
{
	struct xspd_flow full;

	memset(&full, 0xa5, sizeof(full));
	memcpy(full.daddr, want->daddr, sizeof(full.daddr));
	memcpy(full.saddr, want->saddr, sizeof(full.saddr));
	full.family = want->family;
	full.proto = want->proto;
	full.sport = want->sport;
	full.dport = want->dport;
	full.frag = want->frag;
	check(!memcmp(flow, &full, sizeof(full)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint16_t starts[] = {0, 0x0800, 0x86dd, 0x8100};
	struct xspd_flow flow, want = {};
	enum xspd_reason reason;
	struct xspd_cursor cur;
	uint16_t ethertype;
	uint8_t *packet;

	if (!size)
		return 0;
	ethertype = starts[*data++ & 3];
	size--;
	packet = malloc(size);
	memcpy(packet, data, size);
	memset(&flow, 0xa5, sizeof(flow));
	xspd_cursor_linear(&cur, packet, packet + size);
	reason = ethertype ? xspd_parse_ip(&cur, xspd_be16(ethertype), &flow)
			   : xspd_parse_eth(&cur, &flow);
	free(packet);

	if (!ethertype) {
		if (size < 14) {
			check(reason == XSPD_R_SHORT);
			return 0;
		}
		ethertype = data[12] << 8 | data[13];
		data += 14;
		size -= 14;
	}
	if (dissect(data, size, ethertype, XSPD_EXT_MAX, &want) == DISSECT_FLOW) {
		check(reason == XSPD_R_NONE);
		same(&flow, &want);
	} else {
		check(reason == XSPD_R_SHORT || reason == XSPD_R_NOT_IP || reason == XSPD_R_HEADER);
	}
	return 0;
}
