// SPDX-License-Identifier: GPL-2.0-only
#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/netns.h"
#include "lib/request.h"
#include "lib/snap.h"
#include "snapshot/collect.h"
#include "snapshot/save.h"

struct snap_told snap_told;
volatile sig_atomic_t snap_stop;
char snap_path[] = "/tmp/test_snapshot.XXXXXX";
struct xspd_batch *snap_batch;
static struct xspd_nl *nl;

static void on_refused(void *ctx, const struct nlmsghdr *nlh, int error, const char *text)
{
	(void)ctx;
	(void)nlh;
	snap_told.refused++;
	snap_told.error = error;
	snprintf(snap_told.text, sizeof(snap_told.text), "%s", text ? text : "");
}

static void on_progress(void *ctx, uint64_t done, uint64_t total)
{
	(void)ctx;
	(void)total;
	snap_stop = snap_told.stop_at && done >= snap_told.stop_at;
}

int snap_load(bool states, struct xspd_load_result *ret)
{
	struct xspd_load opts = {.states = states,
				 .stop = &snap_stop,
				 .refused = on_refused,
				 .progress = on_progress};
	enum xspd_snap_fault fault;
	struct xspd_snap snap;
	int err = xspd_snap_read(snap_path, &snap, &fault);

	cr_assert_eq(err, 0, "%s: %s", snap_path, xspd_snap_fault_text(fault));
	snap_told.refused = 0;
	snap_stop = 0;
	err = xspd_snap_load(&snap, &opts, ret);
	xspd_snap_drop(&snap);
	return err;
}

void snap_save(void)
{
	struct xspd_vault states = {}, policies = {};
	struct xspd_snap_header header;
	int fd = mkstemp(snap_path);

	cr_assert_geq(fd, 0);
	close(fd);
	cr_assert_eq(xspd_collect_policies(&policies), 0);
	cr_assert_eq(xspd_snap_save(snap_path, 0, &states, &policies, &snap_stop, &header), 0);
	xspd_vault_empty(&policies);
}

static int on_entry(const struct nlmsghdr *nlh, void *ctx)
{
	struct xfrm_userpolicy_info *info;
	struct snap_list *list = ctx;
	struct nlmsghdr *copy;

	list->at = realloc(list->at, list->used + NLMSG_ALIGN(nlh->nlmsg_len));
	copy = (void *)(list->at + list->used);
	memcpy(copy, nlh, nlh->nlmsg_len);
	info = mnl_nlmsg_get_payload(copy);
	if ((info->index & 7) >= XFRM_POLICY_MAX)
		return MNL_CB_OK; /* of a socket */
	copy->nlmsg_seq = copy->nlmsg_pid = 0;
	memset(&info->curlft, 0, sizeof(info->curlft));
	list->used += NLMSG_ALIGN(nlh->nlmsg_len);
	list->count++;
	return MNL_CB_OK;
}

struct snap_list snap_list(void)
{
	struct mnl_socket *sock = mnl_socket_open(NETLINK_XFRM);
	char request[256] = {}, buf[65536];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(request);
	struct snap_list list = {};
	ssize_t n = 1;
	int rc = MNL_CB_OK;

	cr_assert(sock && mnl_socket_bind(sock, 0, MNL_SOCKET_AUTOPID) == 0);
	nlh->nlmsg_type = XFRM_MSG_GETPOLICY;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	mnl_nlmsg_put_extra_header(nlh, sizeof(struct xfrm_userpolicy_id));
	cr_assert_gt(mnl_socket_sendto(sock, nlh, nlh->nlmsg_len), 0);
	while (rc > MNL_CB_STOP && (n = mnl_socket_recvfrom(sock, buf, sizeof(buf))) > 0)
		rc = mnl_cb_run(buf, n, 0, 0, on_entry, &list);
	cr_assert(n > 0 && rc == MNL_CB_STOP);
	mnl_socket_close(sock);
	return list;
}

void snap_expect_same(const struct snap_list *a, const struct snap_list *b)
{
	cr_assert_eq(a->count, b->count, "%u and %u policies", a->count, b->count);
	cr_assert_eq(a->used, b->used);
	cr_expect(!a->used || !memcmp(a->at, b->at, a->used), "the lists differ");
}

static void on_failed(void *ctx, uint32_t seq, int error, const char *extack)
{
	(void)ctx;
	cr_assert_fail("request %u: %s: %s", seq, strerror(-error), extack ? extack : "");
}

void snap_enter(void)
{
	cr_assert_eq(netns_enter(), 0);
	xspd_batch_free(snap_batch);
	xspd_nl_free(nl);
	cr_assert_eq(xspd_nl_open(&nl, 0, 0), 0);
	cr_assert_eq(xspd_batch_new(&snap_batch, nl, on_failed, NULL), 0);
}

void snap_put(const struct xspd_pol *pol, uint16_t type)
{
	request_put(snap_batch, pol, type);
}

void snap_flush(void)
{
	cr_assert_eq(xspd_batch_flush(snap_batch), 0);
}

/* Every attribute and every corner of a selector, by number. */
struct xspd_pol snap_policy(uint32_t i)
{
	struct xspd_pol pol = {.dir = i % 3, .priority = 100 + i % 4};
	bool v6 = i % 5 == 0;

	pol.sel.family = v6 ? AF_INET6 : AF_INET;
	pol.sel.daddr.a6[0] = htonl(0x0a000000 + i);
	pol.sel.saddr.a6[0] = htonl(0x0b0000ff);
	pol.sel.daddr.a6[3] = i % 7 ? 0 : 0x77777777; /* of IPv4: unused, and kept */
	pol.sel.prefixlen_d = i % 33;
	pol.sel.prefixlen_s = v6 ? 128 - i % 100 : i % 20;
	pol.sel.proto = i % 2 ? 17 : 0;
	pol.sel.dport = htons(i);
	pol.sel.dport_mask = htons(i % 6 ? 0xffff : 0x0f0f);
	pol.sel.sport_mask = htons(i % 11 ? 0 : 0xff00);
	pol.sel.ifindex = i % 13 ? 0 : 1;
	pol.sel.user = i;
	pol.mark_mask = i % 3 ? 0 : 0xffff;
	pol.mark = i & pol.mark_mask;
	pol.if_id = i % 4 ? 0 : i;
	pol.action = i % 9 == 0 ? XSPD_BLOCK : XSPD_ALLOW;
	pol.flags = i % 2 ? XFRM_POLICY_LOCALOK : XFRM_POLICY_ICMP;
	pol.type = i % 17 == 0 ? XSPD_SUB : XSPD_MAIN;
	pol.tmpl = (struct xspd_tmpl){.reqid = i, .proto = 50, .mode = 1, .family = AF_INET};
	pol.tmpl.family = pol.sel.family;
	pol.tmpl.daddr[0] = htonl(0x01010101);
	pol.tmpl.count = i % 7;
	pol.tmpl.required = pol.dir == XSPD_OUT ? pol.tmpl.count : pol.tmpl.count / 2;
	return pol;
}

void snap_fill(uint32_t count)
{
	for (uint32_t i = 1; i <= count; i++) {
		struct xspd_pol pol = snap_policy(i);

		snap_put(&pol, XFRM_MSG_NEWPOLICY);
	}
	snap_flush();
}

void snap_fini(void)
{
	unlink(snap_path);
	xspd_batch_free(snap_batch);
	xspd_nl_free(nl);
}
