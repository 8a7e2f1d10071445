// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "bench/child.h"
#include "bench/median.h"
#include "bench/sync.h"
#include "nl/nl.h"
#include "snapshot/collect.h"
#include "snapshot/save.h"
#include "util.h"

#define RUNS_MOST 32
#define REST_NS	  50000000 /* after a flush, for the kernel to free what it held */
#define PATIENCE  120	   /* s */

struct sync {
	uint32_t policies, runs;
	char dir[256];
	char batch[272], snapshot[272];
	struct xspd_sync_row row;
	const char *what;
};

static double seconds(const struct timeval *tv)
{
	return (double)tv->tv_sec + (double)tv->tv_usec / 1e6;
}

/* In s. */
struct cost {
	double wall, cpu;
	double complete_ms; /* not in s */
};

struct sample {
	struct cost off[RUNS_MOST], on[RUNS_MOST], deaf[RUNS_MOST], reader[RUNS_MOST];
	struct cost load[RUNS_MOST], load_on[RUNS_MOST];
};

/* A command to its end, silent. */
static int command_time(char *const argv[], struct cost *ret)
{
	uint64_t start = xspd_mono();
	struct rusage usage;
	int status;
	pid_t pid = xspd_child_spawn(argv[0], argv);

	if (pid < 0)
		return pid;
	if (wait4(pid, &status, 0, &usage) < 0)
		return -errno;
	ret->wall = (double)(xspd_mono() - start) / 1e9;
	ret->cpu = seconds(&usage.ru_utime) + seconds(&usage.ru_stime);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return -ENOENT;
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -EIO;
}

static int insert_by_ip(struct sync *s, struct cost *ret)
{
	s->what = "ip -batch";
	return command_time((char *[]){"ip", "-batch", s->batch, NULL}, ret);
}

static int insert_by_load(struct sync *s, struct cost *ret)
{
	s->what = "xspd snapshot load";
	return command_time((char *[]){"/proc/self/exe", "snapshot", "load", s->snapshot, NULL},
			    ret);
}

/* All must be there, and then they must go before the next is timed. */
static int finish(struct sync *s, bool count)
{
	struct xspd_nl *nl;
	struct xspd_batch *batch = NULL;
	struct xspd_spdinfo info = {};
	uint32_t seq;
	int err = xspd_nl_open(&nl, 0, 0);

	s->what = "count and flush the policies";
	if (err)
		return err;
	err = xspd_nl_spdinfo(nl, &info);
	if (!err && count && info.count[XSPD_OUT] != s->policies)
		err = -ENODATA;
	if (!err)
		err = xspd_batch_new(&batch, nl, NULL, NULL);
	if (!err) {
		void *room = xspd_batch_room(batch, &seq);

		xspd_batch_commit(batch, xspd_nl_put_flush(room, XSPD_MAIN, 0, seq));
		err = xspd_batch_flush(batch);
	}
	xspd_batch_free(batch);
	xspd_nl_free(nl);
	nanosleep(&(struct timespec){.tv_nsec = REST_NS}, NULL);
	return err;
}

static int fresh_netns(struct sync *s)
{
	s->what = "make a network namespace";
	return unshare(CLONE_NEWNET) < 0 ? -errno : 0;
}

typedef int (*insert_fn)(struct sync *s, struct cost *ret);

static int run_off(struct sync *s, insert_fn insert, struct cost *ret)
{
	int err = fresh_netns(s);

	if (!err)
		err = insert(s, ret);
	return err ? err : finish(s, true);
}

static int save(struct sync *s)
{
	static const volatile sig_atomic_t never;
	struct xspd_vault none = {}, policies = {};
	struct xspd_snap_header header;
	int err = xspd_collect_policies(&policies);

	s->what = "save a snapshot";
	if (!err)
		err = xspd_snap_save(s->snapshot, 0, &none, &policies, &never, &header);
	xspd_vault_empty(&policies);
	return err;
}

static int measure_lag(struct sync *s, struct xspd_child *child)
{
	int err;

	s->what = "measure the lag";
	err = xspd_sync_lag(child, 0, &s->row.quiet);
	if (!err)
		err = xspd_sync_lag(child, XSPD_SYNC_CHURN_RATE, &s->row.churn);
	return err;
}

/* What the daemon says of itself after an insertion. */
static int note_conf(struct sync *s, const struct xspd_child *child)
{
	struct xspd_conf conf;
	int err = xspd_child_conf(child, &conf);

	if (err)
		return err;
	s->row.lost += conf.lost;
	s->row.redumps += conf.dumps - 1;
	return 0;
}

/* @last: of this kind; save and measure the rest. */
static int with_child(struct sync *s, struct xspd_child *child, insert_fn insert, bool last,
		      struct cost *ret)
{
	double ns = 0;
	uint32_t count;
	int err;

	s->what = "start the daemon";
	err = xspd_child_start(child);
	if (!err)
		err = xspd_child_await(child, 0, PATIENCE, &ns);
	if (!err)
		err = insert(s, ret);
	if (err)
		return err;
	s->what = "wait for the mirror";
	err = xspd_child_await(child, s->policies, PATIENCE, &ns);
	if (err)
		return err;
	ret->complete_ms = ns / 1e6;
	count = xspd_child_count(child);
	if (count < s->row.mirrored)
		s->row.mirrored = count;
	err = note_conf(s, child);
	if (!err && last && insert == insert_by_ip) {
		err = save(s);
		if (!err)
			err = measure_lag(s, child);
	}
	return err;
}

