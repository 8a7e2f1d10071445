// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every kind of change that the kernel tells of, made in a namespace of its own:
 * after each, the mirror (fed by events alone) equals a fresh dump.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <libmnl/libmnl.h>

#include "lib/netns.h"
#include "lib/request.h"
#include "lib/watch.h"
#include "util.h"

static struct watch *watch;

static void enter(void)
{
	cr_assert_eq(netns_enter(), 0);
	cr_assert_eq(watch_new(&watch, 0), 0);
}

static void leave(void)
{
	watch_free(watch);
}

TestSuite(mirror, .init = enter, .fini = leave);

static void expect_equal(int line)
{
	const char *what = watch_compare(watch);

	cr_assert_null(what, "line %d: %s", line, what);
}
#define expect_equal() expect_equal(__LINE__)

/* "10.0.0.@n/32 -> 10.1.0.0/16" out, reqid @n */
static struct xspd_pol pol_make(uint32_t n, uint32_t priority)
{
	struct xspd_pol pol = {.dir = XSPD_OUT, .priority = priority};

	pol.sel.family = AF_INET;
	pol.sel.saddr.a4 = htonl(0x0a000000 + n);
	pol.sel.daddr.a4 = htonl(0x0a010000);
	pol.sel.prefixlen_s = 32;
	pol.sel.prefixlen_d = 16;
	pol.tmpl = (struct xspd_tmpl){.reqid = n, .proto = IPPROTO_ESP, .count = 1, .required = 1};
	return pol;
}

static struct xspd_pol tunnel_make(uint32_t n, uint32_t priority)
{
	struct xspd_pol pol = pol_make(n, priority);

	pol.tmpl.mode = XFRM_MODE_TUNNEL;
	pol.tmpl.family = AF_INET;
	pol.tmpl.saddr[0] = htonl(0xc0000201);
	pol.tmpl.daddr[0] = htonl(0xc0000202);
	return pol;
}

static const struct xspd_pol *mirrored(const struct xspd_pol *pol)
{
	struct xspd_pol *ret = xspd_spd_find_identity(watch->spd, pol);

	cr_assert_not_null(ret);
	return ret;
}

static uint32_t told(enum xspd_event_kind kind)
{
	uint32_t ret;

	cr_assert_eq(watch_drain(watch), 0);
	ret = watch->told[kind];
	watch->told[kind] = 0;
	return ret;
}

Test(mirror, starts_with_what_is_there)
{
	struct xspd_pol a = pol_make(1, 10), b = pol_make(2, 10);
	struct watch *second;

	cr_assert_eq(watch_new_policy(watch, &a), 0);
	cr_assert_eq(watch_new_policy(watch, &b), 0);
	cr_assert_eq(watch_set_default(watch, XFRM_USERPOLICY_BLOCK, 0, 0), 0);
	cr_assert_eq(watch_new(&second, 0), 0);
	cr_expect_null(watch_compare(second), "%s", watch_compare(second));
	cr_expect_eq(HASH_COUNT(second->spd->by_index), 2);
	cr_expect_eq(second->spd->defaults, 1 << XSPD_IN);
	cr_expect_eq(second->spd->ties, 0);
	watch_free(second);
}

Test(mirror, every_mix_of_templates_mark_and_if_id)
{
	struct xspd_pol pol;
	unsigned int i;

	for (i = 0; i < 56; i++) {
		pol = pol_make(i, 10 + i % 3);
		pol.tmpl.count = i % 7;
		pol.tmpl.required = i % 7 ? i % 2 : 0;
		pol.dir = pol.tmpl.required ? i % 3 : XSPD_IN;
		if (!pol.tmpl.count)
			pol.tmpl = (struct xspd_tmpl){};
		if (i / 7 & 1)
			pol.if_id = i;
		if (i / 7 & 2) {
			pol.mark_mask = 0xff0f;
			pol.mark = i & 0xf;
		}
		pol.type = i / 7 & 4 ? XSPD_SUB : XSPD_MAIN;
		pol.flags = i & 3;
		cr_assert_eq(watch_new_policy(watch, &pol), 0, "%u", i);
		cr_expect_eq(told(XSPD_EVENT_POLICY), 1, "%u", i);
		expect_equal();
	}
	for (i = 0; i < 56; i++) {
		pol = *watch->spd->by_index;
		cr_assert_eq(watch_delete(watch, &pol, i & 1), 0, "%u", i);
		cr_expect_eq(told(XSPD_EVENT_REMOVE), 1, "%u", i);
		expect_equal();
	}
	cr_expect_eq(HASH_COUNT(watch->spd->by_index), 0);
}

