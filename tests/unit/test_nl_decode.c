// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages as the kernel builds them (xfrm_user.c), put together here piece by piece so
 * that each piece can also be wrong.  Each is decoded in memory of exactly its size.
 */
#include <libmnl/libmnl.h>

#include "nl/nl.h"
#include "spd_pol.h"

static _Alignas(8) char room[4096];

static struct nlmsghdr *start(uint16_t type, const void *payload, size_t size)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(room);

	nlh->nlmsg_type = type;
	nlh->nlmsg_seq = 9;
	if (size)
		memcpy(mnl_nlmsg_put_extra_header(nlh, size), payload, size);
	return nlh;
}

static int decode(const struct nlmsghdr *nlh, struct xspd_event *ret)
{
	struct nlmsghdr *copy = malloc(nlh->nlmsg_len);
	int err;

	memcpy(copy, nlh, nlh->nlmsg_len);
	err = xspd_nl_decode(copy, ret);
	free(copy);
	return err;
}

static enum xspd_event_kind kind_of(const struct nlmsghdr *nlh)
{
	struct xspd_event event;

	cr_assert_eq(decode(nlh, &event), 0);
	cr_expect_eq(event.seq, 9);
	cr_expect_eq(event.nlmsg_type, nlh->nlmsg_type);
	return event.kind;
}

static struct xfrm_userpolicy_info info_make(void)
{
	struct xfrm_userpolicy_info info = {.index = 8 * 5 + XSPD_FWD,
					    .priority = 77,
					    .dir = XSPD_FWD,
					    .action = XFRM_POLICY_BLOCK,
					    .flags = XFRM_POLICY_ICMP};

	info.sel.family = AF_INET6;
	info.sel.prefixlen_d = 128;
	info.sel.prefixlen_s = 1;
	info.sel.proto = 17;
	info.sel.user = 3;
	return info;
}

static struct xfrm_user_tmpl tmpl_make(uint8_t mode, bool optional)
{
	struct xfrm_user_tmpl tmpl = {.family = AF_INET, .reqid = 6, .mode = mode};

	tmpl.id.proto = 50;
	tmpl.optional = optional;
	memset(&tmpl.id.daddr, 0xdd, 16); /* only the first word is an IPv4 address */
	memset(&tmpl.saddr, 0xaa, 16);
	return tmpl;
}

static void attrs_put(struct nlmsghdr *nlh)
{
	struct xfrm_user_tmpl tmpl[3] = {tmpl_make(XFRM_MODE_TUNNEL, false), tmpl_make(0, true),
					 tmpl_make(0, false)};
	struct xfrm_userpolicy_type type = {.type = XSPD_SUB};
	struct xfrm_mark mark = {0x1234, 0xff};

	mnl_attr_put(nlh, XFRMA_TMPL, sizeof(tmpl), tmpl);
	mnl_attr_put(nlh, XFRMA_POLICY_TYPE, sizeof(type), &type);
	mnl_attr_put(nlh, XFRMA_MARK, sizeof(mark), &mark);
	mnl_attr_put_u32(nlh, XFRMA_IF_ID, 42);
	mnl_attr_put_u32(nlh, 999, 1); /* of a kernel to come */
}

static void expect_policy(const struct xspd_pol *pol)
{
	struct xfrm_userpolicy_info info = info_make();

	cr_expect_arr_eq(&pol->sel, &info.sel, sizeof(info.sel));
	cr_expect_eq(pol->index, info.index);
	cr_expect_eq(pol->priority, 77);
	cr_expect_eq(pol->dir, XSPD_FWD);
	cr_expect_eq(pol->action, XSPD_BLOCK);
	cr_expect_eq(pol->flags, XFRM_POLICY_ICMP);
	cr_expect_eq(pol->type, XSPD_SUB);
	cr_expect_eq(pol->mark, 0x1234, "as the kernel keeps it");
	cr_expect_eq(pol->mark_mask, 0xff);
	cr_expect_eq(pol->if_id, 42);
	cr_expect_eq(pol->tmpl.count, 3);
	cr_expect_eq(pol->tmpl.required, 2);
	cr_expect_eq(pol->tmpl.reqid, 6);
	cr_expect_eq(pol->tmpl.proto, 50);
	cr_expect_eq(pol->tmpl.mode, XFRM_MODE_TUNNEL);
	cr_expect_eq(pol->tmpl.family, AF_INET);
	cr_expect_eq(pol->tmpl.daddr[0], 0xdddddddd);
	cr_expect_eq(pol->tmpl.daddr[1], 0);
	cr_expect_eq(pol->tmpl.saddr[0], 0xaaaaaaaa);
	cr_expect_eq(pol->tmpl.saddr[3], 0);
	cr_expect_eq(pol->unmodelled, 0);
}

