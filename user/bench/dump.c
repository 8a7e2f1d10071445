// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "bench/dump.h"
#include "bench/median.h"
#include "nl/nl.h"
#include "plane/plane.h"
#include "util.h"

#define RUNS_MOST 16
#define PATIENCE  120 /* s */
#define SEQ	  0x78737064u
#define CHUNK	  65536 /* the kernel fills 32 KiB of it */

static void on_failed(void *ctx, uint32_t seq, int error, const char *extack)
{
	(void)seq;
	(void)extack;
	*(int *)ctx = error;
}

static int insert(uint32_t policies)
{
	struct xspd_batch *batch = NULL;
	struct xspd_nl *nl;
	int refused = 0, err = xspd_nl_open(&nl, 0, 1 << 20);

	if (err)
		return err;
	err = xspd_batch_new(&batch, nl, on_failed, &refused);
	for (uint32_t i = 0; i < policies && !err; i++) {
		struct xspd_pol pol;
		uint32_t seq;
		void *room = xspd_batch_room(batch, &seq);

		if (!room) {
			err = -errno;
			break;
		}
		xspd_sync_pol(i, &pol);
		xspd_batch_commit(batch,
				  xspd_nl_put_policy(room, &pol, XFRM_MSG_NEWPOLICY, 0, seq));
	}
	if (!err)
		err = xspd_batch_flush(batch);
	xspd_batch_free(batch);
	xspd_nl_free(nl);
	return err ? err : refused;
}

/* The message that ends a dump is the last of the last datagram. */
static bool is_last(const char *buf, ssize_t len)
{
	const size_t size = NLMSG_LENGTH(sizeof(int));
	struct nlmsghdr done;

	if (len < (ssize_t)size)
		return false;
	memcpy(&done, buf + len - size, sizeof(done));
	return done.nlmsg_type == NLMSG_DONE && done.nlmsg_len == size && done.nlmsg_seq == SEQ;
}

static int bare_read(int fd)
{
	xspd_autofree char *buf = malloc(CHUNK);
	ssize_t len;

	if (!buf)
		return -ENOMEM;
	do
		len = recv(fd, buf, CHUNK, 0);
	while (len > 0 && !is_last(buf, len));
	return len < 0 ? -errno : 0;
}

/* In s: by the clock, and of this thread's CPU time, which other work on the machine leaves alone.
 */
struct spent {
	double wall, cpu;
};

/* Add what was spent since *@from. */
static void spent_add(struct spent *ret, const struct spent *from)
{
	ret->wall += (double)xspd_mono() / 1e9 - from->wall;
	ret->cpu += (double)xspd_now(CLOCK_THREAD_CPUTIME_ID) / 1e9 - from->cpu;
}

static struct spent spent_now(void)
{
	return (struct spent){.wall = (double)xspd_mono() / 1e9,
			      .cpu = (double)xspd_now(CLOCK_THREAD_CPUTIME_ID) / 1e9};
}

static int bare_dump(struct spent *ret)
{
	struct {
		struct nlmsghdr nlh;
		struct xfrm_userpolicy_id id;
	} request = {.nlh = {.nlmsg_len = sizeof(request),
			     .nlmsg_type = XFRM_MSG_GETPOLICY,
			     .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
			     .nlmsg_seq = SEQ}};
	xspd_autoclose int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_XFRM);
	struct spent start = spent_now();
	int err;

	if (fd < 0 || send(fd, &request, sizeof(request), 0) < 0)
		return -errno;
	err = bare_read(fd);
	spent_add(ret, &start);
	return err;
}

/* Resident memory that no file and no map is behind. */
static int anonymous_bytes(pid_t pid, double *ret)
{
	xspd_autofclose FILE *file = NULL;
	unsigned long kib;
	char path[48], line[128];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "RssAnon: %lu", &kib) == 1) {
			*ret = (double)kib * 1024;
			return 0;
		}
	}
	return -ENODATA;
}

static int entry_take(void *ctx, const struct xspd_event *event)
{
	return event->kind == XSPD_EVENT_POLICY ? xspd_spd_dump_entry(ctx, &event->pol) : 0;
}

