// SPDX-License-Identifier: GPL-2.0-only
/*
 * PF_KEY (af_key, as setkey and racoon use it) writes the SPD: the mirror hears of each change,
 * and after each it is what the kernel dumps.  In the guest's first namespace: before 6.13 the
 * kernel tells of MIGRATE nowhere else.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/ipsec.h>
#include <linux/pfkeyv2.h>
#include <linux/xfrm.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/gen.h"
#include "lib/watch.h"
#include "util.h"

static struct watch *watch;
static int key = -1;
static uint32_t seq;

static void enter(void)
{
	struct timeval patience = {.tv_sec = 20};

	key = socket(AF_KEY, SOCK_RAW | SOCK_CLOEXEC, PF_KEY_V2);
	cr_assert_geq(key, 0, "no af_key: %s", strerror(errno));
	setsockopt(key, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	cr_assert_eq(watch_new(&watch, 0), 0);
	cr_assert_null(watch->spd->by_index, "somebody else's policies");
}

static void leave(void)
{
	watch_flush(watch, XSPD_MAIN);
	watch_free(watch);
	close(key);
}

TestSuite(pfkey, .init = enter, .fini = leave);

/* --- messages ------------------------------------------------------------------- */

struct request {
	uint64_t buf[128];
	size_t len; /* bytes */
};

static void *put(struct request *req, const void *data, size_t len)
{
	void *at = (char *)req->buf + req->len;

	cr_assert_leq(req->len + len, sizeof(req->buf));
	memcpy(at, data, len);
	req->len += (len + 7) / 8 * 8;
	return at;
}

static struct request *begin(struct request *req, uint8_t type)
{
	struct sadb_msg msg = {.sadb_msg_version = PF_KEY_V2,
			       .sadb_msg_type = type,
			       .sadb_msg_pid = (uint32_t)getpid()};

	*req = (struct request){};
	put(req, &msg, sizeof(msg));
	return req;
}

static void put_sockaddr(struct request *req, uint16_t family, const void *addr, __be16 port)
{
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = port};
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = port};

	if (family == AF_INET) {
		memcpy(&v4.sin_addr, addr, sizeof(v4.sin_addr));
		put(req, &v4, sizeof(v4));
	} else {
		memcpy(&v6.sin6_addr, addr, sizeof(v6.sin6_addr));
		put(req, &v6, sizeof(v6));
	}
}

static void put_address(struct request *req, uint16_t ext, const struct xfrm_selector *sel)
{
	bool src = ext == SADB_EXT_ADDRESS_SRC;
	struct sadb_address addr = {.sadb_address_len = sel->family == AF_INET ? 3 : 5,
				    .sadb_address_exttype = ext,
				    .sadb_address_proto = sel->proto ? sel->proto : IPSEC_PROTO_ANY,
				    .sadb_address_prefixlen =
					    src ? sel->prefixlen_s : sel->prefixlen_d};

	put(req, &addr, sizeof(addr));
	put_sockaddr(req, sel->family, src ? &sel->saddr : &sel->daddr,
		     src ? sel->sport : sel->dport);
}

static void put_template(struct request *req, const struct xspd_tmpl *tmpl)
{
	bool tunnel = tmpl->mode == XFRM_MODE_TUNNEL;
	struct sadb_x_ipsecrequest want = {
		.sadb_x_ipsecrequest_len = sizeof(want) + (tunnel ? 32 : 0),
		.sadb_x_ipsecrequest_proto = tmpl->proto,
		.sadb_x_ipsecrequest_mode = tunnel ? IPSEC_MODE_TUNNEL : IPSEC_MODE_TRANSPORT,
		.sadb_x_ipsecrequest_level = tmpl->required ? IPSEC_LEVEL_UNIQUE : IPSEC_LEVEL_USE,
		.sadb_x_ipsecrequest_reqid = tmpl->reqid};

	put(req, &want, sizeof(want));
	if (!tunnel)
		return;
	put_sockaddr(req, AF_INET, tmpl->saddr, 0);
	put_sockaddr(req, AF_INET, tmpl->daddr, 0);
}

/* @more: a second template, for MIGRATE. */
static void put_policy(struct request *req, const struct xspd_pol *pol,
		       const struct xspd_tmpl *more)
{
	struct sadb_x_policy policy = {.sadb_x_policy_exttype = SADB_X_EXT_POLICY,
				       .sadb_x_policy_type = pol->action == XSPD_BLOCK
								     ? IPSEC_POLICY_DISCARD
							     : pol->tmpl.count ? IPSEC_POLICY_IPSEC
									       : IPSEC_POLICY_NONE,
				       .sadb_x_policy_dir = pol->dir + 1,
				       .sadb_x_policy_id = pol->index,
				       .sadb_x_policy_priority = pol->priority};
	size_t before = req->len;
	struct sadb_x_policy *at = put(req, &policy, sizeof(policy));

	if (policy.sadb_x_policy_type == IPSEC_POLICY_IPSEC)
		put_template(req, &pol->tmpl);
	if (more)
		put_template(req, more);
	at->sadb_x_policy_len = (uint16_t)((req->len - before) / 8);
}

