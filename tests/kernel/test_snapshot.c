// SPDX-License-Identifier: GPL-2.0-only
/* Snapshots between namespaces of the running kernel: what was saved is what is there after a load.
 */
#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <libmnl/libmnl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/netns.h"
#include "lib/snap.h"
#include "snapshot/collect.h"
#include "snapshot/save.h"

#define MANY 5000

TestSuite(snapshot, .fini = snap_fini);

Test(snapshot, there_and_back)
{
	struct xspd_load_result result;
	struct snap_list a, b, c;
	struct xspd_pol updated = snap_policy(3);
	struct xfrm_userpolicy_info bypass = {.action = XFRM_POLICY_ALLOW, .sel.family = AF_INET};
	int sock;

	snap_enter();
	sock = socket(AF_INET, SOCK_DGRAM, 0);
	cr_assert_eq(setsockopt(sock, IPPROTO_IP, IP_XFRM_POLICY, &bypass, sizeof(bypass)), 0);
	snap_fill(MANY);
	snap_put(&updated, XFRM_MSG_UPDPOLICY); /* the newest now, with the index it had */
	snap_flush();
	a = snap_list();
	cr_assert_eq(a.count, MANY);
	snap_save();

	snap_enter();
	cr_assert_eq(snap_load(false, &result), 0);
	cr_expect_eq(snap_told.refused, 0, "%u refused: %s", snap_told.refused, snap_told.text);
	cr_expect_eq(result.policies, MANY);
	b = snap_list();
	snap_expect_same(&a, &b);

	cr_assert_eq(snap_load(false, &result), 0);
	cr_expect_eq(snap_told.refused, 0);
	cr_expect_eq(result.policies, 0);
	cr_expect_eq(result.policies_unchanged, MANY);
	c = snap_list();
	snap_expect_same(&a, &c);
	close(sock);
	free(a.at);
	free(b.at);
	free(c.at);
}

static int count_events(void *ctx, const struct xspd_event *event)
{
	*(uint32_t *)ctx += event->kind != XSPD_EVENT_NONE;
	return 0;
}

Test(snapshot, a_second_load_touches_nothing)
{
	struct xspd_load_result result;
	struct xspd_nl *events;
	uint32_t heard = 0;

	snap_enter();
	snap_fill(300);
	snap_save();
	cr_assert_eq(xspd_nl_open(&events, XSPD_NL_GROUPS, 1 << 20), 0);
	cr_assert_eq(snap_load(false, &result), 0);
	while (xspd_nl_recv(events, 64, count_events, &heard) > 0)
		;
	cr_expect_eq(heard, 0, "%u events", heard);
	cr_expect_eq(result.policies_unchanged, 300);
	/* and one that is missing makes itself and all younger ones be sent, in order */
	{
		struct xspd_pol gone = snap_policy(200);

		xspd_batch_commit(snap_batch,
				  xspd_nl_put_delete(xspd_batch_room(snap_batch, &(uint32_t){0}),
						     &gone, false, 0, 1));
		snap_flush();
	}
	while (xspd_nl_recv(events, 64, count_events, &heard) > 0)
		;
	heard = 0;
	cr_assert_eq(snap_load(false, &result), 0);
	while (xspd_nl_recv(events, 64, count_events, &heard) > 0)
		;
	cr_expect_eq(result.policies_unchanged, 199);
	cr_expect_eq(result.policies, 101);
	cr_expect_eq(heard, 101);
	xspd_nl_free(events);
}

Test(snapshot, the_order_of_the_file_wins)
{
	struct xspd_load_result result;
	struct snap_list a, b;

	snap_enter();
	snap_fill(500);
	a = snap_list();
	snap_save();
	for (uint32_t i = 500; i > 0;
	     i -= 2) { /* some of them, turned round, and with other content */
		struct xspd_pol pol = snap_policy(i);

		pol.priority += i % 3;
		snap_put(&pol, XFRM_MSG_UPDPOLICY);
	}
	snap_flush();
	b = snap_list();
	cr_assert(memcmp(a.at, b.at, a.used), "the test itself changed nothing");
	free(b.at);
	cr_assert_eq(snap_load(false, &result), 0);
	cr_expect_eq(snap_told.refused, 0);
	b = snap_list();
	snap_expect_same(&a, &b);
	free(a.at);
	free(b.at);
}

