// SPDX-License-Identifier: GPL-2.0-only
/*
 * A daemon that dies at any visible step of publishing, growing or swapping leaves right answers
 * while its lease lasts, DEFER afterwards, and everything as its successor needs it.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "daemon/daemon.h"
#include "lib/netns.h"
#include "lib/pinned.h"
#include "lib/scale.h"
#include "lib/transition.h"
#include "plane/crash.h"
#include "util.h"

#define ROOT	 "/sys/fs/bpf/xspd"
#define LEASE_MS 500
#define PATIENCE 60000000000ull /* ns; the machine may be busy */
#define STEPS	 96

/* --- dying ------------------------------------------------------------------ */

/* Shared with the children: how often each step was passed. */
struct steps {
	char name[STEPS][32];
	uint32_t times[STEPS];
	uint32_t count;
};
static struct steps *steps;
static bool recording;
static bool wedge; /* do not die: never come back */
static const char *die_at;
static uint32_t die_nth;

void xspd_crash_point(const char *step)
{
	uint32_t i;

	if (die_at && !strcmp(step, die_at) && !--die_nth) {
		while (wedge)
			pause();
		raise(SIGKILL);
	}
	if (!recording)
		return;
	for (i = 0; i < steps->count && strcmp(steps->name[i], step); i++)
		;
	if (i == STEPS)
		abort();
	if (i == steps->count)
		snprintf(steps->name[steps->count++], sizeof(steps->name[0]), "%s", step);
	steps->times[i]++;
}

/* --- asking ------------------------------------------------------------------- */

static struct xspd_nl *nl;
static struct xspd_batch *batch;
static struct pinned pinned;
static char instance[96];

static void expect_right(const char *when)
{
	transition_expect(&pinned, when);
}

/* Through the pinned entry program: what it counts for a packet to 10.1.0.1. */
static uint64_t counted;

static uint64_t stat_read(int map, enum xspd_reason reason)
{
	struct xspd_stat stats[256] = {};
	uint32_t key = ((1 + XSPD_OUT) * XSPD_HOOK_MAX_ + XSPD_HOOK_EGRESS) * XSPD_R_MAX_ + reason;
	uint64_t sum = 0;

	cr_assert_eq(bpf_map_lookup_elem(map, &key, stats), 0);
	for (int cpu = 0; cpu < libbpf_num_possible_cpus(); cpu++)
		sum += stats[cpu].packets;
	return sum;
}

/* The reason counted by the hook; NONE: the jump table is empty, the packet passes. */
static enum xspd_reason hook_reason(void)
{
	static const uint8_t frame[64] = {[12] = 8,  [14] = 0x45, [17] = 40, [22] = 64,
					  [23] = 17, [30] = 10,	  [31] = 1,  [33] = 1};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = sizeof(frame),
		    .repeat = 1);
	enum xspd_reason ret = XSPD_R_NONE;
	uint64_t before[XSPD_R_MAX_];
	char path[160];
	xspd_autoclose int prog = -1, map = -1;

	snprintf(path, sizeof(path), "%s/v1/xspd_tc_out", instance);
	prog = bpf_obj_get(path);
	snprintf(path, sizeof(path), "%s/v1/xspd_stat", instance);
	map = bpf_obj_get(path);
	if (prog < 0 || map < 0)
		return XSPD_R_NONE;
	for (int i = 0; i < XSPD_R_MAX_; i++)
		before[i] = stat_read(map, (enum xspd_reason)i);
	cr_assert_eq(bpf_prog_test_run_opts(prog, &opts), 0);
	for (int i = 0; i < XSPD_R_MAX_; i++)
		if (stat_read(map, (enum xspd_reason)i) != before[i])
			ret = (enum xspd_reason)i;
	counted += ret == XSPD_R_PROTECT;
	return ret;
}

