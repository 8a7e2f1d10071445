// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nl/nl.h"
#include "snapshot/collect.h"
#include "snapshot/load.h"
#include "snapshot/state.h"
#include "util.h"

#define PROGRESS_EVERY 1024

struct job {
	const struct xspd_load *load;
	const struct xspd_snap *snap;
	struct xspd_load_result *result;
	struct xspd_nl *nl;
	struct xspd_batch *batch;
	uint64_t done, total;
	/* what was sent, by the low bits of the sequence number; older than that is answered */
	const struct nlmsghdr *sent[2 * XSPD_BATCH_MESSAGES];
	const struct nlmsghdr **again; /* SAs that are there already */
	uint32_t again_count;
	bool updating;	    /* it is them that are being sent */
	uint32_t unchanged; /* leading policies that need not be sent */
};

static bool is_state(const struct nlmsghdr *nlh)
{
	return nlh->nlmsg_type == XFRM_MSG_NEWSA;
}

static void refuse(struct job *job, const struct nlmsghdr *nlh, int error, const char *text)
{
	if (is_state(nlh))
		job->result->states_refused++;
	else
		job->result->policies_refused++;
	job->load->refused(job->load->ctx, nlh, error, text);
}

static void on_failed(void *ctx, uint32_t seq, int error, const char *extack)
{
	struct job *job = ctx;
	const struct nlmsghdr *nlh = job->sent[seq % XSPD_ARRAY_SIZE(job->sent)];

	if (is_state(nlh) && error == -EEXIST && !job->updating) {
		job->again[job->again_count++] = nlh; /* room for all was made */
		return;
	}
	if (is_state(nlh))
		job->result->states--;
	else
		job->result->policies--;
	refuse(job, nlh, error, extack);
}

/* The message of the file, as a request of type @type. */
static int send(struct job *job, const struct nlmsghdr *nlh, uint16_t type)
{
	struct nlmsghdr *request;
	uint32_t seq;

	if (*job->load->stop)
		return -EINTR;
	request = xspd_batch_room(job->batch, &seq);
	if (!request)
		return -errno;
	memcpy(request, nlh, nlh->nlmsg_len);
	request->nlmsg_type = type;
	request->nlmsg_flags = NLM_F_REQUEST;
	request->nlmsg_seq = seq;
	request->nlmsg_pid = 0;
	job->sent[seq % XSPD_ARRAY_SIZE(job->sent)] = nlh;
	xspd_batch_commit(job->batch, request);
	if (!is_state(nlh))
		job->result->policies++;
	else if (!job->updating)
		job->result->states++;
	return 0;
}

static void step(struct job *job)
{
	if (job->done++ % PROGRESS_EVERY == 0 && job->load->progress)
		job->load->progress(job->load->ctx, job->done, job->total);
}

static const struct nlmsghdr *next(const struct nlmsghdr *nlh)
{
	return (const void *)((const char *)nlh + NLMSG_ALIGN(nlh->nlmsg_len));
}

static int state_send(struct job *job, const struct nlmsghdr *nlh)
{
	struct xspd_snap_state state;

	if (xspd_snap_state_read(nlh, &state))
		return -EBADMSG;
	if (state.keys_zero || (state.keyed && !(job->snap->header.flags & XSPD_SNAP_KEYS))) {
		refuse(job, nlh, -ENOKEY, "saved without its keys; use 'save --with-keys'");
		return 0;
	}
	return send(job, nlh, XFRM_MSG_NEWSA);
}

static int states_update(struct job *job)
{
	int err = xspd_batch_flush(job->batch);

	job->updating = true;
	for (uint32_t i = 0; i < job->again_count && !err; i++)
		err = send(job, job->again[i], XFRM_MSG_UPDSA);
	return err ? err : xspd_batch_flush(job->batch);
}

/* *@at: the first SA; on return what follows the last. */
static int states_load(struct job *job, const struct nlmsghdr **at)
{
	const struct nlmsghdr *nlh = *at;
	int err = 0;

	for (uint32_t i = 0; i < job->snap->header.states; i++, nlh = next(nlh)) {
		if (!job->load->states || err)
			continue;
		err = state_send(job, nlh);
		if (!err)
			step(job);
	}
	*at = nlh;
	return err || !job->load->states ? err : states_update(job);
}

/*
 * How many of the policies from @nlh on are there already, and older than all
 * that must be sent: the rest is sent, and so becomes newer, in order.
 */
static uint32_t unchanged_count(const struct job *job, const struct nlmsghdr *nlh,
				const struct xspd_vault *there)
{
	uint32_t count = 0, policies = job->snap->header.policies;

	for (size_t i = 0; i < there->count && count < policies; i++) {
		if (!xspd_snap_same_policy(nlh, xspd_vault_get(there, i)))
			continue;
		count++;
		nlh = next(nlh);
	}
	return count;
}

/* Before the first change: it also tells whether we may ask anything at all. */
static int unchanged_find(struct job *job, const struct nlmsghdr *nlh)
{
	struct xspd_vault there = {};
	int err = xspd_collect_policies(&there);

	if (err && err != -EBUSY) /* busy: everything will be sent */
		return err;
	for (uint32_t i = 0; i < job->snap->header.states; i++)
		nlh = next(nlh);
	job->unchanged = unchanged_count(job, nlh, &there);
	xspd_vault_empty(&there);
	return 0;
}

static int policies_load(struct job *job, const struct nlmsghdr *nlh)
{
	int err = 0;

	job->result->policies_unchanged = job->unchanged;
	job->done += job->unchanged;
	for (uint32_t i = 0; i < job->snap->header.policies && !err; i++, nlh = next(nlh)) {
		if (i < job->unchanged)
			continue;
		err = send(job, nlh, XFRM_MSG_UPDPOLICY);
		if (!err)
			step(job);
	}
	return err;
}

static int load_all(struct job *job)
{
	const struct xspd_snap_header *header = &job->snap->header;
	const struct nlmsghdr *nlh = (const void *)(job->snap->file.at + sizeof(*header));
	int err, err2;

	job->again = malloc((header->states + 1) * sizeof(*job->again));
	if (!job->again)
		return -ENOMEM;
	err = xspd_nl_open(&job->nl, 0, 1 << 20);
	if (!err)
		err = xspd_batch_new(&job->batch, job->nl, on_failed, job);
	if (!err)
		err = unchanged_find(job, nlh);
	if (err)
		return err;
	err = states_load(job, &nlh);
	if (!err)
		err = policies_load(job, nlh);
	/* also when stopped: what was counted as loaded is */
	err2 = xspd_batch_flush(job->batch);
	return err ? err : err2;
}

int xspd_snap_load(const struct xspd_snap *snap, const struct xspd_load *load,
		   struct xspd_load_result *ret)
{
	struct job job = {.snap = snap, .load = load, .result = ret};
	int err;

	*ret = (struct xspd_load_result){};
	job.total = snap->header.policies + (load->states ? (uint64_t)snap->header.states : 0);
	err = load_all(&job);
	ret->left = job.total - job.done;
	if (load->progress)
		load->progress(load->ctx, job.done, job.total);
	xspd_batch_free(job.batch);
	xspd_nl_free(job.nl);
	free(job.again);
	return err;
}
