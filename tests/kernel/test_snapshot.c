// SPDX-License-Identifier: GPL-2.0-only
/* Snapshots between namespaces of the running kernel: what was saved is what is there after a load.
 */
#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/netns.h"
#include "nl/nl.h"
#include "snapshot/collect.h"
#include "snapshot/load.h"
#include "snapshot/save.h"
#include "util.h"

#define MANY 5000

static char path[] = "/tmp/test_snapshot.XXXXXX";
static volatile sig_atomic_t stop;

/* --- what a load said ---------------------------------------------------------- */
static struct {
	uint32_t refused;
	int error; /* of the last */
	char text[128];
	uint64_t stop_at; /* entries done; 0: never */
} told;

static void on_refused(void *ctx, const struct nlmsghdr *nlh, int error, const char *text)
{
	(void)ctx;
	(void)nlh;
	told.refused++;
	told.error = error;
	snprintf(told.text, sizeof(told.text), "%s", text ? text : "");
}

static void on_progress(void *ctx, uint64_t done, uint64_t total)
{
	(void)ctx;
	(void)total;
	stop = told.stop_at && done >= told.stop_at;
}

static int load(const char *from, bool states, struct xspd_load_result *ret)
{
	struct xspd_load opts = {
		.states = states, .stop = &stop, .refused = on_refused, .progress = on_progress};
	enum xspd_snap_fault fault;
	struct xspd_snap snap;
	int err = xspd_snap_read(from, &snap, &fault);

	cr_assert_eq(err, 0, "%s: %s", from, xspd_snap_fault_text(fault));
	told.refused = 0;
	stop = 0;
	err = xspd_snap_load(&snap, &opts, ret);
	xspd_snap_drop(&snap);
	return err;
}

static void save(void)
{
	struct xspd_vault states = {}, policies = {};
	struct xspd_snap_header header;
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	close(fd);
	cr_assert_eq(xspd_collect_policies(&policies), 0);
	cr_assert_eq(xspd_snap_save(path, 0, &states, &policies, &stop, &header), 0);
	xspd_vault_empty(&policies);
}

/* --- the kernel's own list, newest first, without use and age ------------------ */
struct list {
	char *at;
	size_t used;
	uint32_t count;
};

