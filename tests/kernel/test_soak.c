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
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/gen.h"
#include "lib/netns.h"
#include "lib/pinned.h"
#include "lib/request.h"
#include "lib/scale.h"
#include "lib/writer.h"
#include "reason.h"
#include "util.h"

#define SECOND	  1000000000ull
#define SENTINELS 24
#define LEASE_MS  2000
#define LEASE_NS  (LEASE_MS * 1000000ull)
#define BUF_SMALL 4096
#define BUF_LARGE (64 << 20)

static struct writer_shared *shared;
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

/* Its daemon has been dead or stopped for so long: once the lease is over nothing is answered. */
static void ask_alone(uint64_t ns)
{
	uint64_t answered;

	ask_for(ns);
	answered = tally.lookups - tally.defers;
	ask_sentinels();
	cr_assert(ns < LEASE_NS + LEASE_NS / 10 || tally.lookups - tally.defers == answered,
		  "answers %lu ns after the last sign of life", ns);
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
		struct xspd_pol near = writer_pol(0, gen_below(&gen, WRITER_POLICIES), &gen);
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

static uint32_t mismatches(void)
{
	return pinned.conf->doubt_times[__builtin_ctz(XSPD_DOUBT_COUNT_MISMATCH)];
}

/* Without doubt the mirror must be equal; timers may still take some out, with a little delay. */
static void expect_equal(void)
{
	uint64_t end = xspd_now(CLOCK_MONOTONIC) + 60 * SECOND, sure_since = 0;
	const char *what = "never sure";
	uint32_t before = UINT32_MAX;

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
		before = before == UINT32_MAX ? mismatches() : before;
		what = pinned_compare(&pinned, nl);
		/* the daemon itself would mend it after five */
		cr_assert(!what || now - sure_since < 4 * SECOND, "without doubt: %s", what);
	}
	cr_assert_eq(mismatches(), before, "sure, and wrong: the counts told");
	tally.quiet++;
	if (pinned_sure(&pinned))
		ask_others();
}

static struct xspd_batch *batch_new(void)
{
	struct xspd_batch *batch;

	cr_assert_eq(xspd_batch_new(&batch, nl, NULL, NULL), 0);
	return batch;
}

static void sentinels_send(void)
{
	struct xspd_batch *batch = batch_new();

	for (uint32_t n = 0; n < SENTINELS; n++) {
		struct xspd_pol pol = sentinel(n);

		request_put(batch, &pol, XFRM_MSG_NEWPOLICY);
	}
	cr_assert_eq(xspd_batch_flush(batch), 0);
	xspd_batch_free(batch);
}

/* Nobody asks while everything is gone. */
static void flush_all(void)
{
	struct xspd_batch *batch = batch_new();

	request_flush(batch, XSPD_MAIN);
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
		ask_alone(gen_below(&gen, 2) * LEASE_NS * 13 / 10);
		daemon_start(gen_chance(&gen, 40) ? BUF_SMALL : BUF_LARGE);
	} else if (dice < 45) {
		kill(daemon_pid, SIGSTOP);
		tally.stops++;
		daemon_stopped = true;
		ask_alone(gen_below(&gen, 2 * LEASE_MS) * 1000000ull);
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
			writer_run(i, &gen, shared);
	}
	end = xspd_now(CLOCK_MONOTONIC) +
	      (seconds ? strtoull(seconds, NULL, 10) : scaled(120)) * SECOND;
	last = end + 120 * SECOND;
	while ((now = xspd_now(CLOCK_MONOTONIC)) < end || (!tally.lost && now < last)) {
		uint64_t lost = tally.lost;

		mischief();
		/* what is left of a loss shows until all is read again: before the next restart */
		if (tally.lost > lost || gen_chance(&gen, 50))
			quiet_point();
	}
	quiet_point();
	report();
	cr_expect_gt(tally.quiet, 0);
	cr_expect_gt(tally.lookups - tally.defers, 0, "nothing but DEFER");
	cr_expect_gt(tally.lost, 0, "no event was ever lost");
	teardown();
}