static void put_selector(struct request *req, const struct xfrm_selector *sel)
{
	put_address(req, SADB_EXT_ADDRESS_SRC, sel);
	put_address(req, SADB_EXT_ADDRESS_DST, sel);
}

/* The kernel answers to every PF_KEY socket: 0 or its errno. */
static int ask(struct request *req)
{
	struct sadb_msg *msg = (void *)req->buf;
	union {
		struct sadb_msg msg;
		char buf[4096];
	} reply;

	msg->sadb_msg_len = (uint16_t)(req->len / 8);
	msg->sadb_msg_seq = ++seq;
	if (send(key, req->buf, req->len, 0) < 0)
		return errno;
	if (msg->sadb_msg_type == SADB_X_MIGRATE)
		return 0; /* success is told in the kernel's name: the event says so */
	do /* a flush is answered twice */
		cr_assert_gt(recv(key, &reply, sizeof(reply), 0), 0, "type %u: %s",
			     msg->sadb_msg_type, strerror(errno));
	while (reply.msg.sadb_msg_pid != (uint32_t)getpid() || reply.msg.sadb_msg_seq != seq);
	return reply.msg.sadb_msg_errno;
}

static int spd(uint8_t type, const struct xspd_pol *pol)
{
	struct request req;

	begin(&req, type);
	if (pol && type != SADB_X_SPDDELETE2)
		put_selector(&req, &pol->sel);
	if (pol)
		put_policy(&req, pol, NULL);
	return ask(&req);
}

/* --- what comes of them --------------------------------------------------------- */

static void expect_equal(int line)
{
	const char *what = watch_compare(watch);

	cr_assert_null(what, "line %d: %s", line, what);
}
#define expect_equal() expect_equal(__LINE__)

static uint32_t told(enum xspd_event_kind kind)
{
	uint32_t ret;

	cr_assert_eq(watch_drain(watch), 0);
	ret = watch->told[kind];
	watch->told[kind] = 0;
	return ret;
}

static struct xspd_pol pol_make(uint32_t n, uint8_t dir)
{
	struct xspd_pol pol = {.dir = dir, .priority = 10 + n};

	pol.sel.family = AF_INET;
	pol.sel.proto = IPPROTO_UDP;
	pol.sel.saddr.a4 = htonl(0x0a010000 + n);
	pol.sel.daddr.a4 = htonl(0x0a020000);
	pol.sel.prefixlen_s = 32;
	pol.sel.prefixlen_d = 16;
	pol.sel.dport = htons(53);
	pol.sel.dport_mask = 0xffff; /* PF_KEY has ports, not masks */
	pol.tmpl = (struct xspd_tmpl){.reqid = n + 1,
				      .proto = IPPROTO_ESP,
				      .count = 1,
				      .required = 1,
				      .mode = XFRM_MODE_TUNNEL,
				      .family = AF_INET,
				      .saddr = {htonl(0xc0000201)},
				      .daddr = {htonl(0xc0000202)}};
	return pol;
}

static const struct xspd_pol *mirrored(const struct xspd_pol *pol)
{
	const struct xspd_pol *ret = xspd_spd_find_identity(watch->spd, pol);

	cr_assert_not_null(ret, "not mirrored");
	return ret;
}