static void expect_hook_right(const char *when)
{
	enum xspd_reason reason = hook_reason();

	cr_assert(reason == XSPD_R_NONE || reason == XSPD_R_PROTECT || reason == XSPD_R_BUSY ||
			  reason == XSPD_R_DOUBT || reason == XSPD_R_LEASE,
		  "%s: the hook says %u", when, reason);
}

static void expect_defer(const char *when)
{
	enum xspd_reason hook;

	if (pinned_follow(&pinned))
		return;
	for (uint32_t n = 0; n < TRANSITION_FLOWS; n++) {
		struct xspd_answer answer = transition_ask(&pinned, n);

		cr_assert(answer.verdict == XSPD_DEFER &&
				  (answer.reason == XSPD_R_LEASE || answer.reason == XSPD_R_DOUBT),
			  "%s: flow %u: verdict %u, reason %u", when, n, answer.verdict,
			  answer.reason);
	}
	hook = hook_reason();
	cr_assert(hook == XSPD_R_LEASE || hook == XSPD_R_DOUBT || hook == XSPD_R_NONE,
		  "%s: the hook says %u", when, hook);
}

/* --- the daemon ------------------------------------------------------------------ */

static int stop_fd[2];

static pid_t daemon_fork(const char *at, uint32_t nth, bool record)
{
	char pin[128];
	struct xspd_daemon_opts opts = {.plane = {.pin = pin,
						  .lease_ms = LEASE_MS,
						  .capacity = 64,
						  .prune_at = 1,
						  .steer = true}};
	struct xspd_daemon *daemon;
	pid_t pid;

	cr_assert_eq(pipe(stop_fd), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (pid) {
		close(stop_fd[0]);
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(stop_fd[1]);
	die_at = at;
	die_nth = nth;
	recording = record;
	snprintf(pin, sizeof(pin), "%s/v1", instance);
	if (xspd_daemon_new(&daemon, &opts))
		_exit(3);
	while (!xspd_daemon_turn(daemon, -1, stop_fd[0]))
		;
	die_at = NULL;
	xspd_daemon_free(daemon);
	_exit(0);
}

/* Ask until the daemon is in step with @policies of them, or has died: then false. */
static bool daemon_wait(pid_t pid, uint32_t policies, const char *when)
{
	uint64_t end = xspd_now(CLOCK_MONOTONIC) + PATIENCE;
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		cr_assert_lt(xspd_now(CLOCK_MONOTONIC), end, "%s: never in step", when);
		expect_right(when);
		expect_hook_right(when);
		if (pinned.conf && pinned.conf->pid == (uint32_t)pid && pinned_sure(&pinned) &&
		    pinned.conf->policies == policies)
			return true;
		usleep(1000);
	}
	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "%s: it ended with %x", when,
		  status);
	close(stop_fd[1]);
	return false;
}

static void daemon_kill(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(stop_fd[1]);
}

static void daemon_stop(pid_t pid)
{
	int status;

	close(stop_fd[1]);
	waitpid(pid, &status, 0);
	cr_assert(WIFEXITED(status) && !WEXITSTATUS(status));
}

static uint32_t policies_now(void)
{
	struct xspd_spdinfo info;

	cr_assert_eq(xspd_nl_spdinfo(nl, &info), 0);
	return info.count[XSPD_IN] + info.count[XSPD_OUT] + info.count[XSPD_FWD];
}

static void sleep_out_the_lease(const char *when)
{
	uint64_t end = xspd_now(CLOCK_MONOTONIC) + (LEASE_MS + 100) * 1000000ull;

	while (xspd_now(CLOCK_MONOTONIC) < end) {
		expect_right(when);
		expect_hook_right(when);
		usleep(20000);
	}
}