Test(mirror, every_selector_field_ipv6)
{
	struct xspd_pol pol = {.dir = XSPD_FWD, .priority = UINT32_MAX, .action = XSPD_BLOCK};
	struct xfrm_selector *sel = &pol.sel;

	sel->family = AF_INET6;
	cr_assert_eq(inet_pton(AF_INET6, "2001:db8::1", &sel->daddr), 1); /* host bits stay */
	cr_assert_eq(inet_pton(AF_INET6, "2001:db8:1::", &sel->saddr), 1);
	sel->prefixlen_d = 33;
	sel->prefixlen_s = 127;
	sel->dport = htons(0x1234);
	sel->dport_mask = htons(0x0f0f);
	sel->sport_mask = htons(0xffff);
	sel->proto = IPPROTO_SCTP;
	sel->ifindex = 77;
	sel->user = 1000;
	((uint8_t *)sel)[46] = 5; /* padding is identity as well */
	cr_assert_eq(watch_new_policy(watch, &pol), 0);
	expect_equal();
	cr_expect_arr_eq(&mirrored(&pol)->sel, sel, sizeof(*sel));
	cr_assert_eq(watch_delete(watch, &pol, false), 0);
	expect_equal();
}

Test(mirror, update_is_an_upsert)
{
	struct xspd_pol a = pol_make(1, 10), b = pol_make(2, 10);

	cr_assert_eq(watch_update(watch, &a), 0);
	expect_equal();
	cr_expect_not(mirrored(&a)->tie, "it was not there before");
	cr_assert_eq(watch_new_policy(watch, &b), 0);
	a.action = XSPD_BLOCK;
	a.index = 8 * 999 + XSPD_OUT; /* is not heeded */
	cr_assert_eq(watch_update(watch, &a), 0);
	expect_equal();
	cr_expect(mirrored(&a)->tie);
	cr_expect_eq(mirrored(&a)->action, XSPD_BLOCK);
	cr_expect_gt(mirrored(&a)->pos, mirrored(&b)->pos);
	a.priority = 11;
	cr_assert_eq(watch_update(watch, &a), 0);
	expect_equal();
	cr_expect_not(mirrored(&a)->tie);
	cr_expect_eq(watch->told[XSPD_EVENT_POLICY], 4);
	cr_expect_eq(watch->told[XSPD_EVENT_REMOVE], 0);
	cr_expect_eq(watch_new_policy(watch, &a), EEXIST);
	expect_equal();
}

Test(mirror, given_and_reused_indexes)
{
	struct xspd_pol a = pol_make(1, 10), b = pol_make(2, 10), c = pol_make(3, 10);

	a.index = b.index = 8 * 4711 + XSPD_OUT;
	cr_assert_eq(watch_new_policy(watch, &a), 0);
	cr_assert_eq(watch_new_policy(watch, &c), 0);
	expect_equal();
	cr_expect_eq(mirrored(&a)->index, a.index);
	cr_assert_eq(watch_delete(watch, &a, true), 0);
	cr_assert_eq(watch_new_policy(watch, &b), 0);
	expect_equal();
	cr_expect_eq(mirrored(&b)->index, b.index);
	cr_expect_null(xspd_spd_find_identity(watch->spd, &a));
}

Test(mirror, delete_needs_the_mark_as_stored)
{
	struct xspd_pol pol = pol_make(1, 10), wrong;

	pol.mark = 0x1234; /* stored as 0x34 */
	pol.mark_mask = 0xff;
	cr_assert_eq(watch_new_policy(watch, &pol), 0);
	expect_equal();
	wrong = pol;
	cr_expect_eq(watch_delete(watch, &wrong, false), ENOENT);
	expect_equal();
	pol.mark = 0x34;
	cr_expect_eq(mirrored(&pol)->mark, 0x34);
	cr_expect_eq(watch_delete(watch, &pol, false), 0);
	expect_equal();
	cr_expect_null(watch->spd->by_index);
}

Test(mirror, flush_takes_one_type)
{
	struct xspd_pol a = pol_make(1, 10), b = pol_make(2, 10), sub = pol_make(3, 10);

	b.sel.family = AF_INET6;
	b.dir = XSPD_IN;
	sub.type = XSPD_SUB;
	watch_flush(watch, XSPD_MAIN);
	cr_expect_eq(told(XSPD_EVENT_FLUSH), 0, "there was nothing to flush");
	cr_assert_eq(watch_new_policy(watch, &a), 0);
	cr_assert_eq(watch_new_policy(watch, &b), 0);
	cr_assert_eq(watch_new_policy(watch, &sub), 0);
	expect_equal();
	cr_assert_eq(watch_flush(watch, XSPD_MAIN), 0);
	cr_expect_eq(told(XSPD_EVENT_FLUSH), 1);
	expect_equal();
	cr_expect_eq(HASH_COUNT(watch->spd->by_index), 1);
	cr_assert_eq(watch_new_policy(watch, &a), 0);
	cr_assert_eq(watch_flush(watch, XSPD_SUB), 0);
	expect_equal();
	cr_expect_eq(HASH_COUNT(watch->spd->by_index), 1);
	cr_expect_not_null(mirrored(&a));
}

