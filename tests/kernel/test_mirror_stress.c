// SPDX-License-Identifier: GPL-2.0-only
/* The mirror when events are lost, come during a dump, come in thousands; and when it is large. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <malloc.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "lib/netns.h"
#include "lib/scale.h"
#include "lib/watch.h"
#include "util.h"

static void expect_equal(struct watch *watch, int line)
{
	const char *what = watch_compare(watch);

	cr_assert_null(what, "line %d: %s", line, what);
}
#define expect_equal(watch) expect_equal(watch, __LINE__)

static struct watch *watch_start(int rcvbuf)
{
	struct watch *watch;

	cr_assert_eq(netns_enter(), 0);
	cr_assert_eq(watch_new(&watch, rcvbuf), 0);
	return watch;
}

/* Policy @n of a set in which everything varies. */
static struct xspd_pol pol_make(uint32_t n, uint32_t priority)
{
	struct xspd_pol pol = {.dir = n % 3, .priority = priority, .type = n % 7 == 0};

	pol.sel.family = n % 5 ? AF_INET : AF_INET6;
	pol.sel.saddr.a6[0] = htonl(0x0a000000 + n);
	pol.sel.prefixlen_s = 8 + n % 25;
	pol.sel.dport = htons(n);
	pol.sel.dport_mask = n % 4 ? 0 : 0xffff;
	pol.mark_mask = n % 6 ? 0 : 0xf;
	pol.mark = n & pol.mark_mask;
	pol.if_id = n % 8 ? 0 : n % 64;
	pol.tmpl = (struct xspd_tmpl){.reqid = n, .proto = IPPROTO_ESP, .count = 1, .required = 1};
	pol.tmpl.family = pol.sel.family;
	return pol;
}

/* Changes made as fast as they can be: own socket, own random numbers. */
struct changer {
	struct xspd_nl *nl;
	struct xspd_batch *batch;
	unsigned int seed;
	uint32_t span; /* policies 1..span */
};

static void changer_open(struct changer *changer, uint32_t span)
{
	changer->seed = 7;
	changer->span = span;
	cr_assert_eq(xspd_nl_open(&changer->nl, 0, 1 << 20), 0);
	/* duplicates and deletes of what is not there are refused: as it should be */
	cr_assert_eq(xspd_batch_new(&changer->batch, changer->nl, NULL, NULL), 0);
}

static void changer_close(struct changer *changer)
{
	xspd_batch_free(changer->batch);
	xspd_nl_free(changer->nl);
}

static struct nlmsghdr *change_put(struct changer *changer, void *room, uint32_t seq)
{
	uint32_t n = 1 + rand_r(&changer->seed) % changer->span,
		 what = rand_r(&changer->seed) % 1000;
	struct xspd_pol pol = pol_make(n, 10 + n % 3);

	if (what < 300)
		return xspd_nl_put_delete(room, &pol, false, 0, seq);
	if (what < 305)
		return xspd_nl_put_flush(room, what & 1, 0, seq);
	if (what < 600)
		return xspd_nl_put_policy(room, &pol, XFRM_MSG_NEWPOLICY, 0, seq);
	if (what < 700)
		pol.priority = 10 + rand_r(&changer->seed) % 3;
	return xspd_nl_put_policy(room, &pol, XFRM_MSG_UPDPOLICY, 0, seq);
}

static void changer_run(struct changer *changer, unsigned int count)
{
	uint32_t seq;
	void *room;

	while (count--) {
		room = xspd_batch_room(changer->batch, &seq);
		if (!room)
			abort();
		xspd_batch_commit(changer->batch, change_put(changer, room, seq));
	}
	if (xspd_batch_flush(changer->batch) < 0)
		abort();
}