Test(nl_decode, new_and_updated_policies)
{
	static const uint16_t types[] = {XFRM_MSG_NEWPOLICY, XFRM_MSG_UPDPOLICY};
	struct xfrm_userpolicy_info info = info_make();
	struct xspd_event event;
	struct nlmsghdr *nlh;
	size_t i;

	for (i = 0; i < 2; i++) {
		nlh = start(types[i], &info, sizeof(info));
		attrs_put(nlh);
		cr_assert_eq(decode(nlh, &event), 0);
		cr_expect_eq(event.kind, XSPD_EVENT_POLICY);
		cr_expect_not(event.multi);
		expect_policy(&event.pol);
		nlh->nlmsg_flags = NLM_F_MULTI;
		cr_assert_eq(decode(nlh, &event), 0);
		cr_expect(event.multi);
	}
}

Test(nl_decode, bare_policy)
{
	struct xfrm_userpolicy_info info = info_make();
	struct xspd_tmpl none = {};
	struct xspd_event event;

	cr_assert_eq(decode(start(XFRM_MSG_NEWPOLICY, &info, sizeof(info)), &event), 0);
	cr_expect_eq(event.kind, XSPD_EVENT_POLICY);
	cr_expect_eq(event.pol.type, XSPD_MAIN);
	cr_expect_eq(event.pol.mark | event.pol.mark_mask | event.pol.if_id, 0);
	cr_expect_arr_eq(&event.pol.tmpl, &none, sizeof(none));
}

Test(nl_decode, transport_mode_has_no_end_points)
{
	struct xfrm_userpolicy_info info = info_make();
	struct xfrm_user_tmpl tmpl = tmpl_make(XFRM_MODE_TRANSPORT, false);
	struct nlmsghdr *nlh = start(XFRM_MSG_NEWPOLICY, &info, sizeof(info));
	struct xspd_event event;

	mnl_attr_put(nlh, XFRMA_TMPL, sizeof(tmpl), &tmpl);
	cr_assert_eq(decode(nlh, &event), 0);
	cr_expect_eq(event.pol.tmpl.count, 1);
	cr_expect_eq(event.pol.tmpl.daddr[0] | event.pol.tmpl.saddr[0], 0);

	tmpl = tmpl_make(XFRM_MODE_TUNNEL, false);
	tmpl.family = AF_INET6;
	nlh = start(XFRM_MSG_NEWPOLICY, &info, sizeof(info));
	mnl_attr_put(nlh, XFRMA_TMPL, sizeof(tmpl), &tmpl);
	cr_assert_eq(decode(nlh, &event), 0);
	cr_expect_eq(event.pol.tmpl.daddr[3], 0xdddddddd);
}

Test(nl_decode, what_is_not_modelled)
{
	struct xfrm_userpolicy_info info = info_make();
	struct xfrm_user_offload offload = {.ifindex = 1};
	struct nlmsghdr *nlh = start(XFRM_MSG_NEWPOLICY, &info, sizeof(info));
	struct xspd_event event;
	char ctx[12] = {};

	mnl_attr_put(nlh, XFRMA_SEC_CTX, sizeof(ctx), ctx);
	cr_assert_eq(decode(nlh, &event), 0);
	cr_expect_eq(event.pol.unmodelled, XSPD_UNMODELLED_SEC_CTX);
	mnl_attr_put(nlh, XFRMA_OFFLOAD_DEV, sizeof(offload), &offload);
	cr_assert_eq(decode(nlh, &event), 0);
	cr_expect_eq(event.pol.unmodelled, XSPD_UNMODELLED_SEC_CTX | XSPD_UNMODELLED_OFFLOAD);
	cr_expect_eq(event.kind, XSPD_EVENT_POLICY);
}