Test(mirror, expiry_by_the_timer)
{
	struct pollfd pfd = {.events = POLLIN};
	struct xspd_pol soft = pol_make(1, 10), hard = pol_make(2, 10);
	struct xfrm_userpolicy_info *info;
	struct nlmsghdr *nlh;
	uint32_t seq, i;

	for (i = 0; i < 2; i++) {
		void *room = watch_room(watch, &seq);

		nlh = xspd_nl_put_policy(room, i ? &hard : &soft, XFRM_MSG_NEWPOLICY, 0, seq);
		info = mnl_nlmsg_get_payload(nlh);
		(*(i ? &info->lft.hard_add_expires_seconds : &info->lft.soft_add_expires_seconds)) =
			1;
		cr_assert_eq(watch_send(watch, nlh), 0);
	}
	expect_equal();
	cr_expect_eq(HASH_COUNT(watch->spd->by_index), 2);
	pfd.fd = xspd_nl_fd(watch->events);
	for (i = 0; i < 2; i++) { /* in either order */
		cr_assert_eq(poll(&pfd, 1, 5000), 1, "nothing expired");
		cr_assert_eq(watch_drain(watch), 0);
		if (watch->told[XSPD_EVENT_REMOVE] && watch->told[XSPD_EVENT_NONE])
			break;
	}
	cr_expect_eq(watch->told[XSPD_EVENT_REMOVE], 1, "no DELPOLICY comes with it");
	cr_expect_geq(watch->told[XSPD_EVENT_NONE], 1, "soft expiry is heard, and no change");
	expect_equal();
	cr_expect_eq(HASH_COUNT(watch->spd->by_index), 1);
	cr_expect_not_null(mirrored(&soft));
}

Test(mirror, expiry_by_message)
{
	struct xspd_pol pol = pol_make(1, 10), other = pol_make(2, 10);

	pol.mark = pol.mark_mask = 3;
	cr_assert_eq(watch_new_policy(watch, &pol), 0);
	cr_assert_eq(watch_new_policy(watch, &other), 0);
	cr_assert_eq(watch_expire(watch, &pol, false), 0);
	cr_expect_eq(told(XSPD_EVENT_NONE), 1);
	expect_equal();
	cr_assert_eq(watch_expire(watch, &pol, true), 0);
	cr_expect_eq(told(XSPD_EVENT_REMOVE), 1);
	expect_equal();
	cr_expect_eq(HASH_COUNT(watch->spd->by_index), 1);
	cr_expect_not_null(mirrored(&other));
}

Test(mirror, defaults)
{
	cr_assert_eq(watch_set_default(watch, XFRM_USERPOLICY_BLOCK, XFRM_USERPOLICY_BLOCK,
				       XFRM_USERPOLICY_ACCEPT),
		     0);
	expect_equal();
	cr_expect_eq(watch->spd->defaults, 1 << XSPD_IN | 1 << XSPD_FWD);
	cr_assert_eq(watch_set_default(watch, 0, XFRM_USERPOLICY_ACCEPT, 0), 0);
	expect_equal();
	cr_expect_eq(watch->spd->defaults, 1 << XSPD_IN, "what is not given stays");
	cr_expect_eq(told(XSPD_EVENT_DEFAULTS), 2);
}

static int migrate_send(const struct xspd_pol *pol, uint32_t to)
{
	uint32_t seq;
	void *room = watch_room(watch, &seq);

	return watch_send(watch, request_migrate(room, pol, to, seq));
}

Test(mirror, migrate_changes_templates_in_place)
{
	struct xspd_pol a = tunnel_make(1, 10), b = tunnel_make(2, 10);
	struct xspd_spd_diff diff;

	cr_assert_eq(watch_new_policy(watch, &a), 0);
	cr_assert_eq(watch_new_policy(watch, &b), 0);
	expect_equal();
	cr_assert_eq(migrate_send(&a, 0xc0000299), 0);
	cr_expect_eq(told(XSPD_EVENT_MIGRATE), 1);
	cr_expect_not_null(watch_compare(watch), "the event does not say which policy it was");
	cr_assert_eq(watch_dump(watch, &diff), 0);
	expect_equal();
	cr_expect_eq(diff.modified, 1);
	cr_expect_eq(mirrored(&a)->tmpl.daddr[0], htonl(0xc0000299));
	cr_expect_not(mirrored(&a)->tie);
}

