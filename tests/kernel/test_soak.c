// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two writers change policies at full speed while a real daemon is killed, stopped, restarted and
 * overrun.  All the while, flows governed by policies that never change are asked through the
 * pins: theirs, or DEFER, and nothing else.  Whenever it gets quiet, the mirror is what the
 * kernel has.  SOAK=seconds, else 120, scaled; longer if no event was lost by then.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <libmnl/libmnl.h>

#include "lib/gen.h"
#include "lib/netns.h"
#include "lib/pinned.h"
#include "lib/scale.h"
#include "reason.h"
#include "util.h"

#define SECOND	  1000000000ull
#define SENTINELS 24
#define WRITERS	  2
#define OWN	  1500 /* policies a writer has at most */
#define LEASE_MS  2000
#define BUF_SMALL 4096
#define BUF_LARGE (64 << 20)

/* Shared by all processes. */
static struct shared {
	atomic_bool pause, stop;
	atomic_bool paused[WRITERS];
	atomic_bool gentle; /* bursts, so that a small buffer gets its chance in between */
	atomic_ullong changes[WRITERS], flushes, timers, sockets;
} * shared;

static struct xspd_nl *nl;
static struct pinned pinned;
static struct gen gen;
static char instance[64];
static char binary[256];
static pid_t writers[WRITERS];

/* --- policies ------------------------------------------------------------------- */

/* 10.200.0.n, below all the short prefixes of the others; every third is IPv6. */
static struct xspd_pol sentinel(uint32_t n)
{
	struct xspd_pol pol = {.dir = n % XSPD_DIR_MAX_, .priority = 1, .action = n % 2};

	pol.index = (0x100000 + n) << 3 | pol.dir;
	if (n % 3 == 0) {
		pol.sel.family = AF_INET6;
		pol.sel.daddr.a6[0] = htonl(0x20010db8);
		pol.sel.daddr.a6[3] = htonl(n + 1);
		pol.sel.prefixlen_d = 128;
	} else {
		pol.sel.family = AF_INET;
		pol.sel.daddr.a4 = htonl(0x0ac80000 + n);
		pol.sel.prefixlen_d = 32;
	}
	pol.tmpl = (struct xspd_tmpl){.reqid = n + 1, .proto = IPPROTO_ESP, .count = 1};
	pol.tmpl.required = 1;
	pol.tmpl.family = pol.sel.family;
	return pol;
}

static struct xspd_flow sentinel_flow(uint32_t n)
{
	struct xspd_pol pol = sentinel(n);
	struct xspd_flow flow = {.family = (enum xspd_family)pol.sel.family,
				 .dir = (enum xspd_dir)pol.dir,
				 .proto = IPPROTO_UDP,
				 .sport = htons(500)};

	memcpy(flow.daddr, &pol.sel.daddr, sizeof(flow.daddr));
	return flow;
}

/*
 * Policy @n of writer @who: the selector hangs on the number, the rest changes.  All of them
 * are worse than the sentinels, and sub policies, which are asked first, match none of these.
 */
static struct xspd_pol other(uint32_t who, uint32_t n, struct gen *with)
{
	struct xspd_pol pol = {.dir = n % XSPD_DIR_MAX_, .priority = 2 + gen_below(with, 20)};

	pol.type = n % 5 == 0;
	pol.sel.family = n % 4 ? AF_INET : AF_INET6;
	pol.sel.saddr.a6[0] = htonl(n % 4 ? 0x0b000000 + n * 7 : 0x20010db8 + n);
	pol.sel.prefixlen_s = n % 33;
	pol.sel.daddr.a6[0] = n % 4 ? htonl(0x0a000000 + (n << 8)) : htonl(0x20010db8);
	pol.sel.prefixlen_d = pol.type ? (n % 4 ? 24 : 32) : n % 25;
	if (pol.type && n % 4 == 0)
		pol.sel.daddr.a6[0] = htonl(0x20020000 + n);
	pol.sel.dport = htons(n);
	pol.sel.dport_mask = n % 6 ? 0 : 0xff0f;
	pol.sel.proto = n % 6 ? 0 : IPPROTO_UDP;
	pol.sel.user = who + 1; /* the writers' policies are never the same */
	pol.mark_mask = n % 7 ? 0 : 0xf;
	pol.mark = n & pol.mark_mask;
	pol.if_id = n % 9 ? 0 : n % 32;
	pol.action = gen_chance(with, 30);
	pol.tmpl = (struct xspd_tmpl){.reqid = gen_next(with), .proto = IPPROTO_ESP, .mode = 1};
	pol.tmpl.count = pol.tmpl.required = 1;
	pol.tmpl.family = pol.sel.family;
	pol.tmpl.daddr[0] = htonl(0xc0000200 + gen_below(with, 256));
	return pol;
}