Test(snapshot, an_index_that_is_taken_is_not_fought_over)
{
	struct xspd_pol foreign = snap_policy(77), first = snap_policy(1);
	struct xspd_load_result result;
	struct snap_list b;

	snap_enter();
	snap_fill(20);
	snap_save();
	snap_enter();
	foreign.dir = first.dir;
	foreign.index = 8 + first.dir; /* the first that a kernel gives */
	snap_put(&foreign, XFRM_MSG_NEWPOLICY);
	snap_flush();
	cr_assert_eq(snap_load(false, &result), 0);
	cr_expect_eq(snap_told.refused, 0);
	b = snap_list();
	cr_expect_eq(b.count, 21);
	cr_assert_eq(snap_load(false, &result), 0);
	cr_expect_eq(result.policies_unchanged, 20, "another index is no difference");
	free(b.at);
}

/* A file of our own making: the kernel refuses what the file's check cannot know of. */
static void write_file(const struct xspd_vault *states, const struct xspd_vault *policies)
{
	struct xspd_snap_header header;

	cr_assert_eq(xspd_snap_save(snap_path, XSPD_SNAP_STATES | XSPD_SNAP_KEYS, states, policies,
				    &snap_stop, &header),
		     0);
}

static void put_state(struct xspd_vault *states, const char *alg, uint32_t bits)
{
	_Alignas(8) char buf[1024] = {};
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct xfrm_usersa_info *info = mnl_nlmsg_put_extra_header(nlh, sizeof(*info));
	struct xfrm_algo algo = {.alg_key_len = bits};
	char value[sizeof(algo) + 32];

	nlh->nlmsg_type = XFRM_MSG_NEWSA;
	info->family = info->sel.family = AF_INET;
	info->id.proto = IPPROTO_ESP;
	info->id.spi = htonl(0x100 + (uint32_t)states->count);
	info->id.daddr.a4 = htonl(0x01010101);
	snprintf(algo.alg_name, sizeof(algo.alg_name), "%s", alg);
	memcpy(value, &algo, sizeof(algo));
	memset(value + sizeof(algo), 'k', 32);
	mnl_attr_put(nlh, XFRMA_ALG_CRYPT, sizeof(value), value);
	cr_assert_eq(xspd_vault_append(states, nlh), 0);
}

Test(snapshot, a_refusal_costs_itself_only)
{
	struct xspd_vault states = {}, policies = {};
	struct xspd_load_result result;
	struct snap_list b;

	snap_enter();
	snap_fill(300);
	cr_assert_eq(xspd_collect_policies(&policies), 0);
	for (size_t i = 0; i < policies.count; i += 100) { /* an index of another direction */
		struct xfrm_userpolicy_info *info = NLMSG_DATA(xspd_vault_get(&policies, i));

		info->index = (info->index & ~7u) | (info->dir + 1) % 3;
	}
	for (int i = 0; i < 3; i++)
		put_state(&states, "no(such-cipher)", 128);
	write_file(&states, &policies);
	snap_enter();
	cr_assert_eq(snap_load(true, &result), 0);
	cr_expect_eq(result.states, 0);
	cr_expect_eq(result.states_refused, 3);
	cr_expect_eq(result.policies, 297);
	cr_expect_eq(result.policies_refused, 3);
	cr_expect_eq(snap_told.refused, 6);
	cr_expect_eq(snap_told.error, -EINVAL);
	cr_expect(strstr(snap_told.text, "index"), "the kernel's reason: '%s'", snap_told.text);
	b = snap_list();
	cr_expect_eq(b.count, 297);
	free(b.at);
	xspd_vault_empty(&states);
	xspd_vault_empty(&policies);
}