Test(mirror_stress, random_changes)
{
	struct watch *watch = watch_start(0);
	struct changer changer;
	struct xspd_spd_diff diff;
	uint32_t round;

	changer_open(&changer, 200);
	for (round = 0; round < scaled(300); round++) {
		changer_run(&changer, 100);
		expect_equal(watch);
	}
	cr_assert_eq(watch_dump(watch, &diff), 0);
	cr_expect_eq(diff.added + diff.removed + diff.modified, 0, "a dump has nothing to add");
	cr_expect_gt(watch->told[XSPD_EVENT_FLUSH], scaled(10) / 2);
	cr_expect_gt(watch->told[XSPD_EVENT_REMOVE], scaled(1000));
	cr_expect_gt(watch->spd->ties, 0);
	changer_close(&changer);
	watch_free(watch);
}

Test(mirror_stress, lost_events_are_noticed_and_a_dump_repairs)
{
	struct watch *watch = watch_start(1); /* the kernel makes it 2304 bytes */
	struct changer changer;
	struct xspd_spd_diff diff;
	uint32_t lost = 0, repaired = 0, round;
	int err;

	changer_open(&changer, 400);
	for (round = 0; round < scaled(100); round++) {
		changer_run(&changer, 1 + 7 * round % 50);
		err = watch_drain(watch);
		if (err == -ENOBUFS) {
			lost++;
			cr_assert_eq(watch_dump(watch, &diff), 0);
			repaired += diff.added + diff.removed + diff.modified;
		} else {
			cr_assert_eq(err, 0);
		}
		expect_equal(watch);
	}
	cr_expect_gt(lost, scaled(50));
	cr_expect_gt(repaired, scaled(500));
	changer_close(&changer);
	watch_free(watch);
}

Test(mirror_stress, what_was_queued_before_a_loss_is_not_taken_for_news)
{
	struct watch *watch = watch_start(1);
	struct xspd_pol pol = pol_make(1, 10), other;
	struct xspd_spd_diff diff;
	uint32_t i;

	cr_assert_eq(watch_new_policy(watch, &pol), 0); /* this one is queued, */
	for (i = 2; i < 40; i++) {
		other = pol_make(i, 10);
		cr_assert_eq(watch_new_policy(watch, &other), 0);
	}
	cr_assert_eq(watch_delete(watch, &pol, false), 0); /* and this one lost */
	cr_assert_eq(watch_drain(watch), -ENOBUFS);
	cr_assert_eq(watch_dump_mixed(watch, &diff), 0);
	expect_equal(watch);
	cr_expect_eq(HASH_COUNT(watch->spd->by_index), 38);
	cr_expect_null(xspd_spd_find_identity(watch->spd, &pol));
	watch_free(watch);
}

struct thread {
	struct changer changer;
	pthread_t id;
	sem_t busy; /* it has begun */
	atomic_bool stop;
};

static void *thread_run(void *arg)
{
	struct thread *thread = arg;

	do {
		changer_run(&thread->changer, 64);
		sem_post(&thread->busy);
	} while (!atomic_load(&thread->stop));
	return NULL;
}

static void thread_start(struct thread *thread)
{
	atomic_store(&thread->stop, false);
	cr_assert_eq(sem_init(&thread->busy, 0, 0), 0);
	cr_assert_eq(pthread_create(&thread->id, NULL, thread_run, thread), 0);
	cr_assert_eq(sem_wait(&thread->busy), 0);
}

static void thread_stop(struct thread *thread)
{
	atomic_store(&thread->stop, true);
	pthread_join(thread->id, NULL);
	sem_destroy(&thread->busy);
}

static void dump_under_fire(int (*dump)(struct watch *, struct xspd_spd_diff *), uint32_t rounds)
{
	struct watch *watch = watch_start(64 << 20);
	struct thread thread = {};
	uint32_t in_between = 0, changed = 0;
	struct xspd_spd_diff diff;
	uint32_t round;

	changer_open(&thread.changer, 3000);
	changer_run(&thread.changer, 6000);
	cr_assert_eq(watch_drain(watch), 0);
	for (round = 0; round < scaled(rounds); round++) {
		thread_start(&thread);
		cr_assert_eq(dump(watch, &diff), 0);
		in_between += watch->in_between;
		changed += diff.added + diff.removed + diff.modified;
		thread_stop(&thread);
		expect_equal(watch);
	}
	cr_expect_gt(watch->told[XSPD_EVENT_POLICY], 1000, "the changes came too late");
	if (dump == watch_dump_mixed)
		cr_expect_gt(in_between, scaled(100), "no events between the entries");
	else
		cr_expect_gt(changed, scaled(100),
			     "the dump saw nothing that events had not told yet");
	changer_close(&thread.changer);
	watch_free(watch);
}

