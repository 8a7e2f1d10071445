/* SPDX-License-Identifier: GPL-2.0-only */
#include <arpa/inet.h>
#include <errno.h>
#include <time.h>

#include "bench/fill.h"
#include "nl/nl.h"
#include "util.h"

/* More policies than this, in each direction, to make the kernel resize as often as it wants to. */
#define SETTLERS  20
#define SETTLE_MS 5

struct failures {
	uint32_t count;
	int error; /* the first */
};

static void on_failed(void *ctx, uint32_t seq, int error, const char *extack)
{
	struct failures *failures = ctx;

	(void)seq;
	(void)extack;
	if (!failures->count++)
		failures->error = error;
}

struct request {
	struct xspd_nl *nl;
	struct xspd_batch *batch;
	struct failures failures;
};

static void request_close(struct request *request)
{
	xspd_batch_free(request->batch);
	xspd_nl_free(request->nl);
}

static int request_open(struct request *request)
{
	int err;

	*request = (struct request){};
	err = xspd_nl_open(&request->nl, 0, 0);
	if (!err)
		err = xspd_batch_new(&request->batch, request->nl, on_failed, &request->failures);
	if (err < 0)
		request_close(request);
	return err;
}

static int request_add(struct request *request, const struct xspd_pol *pol)
{
	uint32_t seq;
	void *room = xspd_batch_room(request->batch, &seq);

	if (!room)
		return -errno;
	xspd_batch_commit(request->batch,
			  xspd_nl_put_policy(room, pol, XFRM_MSG_NEWPOLICY, 0, seq));
	return 0;
}

static int request_delete(struct request *request, const struct xspd_pol *pol)
{
	uint32_t seq;
	void *room = xspd_batch_room(request->batch, &seq);

	if (!room)
		return -errno;
	xspd_batch_commit(request->batch, xspd_nl_put_delete(room, pol, true, 0, seq));
	return 0;
}

static void rest_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* Between hosts that no shape has anything to do with; each direction has a hash of its own. */
static void settler(uint32_t i, struct xspd_pol *ret)
{
	struct xspd_pol pol = {.dir = i % XSPD_DIR_MAX_, .priority = ~0u};

	pol.sel.family = AF_INET;
	pol.sel.saddr.a4 = htonl(0xc0000264);
	pol.sel.daddr.a4 = htonl(0xc6120000 + i);
	pol.sel.prefixlen_s = pol.sel.prefixlen_d = 32;
	pol.index = xspd_bench_index((1u << 28) + i, pol.dir);
	*ret = pol;
}

/*
 * A bulk load outruns the kernel's own resizing, which doubles once per insertion
 * at most and in the background: give it the occasions that it still needs.
 */
static int settle(struct request *request)
{
	struct xspd_pol pol;
	int err;

	for (uint32_t i = 0; i < SETTLERS * XSPD_DIR_MAX_; i++) {
		settler(i, &pol);
		err = request_add(request, &pol);
		if (!err)
			err = xspd_batch_flush(request->batch);
		if (err < 0)
			return err;
		rest_ms(SETTLE_MS);
	}
	for (uint32_t i = 0; i < SETTLERS * XSPD_DIR_MAX_; i++) {
		settler(i, &pol);
		err = request_delete(request, &pol);
		if (err < 0)
			return err;
	}
	return xspd_batch_flush(request->batch);
}

static int insert_all(struct request *request, const struct xspd_bench_set *set)
{
	struct xspd_pol pol;
	int err;

	for (uint32_t i = 0; i < set->count; i++) {
		xspd_bench_pol(set, i, &pol);
		err = request_add(request, &pol);
		if (err < 0)
			return err;
	}
	return xspd_batch_flush(request->batch);
}

int xspd_bench_insert(const struct xspd_bench_set *set, double *ret_ns, uint32_t *ret_refused)
{
	uint64_t start = xspd_mono();
	struct request request;
	int err;

	err = request_open(&request);
	if (err < 0)
		return err;
	err = insert_all(&request, set);
	*ret_ns = (double)(xspd_mono() - start) / set->count;
	*ret_refused = request.failures.count;
	if (!err)
		err = settle(&request);
	request_close(&request);
	return err;
}

static int request_one(int (*put)(struct request *request, const struct xspd_pol *pol),
		       const struct xspd_pol *pol)
{
	struct request request;
	int err = request_open(&request);

	if (err < 0)
		return err;
	err = put(&request, pol);
	if (!err)
		err = xspd_batch_flush(request.batch);
	if (!err)
		err = request.failures.error;
	request_close(&request);
	return err;
}

int xspd_bench_insert_one(const struct xspd_pol *pol)
{
	return request_one(request_add, pol);
}

int xspd_bench_delete_one(const struct xspd_pol *pol)
{
	return request_one(request_delete, pol);
}

static int on_entry(void *ctx, const struct xspd_event *event)
{
	if (event->kind == XSPD_EVENT_POLICY)
		return xspd_spd_dump_entry(ctx, &event->pol);
	return 0;
}

int xspd_bench_mirror(struct xspd_spd *spd)
{
	struct xspd_spd_diff diff;
	struct xspd_nl *nl = NULL;
	int err;

	err = xspd_nl_open(&nl, 0, 0);
	if (err < 0)
		return err;
	err = xspd_spd_dump_begin(spd);
	if (!err)
		err = xspd_nl_dump(nl, on_entry, spd);
	if (!err)
		err = xspd_spd_dump_end(spd, &diff);
	else
		xspd_spd_dump_abort(spd);
	xspd_nl_free(nl);
	return err;
}

int xspd_bench_fill(const struct xspd_bench_set *set, struct xspd_spd *spd)
{
	struct xspd_pol pol;
	int err;

	for (uint32_t i = 0; i < set->count; i++) {
		xspd_bench_pol(set, i, &pol);
		err = xspd_spd_upsert(spd, &pol);
		if (err < 0)
			return err;
	}
	return 0;
}