/* --- writers -------------------------------------------------------------------- */

/* Without its policies' indexes a writer cannot delete by index: it is told at each dump. */
struct writer {
	uint32_t who;
	struct gen gen;
	struct xspd_nl *nl;
	struct xspd_batch *batch;
	uint32_t index[OWN];
	int sock;
};

static int index_note(void *ctx, const struct xspd_event *event)
{
	struct writer *w = ctx;

	if (event->kind == XSPD_EVENT_POLICY && event->pol.sel.user == w->who + 1)
		w->index[ntohs(event->pol.sel.dport) % OWN] = event->pol.index;
	return 0;
}

static void socket_policy(struct writer *w)
{
	struct xfrm_userpolicy_info info = {.action = XFRM_POLICY_ALLOW};

	if (w->sock >= 0) {
		close(w->sock);
		w->sock = -1;
		return;
	}
	w->sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	info.sel.family = AF_INET;
	info.dir = gen_below(&w->gen, 2);
	setsockopt(w->sock, SOL_IP, IP_XFRM_POLICY, &info, sizeof(info));
	shared->sockets++;
}

static struct nlmsghdr *timed(struct nlmsghdr *nlh)
{
	struct xfrm_userpolicy_info *info = mnl_nlmsg_get_payload(nlh);

	info->lft.hard_add_expires_seconds = 1;
	shared->timers++;
	return nlh;
}

static void change(struct writer *w)
{
	uint32_t n = gen_below(&w->gen, OWN), seq, dice = gen_below(&w->gen, 1000);
	struct xspd_pol pol = other(w->who, n, &w->gen);
	void *room = xspd_batch_room(w->batch, &seq);
	struct nlmsghdr *nlh;

	if (!room)
		abort();
	if (dice < 350) {
		nlh = xspd_nl_put_policy(room, &pol, XFRM_MSG_NEWPOLICY, 0, seq);
	} else if (dice < 650) {
		nlh = xspd_nl_put_policy(room, &pol, XFRM_MSG_UPDPOLICY, 0, seq);
	} else if (dice < 850) {
		nlh = xspd_nl_put_delete(room, &pol, false, 0, seq);
	} else if (dice < 950) {
		pol.index = w->index[n];
		nlh = pol.index ? xspd_nl_put_delete(room, &pol, true, 0, seq)
				: xspd_nl_put_policy(room, &pol, XFRM_MSG_NEWPOLICY, 0, seq);
	} else if (dice < 999) {
		nlh = timed(xspd_nl_put_policy(room, &pol, XFRM_MSG_UPDPOLICY, 0, seq));
	} else {
		nlh = xspd_nl_put_flush(room, XSPD_SUB, 0, seq);
		shared->flushes++;
	}
	xspd_batch_commit(w->batch, nlh);
	if (dice == 350)
		socket_policy(w);
	shared->changes[w->who]++;
}

static _Noreturn void write_on(uint32_t who)
{
	struct writer w = {.who = who, .gen = gen, .sock = -1};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	w.gen.state += who + 1;
	/* refusals are part of it: what is there already, what is not */
	if (xspd_nl_open(&w.nl, 0, 1 << 20) || xspd_batch_new(&w.batch, w.nl, NULL, NULL))
		_exit(1);
	while (!shared->stop) {
		for (uint32_t left = 1 + gen_below(&w.gen, 500); left; left--)
			change(&w);
		xspd_batch_flush(w.batch);
		if (gen_chance(&w.gen, 1))
			xspd_nl_dump(w.nl, index_note, &w);
		if (shared->gentle)
			usleep(20000 + gen_below(&w.gen, 150000));
		shared->paused[who] = shared->pause;
		while (shared->pause && !shared->stop)
			usleep(2000);
		shared->paused[who] = false;
	}
	_exit(0);
}

/* --- the daemon ------------------------------------------------------------------- */

static struct tally {
	uint64_t reasons[XSPD_R_MAX_];
	uint64_t lookups, defers, lost, kills, stops, terms, quiet;
	uint32_t last_lost, last_pid;
} tally;

