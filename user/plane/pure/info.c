// SPDX-License-Identifier: GPL-2.0-only
#include <string.h>

#include "plane/pure/info.h"

uint8_t xspd_pol_flags(const struct xspd_pol *pol)
{
	uint8_t flags = 0;

	/* on output an optional template still transforms the packet */
	if (pol->action == XSPD_BLOCK)
		flags |= XSPD_P_BLOCK;
	else if (pol->tmpl.required || (pol->dir == XSPD_OUT && pol->tmpl.count))
		flags |= XSPD_P_PROTECT;
	if (pol->tie)
		flags |= XSPD_P_TIE;
	if (pol->apart)
		flags |= XSPD_P_APART;
	if (pol->unmodelled)
		flags |= XSPD_P_UNMODELLED;
	if ((pol->mark_mask | pol->mark) && pol->sel.family == XSPD_INET6)
		flags |= XSPD_P_MARK;
	return flags;
}

void xspd_info_fill(struct xspd_info *ret, const struct xspd_pol *pol)
{
	struct xspd_info fill = {
		.dir = pol->dir,
		.type = pol->type,
		.family = (enum xspd_family)pol->sel.family,
		.action = pol->action,
		.dport = pol->sel.dport,
		.dport_mask = pol->sel.dport_mask,
		.sport = pol->sel.sport,
		.sport_mask = pol->sel.sport_mask,
		.dlen = pol->sel.prefixlen_d,
		.slen = pol->sel.prefixlen_s,
		.proto = pol->sel.proto,
		.flags = pol->flags,
		.ifindex = (uint32_t)pol->sel.ifindex,
		.priority = pol->priority,
		.pos = pol->pos,
		.mark = pol->mark,
		.mark_mask = pol->mark_mask,
		.if_id = pol->if_id,
		.reqid = pol->tmpl.reqid,
		.tmpl_count = pol->tmpl.count,
		.tmpl_required = pol->tmpl.required,
		.tmpl_proto = pol->tmpl.proto,
		.tmpl_mode = pol->tmpl.mode,
		.tmpl_family = (uint8_t)pol->tmpl.family,
		.policy_flags = xspd_pol_flags(pol),
		.user = pol->sel.user,
		.gone_until = pol->gone_until,
	};

	memcpy(fill.daddr, &pol->sel.daddr, sizeof(fill.daddr));
	memcpy(fill.saddr, &pol->sel.saddr, sizeof(fill.saddr));
	memcpy(fill.tmpl_daddr, pol->tmpl.daddr, sizeof(fill.tmpl_daddr));
	memcpy(fill.tmpl_saddr, pol->tmpl.saddr, sizeof(fill.tmpl_saddr));
	*ret = fill;
	__atomic_store_n(&ret->index, pol->index, __ATOMIC_RELEASE);
}

void xspd_pol_of_info(struct xspd_pol *ret, const struct xspd_info *info)
{
	struct xspd_pol pol = {
		.sel = {.dport = info->dport,
			.dport_mask = info->dport_mask,
			.sport = info->sport,
			.sport_mask = info->sport_mask,
			.family = info->family,
			.prefixlen_d = info->dlen,
			.prefixlen_s = info->slen,
			.proto = info->proto,
			.ifindex = (int)info->ifindex,
			.user = info->user},
		.index = info->index,
		.priority = info->priority,
		.pos = info->pos,
		.mark = info->mark,
		.mark_mask = info->mark_mask,
		.if_id = info->if_id,
		.tmpl = {.reqid = info->reqid,
			 .family = info->tmpl_family,
			 .proto = info->tmpl_proto,
			 .mode = info->tmpl_mode,
			 .count = info->tmpl_count,
			 .required = info->tmpl_required},
		.dir = info->dir,
		.type = info->type,
		.action = info->action,
		.flags = info->flags,
		.tie = info->policy_flags & XSPD_P_TIE,
		.apart = info->policy_flags & XSPD_P_APART,
	};

	memcpy(&pol.sel.daddr, info->daddr, sizeof(pol.sel.daddr));
	memcpy(&pol.sel.saddr, info->saddr, sizeof(pol.sel.saddr));
	memcpy(pol.tmpl.daddr, info->tmpl_daddr, sizeof(pol.tmpl.daddr));
	memcpy(pol.tmpl.saddr, info->tmpl_saddr, sizeof(pol.tmpl.saddr));
	/* which of the two it is was not written down; both mean "the kernel decides" */
	if (info->policy_flags & XSPD_P_UNMODELLED)
		pol.unmodelled = XSPD_UNMODELLED_SEC_CTX | XSPD_UNMODELLED_OFFLOAD;
	*ret = pol;
}
