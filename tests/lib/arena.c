// SPDX-License-Identifier: GPL-2.0-only
#include <bpf/bpf.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/arena.h"
#include "reason.h"
#include "util.h"

struct arena *arena_new(const char *name, const struct xspd_plane_opts *opts)
{
	struct arena *arena = calloc(1, sizeof(*arena));

	cr_assert(arena);
	arena->name = name;
	gen_init(&arena->gen, name, 5);
	cr_assert_eq(pthread_mutex_init(&arena->lock, NULL), 0);
	cr_assert_eq(mirror_new(&arena->mirror, 0, opts), 0, "needs root");
	arena->mirror->spd->old_order = false; /* whatever kernel this is */
	return arena;
}

void arena_free(struct arena *arena)
{
	mirror_free(arena->mirror);
	pthread_mutex_destroy(&arena->lock);
	free(arena);
}

void arena_lock(struct arena *arena)
{
	while (arena->want)
		sched_yield();
	pthread_mutex_lock(&arena->lock);
}

void arena_unlock(struct arena *arena)
{
	pthread_mutex_unlock(&arena->lock);
}

/* --- reader -------------------------------------------------------------------- */

struct window {
	int prog;
	struct xspd_answer *answers;
};

static int window_open(struct arena *arena, struct window *ret)
{
	const size_t size = sizeof(struct xspd_answer) * XSPD_ASK_MAX;
	struct xspd_plane *plane = arena->mirror->plane;
	struct xspd_answer *answers;
	void *map;

	/* copies the flows, and points the batch program at them */
	answers = calloc(ARENA_FLOWS, sizeof(*answers));
	if (!answers || xspd_plane_ask(plane, arena->flow, ARENA_FLOWS, answers, NULL))
		return -EIO;
	free(answers);
	map = mmap(NULL, size, PROT_READ, MAP_SHARED, xspd_plane_map_fd(plane, "xspd_answers"), 0);
	if (map == MAP_FAILED)
		return -errno;
	ret->answers = map;
	ret->prog = dup(xspd_plane_prog_fd(plane, "xspd_bench"));
	return ret->prog < 0 ? -errno : 0;
}

static void window_close(struct window *window)
{
	if (window->answers)
		munmap(window->answers, sizeof(struct xspd_answer) * XSPD_ASK_MAX);
	xspd_closep(&window->prog);
	*window = (struct window){.prog = -1};
}

static int window_run(const struct window *window)
{
	char frame[64] = {};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = sizeof(frame),
		    .repeat = ARENA_FLOWS);

	return bpf_prog_test_run_opts(window->prog, &opts) < 0 ? -errno : 0;
}

static void judge(struct arena *arena, const struct xspd_answer *answer, size_t at)
{
	arena->lookups++;
	arena->reasons[answer->reason]++;
	if (answer->verdict == XSPD_DEFER)
		return;
	if (answer->verdict == XSPD_PLAIN)
		arena->missed++;
	else if (answer->verdict != XSPD_DENY ||
		 (!arena->swaps && !arena->pairs && answer->slot != arena->stable[at].slot))
		arena->others++;
}

static void *reader(void *ctx)
{
	struct window window = {.prog = -1};
	struct arena *arena = ctx;

	while (!arena->stop && !arena->failed) {
		arena->want = true;
		pthread_mutex_lock(&arena->lock);
		arena->want = false;
		xspd_plane_beat(arena->mirror->plane);
		arena->failed = window_open(arena, &window);
		pthread_mutex_unlock(&arena->lock);
		for (int run = 0;
		     run < (arena->swaps ? 20 : 1000) && !arena->stop && !arena->failed; run++) {
			arena->failed = window_run(&window);
			for (size_t i = 0; i < ARENA_FLOWS; i++)
				judge(arena, &window.answers[i], i);
		}
		window_close(&window);
	}
	return NULL;
}

static void report(const struct arena *arena, uint64_t changes)
{
	const struct xspd_conf *conf = xspd_plane_conf(arena->mirror->plane);
	struct xspd_plane_usage usage;
	uint64_t deferred = 0;

	xspd_plane_usage(arena->mirror->plane, &usage);
	printf("%s: %" PRIu64 " lookups, %" PRIu64 " changes, %" PRIu64 " missed, %" PRIu64
	       " got another;",
	       arena->name, arena->lookups, changes, arena->missed, arena->others);
	for (int i = XSPD_R_SHORT; i < XSPD_R_MAX_; i++) {
		deferred += arena->reasons[i];
		if (arena->reasons[i])
			printf(" %s %" PRIu64, xspd_reason_name(i), arena->reasons[i]);
	}
	printf(" (%.4f %% deferred); %u tuples, longest chain %u, %llu swaps\n",
	       100.0 * (double)deferred / (double)arena->lookups, usage.tuples, usage.longest_chain,
	       conf->swaps);
	fflush(stdout);
	cr_expect_eq(arena->failed, 0, "reader: %s", strerror(-arena->failed));
	cr_expect_eq(arena->missed, 0);
	cr_expect_eq(arena->others, 0);
	cr_expect_gt(arena->lookups - deferred, scaled(50000));
	if (arena->swaps)
		cr_expect_gt(conf->swaps, 1);
	else
		cr_expect_leq(deferred, arena->lookups / 10000, "more than 0.01 %% deferred");
}

void arena_race(struct arena *arena, uint64_t (*write)(struct arena *arena))
{
	uint64_t changes;
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, reader, arena), 0);
	changes = write(arena);
	arena->stop = true;
	cr_assert_eq(pthread_join(thread, NULL), 0);
	report(arena, changes);
	arena_free(arena);
}
