// SPDX-License-Identifier: GPL-2.0-only
/* Requests that change the SPD. */
#include <string.h>
#include <linux/xfrm.h>

#include "nl/socket.h"

/* What tells policies of one selector apart. */
static void identity_put(struct nlmsghdr *nlh, const struct xspd_pol *pol)
{
	struct xfrm_userpolicy_type type = {.type = pol->type};
	struct xfrm_mark mark = {pol->mark, pol->mark_mask};

	if (pol->type) /* kernels without sub policies refuse the attribute */
		mnl_attr_put(nlh, XFRMA_POLICY_TYPE, sizeof(type), &type);
	if (mark.v | mark.m)
		mnl_attr_put(nlh, XFRMA_MARK, sizeof(mark), &mark);
	if (pol->if_id)
		mnl_attr_put_u32(nlh, XFRMA_IF_ID, pol->if_id);
}

static void templates_put(struct nlmsghdr *nlh, const struct xspd_pol *pol)
{
	struct xfrm_user_tmpl tmpl[XSPD_TMPL_MAX] = {};
	const struct xspd_tmpl *src = &pol->tmpl;
	unsigned int i, count = src->count < XSPD_TMPL_MAX ? src->count : XSPD_TMPL_MAX;

	if (!count)
		return;
	for (i = 0; i < count; i++) {
		memcpy(&tmpl[i].id.daddr, src->daddr, sizeof(src->daddr));
		memcpy(&tmpl[i].saddr, src->saddr, sizeof(src->saddr));
		tmpl[i].id.proto = src->proto;
		tmpl[i].family = src->family ? src->family : pol->sel.family;
		tmpl[i].reqid = src->reqid;
		tmpl[i].mode = src->mode;
		tmpl[i].optional = i >= src->required;
		tmpl[i].aalgos = tmpl[i].ealgos = tmpl[i].calgos = ~0u;
	}
	mnl_attr_put(nlh, XFRMA_TMPL, count * sizeof(tmpl[0]), tmpl);
}

struct nlmsghdr *xspd_nl_put_policy(void *buf, const struct xspd_pol *pol, uint16_t msg_type,
				    uint16_t flags, uint32_t seq)
{
	struct nlmsghdr *nlh = xspd_nl_header(buf, msg_type, flags, seq);
	struct xfrm_userpolicy_info info = {
		.sel = pol->sel,
		.lft = {.soft_byte_limit = XFRM_INF,
			.hard_byte_limit = XFRM_INF,
			.soft_packet_limit = XFRM_INF,
			.hard_packet_limit = XFRM_INF},
		.priority = pol->priority,
		.index = pol->index,
		.dir = pol->dir,
		.action = pol->action,
		.flags = pol->flags,
	};

	memcpy(mnl_nlmsg_put_extra_header(nlh, sizeof(info)), &info, sizeof(info));
	templates_put(nlh, pol);
	identity_put(nlh, pol);
	return nlh;
}

struct nlmsghdr *xspd_nl_put_delete(void *buf, const struct xspd_pol *pol, bool by_index,
				    uint16_t flags, uint32_t seq)
{
	struct nlmsghdr *nlh = xspd_nl_header(buf, XFRM_MSG_DELPOLICY, flags, seq);
	struct xfrm_userpolicy_id *id = mnl_nlmsg_put_extra_header(nlh, sizeof(*id));

	id->dir = pol->dir;
	if (by_index)
		id->index = pol->index;
	else
		id->sel = pol->sel;
	identity_put(nlh, pol);
	return nlh;
}

struct nlmsghdr *xspd_nl_put_flush(void *buf, uint8_t type, uint16_t flags, uint32_t seq)
{
	struct nlmsghdr *nlh = xspd_nl_header(buf, XFRM_MSG_FLUSHPOLICY, flags, seq);
	struct xfrm_userpolicy_type ptype = {.type = type};

	if (type)
		mnl_attr_put(nlh, XFRMA_POLICY_TYPE, sizeof(ptype), &ptype);
	return nlh;
}