Test(nl_decode, deletes_carry_the_policy)
{
	struct xfrm_userpolicy_info info = info_make();
	struct xfrm_userpolicy_id id = {.dir = XSPD_FWD}; /* by selector: no index here */
	struct nlmsghdr *nlh = start(XFRM_MSG_DELPOLICY, &id, sizeof(id));
	struct xspd_event event;

	cr_expect_eq(decode(nlh, &event), -EBADMSG, "without the policy there is no index");
	mnl_attr_put(nlh, XFRMA_POLICY, sizeof(info), &info);
	attrs_put(nlh);
	cr_assert_eq(decode(nlh, &event), 0);
	cr_expect_eq(event.kind, XSPD_EVENT_REMOVE);
	expect_policy(&event.pol);
}

Test(nl_decode, expiry)
{
	struct xfrm_user_polexpire expire = {.pol = info_make(), .hard = 1};
	struct nlmsghdr *nlh = start(XFRM_MSG_POLEXPIRE, &expire, sizeof(expire));
	struct xspd_event event;

	attrs_put(nlh);
	cr_assert_eq(decode(nlh, &event), 0);
	cr_expect_eq(event.kind, XSPD_EVENT_REMOVE);
	expect_policy(&event.pol);
	expire.hard = 0;
	cr_expect_eq(kind_of(start(XFRM_MSG_POLEXPIRE, &expire, sizeof(expire))), XSPD_EVENT_NONE);
}

Test(nl_decode, policies_of_sockets)
{
	struct xfrm_userpolicy_info info = info_make();
	struct xfrm_user_polexpire expire = {.hard = 1};

	info.dir = 3;
	cr_expect_eq(kind_of(start(XFRM_MSG_NEWPOLICY, &info, sizeof(info))), XSPD_EVENT_NONE);
	info.dir = XSPD_OUT;
	info.index = 8 * 5 + 4;
	cr_expect_eq(kind_of(start(XFRM_MSG_NEWPOLICY, &info, sizeof(info))), XSPD_EVENT_NONE);
	expire.pol = info;
	cr_expect_eq(kind_of(start(XFRM_MSG_POLEXPIRE, &expire, sizeof(expire))), XSPD_EVENT_NONE);
}

static void odd_family(struct xfrm_userpolicy_info *info)
{
	info->sel.family = AF_UNSPEC;
}

static void odd_dlen(struct xfrm_userpolicy_info *info)
{
	info->sel.prefixlen_d = 129;
}

static void odd_slen(struct xfrm_userpolicy_info *info)
{
	info->sel.family = AF_INET;
	info->sel.prefixlen_d = 32;
	info->sel.prefixlen_s = 33;
}

static void odd_action(struct xfrm_userpolicy_info *info)
{
	info->action = 2;
}

static void odd_index(struct xfrm_userpolicy_info *info)
{
	info->dir = XSPD_IN;
	info->index = 0;
}

Test(nl_decode, policies_of_a_kind_not_known)
{
	static void (*const odd[])(struct xfrm_userpolicy_info *) = {odd_family, odd_dlen, odd_slen,
								     odd_action, odd_index};
	struct xfrm_userpolicy_type type = {.type = 2};
	struct xfrm_userpolicy_info info;
	struct nlmsghdr *nlh;
	size_t i;

	for (i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		info = info_make();
		odd[i](&info);
		cr_expect_eq(kind_of(start(XFRM_MSG_NEWPOLICY, &info, sizeof(info))),
			     XSPD_EVENT_UNMODELLED, "%zu", i);
	}
	info = info_make();
	nlh = start(XFRM_MSG_NEWPOLICY, &info, sizeof(info));
	mnl_attr_put(nlh, XFRMA_POLICY_TYPE, sizeof(type), &type);
	cr_expect_eq(kind_of(nlh), XSPD_EVENT_UNMODELLED);
}