static int run_on(struct sync *s, insert_fn insert, bool last, struct cost *ret)
{
	struct xspd_child child = {};
	int err = fresh_netns(s);

	if (!err)
		err = with_child(s, &child, insert, last, ret);
	xspd_child_stop(&child);
	return err ? err : finish(s, true);
}

/* Beside a process that is told, but is no daemon. */
static int run_listened(struct sync *s, bool reads, struct cost *ret)
{
	struct xspd_child child = {};
	int err = fresh_netns(s);

	s->what = err ? s->what : "start a listener";
	if (!err)
		err = xspd_child_listen(&child, reads);
	if (!err)
		err = insert_by_ip(s, ret);
	xspd_child_stop(&child);
	return err ? err : finish(s, true);
}

/* The four in turn, each round begun by another one: what drifts meets all alike. */
static int round_ip(struct sync *s, struct sample *sample, uint32_t i)
{
	int err = 0;

	for (uint32_t step = 0; step < 4 && !err; step++) {
		switch ((i + step) % 4) {
		case 0:
			err = run_off(s, insert_by_ip, &sample->off[i]);
			break;
		case 1:
			err = run_on(s, insert_by_ip, i + 1 == s->runs, &sample->on[i]);
			break;
		default:
			err = run_listened(s, (i + step) % 4 == 3,
					   (i + step) % 4 == 3 ? &sample->reader[i]
							       : &sample->deaf[i]);
		}
	}
	return err;
}

static int rounds(struct sync *s, struct sample *sample)
{
	int err = 0;

	for (uint32_t i = 0; i < s->runs && !err; i++)
		err = round_ip(s, sample, i);
	for (uint32_t i = 0; i < s->runs && !err; i++) {
		err = run_off(s, insert_by_load, &sample->load[i]);
		if (!err)
			err = run_on(s, insert_by_load, false, &sample->load_on[i]);
	}
	return err;
}

static double complete_median(const struct cost *cost, uint32_t count)
{
	double values[RUNS_MOST];

	for (uint32_t i = 0; i < count; i++)
		values[i] = cost[i].complete_ms;
	return xspd_median(values, count);
}

static double wall_median(const struct cost *cost, uint32_t count)
{
	double values[RUNS_MOST];

	for (uint32_t i = 0; i < count; i++)
		values[i] = cost[i].wall;
	return xspd_median(values, count);
}

static double slowdown_median(const struct cost *with, const struct cost *without, bool cpu,
			      uint32_t count)
{
	double values[RUNS_MOST];

	for (uint32_t i = 0; i < count; i++)
		values[i] =
			(cpu ? with[i].cpu / without[i].cpu : with[i].wall / without[i].wall) - 1;
	return xspd_median(values, count);
}

static void summarize(struct sync *s, const struct sample *sample)
{
	s->row.slowdown = slowdown_median(sample->on, sample->off, false, s->runs);
	s->row.cpu_slowdown = slowdown_median(sample->on, sample->off, true, s->runs);
	s->row.deaf_slowdown = slowdown_median(sample->deaf, sample->off, false, s->runs);
	s->row.reader_slowdown = slowdown_median(sample->reader, sample->off, false, s->runs);
	s->row.insert_off = wall_median(sample->off, s->runs);
	s->row.insert_on = wall_median(sample->on, s->runs);
	s->row.load = wall_median(sample->load, s->runs);
	s->row.load_on = wall_median(sample->load_on, s->runs);
	s->row.complete_ms = complete_median(sample->on, s->runs);
	s->row.load_complete_ms = complete_median(sample->load_on, s->runs);
}

static int measure(struct sync *s)
{
	struct sample sample = {};
	int err;

	s->what = "write the batch";
	err = xspd_sync_batch_file(s->policies, s->batch);
	if (!err)
		err = rounds(s, &sample);
	if (err)
		return err;
	summarize(s, &sample);
	return 0;
}

int xspd_bench_sync(uint32_t policies, uint32_t runs, struct xspd_sync_row *ret,
		    const char **ret_what)
{
	struct sync s = {
		.policies = policies,
		.runs = runs < RUNS_MOST ? runs : RUNS_MOST,
	};
	const char *tmp = getenv("TMPDIR");
	int err;

	*ret_what = "make a temporary directory";
	snprintf(s.dir, sizeof(s.dir), "%s/xspd-bench.XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(s.dir))
		return -errno;
	snprintf(s.batch, sizeof(s.batch), "%s/batch", s.dir);
	snprintf(s.snapshot, sizeof(s.snapshot), "%s/snapshot", s.dir);
	s.row = (struct xspd_sync_row){
		.policies = policies, .runs = s.runs, .mirrored = UINT32_MAX};
	err = measure(&s);
	unlink(s.batch);
	unlink(s.snapshot);
	rmdir(s.dir);
	*ret_what = s.what;
	*ret = s.row;
	return err;
}
