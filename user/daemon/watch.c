// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <bpf/libbpf.h>

#include "daemon/log.h"
#include "daemon/watch.h"
#include "util.h"

#define SECOND	    1000000000ull
#define ALARM_LEAST 10	   /* deletions that are worth an alarm ... */
#define ALARM_SHARE 4	   /* ... if they are this part of all */
#define LAG_FIRST   50000u /* ns, of the first bucket; each has twice the one before */

static void *map_open(const struct xspd_plane *plane, const char *name, size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED,
			xspd_plane_map_fd(plane, name), 0);

	return at == MAP_FAILED ? NULL : at;
}

/* A former daemon's history is gone on with. */
static void numbers_read(struct xspd_watch *watch)
{
	for (uint32_t i = 0; i < XSPD_CHANGES; i++)
		if (watch->change[i].seq > watch->change_seq)
			watch->change_seq = watch->change[i].seq;
	for (uint32_t i = 0; i < XSPD_SAMPLES; i++)
		if (watch->sample[i].seq > watch->sample_seq)
			watch->sample_seq = watch->sample[i].seq;
}

static int sample_store(void *ctx, void *data, size_t size)
{
	struct xspd_watch *watch = ctx;
	uint64_t seq = watch->sample_seq + 1;
	struct xspd_sample *to = &watch->sample[seq % XSPD_SAMPLES], sample;

	if (size < sizeof(sample))
		return 0;
	memcpy(&sample, data, sizeof(sample));
	sample.time = xspd_now(CLOCK_REALTIME) - (xspd_mono() - sample.time);
	watch->samples++;
	watch->samples_missed += sample.missed;
	watch->sample_seq = seq;
	__atomic_store_n(&to->seq, 0, __ATOMIC_SEQ_CST);
	memcpy((char *)to + sizeof(to->seq), (const char *)&sample + sizeof(to->seq),
	       sizeof(sample) - sizeof(to->seq));
	__atomic_store_n(&to->seq, seq, __ATOMIC_RELEASE);
	return 0;
}

int xspd_watch_open(struct xspd_watch *watch, const struct xspd_plane *plane)
{
	int err;

	watch->ring_map = fcntl(xspd_plane_map_fd(plane, "xspd_ring"), F_DUPFD_CLOEXEC, 3);
	watch->change = map_open(plane, "xspd_change", XSPD_CHANGES * sizeof(*watch->change));
	watch->sample = map_open(plane, "xspd_sample", XSPD_SAMPLES * sizeof(*watch->sample));
	if (watch->ring_map >= 0 && watch->change && watch->sample) {
		numbers_read(watch);
		watch->ring = ring_buffer__new(watch->ring_map, sample_store, watch, NULL);
		if (watch->ring)
			return 0;
	}
	err = -errno;
	xspd_watch_close(watch);
	return err;
}

void xspd_watch_close(struct xspd_watch *watch)
{
	ring_buffer__free(watch->ring);
	if (watch->change)
		munmap(watch->change, XSPD_CHANGES * sizeof(*watch->change));
	if (watch->sample)
		munmap(watch->sample, XSPD_SAMPLES * sizeof(*watch->sample));
	xspd_closep(&watch->ring_map);
	watch->ring = NULL;
	watch->change = NULL;
	watch->sample = NULL;
	watch->ring_map = -1;
}