/* The successor has everything right, and every packet that was ever counted. */
static void expect_succession(const char *when)
{
	pid_t pid = daemon_fork(NULL, 0, false);
	const char *what;

	cr_assert(daemon_wait(pid, policies_now(), when));
	what = pinned_compare(&pinned, nl);
	cr_assert_null(what, "%s: the successor: %s", when, what);
	cr_assert_eq(pinned_packets(&pinned, 1 << 3 | XSPD_OUT), counted,
		     "%s: counted %lu, not %lu", when, pinned_packets(&pinned, 1 << 3 | XSPD_OUT),
		     counted);
	daemon_kill(pid);
}

/* Return: it died as it was told. */
static bool crash(const char *at, uint32_t nth)
{
	char when[64];
	bool alive;
	pid_t pid;

	snprintf(when, sizeof(when), "%s, time %u", at, nth);
	transition_base(batch);
	pid = daemon_fork(at, nth, false);
	alive = daemon_wait(pid, TRANSITION_BASE, when);
	transition_change(batch);
	if (alive)
		alive = daemon_wait(pid, policies_now(), when);
	if (alive)
		daemon_kill(pid);
	sleep_out_the_lease(when);
	expect_defer(when);
	expect_succession(when);
	return !alive;
}

static void setup(void)
{
	char dir[128];

	cr_assert_eq(netns_enter(), 0);
	cr_assert_eq(xspd_nl_open(&nl, 0, 1 << 20), 0);
	cr_assert_eq(xspd_batch_new(&batch, nl, NULL, NULL), 0);
	steps = mmap(NULL, sizeof(*steps), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	cr_assert_neq(steps, MAP_FAILED);
	snprintf(instance, sizeof(instance), ROOT "/crash-%d", getpid());
	snprintf(dir, sizeof(dir), "%s/v1", instance);
	pinned_init(&pinned, dir);
}

static void teardown(void)
{
	pinned_close(&pinned);
	netns_run("rm -rf %s; rmdir %s 2>/dev/null || :", instance, ROOT);
	xspd_batch_free(batch);
	xspd_nl_free(nl);
}

Test(crash, at_any_step)
{
	uint32_t deaths = 0, due = 0, stride;
	pid_t pid;

	setup();
	/* once without dying: which steps are there, and how often? */
	transition_base(batch);
	pid = daemon_fork(NULL, 0, true);
	cr_assert(daemon_wait(pid, TRANSITION_BASE, "whole"));
	transition_change(batch);
	cr_assert(daemon_wait(pid, policies_now(), "whole"));
	daemon_stop(pid);
	expect_defer("stopped");
	cr_assert_geq(steps->count, 20, "only %u steps", steps->count);
	stride = steps->count / scaled(steps->count);
	for (uint32_t i = 0; i < steps->count; i += stride, due++) {
		deaths += crash(steps->name[i], 1);
		if (steps->times[i] > 1 && i % 2)
			deaths += crash(steps->name[i], (steps->times[i] + 1) / 2);
	}
	teardown();
	fprintf(stderr, "crash: %u of %u steps, %u deaths, %lu packets counted\n", due,
		steps->count, deaths, counted);
	cr_expect_geq(deaths, due, "some steps were never reached");
}

/* It lives, and its other threads run, but its event loop never comes back. */
static void wedge_at(const char *at, uint32_t nth)
{
	char when[64];
	int status;
	pid_t pid;

	snprintf(when, sizeof(when), "wedged, %s", at);
	transition_base(batch);
	wedge = true;
	pid = daemon_fork(at, nth, false);
	wedge = false;
	cr_assert(daemon_wait(pid, TRANSITION_BASE, when), "%s: too soon", when);
	transition_change(batch);
	sleep_out_the_lease(when);
	/* its last sign of life may be as late as the change */
	expect_defer(when);
	cr_assert_eq(waitpid(pid, &status, WNOHANG), 0, "%s: it has ended", when);
	daemon_kill(pid);
	expect_succession(when);
}

Test(crash, wedged)
{
	setup();
	wedge_at("add: linked", TRANSITION_BASE + 1); /* the first build adds the others */
	wedge_at("replace: both linked", 1);
	wedge_at("flush: one hidden", 1);
	teardown();
}
