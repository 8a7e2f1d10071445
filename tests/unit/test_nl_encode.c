// SPDX-License-Identifier: GPL-2.0-only
/* What is encoded as a request decodes to the same policy: both sides use the kernel's layout. */
#include <libmnl/libmnl.h>

#include "nl/nl.h"
#include "spd_pol.h"

static _Alignas(8) char room[2048];

static struct xspd_pol full(void)
{
	struct xspd_pol pol = pol_make(3, 1234);

	pol.type = XSPD_SUB;
	pol.mark = 0x30;
	pol.mark_mask = 0xf0;
	pol.if_id = 12;
	pol.action = XSPD_ALLOW;
	pol.flags = XFRM_POLICY_LOCALOK;
	pol.tmpl = (struct xspd_tmpl){.reqid = 4,
				      .proto = 51,
				      .mode = XFRM_MODE_TUNNEL,
				      .family = AF_INET6,
				      .count = 6,
				      .required = 4};
	memset(pol.tmpl.daddr, 1, 16);
	memset(pol.tmpl.saddr, 2, 16);
	return pol;
}

static void expect_same(const struct xspd_pol *a, const struct xspd_pol *b)
{
	cr_expect_arr_eq(&a->sel, &b->sel, sizeof(a->sel));
	cr_expect_arr_eq(&a->tmpl, &b->tmpl, sizeof(a->tmpl));
	cr_expect_eq(a->index, b->index);
	cr_expect_eq(a->priority, b->priority);
	cr_expect_eq(a->mark, b->mark);
	cr_expect_eq(a->mark_mask, b->mark_mask);
	cr_expect_eq(a->if_id, b->if_id);
	cr_expect_eq(a->dir, b->dir);
	cr_expect_eq(a->type, b->type);
	cr_expect_eq(a->action, b->action);
	cr_expect_eq(a->flags, b->flags);
}

Test(nl_encode, policies)
{
	struct xspd_pol pol = full();
	struct xspd_event event;
	struct nlmsghdr *nlh;
	unsigned int count;

	for (count = 0; count <= XSPD_TMPL_MAX; count++) {
		pol.tmpl.count = count;
		pol.tmpl.required = count / 2;
		if (!count)
			pol.tmpl = (struct xspd_tmpl){};
		memset(room, 0xff, sizeof(room));
		nlh = xspd_nl_put_policy(room, &pol, XFRM_MSG_UPDPOLICY, NLM_F_ACK, 5);
		cr_expect_eq(nlh->nlmsg_flags, NLM_F_REQUEST | NLM_F_ACK);
		cr_expect_eq(nlh->nlmsg_type, XFRM_MSG_UPDPOLICY);
		cr_expect_eq(nlh->nlmsg_seq, 5);
		cr_assert_eq(xspd_nl_decode(nlh, &event), 0);
		cr_expect_eq(event.kind, XSPD_EVENT_POLICY);
		expect_same(&pol, &event.pol);
		if (!count)
			pol = full();
	}
}

Test(nl_encode, plain_policies_have_no_attributes)
{
	struct xspd_pol pol = pol_make(1, 1);
	struct nlmsghdr *nlh = xspd_nl_put_policy(room, &pol, XFRM_MSG_NEWPOLICY, 0, 1);

	/* kernels without sub policies refuse the type attribute */
	cr_expect_eq(nlh->nlmsg_len, MNL_NLMSG_HDRLEN + sizeof(struct xfrm_userpolicy_info));
}

Test(nl_encode, deletes)
{
	struct xspd_pol pol = full();
	struct xfrm_userpolicy_id *id;
	struct xfrm_selector none = {};
	struct nlmsghdr *nlh;

	nlh = xspd_nl_put_delete(room, &pol, false, 0, 1);
	id = mnl_nlmsg_get_payload(nlh);
	cr_expect_eq(nlh->nlmsg_type, XFRM_MSG_DELPOLICY);
	cr_expect_eq(id->index, 0);
	cr_expect_eq(id->dir, XSPD_OUT);
	cr_expect_arr_eq(&id->sel, &pol.sel, sizeof(pol.sel));

	nlh = xspd_nl_put_delete(room, &pol, true, 0, 1);
	id = mnl_nlmsg_get_payload(nlh);
	cr_expect_eq(id->index, pol.index);
	cr_expect_arr_eq(&id->sel, &none, sizeof(none));
}

Test(nl_encode, flushes)
{
	struct xspd_event event;
	uint8_t type;

	for (type = 0; type < XSPD_TYPE_MAX_; type++) {
		cr_assert_eq(xspd_nl_decode(xspd_nl_put_flush(room, type, 0, 1), &event), 0);
		cr_expect_eq(event.kind, XSPD_EVENT_FLUSH);
		cr_expect_eq(event.type, type);
	}
}
