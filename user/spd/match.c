// SPDX-License-Identifier: GPL-2.0-only
/* Does a policy match a flow? In the kernel's words, one policy at a time. */
#include <arpa/inet.h>
#include <string.h>

#include "spd/spd.h"

static bool prefix_match(const __be32 *a, const __be32 *b, unsigned int bits)
{
	unsigned int words = bits / 32, rest = bits % 32;

	if (memcmp(a, b, words * 4))
		return false;
	return !rest || !((a[words] ^ b[words]) & htonl(~0u << (32 - rest)));
}

static enum xspd_miss addr_miss(const struct xfrm_selector *sel, const struct xspd_flow *flow)
{
	if (!prefix_match(flow->daddr, sel->daddr.a6, sel->prefixlen_d))
		return XSPD_MISS_DADDR;
	if (!prefix_match(flow->saddr, sel->saddr.a6, sel->prefixlen_s))
		return XSPD_MISS_SADDR;
	return XSPD_MISS_NOT;
}

static enum xspd_miss ports_miss(const struct xfrm_selector *sel, const struct xspd_flow *flow)
{
	if ((flow->dport ^ sel->dport) & sel->dport_mask)
		return XSPD_MISS_DPORT;
	if ((flow->sport ^ sel->sport) & sel->sport_mask)
		return XSPD_MISS_SPORT;
	return XSPD_MISS_NOT;
}

static enum xspd_miss selector_miss(const struct xfrm_selector *sel, const struct xspd_flow *flow)
{
	enum xspd_miss miss = addr_miss(sel, flow);

	if (miss)
		return miss;
	if (!(flow->unknown & XSPD_UNKNOWN_PORTS)) {
		miss = ports_miss(sel, flow);
		if (miss)
			return miss;
	}
	if (sel->proto && sel->proto != flow->proto)
		return XSPD_MISS_PROTO;
	if (sel->ifindex && !(flow->unknown & XSPD_UNKNOWN_OIF) &&
	    (uint32_t)sel->ifindex != flow->oif)
		return XSPD_MISS_OIF;
	return XSPD_MISS_NOT;
}

/* The unknown fields of @flow that @pol looks at. */
static uint32_t unknown_asked(const struct xspd_pol *pol, const struct xspd_flow *flow)
{
	uint32_t asked = 0;

	if (pol->mark_mask | pol->mark)
		asked |= XSPD_UNKNOWN_MARK;
	if (pol->sel.ifindex)
		asked |= XSPD_UNKNOWN_OIF;
	if (pol->sel.dport_mask | pol->sel.sport_mask)
		asked |= XSPD_UNKNOWN_PORTS;
	return asked & flow->unknown;
}

enum xspd_miss xspd_pol_match(const struct xspd_pol *pol, const struct xspd_flow *flow, uint8_t dir,
			      uint8_t type, uint32_t *ret_unknown)
{
	if (pol->sel.family != flow->family)
		return XSPD_MISS_FAMILY;
	if (pol->dir != dir)
		return XSPD_MISS_DIR;
	if (pol->type != type)
		return XSPD_MISS_TYPE;
	if (pol->if_id != flow->if_id)
		return XSPD_MISS_IF_ID;
	if (!(flow->unknown & XSPD_UNKNOWN_MARK) && (flow->mark & pol->mark_mask) != pol->mark)
		return XSPD_MISS_MARK;
	if (ret_unknown)
		*ret_unknown = unknown_asked(pol, flow);
	return selector_miss(&pol->sel, flow);
}

const char *xspd_miss_name(enum xspd_miss miss)
{
	static const char *const names[XSPD_MISS_MAX_] = {
		[XSPD_MISS_NOT] = "none",    [XSPD_MISS_FAMILY] = "family",
		[XSPD_MISS_DIR] = "dir",     [XSPD_MISS_TYPE] = "ptype",
		[XSPD_MISS_IF_ID] = "if_id", [XSPD_MISS_MARK] = "mark",
		[XSPD_MISS_DADDR] = "dst",   [XSPD_MISS_SADDR] = "src",
		[XSPD_MISS_DPORT] = "dport", [XSPD_MISS_SPORT] = "sport",
		[XSPD_MISS_PROTO] = "proto", [XSPD_MISS_OIF] = "dev",
	};

	return (unsigned int)miss < XSPD_MISS_MAX_ ? names[miss] : "?";
}

bool xspd_pol_before(const struct xspd_pol *a, const struct xspd_pol *b)
{
	if (a->priority != b->priority)
		return a->priority < b->priority;
	return a->pos < b->pos;
}
