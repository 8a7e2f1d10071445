// SPDX-License-Identifier: GPL-2.0-only
/* Lines for `ip -batch`: what is read from them. The kernel's word on them:
 * tests/kernel/lookup_with.sh. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "util.h"
#include "words/change.h"

static uint32_t device(const char *name)
{
	return strcmp(name, "eth0") ? 0 : 4;
}

/* A copy to the exact byte, so that a read past it shows. */
static int read_line(const char *text, struct xspd_line *ret)
{
	xspd_autofree char *copy = strdup(text);
	char error[100] = "";
	int err = xspd_line_read(copy, device, ret, error, sizeof(error));

	cr_expect_eq(!err, !*error, "%s: %s", text, error);
	return err;
}

Test(words, everything)
{
	struct xspd_line line;
	const struct xspd_pol *pol = &line.pol;

	cr_assert_eq(
		read_line(
			"xfrm policy add priority 0x10 flag localok icmp src 10.0.0.1/8 dst "
			"10.1.0.0/16 "
			"proto udp dport 53 dev eth0 mark 5 dir out index 17 if_id 3 ptype sub "
			"action block tmpl src 1.1.1.1 dst 2.2.2.2 proto esp mode tunnel reqid 010 "
			"tmpl proto ah mode transport level use # remark",
			&line),
		0);
	cr_expect_eq(line.kind, XSPD_LINE_ADD);
	cr_expect_eq(pol->priority, 16);
	cr_expect_eq(pol->flags, 3);
	cr_expect_eq(pol->sel.saddr.a4, htonl(0x0a000001));
	cr_expect_eq(pol->sel.prefixlen_s, 8);
	cr_expect_eq(pol->sel.dport, htons(53));
	cr_expect_eq(pol->sel.dport_mask, 0xffff);
	cr_expect_eq(pol->sel.sport_mask, 0);
	cr_expect_eq(pol->sel.ifindex, 4);
	cr_expect_eq(pol->mark, 5);
	cr_expect_eq(pol->mark_mask, 0xffffffff);
	cr_expect_eq(pol->index, 17);
	cr_expect_eq(pol->if_id, 3);
	cr_expect_eq(pol->type, XSPD_SUB);
	cr_expect_eq(pol->action, XSPD_BLOCK);
	cr_expect_eq(pol->tmpl.count, 2);
	cr_expect_eq(pol->tmpl.required, 1);
	cr_expect_eq(pol->tmpl.reqid, 8);
	cr_expect_eq(pol->tmpl.mode, XFRM_MODE_TUNNEL);
}

Test(words, lines)
{
	static const struct {
		const char *text;
		int err;
		enum xspd_line_kind kind;
	} table[] = {
		{"", 0, XSPD_LINE_NOTHING},
		{"  # xfrm policy flush", 0, XSPD_LINE_NOTHING},
		{"xfrm policy flush\n", 0, XSPD_LINE_FLUSH},
		{"xfrm policy flush ptype sub", 0, XSPD_LINE_FLUSH},
		{"xfrm policy delete index 9 dir out", 0, XSPD_LINE_DELETE_INDEX},
		{"xfrm policy delete dst ::/0 dir in mark 1 mask 3", 0, XSPD_LINE_DELETE},
		{"xfrm policy setdefault in block out accept", 0, XSPD_LINE_DEFAULTS},
		{"xfrm policy update dir fwd", 0, XSPD_LINE_UPDATE},
		{"xfrm policy", -EINVAL},
		{"xfrm", -EINVAL},
		{"xfrm state flush", -EINVAL},
		{"xfrm policy add", -EINVAL},
		{"xfrm policy add dir", -EINVAL},
		{"xfrm policy add dir out dir out", -EINVAL},
		{"xfrm policy add dir out mark", -EINVAL},
		{"xfrm policy add dir out mark 1 mask", -EINVAL},
		{"xfrm policy add dir out flag", -EINVAL},
		{"xfrm policy add dir out src 10.0.0.0/33", -EINVAL},
		{"xfrm policy add dir out src 10.0.0.0 dst ::1", -EINVAL},
		{"xfrm policy add dir out tmpl", -EINVAL},
		{"xfrm policy add dir out tmpl mode tunnel", -EINVAL},
		{"xfrm policy add dir out tmpl proto esp tmpl", -EINVAL},
		{"xfrm policy add dir out proto icmp sport 1", -EINVAL},
		{"xfrm policy add dir out proto udp src 10.0.0.0/8 dport 1", -EINVAL},
		{"xfrm policy add dir out limit time-hard x", -EINVAL},
		{"xfrm policy delete dir out", -EINVAL},
		{"xfrm policy delete dir out index 9 src 10.0.0.1", -EINVAL},
		{"xfrm policy delete dir out src 10.0.0.1 priority 3", -EINVAL},
		{"xfrm policy setdefault", -EINVAL},
		{"xfrm policy setdefault in", -EINVAL},
		{"xfrm policy flush ptype", -EINVAL},
	};
	struct xspd_line line;

	for (size_t i = 0; i < XSPD_ARRAY_SIZE(table); i++) {
		cr_expect_eq(read_line(table[i].text, &line), table[i].err, "%s", table[i].text);
		if (!table[i].err)
			cr_expect_eq(line.kind, table[i].kind, "%s", table[i].text);
	}
}

Test(words, applied)
{
	static const struct {
		const char *text;
		int err;
		uint32_t policies;
	} table[] = {
		{"xfrm policy add src 10.0.0.0/8 dst 10.0.0.0/8 dir out priority 3", 0, 1},
		{"xfrm policy add src 10.0.0.0/8 dst 10.0.0.0/8 dir out", -EEXIST, 1},
		{"xfrm policy add src 10.0.0.1/8 dst 10.0.0.0/8 dir out", 0, 2},
		{"xfrm policy add src 10.0.0.0/8 dst 10.0.0.0/8 dir in index 9", -EINVAL, 2},
		{"xfrm policy update src 10.0.0.0/8 dst 10.0.0.0/8 dir out priority 3 index 1001",
		 0, 2},
		{"xfrm policy add src 10.0.0.0/8 dst 10.0.0.0/8 dir out mark 5 mask 7 index 2001",
		 0, 3},
		{"xfrm policy delete src 10.0.0.0/8 dst 10.0.0.0/8 dir out mark 13 mask 7", -ENOENT,
		 3},
		{"xfrm policy delete index 2001 dir out", -ENOENT, 3},
		{"xfrm policy delete index 2001 dir out mark 5 mask 7", 0, 2},
		{"xfrm policy flush ptype sub", 0, 2},
		{"xfrm policy flush", 0, 0},
		{"xfrm policy delete src 10.0.0.0/8 dst 10.0.0.0/8 dir out", -ENOENT, 0},
	};
	struct xspd_spd *spd = xspd_spd_new();
	struct xspd_line line;
	uint32_t index;

	for (size_t i = 0; i < XSPD_ARRAY_SIZE(table); i++) {
		cr_assert_eq(read_line(table[i].text, &line), 0, "%s", table[i].text);
		cr_expect_eq(xspd_line_apply(spd, &line, &index), table[i].err, "%s",
			     table[i].text);
		cr_expect_eq(HASH_COUNT(spd->by_index), table[i].policies, "%s", table[i].text);
		if (i ==
		    4) /* an update at the old priority keeps its place: the order is not certain */
			cr_expect_eq(spd->ties, 1);
	}
	xspd_spd_free(spd);
}