Test(pfkey, add_update_delete_flush)
{
	for (uint8_t dir = 0; dir < XSPD_DIR_MAX_; dir++) {
		struct xspd_pol a = pol_make(1, dir), b = pol_make(2, dir);

		cr_assert_eq(spd(SADB_X_SPDADD, &a), 0);
		cr_expect_eq(told(XSPD_EVENT_POLICY), 1);
		expect_equal();
		cr_expect_eq(mirrored(&a)->tmpl.reqid, 2);
		cr_expect_eq(mirrored(&a)->tmpl.required, 1);
		cr_expect_eq(mirrored(&a)->tmpl.daddr[0], htonl(0xc0000202));
		cr_expect_eq(spd(SADB_X_SPDADD, &a), EEXIST);
		cr_expect_eq(told(XSPD_EVENT_POLICY), 0);
		b.action = XSPD_BLOCK;
		cr_assert_eq(spd(SADB_X_SPDADD, &b), 0);
		expect_equal();
		cr_expect_eq(mirrored(&b)->action, XSPD_BLOCK);

		a.priority = 5;
		a.tmpl.count = 0;
		cr_assert_eq(spd(SADB_X_SPDUPDATE, &a), 0);
		cr_expect_eq(told(XSPD_EVENT_POLICY), 2);
		expect_equal();
		cr_expect_eq(mirrored(&a)->priority, 5);
		cr_expect_eq(mirrored(&a)->tmpl.count, 0);
		cr_expect_not(mirrored(&a)->tie);
		cr_assert_eq(spd(SADB_X_SPDUPDATE, &a), 0);
		cr_expect_eq(told(XSPD_EVENT_POLICY), 1);
		expect_equal();
		cr_expect(mirrored(&a)->tie, "updated in place");

		cr_assert_eq(spd(SADB_X_SPDDELETE, &a), 0);
		cr_expect_eq(told(XSPD_EVENT_REMOVE), 1);
		expect_equal();
		cr_expect_neq(spd(SADB_X_SPDDELETE, &a), 0);
		b.index = mirrored(&b)->index;
		cr_assert_eq(spd(SADB_X_SPDDELETE2, &b), 0);
		cr_expect_eq(told(XSPD_EVENT_REMOVE), 1);
		expect_equal();
		cr_expect_null(watch->spd->by_index);
	}
	for (uint32_t n = 0; n < 20; n++) {
		struct xspd_pol pol = pol_make(n, n % 3);

		cr_assert_eq(spd(SADB_X_SPDADD, &pol), 0);
	}
	expect_equal();
	cr_expect_eq(HASH_COUNT(watch->spd->by_index), 20);
	cr_assert_eq(spd(SADB_X_SPDFLUSH, NULL), 0);
	cr_expect_eq(told(XSPD_EVENT_FLUSH), 1);
	expect_equal();
	cr_expect_null(watch->spd->by_index);
}

Test(pfkey, migrate)
{
	struct xspd_pol a = pol_make(1, XSPD_OUT);
	struct xspd_tmpl to = a.tmpl;
	struct xspd_spd_diff diff;
	struct request req;
	uint32_t pos;

	cr_assert_eq(spd(SADB_X_SPDADD, &a), 0);
	expect_equal();
	pos = mirrored(&a)->pos;
	to.daddr[0] = htonl(0xc0000299);
	begin(&req, SADB_X_MIGRATE);
	put_selector(&req, &a.sel);
	put_policy(&req, &a, &to);
	cr_assert_eq(ask(&req), 0);
	cr_expect_eq(told(XSPD_EVENT_MIGRATE), 1);
	cr_assert_eq(watch_dump(watch, &diff), 0);
	cr_expect_eq(diff.modified, 1);
	expect_equal();
	cr_expect_eq(mirrored(&a)->tmpl.daddr[0], htonl(0xc0000299));
	cr_expect_eq(mirrored(&a)->pos, pos);
	cr_expect_not(mirrored(&a)->tie);
}

/* A policy as PF_KEY can write it, from one that it need not be able to. */
static void tame(struct gen *gen, struct xspd_pol *pol)
{
	pol->type = XSPD_MAIN;
	pol->mark = pol->mark_mask = pol->if_id = 0;
	pol->flags = 0;
	pol->sel.ifindex = 0;
	pol->sel.user = 0;
	pol->sel.sport_mask = pol->sel.sport ? 0xffff : 0;
	pol->sel.dport_mask = pol->sel.dport ? 0xffff : 0;
	pol->tmpl.count = gen_chance(gen, 70);
	pol->tmpl.required = pol->tmpl.count && gen_chance(gen, 70);
}

Test(pfkey, at_random)
{
	struct xspd_pol pol[24], *one;
	unsigned int done = 0;
	struct gen gen;

	gen_init(&gen, "pfkey", 24);
	gen.block = 25;
	for (size_t i = 0; i < XSPD_ARRAY_SIZE(pol); i++) {
		gen_policy(&gen, &pol[i]);
		tame(&gen, &pol[i]);
	}
	for (int i = 0; i < 400; i++) {
		static const uint8_t types[] = {SADB_X_SPDADD, SADB_X_SPDADD, SADB_X_SPDUPDATE,
						SADB_X_SPDDELETE};
		uint8_t type = gen_chance(&gen, 1) ? SADB_X_SPDFLUSH
						   : types[gen_below(&gen, XSPD_ARRAY_SIZE(types))];

		one = &pol[gen_below(&gen, XSPD_ARRAY_SIZE(pol))];
		if (type == SADB_X_SPDUPDATE && gen_chance(&gen, 50))
			one->priority = gen_priority(&gen);
		done += spd(type, type == SADB_X_SPDFLUSH ? NULL : one) == 0;
		expect_equal();
	}
	cr_expect_gt(done, 100, "%u", done);
}