static int on_entry(const struct nlmsghdr *nlh, void *ctx)
{
	struct xfrm_userpolicy_info *info;
	struct list *list = ctx;
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

static struct list list_policies(void)
{
	struct mnl_socket *sock = mnl_socket_open(NETLINK_XFRM);
	char request[256] = {}, buf[65536];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(request);
	struct list list = {};
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

static void expect_same(const struct list *a, const struct list *b)
{
	cr_assert_eq(a->count, b->count, "%u and %u policies", a->count, b->count);
	cr_assert_eq(a->used, b->used);
	cr_expect(!a->used || !memcmp(a->at, b->at, a->used), "the lists differ");
}

/* --- requests ------------------------------------------------------------------ */
static struct xspd_nl *nl;
static struct xspd_batch *batch;

static void on_failed(void *ctx, uint32_t seq, int error, const char *extack)
{
	(void)ctx;
	cr_assert_fail("request %u: %s: %s", seq, strerror(-error), extack ? extack : "");
}

static void enter(void)
{
	cr_assert_eq(netns_enter(), 0);
	xspd_batch_free(batch);
	xspd_nl_free(nl);
	cr_assert_eq(xspd_nl_open(&nl, 0, 0), 0);
	cr_assert_eq(xspd_batch_new(&batch, nl, on_failed, NULL), 0);
}

static void put(const struct xspd_pol *pol, uint16_t type)
{
	uint32_t seq;
	void *room = xspd_batch_room(batch, &seq);

	cr_assert(room);
	xspd_batch_commit(batch, xspd_nl_put_policy(room, pol, type, 0, seq));
}

static void flush(void)
{
	cr_assert_eq(xspd_batch_flush(batch), 0);
}

/* Every attribute and every corner of a selector, by number. */
static struct xspd_pol odd_policy(uint32_t i)
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

static void fill(uint32_t count)
{
	for (uint32_t i = 1; i <= count; i++) {
		struct xspd_pol pol = odd_policy(i);

		put(&pol, XFRM_MSG_NEWPOLICY);
	}
	flush();
}

static void fini(void)
{
	unlink(path);
	xspd_batch_free(batch);
	xspd_nl_free(nl);
}

TestSuite(snapshot, .fini = fini);

Test(snapshot, there_and_back)
{
	struct xspd_load_result result;
	struct list a, b, c;
	struct xspd_pol updated = odd_policy(3);
	struct xfrm_userpolicy_info bypass = {.action = XFRM_POLICY_ALLOW, .sel.family = AF_INET};
	int sock;

	enter();
	sock = socket(AF_INET, SOCK_DGRAM, 0);
	cr_assert_eq(setsockopt(sock, IPPROTO_IP, IP_XFRM_POLICY, &bypass, sizeof(bypass)), 0);
	fill(MANY);
	put(&updated, XFRM_MSG_UPDPOLICY); /* the newest now, with the index it had */
	flush();
	a = list_policies();
	cr_assert_eq(a.count, MANY);
	save();

	enter();
	cr_assert_eq(load(path, false, &result), 0);
	cr_expect_eq(told.refused, 0, "%u refused: %s", told.refused, told.text);
	cr_expect_eq(result.policies, MANY);
	b = list_policies();
	expect_same(&a, &b);

	cr_assert_eq(load(path, false, &result), 0);
	cr_expect_eq(told.refused, 0);
	cr_expect_eq(result.policies, 0);
	cr_expect_eq(result.policies_unchanged, MANY);
	c = list_policies();
	expect_same(&a, &c);
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

	enter();
	fill(300);
	save();
	cr_assert_eq(xspd_nl_open(&events, XSPD_NL_GROUPS, 1 << 20), 0);
	cr_assert_eq(load(path, false, &result), 0);
	while (xspd_nl_recv(events, 64, count_events, &heard) > 0)
		;
	cr_expect_eq(heard, 0, "%u events", heard);
	cr_expect_eq(result.policies_unchanged, 300);
	/* and one that is missing makes itself and all younger ones be sent, in order */
	{
		struct xspd_pol gone = odd_policy(200);

		xspd_batch_commit(batch, xspd_nl_put_delete(xspd_batch_room(batch, &(uint32_t){0}),
							    &gone, false, 0, 1));
		flush();
	}
	while (xspd_nl_recv(events, 64, count_events, &heard) > 0)
		;
	heard = 0;
	cr_assert_eq(load(path, false, &result), 0);
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
	struct list a, b;

	enter();
	fill(500);
	a = list_policies();
	save();
	for (uint32_t i = 500; i > 0;
	     i -= 2) { /* some of them, turned round, and with other content */
		struct xspd_pol pol = odd_policy(i);

		pol.priority += i % 3;
		put(&pol, XFRM_MSG_UPDPOLICY);
	}
	flush();
	b = list_policies();
	cr_assert(memcmp(a.at, b.at, a.used), "the test itself changed nothing");
	free(b.at);
	cr_assert_eq(load(path, false, &result), 0);
	cr_expect_eq(told.refused, 0);
	b = list_policies();
	expect_same(&a, &b);
	free(a.at);
	free(b.at);
}

Test(snapshot, an_index_that_is_taken_is_not_fought_over)
{
	struct xspd_pol foreign = odd_policy(77), first = odd_policy(1);
	struct xspd_load_result result;
	struct list b;

	enter();
	fill(20);
	save();
	enter();
	foreign.dir = first.dir;
	foreign.index = 8 + first.dir; /* the first that a kernel gives */
	put(&foreign, XFRM_MSG_NEWPOLICY);
	flush();
	cr_assert_eq(load(path, false, &result), 0);
	cr_expect_eq(told.refused, 0);
	b = list_policies();
	cr_expect_eq(b.count, 21);
	cr_assert_eq(load(path, false, &result), 0);
	cr_expect_eq(result.policies_unchanged, 20, "another index is no difference");
	free(b.at);
}

/* A file of our own making: the kernel refuses what the file's check cannot know of. */
static void write_file(const struct xspd_vault *states, const struct xspd_vault *policies)
{
	struct xspd_snap_header header;

	cr_assert_eq(xspd_snap_save(path, XSPD_SNAP_STATES | XSPD_SNAP_KEYS, states, policies,
				    &stop, &header),
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
	struct list b;

	enter();
	fill(300);
	cr_assert_eq(xspd_collect_policies(&policies), 0);
	for (size_t i = 0; i < policies.count; i += 100) { /* an index of another direction */
		struct xfrm_userpolicy_info *info = NLMSG_DATA(xspd_vault_get(&policies, i));

		info->index = (info->index & ~7u) | (info->dir + 1) % 3;
	}
	for (int i = 0; i < 3; i++)
		put_state(&states, "no(such-cipher)", 128);
	write_file(&states, &policies);
	enter();
	cr_assert_eq(load(path, true, &result), 0);
	cr_expect_eq(result.states, 0);
	cr_expect_eq(result.states_refused, 3);
	cr_expect_eq(result.policies, 297);
	cr_expect_eq(result.policies_refused, 3);
	cr_expect_eq(told.refused, 6);
	cr_expect_eq(told.error, -EINVAL);
	cr_expect(strstr(told.text, "index"), "the kernel's reason: '%s'", told.text);
	b = list_policies();
	cr_expect_eq(b.count, 297);
	free(b.at);
	xspd_vault_empty(&states);
	xspd_vault_empty(&policies);
}

Test(snapshot, stopped_and_repeated)
{
	struct xspd_load_result result;
	struct list a, b;

	enter();
	fill(MANY);
	a = list_policies();
	save();
	enter();
	told.stop_at = 2000;
	cr_assert_eq(load(path, false, &result), -EINTR);
	cr_expect(result.policies > 1000 && result.policies < MANY, "%u", result.policies);
	cr_expect_eq(result.policies + result.left, MANY);
	b = list_policies();
	cr_expect_eq(b.count, result.policies, "what is told is what is there");
	free(b.at);
	told.stop_at = 0;
	cr_assert_eq(load(path, false, &result), 0);
	cr_expect_gt(result.policies_unchanged, 1000);
	b = list_policies();
	expect_same(&a, &b);
	free(a.at);
	free(b.at);
}

Test(snapshot, a_file_is_whole_or_as_it_was)
{
	struct xspd_vault none = {}, policies = {};
	struct xspd_snap_header header;
	struct stat before, after;
	char missing[64];

	umask(0);
	enter();
	fill(100);
	save();
	cr_assert_eq(stat(path, &before), 0);
	cr_expect_eq(before.st_mode, S_IFREG | 0600);
	cr_assert_eq(chmod(path, 0644), 0);
	cr_assert_eq(xspd_collect_policies(&policies), 0);
	stop = 1;
	cr_expect_eq(xspd_snap_save(path, 0, &none, &policies, &stop, &header), -EINTR);
	stop = 0;
	cr_assert_eq(stat(path, &after), 0);
	cr_expect(before.st_ino == after.st_ino && before.st_size == after.st_size);
	cr_assert_eq(xspd_snap_save(path, 0, &none, &policies, &stop, &header), 0);
	cr_assert_eq(stat(path, &after), 0);
	cr_expect_eq(after.st_mode, S_IFREG | 0600, "not the mode of what was there");
	cr_expect_neq(before.st_ino, after.st_ino);
	snprintf(missing, sizeof(missing), "%s/x", path);
	cr_expect_eq(xspd_snap_save(missing, 0, &none, &policies, &stop, &header), -ENOTDIR);
	cr_expect_eq(xspd_snap_save("/dev/null", 0, &none, &policies, &stop, &header), -EEXIST);
	cr_expect_neq(netns_run("ls %s.* >/dev/null 2>&1", path), 0, "something was left behind");
	xspd_vault_empty(&policies);
}

/*
 * Policies that are updated jump to the head of the kernel's list, behind the
 * back of a dump: a plain one misses them.  The priority counts the changes, so that it
 * tells the order by age.
 */
static void churn(uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		struct xspd_pol pol = odd_policy(1 + i % MANY);

		pol.priority = i;
		put(&pol, XFRM_MSG_UPDPOLICY);
		if (i % 32 == 0)
			flush();
	}
	flush();
}

static void expect_by_age(const struct xspd_vault *policies)
{
	uint32_t last = 0, wrong = 0;

	cr_expect_eq(policies->count, MANY, "%zu", policies->count);
	for (size_t i = 0; i < policies->count; i++) {
		const struct xfrm_userpolicy_info *info = NLMSG_DATA(xspd_vault_get(policies, i));

		wrong += i && info->priority <= last;
		last = info->priority;
	}
	cr_expect_eq(wrong, 0, "out of order at %u places", wrong);
}

Test(snapshot, nothing_is_missed_under_fire)
{
	uint32_t busy = 0, plain_missed = 0;
	pid_t child;

	enter();
	churn(0, MANY);
	child = fork();
	if (!child)
		churn(MANY, ~0u);
	usleep(50000);
	for (int round = 0; round < 20; round++) {
		struct xspd_vault policies = {};
		struct list list = list_policies();
		int err = xspd_collect_policies(&policies);

		plain_missed += list.count < MANY;
		free(list.at);
		cr_expect(!err || err == -EBUSY, "%d", err);
		if (err)
			busy++;
		else
			expect_by_age(&policies);
		xspd_vault_empty(&policies);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	cr_expect_lt(busy, 20, "never calm enough");
	cr_expect_gt(plain_missed, 0, "the test did not test");
}
