// SPDX-License-Identifier: GPL-2.0-only
/* Files that are ours and whole are taken, everything else is told apart and refused. */
#include <libmnl/libmnl.h>
#include <netinet/in.h>
#include <sys/mman.h>

#include "nl/nl.h"
#include "snapshot/format.h"
#include "snapshot/state.h"
#include "spd_pol.h"

#define HEADER sizeof(struct xspd_snap_header)

static _Alignas(8) char file[16384];
static size_t size;

static void put_state(void)
{
	struct xfrm_usersa_info info = {.id.proto = IPPROTO_ROUTING, .family = AF_INET6};
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(file + size);

	nlh->nlmsg_type = XFRM_MSG_NEWSA;
	memcpy(mnl_nlmsg_put_extra_header(nlh, sizeof(info)), &info, sizeof(info));
	size += NLMSG_ALIGN(nlh->nlmsg_len);
}

static struct nlmsghdr *put_policy(uint32_t nr)
{
	struct xspd_pol pol = pol_make(nr, 100 + nr);
	struct nlmsghdr *nlh;

	nlh = xspd_nl_put_policy(file + size, &pol, XFRM_MSG_NEWPOLICY, 0, 0);
	size += NLMSG_ALIGN(nlh->nlmsg_len);
	return nlh;
}

static struct xspd_snap_header *header(void)
{
	return (void *)file;
}

static void seal(uint32_t states, uint32_t policies)
{
	struct xspd_snap_header *head = header();

	memset(head, 0, HEADER);
	head->states = states;
	head->policies = policies;
	head->body_size = size - HEADER;
	head->body_crc = xspd_snap_crc(0, file + HEADER, size - HEADER);
	xspd_snap_seal(head);
}

/* One SA and three policies. */
static void fill(void)
{
	memset(file, 0, sizeof(file));
	size = HEADER;
	put_state();
	for (uint32_t i = 1; i <= 3; i++)
		put_policy(i);
	seal(1, 3);
}

/* From a block of the exact size, so that ASan sees any step too far. */
static enum xspd_snap_fault check(size_t len)
{
	struct xspd_snap_header ret;
	char *copy = malloc(len ? len : 1);
	enum xspd_snap_fault fault;

	memcpy(copy, file, len);
	fault = xspd_snap_check(copy, len, &ret);
	if (!fault) {
		cr_expect_eq(ret.body_size, len - HEADER);
	}
	free(copy);
	return fault;
}

/* The file ends where memory does: libmnl reads, too, and ASan does not watch it. */
static enum xspd_snap_fault check_at_edge(void)
{
	size_t room = (size + 8191) & ~4095ul;
	char *at = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct xspd_snap_header ret;

	cr_assert(at != MAP_FAILED && mprotect(at + room - 4096, 4096, PROT_NONE) == 0);
	at += room - 4096 - size;
	memcpy(at, file, size);
	return xspd_snap_check(at, size, &ret);
}

Test(snapshot_format, sound)
{
	struct xspd_snap_header ret;

	fill();
	cr_assert_eq(check(size), XSPD_SNAP_FINE);
	xspd_snap_check(file, size, &ret);
	cr_expect_eq(ret.states, 1);
	cr_expect_eq(ret.policies, 3);
	size = HEADER;
	seal(0, 0);
	cr_expect_eq(check(size), XSPD_SNAP_FINE, "nothing in it is fine, too");
}

Test(snapshot_format, cut_anywhere)
{
	fill();
	for (size_t len = 0; len < size; len++)
		cr_expect_eq(check(len), len < 8 ? XSPD_SNAP_FOREIGN : XSPD_SNAP_TRUNCATED,
			     "%zu of %zu bytes", len, size);
	cr_expect_eq(check(size + 1), XSPD_SNAP_LONGER);
}