Test(mirror, get_one_policy)
{
	struct xspd_pol pol = pol_make(1, 10), read;

	pol.mark = pol.mark_mask = pol.if_id = 7;
	pol.type = XSPD_SUB;
	cr_assert_eq(watch_new_policy(watch, &pol), 0);
	cr_assert_eq(watch_drain(watch), 0);
	pol = *mirrored(&pol);
	cr_assert_eq(xspd_nl_policy(watch->requests, pol.index, &pol, &read), 0);
	cr_expect_eq(read.index, pol.index);
	cr_expect_eq(read.tmpl.reqid, 1);
	pol.mark = 0;
	cr_expect_eq(xspd_nl_policy(watch->requests, pol.index, &pol, &read), -ENOENT);
}

Test(mirror, policies_of_sockets_are_not_mirrored)
{
	struct xfrm_userpolicy_info info = {.dir = XFRM_POLICY_OUT};
	struct xspd_pol pol = pol_make(1, 10);
	struct xspd_spdinfo spdinfo;
	struct xspd_spd_diff diff;
	xspd_autoclose int fd = socket(AF_INET, SOCK_DGRAM, 0);

	info.sel.family = AF_INET;
	cr_assert_eq(setsockopt(fd, IPPROTO_IP, 17 /* IP_XFRM_POLICY */, &info, sizeof(info)), 0);
	info.dir = XFRM_POLICY_IN;
	cr_assert_eq(setsockopt(fd, IPPROTO_IP, 17, &info, sizeof(info)), 0);
	cr_assert_eq(watch_new_policy(watch, &pol), 0);
	cr_assert_eq(xspd_nl_spdinfo(watch->requests, &spdinfo), 0);
	cr_expect_eq(spdinfo.sock_count[XSPD_OUT] + spdinfo.sock_count[XSPD_IN], 2);
	cr_expect_eq(spdinfo.lbits4, 32);
	cr_expect_eq(spdinfo.rbits6, 128);
	expect_equal();
	cr_assert_eq(watch_dump(watch, &diff), 0);
	cr_expect_eq(diff.added + diff.removed + diff.modified, 0);
	cr_expect_eq(HASH_COUNT(watch->spd->by_index), 1);
}

/* Any process with CAP_NET_ADMIN can write to our port. */
Test(mirror, only_the_kernel_is_believed)
{
	struct sockaddr_nl to = {.nl_family = AF_NETLINK};
	_Alignas(8) char room[1024];
	struct xspd_pol pol = pol_make(1, 10);
	socklen_t len = sizeof(to);
	struct nlmsghdr *nlh;

	cr_assert_eq(watch_new_policy(watch, &pol), 0);
	pol = pol_make(2, 10);
	pol.index = 8 * 4711 + XSPD_OUT;
	nlh = xspd_nl_put_policy(room, &pol, XFRM_MSG_NEWPOLICY, 0, 1);
	cr_assert_eq(getsockname(xspd_nl_fd(watch->events), (struct sockaddr *)&to, &len), 0);
	cr_assert_eq(sendto(xspd_nl_fd(watch->requests), nlh, nlh->nlmsg_len, 0,
			    (struct sockaddr *)&to, len),
		     nlh->nlmsg_len);
	pol = pol_make(3, 10);
	cr_assert_eq(watch_new_policy(watch, &pol), 0);
	expect_equal();
	cr_expect_eq(HASH_COUNT(watch->spd->by_index), 2);
}

Test(mirror, suspects_updates_from_before_its_time)
{
	struct xspd_pol a = pol_make(1, 10), b = pol_make(2, 10), c = pol_make(3, 11);
	struct watch *second;

	cr_assert_eq(watch_new_policy(watch, &a), 0);
	cr_assert_eq(watch_new_policy(watch, &b), 0);
	cr_assert_eq(watch_new_policy(watch, &c), 0);
	cr_assert_eq(watch_update(watch, &a), 0);
	cr_assert_eq(watch_new(&second, 0), 0);
	cr_expect_null(watch_compare(second));
	cr_expect(xspd_spd_find_identity(second->spd, &a)->tie);
	cr_expect_not(xspd_spd_find_identity(second->spd, &b)->tie);
	cr_expect_eq(second->spd->ties, 1);
	watch_free(second);
}