Test(nl_decode, flush)
{
	struct xfrm_userpolicy_type type = {.type = XSPD_SUB};
	struct nlmsghdr *nlh = start(XFRM_MSG_FLUSHPOLICY, NULL, 0);
	struct xspd_event event;

	cr_assert_eq(decode(nlh, &event), 0);
	cr_expect_eq(event.kind, XSPD_EVENT_FLUSH);
	cr_expect_eq(event.type, XSPD_MAIN, "kernels without sub policies do not say it");
	mnl_attr_put(nlh, XFRMA_POLICY_TYPE, sizeof(type), &type);
	cr_assert_eq(decode(nlh, &event), 0);
	cr_expect_eq(event.type, XSPD_SUB);
	type.type = 2;
	nlh = start(XFRM_MSG_FLUSHPOLICY, NULL, 0);
	mnl_attr_put(nlh, XFRMA_POLICY_TYPE, sizeof(type), &type);
	cr_expect_eq(kind_of(nlh), XSPD_EVENT_UNMODELLED);
}

Test(nl_decode, defaults)
{
	struct xfrm_userpolicy_default def = {.in = XFRM_USERPOLICY_ACCEPT,
					      .fwd = XFRM_USERPOLICY_BLOCK};
	struct xspd_event event;

	cr_assert_eq(decode(start(XFRM_MSG_GETDEFAULT, &def, sizeof(def)), &event), 0);
	cr_expect_eq(event.kind, XSPD_EVENT_DEFAULTS);
	cr_expect_eq(event.defaults, 1 << XSPD_FWD);
	cr_expect_eq(event.defaults_known, 1 << XSPD_FWD | 1 << XSPD_IN);
}

Test(nl_decode, spdinfo)
{
	struct xfrmu_spdinfo info = {1, 2, 3, 4, 5, 6};
	struct xfrmu_spdhthresh four = {31, 30}, six = {127, 126};
	uint32_t flags = 0;
	struct nlmsghdr *nlh = start(XFRM_MSG_NEWSPDINFO, &flags, sizeof(flags));
	struct xspd_event event;

	cr_expect_eq(decode(nlh, &event), -EBADMSG, "without counts it says nothing");
	mnl_attr_put(nlh, XFRMA_SPD_INFO, sizeof(info), &info);
	cr_assert_eq(decode(nlh, &event), 0);
	mnl_attr_put(nlh, XFRMA_SPD_IPV4_HTHRESH, sizeof(four), &four);
	mnl_attr_put(nlh, XFRMA_SPD_IPV6_HTHRESH, sizeof(six), &six);
	cr_assert_eq(decode(nlh, &event), 0);
	cr_expect_eq(event.kind, XSPD_EVENT_SPDINFO);
	cr_expect_eq(event.info.count[XSPD_IN], 1);
	cr_expect_eq(event.info.count[XSPD_OUT], 2);
	cr_expect_eq(event.info.count[XSPD_FWD], 3);
	cr_expect_eq(event.info.sock_count[XSPD_IN], 4);
	cr_expect_eq(event.info.sock_count[XSPD_OUT], 5);
	cr_expect_eq(event.info.lbits4, 31);
	cr_expect_eq(event.info.rbits4, 30);
	cr_expect_eq(event.info.lbits6, 127);
	cr_expect_eq(event.info.rbits6, 126);
}

Test(nl_decode, done_and_error)
{
	struct nlmsgerr error = {.error = -ENOENT};
	int32_t failed = -ENOMEM;
	struct nlmsghdr *nlh;
	struct xspd_event event;

	cr_assert_eq(decode(start(NLMSG_ERROR, &error, sizeof(error)), &event), 0);
	cr_expect_eq(event.kind, XSPD_EVENT_ERROR);
	cr_expect_eq(event.error, -ENOENT);
	nlh = start(NLMSG_DONE, NULL, 0);
	cr_assert_eq(decode(nlh, &event), 0);
	cr_expect_eq(event.kind, XSPD_EVENT_DONE);
	cr_expect_eq(event.error, 0);
	nlh->nlmsg_flags = NLM_F_DUMP_INTR;
	cr_assert_eq(decode(nlh, &event), 0);
	cr_expect_eq(event.error, -EINTR);
	cr_assert_eq(decode(start(NLMSG_DONE, &failed, sizeof(failed)), &event), 0);
	cr_expect_eq(event.error, -ENOMEM);
}