Test(mirror_stress, events_between_the_entries_of_a_dump)
{
	dump_under_fire(watch_dump_mixed, 60);
}

Test(mirror_stress, events_read_after_a_dump)
{
	dump_under_fire(watch_dump, 60);
}

Test(mirror_stress, first_dump_under_fire)
{
	struct thread thread = {};
	struct watch *watch;
	uint32_t round;

	cr_assert_eq(netns_enter(), 0);
	changer_open(&thread.changer, 3000);
	changer_run(&thread.changer, 6000);
	for (round = 0; round < scaled(20); round++) {
		thread_start(&thread);
		cr_assert_eq(watch_new(&watch, 64 << 20), 0);
		thread_stop(&thread);
		expect_equal(watch);
		watch_free(watch);
	}
	changer_close(&thread.changer);
}

static struct xspd_pol pol_of_million(uint32_t n)
{
	struct xspd_pol pol = {.index = (n + 1) << 3 | XSPD_OUT, .dir = XSPD_OUT};

	pol.sel.family = AF_INET;
	pol.sel.daddr.a4 = htonl(n);
	pol.sel.prefixlen_d = 32;
	pol.priority = n % 1000;
	return pol;
}

/* of processor time: the machine may be busy */
static double seconds_since(uint64_t start)
{
	return (xspd_now(CLOCK_PROCESS_CPUTIME_ID) - start) / 1e9;
}

/* Dump all, newest first; the older half of the indexes was updated since. */
static double million_dump(struct xspd_spd *spd, uint32_t million, struct xspd_spd_diff *ret)
{
	uint64_t start = xspd_now(CLOCK_PROCESS_CPUTIME_ID);
	struct xspd_pol pol;
	uint32_t i;

	cr_assert_eq(xspd_spd_dump_begin(spd), 0);
	for (i = million; i-- > 0;) {
		pol = pol_of_million((i + million / 2) % million);
		cr_assert_eq(xspd_spd_dump_entry(spd, &pol), 0);
	}
	cr_assert_eq(xspd_spd_dump_end(spd, ret), 0);
	return seconds_since(start);
}

Test(mirror_stress, a_million_policies)
{
	struct xspd_spd *spd = xspd_spd_new();
	struct xspd_spd_diff diff;
	struct xspd_pol pol;
	double first, again, events, bytes;
	struct mallinfo2 before = mallinfo2(), after;
	uint32_t i, million = scaled(1000000);
	uint64_t start;

	first = million_dump(spd, million, &diff);
	after = mallinfo2();
	bytes = (after.uordblks + after.hblkhd - before.uordblks - before.hblkhd) / (double)million;
	cr_expect_eq(diff.added, million);
	cr_expect_eq(spd->ties, million / 2);
	again = million_dump(spd, million, &diff);
	cr_expect_eq(diff.added + diff.removed + diff.modified, 0);

	start = xspd_now(CLOCK_PROCESS_CPUTIME_ID);
	for (i = 0; i < million; i++) {
		pol = pol_of_million(i);
		cr_assert_eq(xspd_spd_upsert(spd, &pol), 0);
	}
	events = seconds_since(start);
	fprintf(stderr, "%u policies: %.0f bytes each; dump %.2f s, again %.2f s; events %.2f s\n",
		million, bytes, first, again, events);
	cr_expect_leq(bytes, 350);
	/* about a second each here; quadratic work would take hours */
	cr_expect_lt(first, 10);
	cr_expect_lt(again, 10);
	cr_expect_lt(events, 10);
	xspd_spd_free(spd);
}