static int dump_into(struct xspd_spd *spd, struct xspd_nl *nl)
{
	struct xspd_spd_diff diff;
	int err = xspd_spd_dump_begin(spd);

	if (!err)
		err = xspd_nl_dump(nl, entry_take, spd);
	return err ? err : xspd_spd_dump_end(spd, &diff);
}

/* The daemon's own work, in its own order; the programs are loaded before the clock starts. */
static int dump_build(struct xspd_plane *plane, struct xspd_nl *nl, struct spent *ret)
{
	struct xspd_spd *spd = xspd_spd_new();
	struct spent start;
	int err;

	if (!spd)
		return -errno;
	err = xspd_plane_build(plane, spd);
	start = spent_now();
	if (!err)
		err = dump_into(spd, nl);
	spent_add(ret, &start);
	if (!err)
		err = -EAGAIN;
	while (err == -EAGAIN) {
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
		start = spent_now();
		err = xspd_plane_build(plane, spd);
	}
	spent_add(ret, &start);
	xspd_spd_free(spd);
	return err;
}

static int dump_build_once(struct spent *ret)
{
	const struct xspd_plane_opts opts = {.later = true};
	struct xspd_plane *plane = NULL;
	struct xspd_nl *nl;
	int err = xspd_nl_open(&nl, 0, 1 << 20);

	if (err)
		return err;
	err = xspd_plane_new(&plane, &opts);
	if (!err)
		err = dump_build(plane, nl, ret);
	xspd_plane_free(plane);
	xspd_nl_free(nl);
	return err;
}

struct dump {
	uint32_t policies, runs;
	const char *what;
	struct xspd_dump_row *row;
};

/* From fork to the first answer; what it then holds. @lag: and that. */
static int start_once(struct dump *dump, bool lag, double *ret)
{
	struct xspd_child child = {};
	uint64_t start = xspd_mono();
	struct xspd_conf conf;
	double ns;
	int err;

	dump->what = "start the daemon";
	err = xspd_child_start(&child);
	if (!err)
		err = xspd_child_await(&child, dump->policies, PATIENCE, &ns);
	*ret = (double)(xspd_mono() - start) / 1e9;
	if (!err)
		err = anonymous_bytes(child.pid, &dump->row->user_bytes);
	if (!err)
		err = xspd_child_conf(&child, &conf);
	if (!err) {
		dump->row->user_bytes /= dump->policies;
		dump->row->map_bytes = (double)conf.map_bytes / dump->policies;
	}
	if (!err && lag) {
		dump->what = "measure the lag";
		err = xspd_sync_lag(&child, 0, &dump->row->lag);
	}
	xspd_child_stop(&child);
	return err;
}

static int measure(struct dump *dump)
{
	double ready[RUNS_MOST], built[RUNS_MOST], bare[RUNS_MOST];
	double ratio[RUNS_MOST], cpu_ratio[RUNS_MOST];
	int err;

	dump->what = "insert the policies";
	err = insert(dump->policies);
	for (uint32_t i = 0; i < dump->runs && !err; i++) {
		struct spent one = {}, other = {};

		dump->what = "dump the policies";
		err = bare_dump(&one);
		if (!err)
			err = dump_build_once(&other);
		bare[i] = one.wall;
		built[i] = other.wall;
		ratio[i] = other.wall / one.wall;
		cpu_ratio[i] = other.cpu / one.cpu;
		if (!err)
			err = start_once(dump, i + 1 == dump->runs, &ready[i]);
	}
	if (err)
		return err;
	dump->row->ready = xspd_median(ready, dump->runs);
	dump->row->bare = xspd_median(bare, dump->runs);
	dump->row->dump_build = xspd_median(built, dump->runs);
	dump->row->ratio = xspd_median(ratio, dump->runs);
	dump->row->cpu_ratio = xspd_median(cpu_ratio, dump->runs);
	return 0;
}

int xspd_bench_dump(uint32_t policies, uint32_t runs, struct xspd_dump_row *ret,
		    const char **ret_what)
{
	struct xspd_dump_row row = {.policies = policies,
				    .runs = runs < RUNS_MOST ? runs : RUNS_MOST};
	struct dump dump = {.policies = policies, .runs = row.runs, .row = &row};
	int err;

	*ret_what = "make a network namespace";
	if (unshare(CLONE_NEWNET) < 0)
		return -errno;
	err = measure(&dump);
	*ret_what = dump.what;
	*ret = row;
	return err;
}
