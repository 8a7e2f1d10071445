// SPDX-License-Identifier: GPL-2.0-only
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <net/if.h>
#include <linux/if_tun.h>

#include "lib/question.h"
#include "lib/netns.h"
#include "lib/packet.h"
#include "nl/nl.h"

#define KERNEL_EXT_MAX	15
#define SINCE(maj, min) ((maj) << 8 | (min))

struct question questions[QUESTIONS_MAX];
size_t question_count;

static bool kernel_since(unsigned int version)
{
	unsigned int major = 0, minor = 0;
	struct utsname name;

	cr_assert(uname(&name) == 0 && sscanf(name.release, "%u.%u", &major, &minor) == 2);
	return SINCE(major, minor) >= version;
}

int question_way(void)
{
	struct ifreq ifr = {.ifr_name = "tap0", .ifr_flags = IFF_TAP | IFF_NO_PI};
	int fd;

	cr_assert_eq(netns_enter(), 0);
	cr_assert_eq(netns_routes(), 0);
	fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	cr_assert_geq(fd, 0, "/dev/net/tun");
	cr_assert_eq(ioctl(fd, TUNSETIFF, &ifr), 0, "TUNSETIFF");
	cr_assert_eq(netns_run("ip link set tap0 address 02:00:00:00:00:01 up"), 0);
	return fd;
}

void question_local(void)
{
	cr_assert_eq(netns_run("ip route add local 10.2.0.0/16 dev lo"), 0);
	cr_assert_eq(netns_run("ip -6 route add local fd02::/16 dev lo"), 0);
}

static uint32_t sum16(const uint8_t *p, size_t n, uint32_t sum)
{
	size_t i;

	for (i = 0; i + 1 < n; i += 2)
		sum += p[i] << 8 | p[i + 1];
	return n & 1 ? sum + (p[n - 1] << 8) : sum;
}

/*
 * Length and checksum of a whole TCP or UDP packet without extension headers: the
 * protocol's code wants them right before it asks for a policy.
 */
static void finish_l4(struct craft *c, const struct craft_spec *s)
{
	bool v6 = s->family == 6;
	size_t head = v6 ? 40 : 20 + s->options * 4;
	uint8_t *ip = c->b + c->l3, *l4 = ip + head;
	size_t at = s->proto == 6 ? 16 : 6;
	uint32_t sum;

	if (s->frag || s->ext_count || (s->proto != 6 && s->proto != 17) || s->l4_len < at + 2)
		return;
	if (s->proto == 6)
		l4[12] = 5 << 4;
	else
		craft_be16(l4 + 4, s->l4_len);
	craft_be16(l4 + at, 0);
	sum = v6 ? sum16(ip + 8, 32, 0) : sum16(ip + 12, 8, 0);
	sum = sum16(l4, s->l4_len, sum + s->proto + s->l4_len);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	craft_be16(l4 + at, ~sum & 0xffff ? ~sum : 0xffff);
}

/* What parse.h says must be what the plain dissection says. */
static void parse_agrees(struct question *q, struct xspd_meta *meta)
{
	struct xspd_flow flow = {}, want = {};
	struct xspd_cursor cur;
	enum xspd_reason reason;
	enum dissect known;

	xspd_cursor_linear(&cur, q->c.b, q->c.b + q->c.len);
	reason = xspd_parse_eth(&cur, &flow);
	*meta = cur.meta;
	q->told = reason == XSPD_R_NONE;
	known = dissect(q->c.b + 14, q->c.len - 14, q->c.b[12] << 8 | q->c.b[13], XSPD_EXT_MAX,
			&want);
	cr_assert_eq(reason == XSPD_R_NONE, known == DISSECT_FLOW, "%s: reason %u", q->name,
		     reason);
	if (known == DISSECT_FLOW)
		cr_assert(!memcmp(&flow, &want, sizeof(flow)), "%s", q->name);
}

