// SPDX-License-Identifier: GPL-2.0-only
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <string.h>
#include <libmnl/libmnl.h>

#include "lib/request.h"

void request_put(struct xspd_batch *batch, const struct xspd_pol *pol, uint16_t type)
{
	uint32_t seq;
	void *room = xspd_batch_room(batch, &seq);

	cr_assert_not_null(room);
	xspd_batch_commit(batch, type == XFRM_MSG_DELPOLICY
					 ? xspd_nl_put_delete(room, pol, false, 0, seq)
					 : xspd_nl_put_policy(room, pol, type, 0, seq));
}

void request_send(struct xspd_batch *batch, const struct xspd_pol *pol, uint16_t type)
{
	request_put(batch, pol, type);
	cr_assert_eq(xspd_batch_flush(batch), 0);
}

void request_flush(struct xspd_batch *batch, uint8_t ptype)
{
	uint32_t seq;
	void *room = xspd_batch_room(batch, &seq);

	cr_assert_not_null(room);
	xspd_batch_commit(batch, xspd_nl_put_flush(room, ptype, 0, seq));
	cr_assert_eq(xspd_batch_flush(batch), 0);
}

struct nlmsghdr *request_migrate(void *room, const struct xspd_pol *pol, uint32_t to, uint32_t seq)
{
	struct xfrm_userpolicy_id id = {.sel = pol->sel, .dir = pol->dir};
	struct xfrm_user_migrate move = {.proto = IPPROTO_ESP,
					 .mode = XFRM_MODE_TUNNEL,
					 .reqid = pol->tmpl.reqid,
					 .old_family = AF_INET,
					 .new_family = AF_INET};
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(room);

	move.old_saddr.a4 = move.new_saddr.a4 = pol->tmpl.saddr[0];
	move.old_daddr.a4 = pol->tmpl.daddr[0];
	move.new_daddr.a4 = htonl(to);
	nlh->nlmsg_type = XFRM_MSG_MIGRATE;
	nlh->nlmsg_flags = NLM_F_REQUEST;
	nlh->nlmsg_seq = seq;
	memcpy(mnl_nlmsg_put_extra_header(nlh, sizeof(id)), &id, sizeof(id));
	mnl_attr_put(nlh, XFRMA_MIGRATE, sizeof(move), &move);
	return nlh;
}
