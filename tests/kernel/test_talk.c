// SPDX-License-Identifier: GPL-2.0-only
/* Questions to the kernel: what ended before its end is an error, not a short answer. */
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/rtnetlink.h>

#include "nl/talk.h"
#include "util.h"

static int count(const struct nlmsghdr *nlh, void *ctx)
{
	(void)nlh;
	++*(unsigned int *)ctx;
	return MNL_CB_OK;
}

/* A dump of the rules of @family. */
static int rules(uint8_t family, unsigned int *ret_count)
{
	char buf[64] __attribute__((aligned(4)));
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct rtmsg *rtm = mnl_nlmsg_put_extra_header(nlh, sizeof(*rtm));

	nlh->nlmsg_type = RTM_GETRULE;
	nlh->nlmsg_flags = NLM_F_DUMP;
	rtm->rtm_family = family;
	*ret_count = 0;
	return xspd_nl_talk(NETLINK_ROUTE, nlh, count, ret_count);
}

Test(talk, dump)
{
	unsigned int found;

	cr_expect_eq(rules(AF_INET, &found), 0);
	cr_expect_geq(found, 3, "local, main, default");
}

/* The kernel says so in the message that ends the dump. */
Test(talk, dump_that_ends_by_an_error)
{
	unsigned int found;

	cr_expect_eq(rules(AF_APPLETALK, &found), -EAFNOSUPPORT);
	cr_expect_eq(found, 0);
}

Test(talk, refused)
{
	char buf[64] __attribute__((aligned(4)));
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	unsigned int found = 0;

	nlh->nlmsg_type = RTM_MAX + 1;
	mnl_nlmsg_put_extra_header(nlh, sizeof(struct rtmsg));
	cr_expect_eq(xspd_nl_talk(NETLINK_ROUTE, nlh, count, &found), -EOPNOTSUPP);
}