bool question_add(const char *name, const struct craft_spec *spec)
{
	struct question *q = &questions[question_count];
	struct craft_spec own = *spec;
	struct xspd_meta meta;

	own.id = question_count + 1;
	memset(q, 0, sizeof(*q));
	q->name = name;
	craft(&q->c, &own);
	q->c.b[0] = q->c.b[6] = 2;
	q->c.b[5] = 1;
	finish_l4(&q->c, &own);
	parse_agrees(q, &meta);
	if (!kernel_since(SINCE(6, 7)) && (meta.flags & XSPD_META_SINCE_6_7))
		return false;
	q->known = dissect(q->c.b + 14, q->c.len - 14, q->c.b[12] << 8 | q->c.b[13], KERNEL_EXT_MAX,
			   &q->flow);
	/* behind options in fragments parse.h defers, but what is seen here is known */
	if (q->known == DISSECT_UNTOLD && q->flow.frag)
		q->known = DISSECT_FLOW;
	question_count++;
	return true;
}

static void refused(void *ctx, uint32_t seq, int error, const char *extack)
{
	(void)ctx;
	cr_assert_fail("policy %u refused: %d %s", seq, error, extack ? extack : "");
}

static void put(struct xspd_batch *batch, const struct xspd_pol *pol)
{
	uint32_t seq;
	void *room = xspd_batch_room(batch, &seq);

	cr_assert_not_null(room);
	xspd_batch_commit(batch, xspd_nl_put_policy(room, pol, XFRM_MSG_NEWPOLICY,
						    NLM_F_REQUEST | NLM_F_ACK, seq));
}

/* The two policies of question @i for @dir; their index says which they are. */
static void put_pair(struct xspd_batch *batch, size_t i, uint8_t dir)
{
	const struct question *q = &questions[i];
	const uint8_t *ip = q->c.b + q->c.l3;
	bool v6 = ip[0] >> 4 == 6;
	struct xspd_pol pol = {
		.sel.family = v6 ? AF_INET6 : AF_INET,
		.sel.prefixlen_d = v6 ? 128 : 32,
		.sel.prefixlen_s = v6 ? 128 : 32,
		.index = question_index(i, 1, dir),
		.dir = dir,
		.priority = 20,
	};

	memcpy(&pol.sel.saddr, ip + (v6 ? 8 : 12), v6 ? 16 : 4);
	memcpy(&pol.sel.daddr, ip + (v6 ? 24 : 16), v6 ? 16 : 4);
	put(batch, &pol);
	if (q->known != DISSECT_FLOW)
		return;
	memcpy(&pol.sel.saddr, q->flow.saddr, sizeof(q->flow.saddr));
	memcpy(&pol.sel.daddr, q->flow.daddr, sizeof(q->flow.daddr));
	pol.sel.proto = q->flow.proto;
	pol.sel.sport = q->flow.sport;
	pol.sel.dport = q->flow.dport;
	pol.sel.sport_mask = pol.sel.dport_mask = 0xffff;
	pol.index = question_index(i, 0, dir);
	pol.priority = 10;
	put(batch, &pol);
}

void question_install(const uint8_t *dirs, size_t dir_count)
{
	struct xspd_batch *batch;
	struct xspd_nl *nl;
	size_t i, d;

	cr_assert_eq(xspd_nl_open(&nl, 0, 0), 0);
	cr_assert_eq(xspd_batch_new(&batch, nl, refused, NULL), 0);
	for (i = 0; i < question_count; i++)
		for (d = 0; d < dir_count; d++)
			put_pair(batch, i, dirs[d]);
	cr_assert_eq(xspd_batch_flush(batch), 0);
	xspd_batch_free(batch);
	xspd_nl_free(nl);
}

void question_send(int tap)
{
	size_t i;

	for (i = 0; i < question_count; i++)
		cr_assert_eq(write(tap, questions[i].c.b, questions[i].c.len),
			     (ssize_t)questions[i].c.len, "%s: %m", questions[i].name);
}

void question_read_use(void)
{
	size_t max = QUESTIONS_MAX * 2 * XSPD_DIR_MAX_, found = 0, i;
	struct packet_used *used = calloc(max, sizeof(*used));

	cr_assert_eq(packet_used(used, max, &found), 0);
	cr_assert_leq(found, max);
	for (i = 0; i < found; i++) {
		uint32_t nr = (used[i].index >> 3) - 1;

		cr_assert_lt(nr / 2, question_count, "index %u", used[i].index);
		questions[nr / 2].used[used[i].dir][nr & 1] = true;
	}
	free(used);
}