Test(snapshot_format, one_bit_anywhere)
{
	enum xspd_snap_fault fault, want;

	fill();
	for (size_t at = 0; at < size; at++) {
		want = at < 8	     ? XSPD_SNAP_FOREIGN
		       : at < 12     ? XSPD_SNAP_OTHER_ORDER
		       : at < 16     ? XSPD_SNAP_OTHER_VERSION
		       : at < HEADER ? XSPD_SNAP_BAD_HEADER
				     : XSPD_SNAP_BAD_BODY;
		file[at] ^= 1 << at % 8;
		fault = check(size);
		cr_expect_eq(fault, want, "byte %zu: %s", at, xspd_snap_fault_text(fault));
		file[at] ^= 1 << at % 8;
	}
	cr_expect_eq(check(size), XSPD_SNAP_FINE);
}

/* With right checksums all the same: a writer other than ours. */
Test(snapshot_format, entries)
{
	struct nlmsghdr *nlh;

	fill();
	seal(0, 4);
	cr_expect_eq(check(size), XSPD_SNAP_BAD_MESSAGE, "an SA in place of a policy");
	seal(2, 2);
	cr_expect_eq(check(size), XSPD_SNAP_BAD_MESSAGE, "a policy in place of an SA");
	seal(1, 2);
	cr_expect_eq(check(size), XSPD_SNAP_BAD_MESSAGE, "one more than is told");
	seal(1, 4);
	cr_expect_eq(check(size), XSPD_SNAP_BAD_MESSAGE, "one fewer than is told");
	seal(1, ~0u);
	cr_expect_eq(check(size), XSPD_SNAP_BAD_MESSAGE);

	fill();
	nlh = put_policy(4);
	seal(1, 4);
	cr_assert_eq(check(size), XSPD_SNAP_FINE);
	nlh->nlmsg_type = XFRM_MSG_DELPOLICY;
	seal(1, 4);
	cr_expect_eq(check(size), XSPD_SNAP_BAD_MESSAGE, "another request");
	nlh->nlmsg_type = XFRM_MSG_NEWPOLICY;
	((struct xfrm_userpolicy_info *)NLMSG_DATA(nlh))->dir = 3;
	seal(1, 4);
	cr_expect_eq(check(size), XSPD_SNAP_BAD_MESSAGE, "a socket's policy");
}

Test(snapshot_format, lengths_of_entries)
{
	static const uint32_t lengths[] = {0, 1, 15, 16, 100, 1u << 20, 0x7fffffff, ~0u, ~0u - 3};
	struct nlmsghdr *nlh;

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		fill();
		nlh = put_policy(4);
		nlh->nlmsg_len = lengths[i];
		seal(1, 4);
		cr_expect_eq(check(size), XSPD_SNAP_BAD_MESSAGE, "length %u", lengths[i]);
	}
	fill();
	nlh = put_policy(4);
	nlh->nlmsg_len += 400;
	seal(1, 4);
	cr_expect_eq(check_at_edge(), XSPD_SNAP_BAD_MESSAGE, "longer than what is left");

	fill();
	nlh = put_policy(4);
	memset(file + size, 0, 4096);
	((struct nlattr *)(file + size))->nla_len = 4096;
	((struct nlattr *)(file + size))->nla_type = 999;
	nlh->nlmsg_len += 4096;
	size += 4096;
	seal(1, 4);
	cr_expect_eq(check(size), XSPD_SNAP_BAD_MESSAGE, "more than one request may be");
}

Test(snapshot_format, same_policy)
{
	struct xfrm_userpolicy_info *info;
	struct nlmsghdr *a, *b;

	fill();
	a = put_policy(9);
	b = put_policy(9);
	info = NLMSG_DATA(b);
	cr_expect(xspd_snap_same_policy(a, b));
	info->index += 8;
	info->curlft.use_time = 7;
	cr_expect(xspd_snap_same_policy(a, b), "index, age and use do not count");
	info->priority++;
	cr_expect_not(xspd_snap_same_policy(a, b));
	info->priority--;
	info->sel.saddr.a6[3] ^= 1;
	cr_expect_not(xspd_snap_same_policy(a, b));
	info->sel.saddr.a6[3] ^= 1;
	mnl_attr_put_u32(b, XFRMA_IF_ID, 1);
	cr_expect_not(xspd_snap_same_policy(a, b));
	mnl_attr_put_u32(a, XFRMA_IF_ID, 2);
	cr_expect_not(xspd_snap_same_policy(a, b));
}
