// SPDX-License-Identifier: GPL-2.0-only
#include <arpa/inet.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "owner.h"

/* Set bits before the first that is not. */
static uint32_t leading(__be16 mask)
{
	uint32_t bits = 0;

	for (uint16_t m = ntohs(mask); m & 0x8000; m = (uint16_t)(m << 1))
		bits++;
	return bits;
}

/*
 * strongSwan 5.x and 6.x begin at a base by kind, and take off what makes the selector narrow; one
 * more is taken off unless it is a trap.
 */
static bool is_strongswan(const struct xspd_info *info)
{
	static const uint32_t bases[] = {200000, 400000, 600000};
	uint32_t narrow = (info->slen + info->dlen) * 512u + (info->proto ? 256 : 0) +
			  (leading(info->sport_mask) + leading(info->dport_mask)) * 4 +
			  (info->ifindex ? 2 : 0);

	for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
		uint32_t left = bases[i] - info->priority - narrow;

		if (left == 1 || (left == 0 && bases[i] == 400000))
			return true;
	}
	return false;
}

/* libreswan packs what is wild into bits: a base, ports, protocol, both prefixes, an instance. */
static bool is_libreswan(const struct xspd_info *info)
{
	uint32_t wild = 2u - (info->sport_mask != 0) - (info->dport_mask != 0);
	uint32_t prio = info->priority, base = prio >> 20;
	uint32_t local = 128u - (info->dir == XSPD_OUT ? info->slen : info->dlen);
	uint32_t remote = 128u - (info->dir == XSPD_OUT ? info->dlen : info->slen);

	if (base < 1 || base > 3 || (prio >> 18 & 3) != wild || (prio >> 17 & 1) != !info->proto)
		return false;
	return (prio >> 9 & 0xff) == local && (prio >> 1 & 0xff) == remote;
}

static bool is_cilium(const struct xspd_info *info)
{
	uint32_t kind = info->mark & 0x0f00;

	if (info->mark_mask == 0xffffff00)
		return info->dir == XSPD_OUT && kind == 0x0e00;
	return info->mark_mask == 0x0f00 && (kind == 0x0e00 || kind == 0x0d00 || kind == 0x0200);
}

const char *xspd_owner_hint(const struct xspd_info *info, const char **ret_why)
{
	if (is_cilium(info)) {
		*ret_why = "its mark";
		return "cilium";
	}
	*ret_why = "its priority";
	if (is_strongswan(info))
		return "strongswan";
	if (is_libreswan(info))
		return "libreswan";
	*ret_why = NULL;
	return NULL;
}