static pid_t daemon_pid;
static bool daemon_stopped;

static void daemon_start(uint32_t rcvbuf)
{
	char size[16], lease[16];

	snprintf(size, sizeof(size), "%u", rcvbuf);
	snprintf(lease, sizeof(lease), "%u", LEASE_MS);
	daemon_pid = fork();
	if (daemon_pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	freopen("/dev/null", "w", stderr);
	execl(binary, binary, "run", "--instance", instance, "--rcvbuf", size, "--lease", lease,
	      "--capacity", "256", NULL);
	_exit(127);
}

static void daemon_end(int sig)
{
	kill(daemon_pid, sig);
	kill(daemon_pid, SIGCONT);
	waitpid(daemon_pid, NULL, 0);
	daemon_stopped = false;
}

/* --- asking ------------------------------------------------------------------------ */

static void note_lost(void)
{
	if (pinned.conf->pid != tally.last_pid)
		tally.last_lost = 0;
	tally.last_pid = pinned.conf->pid;
	if (pinned.conf->lost > tally.last_lost)
		tally.lost += pinned.conf->lost - tally.last_lost;
	tally.last_lost = (uint32_t)pinned.conf->lost;
}

static void ask_sentinels(void)
{
	if (pinned_follow(&pinned))
		return;
	note_lost();
	for (uint32_t n = 0; n < SENTINELS; n++) {
		struct xspd_flow flow = sentinel_flow(n);
		struct xspd_pol pol = sentinel(n);
		struct xspd_answer answer = {};

		cr_assert_eq(pinned_ask(&pinned, &flow, &answer), 0);
		tally.lookups++;
		if (answer.verdict == XSPD_DEFER) {
			tally.defers++;
			tally.reasons[answer.reason]++;
			continue;
		}
		cr_assert(answer.index == pol.index &&
				  answer.verdict == (pol.action ? XSPD_DENY : XSPD_PROTECT),
			  "sentinel %u: index %u, verdict %u, reason %u", n, answer.index,
			  answer.verdict, answer.reason);
	}
}

static void ask_for(uint64_t ns)
{
	uint64_t end = xspd_now(CLOCK_MONOTONIC) + ns;

	do {
		ask_sentinels();
		usleep(100); /* the writers want to write */
	} while (xspd_now(CLOCK_MONOTONIC) < end);
}

/* --- quiet points -------------------------------------------------------------------- */

static void writers_pause(void)
{
	shared->pause = true;
	for (int i = 0; i < WRITERS; i++)
		while (!shared->paused[i] && !waitpid(writers[i], NULL, WNOHANG))
			ask_sentinels();
}

static int pol_keep(void *ctx, const struct xspd_event *event)
{
	if (event->kind != XSPD_EVENT_POLICY)
		return -EBADMSG;
	return xspd_spd_dump_entry(ctx, &event->pol);
}

/* Flows of the others, against the linear reference over a fresh dump. */
static void ask_others(void)
{
	struct xspd_spd *spd = xspd_spd_new();

	cr_assert_not_null(spd);
	xspd_spd_dump_begin(spd);
	cr_assert_eq(xspd_nl_dump(nl, pol_keep, spd), 0);
	cr_assert_eq(xspd_spd_dump_end(spd, NULL), 0);
	for (int i = 0; i < 300; i++) {
		struct xspd_pol near = other(0, gen_below(&gen, OWN), &gen);
		struct xspd_answer answer = {};
		struct xspd_flow flow = {};
		struct xspd_ref ref;

		gen_flow(&gen, &near, &near, &flow);
		flow.dir = (enum xspd_dir)near.dir;
		cr_assert_eq(pinned_ask(&pinned, &flow, &answer), 0);
		xspd_spd_lookup(spd, &flow, &ref);
		/* which ties are certain hangs on what each has seen */
		if (!answer.verdict || !ref.verdict)
			continue;
		cr_assert_eq(answer.index, ref.pol ? ref.pol->index : 0, "index %u, not %u",
			     answer.index, ref.pol ? ref.pol->index : 0);
	}
	xspd_spd_free(spd);
}

/* Without doubt the mirror must be equal; timers may still take some out, with a little delay. */
static void expect_equal(void)
{
	uint64_t end = xspd_now(CLOCK_MONOTONIC) + 60 * SECOND, sure_since = 0;
	const char *what = "never sure";

	while (what) {
		uint64_t now = xspd_now(CLOCK_MONOTONIC);

		cr_assert_lt(now, end, "quiet, and still: %s", what);
		ask_sentinels();
		if (!pinned.conf || pinned.conf->pid != (uint32_t)daemon_pid ||
		    !pinned_sure(&pinned)) {
			sure_since = 0;
			what = "never sure";
			continue;
		}
		sure_since = sure_since ? sure_since : now;
		what = pinned_compare(&pinned, nl);
		/* the daemon itself would mend it after five */
		cr_assert(!what || now - sure_since < 4 * SECOND, "without doubt: %s", what);
	}
	tally.quiet++;
	if (pinned_sure(&pinned))
		ask_others();
}

static void sentinels_send(void)
{
	struct xspd_batch *batch;
	uint32_t seq;

	cr_assert_eq(xspd_batch_new(&batch, nl, NULL, NULL), 0);
	for (uint32_t n = 0; n < SENTINELS; n++) {
		struct xspd_pol pol = sentinel(n);
		void *room = xspd_batch_room(batch, &seq);

		xspd_batch_commit(batch,
				  xspd_nl_put_policy(room, &pol, XFRM_MSG_NEWPOLICY, 0, seq));
	}
	cr_assert_eq(xspd_batch_flush(batch), 0);
	xspd_batch_free(batch);
}

/* Nobody asks while everything is gone. */
static void flush_all(void)
{
	struct xspd_batch *batch;
	uint32_t seq;

	cr_assert_eq(xspd_batch_new(&batch, nl, NULL, NULL), 0);
	xspd_batch_commit(batch,
			  xspd_nl_put_flush(xspd_batch_room(batch, &seq), XSPD_MAIN, 0, seq));
	cr_assert_eq(xspd_batch_flush(batch), 0);
	xspd_batch_free(batch);
	sentinels_send();
	shared->flushes++;
	/* the answers of before must have ended: by the flush, by doubt, or with the lease */
	usleep((LEASE_MS + 500) * 1000);
}

static void quiet_point(void)
{
	writers_pause();
	if (daemon_stopped)
		kill(daemon_pid, SIGCONT);
	daemon_stopped = false;
	expect_equal();
	if (gen_chance(&gen, 20)) {
		flush_all();
		expect_equal();
	}
	shared->pause = false;
}

/* --- mischief ------------------------------------------------------------------------ */

/* What happens next, for a while. */
static void mischief(void)
{
	uint32_t dice = gen_below(&gen, 100);

	if (dice < 25) {
		daemon_end(SIGKILL);
		tally.kills++;
		ask_for(gen_below(&gen, 2) * LEASE_MS * 1300000ull);
		daemon_start(gen_chance(&gen, 40) ? BUF_SMALL : BUF_LARGE);
	} else if (dice < 45) {
		kill(daemon_pid, SIGSTOP);
		tally.stops++;
		daemon_stopped = true;
		ask_for(gen_below(&gen, 2 * LEASE_MS) * 1000000ull);
		kill(daemon_pid, SIGCONT);
		daemon_stopped = false;
	} else if (dice < 60) {
		daemon_end(SIGTERM);
		tally.terms++;
		daemon_start(gen_chance(&gen, 40) ? BUF_SMALL : BUF_LARGE);
	} else {
		shared->gentle = gen_chance(&gen, 60);
	}
	ask_for((1 + gen_below(&gen, 3)) * SECOND);
}

/* --- a namespace that goes ------------------------------------------------------------- */

/* Its daemon must neither die nor answer wrongly, nor is it in the way of another of that name. */
static void namespace_deleted(void)
{
	char ns[96], pin[160], command[512];
	struct xspd_flow flow = {.family = XSPD_INET, .dir = XSPD_OUT};
	struct xspd_answer answer = {};
	struct pinned view;
	pid_t pid;

	snprintf(ns, sizeof(ns), "%s-ns", instance);
	snprintf(pin, sizeof(pin), "/sys/fs/bpf/xspd/%s/v1", ns);
	cr_assert_eq(netns_run("ip netns add %s && ip -n %s xfrm policy add src 0.0.0.0/0 "
			       "dst 0.0.0.0/0 dir out action block",
			       ns, ns),
		     0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		freopen("/dev/null", "w", stderr);
		execl(binary, binary, "run", "--netns", ns, NULL);
		_exit(127);
	}
	pinned_init(&view, pin);
	for (int i = 0; i < 600 && (pinned_follow(&view) || !pinned_sure(&view)); i++)
		usleep(50000);
	cr_assert(pinned_sure(&view), "no daemon in %s", ns);
	cr_assert_eq(pinned_ask(&view, &flow, &answer), 0);
	cr_assert_eq(answer.verdict, XSPD_DENY);
	cr_assert_eq(netns_run("ip netns del %s", ns), 0);
	usleep(1500000);
	cr_assert_eq(waitpid(pid, NULL, WNOHANG), 0, "it died of it");
	cr_assert_eq(pinned_ask(&view, &flow, &answer), 0);
	cr_assert(answer.verdict == XSPD_DENY || answer.verdict == XSPD_DEFER);
	kill(pid, SIGTERM);
	waitpid(pid, NULL, 0);
	cr_assert_eq(pinned_ask(&view, &flow, &answer), 0);
	cr_assert_eq(answer.verdict, XSPD_DEFER);
	pinned_close(&view);
	snprintf(command, sizeof(command), "rm -rf /sys/fs/bpf/xspd/%s", ns);
	netns_run("%s", command);
}

/* --- all of it --------------------------------------------------------------------------- */

static void setup(void)
{
	const char *o = getenv("O");
	char dir[128];

	snprintf(binary, sizeof(binary), "%s/xspd", o ? o : "build");
	cr_assert_eq(access(binary, X_OK), 0, "%s: not there", binary);
	cr_assert_eq(netns_enter(), 0);
	gen_init(&gen, "soak", (uint64_t)getpid());
	gen.devs[0] = 1;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	cr_assert_neq(shared, MAP_FAILED);
	cr_assert_eq(xspd_nl_open(&nl, 0, 1 << 20), 0);
	snprintf(instance, sizeof(instance), "soak-%d", getpid());
	snprintf(dir, sizeof(dir), "/sys/fs/bpf/xspd/%s/v1", instance);
	pinned_init(&pinned, dir);
	sentinels_send();
}

static void teardown(void)
{
	shared->stop = true;
	for (int i = 0; i < WRITERS; i++)
		waitpid(writers[i], NULL, 0);
	daemon_end(SIGTERM);
	pinned_close(&pinned);
	netns_run("rm -rf /sys/fs/bpf/xspd/%s; rmdir /sys/fs/bpf/xspd 2>/dev/null || :", instance);
	xspd_nl_free(nl);
}

static void report(void)
{
	fprintf(stderr,
		"soak: %llu changes, %llu flushes, %llu timers, %llu socket policies, %lu ENOBUFS, "
		"%lu kills, %lu stops, %lu orderly restarts, %lu quiet points, %lu lookups, %lu "
		"DEFER\n",
		shared->changes[0] + shared->changes[1], shared->flushes, shared->timers,
		shared->sockets, tally.lost, tally.kills, tally.stops, tally.terms, tally.quiet,
		tally.lookups, tally.defers);
	for (int i = 0; i < XSPD_R_MAX_; i++)
		if (tally.reasons[i])
			fprintf(stderr, "soak: DEFER for %s: %lu\n",
				xspd_reason_name((enum xspd_reason)i), tally.reasons[i]);
}

Test(soak, everything_at_once, .timeout = 100000)
{
	const char *seconds = getenv("SOAK");
	uint64_t now, end, last;

	setup();
	daemon_start(BUF_LARGE);
	expect_equal();
	for (uint32_t i = 0; i < WRITERS; i++) {
		writers[i] = fork();
		if (!writers[i])
			write_on(i);
	}
	end = xspd_now(CLOCK_MONOTONIC) +
	      (seconds ? strtoull(seconds, NULL, 10) : scaled(120)) * SECOND;
	last = end + 120 * SECOND;
	while ((now = xspd_now(CLOCK_MONOTONIC)) < end || (!tally.lost && now < last)) {
		mischief();
		if (gen_chance(&gen, 50))
			quiet_point();
	}
	quiet_point();
	namespace_deleted();
	report();
	cr_expect_gt(tally.quiet, 0);
	cr_expect_gt(tally.lookups - tally.defers, 0, "nothing but DEFER");
	cr_expect_gt(tally.lost, 0, "no event was ever lost");
	teardown();
}