/* Requests seldom carry their sender's pid, and in a burst it is always the same. */
static void sender_name(struct xspd_watch *watch, struct xspd_changed *record)
{
	char path[32];

	record->pid = watch->event && watch->event->msg ? watch->event->msg->nlmsg_pid : 0;
	if (!record->pid)
		return;
	if (record->pid != watch->comm_pid) {
		xspd_autoclose int fd = -1;
		ssize_t len;

		memset(watch->comm, 0, sizeof(watch->comm));
		watch->comm_pid = record->pid;
		snprintf(path, sizeof(path), "/proc/%u/comm", record->pid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		len = fd >= 0 ? read(fd, watch->comm, sizeof(watch->comm) - 1) : 0;
		if (len > 0 && watch->comm[len - 1] == '\n')
			watch->comm[len - 1] = '\0';
	}
	memcpy(record->comm, watch->comm, sizeof(record->comm));
}

static void store(struct xspd_watch *watch, const struct xspd_changed *record)
{
	uint64_t seq = ++watch->change_seq;
	struct xspd_changed *to = &watch->change[seq % XSPD_CHANGES];

	__atomic_store_n(&to->seq, 0, __ATOMIC_SEQ_CST);
	memcpy((char *)to + sizeof(to->seq), (const char *)record + sizeof(to->seq),
	       sizeof(*to) - sizeof(to->seq));
	__atomic_store_n(&to->seq, seq, __ATOMIC_RELEASE);
}

static struct xspd_changed record_new(struct xspd_watch *watch, enum xspd_change_what what)
{
	struct xspd_changed record = {
		.time = xspd_now(CLOCK_REALTIME), .what = what, .reread = watch->reread};

	sender_name(watch, &record);
	return record;
}

void xspd_watch_note(struct xspd_watch *watch, enum xspd_change_what what, uint32_t count)
{
	struct xspd_changed record;

	watch->changes[what]++;
	if (!watch->change)
		return;
	record = record_new(watch, what);
	record.count = count;
	store(watch, &record);
}

/* @count more of @of policies are gone: is that a flush, by whatever name? */
static void deleted(struct xspd_watch *watch, uint32_t count, uint32_t of)
{
	uint64_t now = xspd_mono();
	struct xspd_changed record;

	if (now - watch->since > SECOND) {
		watch->since = now;
		watch->deleted = 0;
		watch->of = of;
		watch->alarmed = false;
	}
	watch->deleted += count;
	if (watch->alarmed || watch->deleted < ALARM_LEAST ||
	    (uint64_t)watch->deleted * ALARM_SHARE < watch->of)
		return;
	watch->alarmed = true;
	watch->changes[XSPD_C_ALARM]++;
	xspd_log("events: ALARM: %u of %u policies were deleted within a second; 'xspd events' "
		 "has them",
		 watch->deleted, watch->of);
	if (!watch->change)
		return;
	record = record_new(watch, XSPD_C_ALARM);
	record.count = watch->deleted;
	record.was = watch->of;
	store(watch, &record);
}

static uint32_t count_of(const struct xspd_spd *spd, uint8_t type)
{
	const struct xspd_pol *pol;
	uint32_t count = 0;

	for (pol = spd->by_index; pol; pol = pol->hh.next)
		count += pol->type == type;
	return count;
}

static enum xspd_change_what what_of(const struct xspd_watch *watch,
				     const struct xspd_change *change)
{
	switch (change->kind) {
	case XSPD_CHANGE_ADD:
		return XSPD_C_ADD;
	case XSPD_CHANGE_REPLACE:
		return XSPD_C_UPDATE;
	case XSPD_CHANGE_REMOVE:
		return watch->event && watch->event->nlmsg_type == XFRM_MSG_POLEXPIRE
			       ? XSPD_C_EXPIRE
			       : XSPD_C_DELETE;
	case XSPD_CHANGE_FLUSH:
		return XSPD_C_FLUSH;
	case XSPD_CHANGE_DEFAULTS:
		return XSPD_C_DEFAULT;
	default:
		return XSPD_C_NONE;
	}
}

void xspd_watch_change(struct xspd_watch *watch, const struct xspd_spd *spd,
		       const struct xspd_change *change)
{
	enum xspd_change_what what = what_of(watch, change);
	uint32_t count = change->kind == XSPD_CHANGE_FLUSH ? count_of(spd, change->type) : 1;

	if (what == XSPD_C_NONE)
		return;
	watch->changes[what] += count;
	if (watch->change) {
		struct xspd_changed record = record_new(watch, what);

		record.count = what == XSPD_C_DEFAULT ? spd->defaults : count;
		record.was = watch->defaults;
		record.after.type = change->type;
		if (change->old)
			xspd_info_fill(&record.before, change->old);
		if (change->pol)
			xspd_info_fill(&record.after, change->pol);
		store(watch, &record);
	}
	watch->defaults = spd->defaults;
	if (what == XSPD_C_FLUSH)
		deleted(watch, count, HASH_COUNT(spd->by_index));
	else if (what == XSPD_C_DELETE)
		deleted(watch, 1, HASH_COUNT(spd->by_index) + 1);
}

int xspd_watch_fd(const struct xspd_watch *watch)
{
	return watch->ring ? ring_buffer__epoll_fd(watch->ring) : -1;
}

void xspd_watch_samples(struct xspd_watch *watch)
{
	if (watch->ring)
		ring_buffer__consume(watch->ring);
}

void xspd_watch_lag(struct xspd_watch *watch, uint64_t from, uint64_t to)
{
	uint64_t lag = to > from ? to - from : 0, bound = LAG_FIRST;
	int i = 0;

	for (; i < XSPD_LAGS - 1 && lag > bound; bound *= 2)
		i++;
	watch->lag_count[i]++;
	watch->lag_sum += lag;
	if (lag > watch->lag_max)
		watch->lag_max = lag;
}

void xspd_watch_publish(const struct xspd_watch *watch, struct xspd_conf *conf)
{
	memcpy(conf->changes, watch->changes, sizeof(conf->changes));
	conf->samples = watch->samples;
	conf->samples_missed = watch->samples_missed;
	conf->lag_sum = watch->lag_sum;
	conf->lag_max = watch->lag_max;
	memcpy(conf->lag_count, watch->lag_count, sizeof(conf->lag_count));
}