Test(nl_decode, messages_without_policies)
{
	static const uint16_t sa[] = {XFRM_MSG_NEWSA,  XFRM_MSG_DELSA,	 XFRM_MSG_UPDSA,
				      XFRM_MSG_EXPIRE, XFRM_MSG_FLUSHSA, XFRM_MSG_ACQUIRE,
				      XFRM_MSG_NEWAE,  XFRM_MSG_REPORT,	 XFRM_MSG_MAPPING,
				      NLMSG_NOOP};
	static const uint16_t odd[] = {XFRM_MSG_GETPOLICY, XFRM_MSG_SETDEFAULT, XFRM_MSG_MAX + 1,
				       NLMSG_OVERRUN, 0xffff};
	size_t i;

	for (i = 0; i < sizeof(sa) / sizeof(sa[0]); i++)
		cr_expect_eq(kind_of(start(sa[i], NULL, 0)), XSPD_EVENT_NONE, "%#x", sa[i]);
	for (i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		cr_expect_eq(kind_of(start(odd[i], NULL, 0)), XSPD_EVENT_UNMODELLED, "%#x", odd[i]);
	cr_expect_eq(kind_of(start(XFRM_MSG_MIGRATE, NULL, 0)), XSPD_EVENT_MIGRATE);
}

/* Cut at every length: nothing behind the end is read, and no attribute is half a one. */
Test(nl_decode, cut_short_at_every_length)
{
	struct xfrm_userpolicy_info info = info_make();
	struct xfrm_userpolicy_id id = {};
	struct xspd_event event;
	struct nlmsghdr *nlh;
	uint32_t len, whole;
	int i, good;

	for (i = 0; i < 2; i++) {
		nlh = i ? start(XFRM_MSG_DELPOLICY, &id, sizeof(id))
			: start(XFRM_MSG_NEWPOLICY, &info, sizeof(info));
		if (i)
			mnl_attr_put(nlh, XFRMA_POLICY, sizeof(info), &info);
		attrs_put(nlh);
		whole = nlh->nlmsg_len;
		for (good = 0, len = sizeof(*nlh); len <= whole; len++) {
			nlh->nlmsg_len = len;
			if (decode(nlh, &event) == 0)
				good++;
		}
		/* only between attributes: before the first, after each of five, and in two bytes
		 * of padding */
		cr_expect_eq(good, 8, "message %d: %d lengths passed", i, good);
	}
	nlh->nlmsg_len = 15;
	cr_expect_eq(xspd_nl_decode(nlh, &event), -EBADMSG);
}

Test(nl_decode, attributes_too_short_for_their_type)
{
	static const uint16_t types[] = {XFRMA_POLICY_TYPE, XFRMA_MARK,	       XFRMA_IF_ID,
					 XFRMA_POLICY,	    XFRMA_OFFLOAD_DEV, XFRMA_TMPL};
	struct xfrm_userpolicy_info info = info_make();
	struct xfrm_user_tmpl tmpl[7] = {};
	struct xspd_event event;
	struct nlmsghdr *nlh;
	size_t i;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		nlh = start(XFRM_MSG_NEWPOLICY, &info, sizeof(info));
		mnl_attr_put(nlh, types[i], 3, tmpl);
		cr_expect_eq(decode(nlh, &event), -EBADMSG, "attribute %u", types[i]);
	}
	nlh = start(XFRM_MSG_NEWPOLICY, &info, sizeof(info));
	mnl_attr_put(nlh, XFRMA_TMPL, sizeof(tmpl), tmpl); /* one more than there can be */
	cr_expect_eq(decode(nlh, &event), -EBADMSG);
	nlh = start(XFRM_MSG_NEWPOLICY, &info, sizeof(info));
	mnl_attr_put(nlh, XFRMA_TMPL, sizeof(tmpl[0]) + 4, tmpl);
	cr_expect_eq(decode(nlh, &event), -EBADMSG);
}
