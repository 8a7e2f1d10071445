/* SPDX-License-Identifier: GPL-2.0-only */
/* NETLINK_XFRM through libmnl: decode, dump, events, and batched requests. */
#ifndef XSPD_NL_NL_H
#define XSPD_NL_NL_H

#include <linux/netlink.h>
#include "spd/policy.h"

enum xspd_event_kind {
	XSPD_EVENT_NONE =
		0, /* understood, and of no concern (socket policy, soft expiry, SA message) */
	XSPD_EVENT_POLICY,     /* NEWPOLICY or UPDPOLICY, and each entry of a dump: @pol */
	XSPD_EVENT_REMOVE,     /* DELPOLICY or hard POLEXPIRE: @pol.index */
	XSPD_EVENT_FLUSH,      /* @type */
	XSPD_EVENT_DEFAULTS,   /* @defaults: bit 1 << dir = block */
	XSPD_EVENT_MIGRATE,    /* templates of some policy changed: re-read */
	XSPD_EVENT_SPDINFO,    /* reply to GETSPDINFO: @info */
	XSPD_EVENT_DONE,       /* NLMSG_DONE */
	XSPD_EVENT_ERROR,      /* NLMSG_ERROR: @error (0 = ack), @seq */
	XSPD_EVENT_UNMODELLED, /* a message of these groups that is not understood */
};

struct xspd_spdinfo {
	uint32_t count[XSPD_DIR_MAX_]; /* in, out, fwd: without socket policies */
	uint32_t sock_count[XSPD_DIR_MAX_];
	uint8_t lbits4, rbits4, lbits6, rbits6; /* hthresh */
};

struct xspd_event {
	enum xspd_event_kind kind;
	uint16_t nlmsg_type;
	uint32_t seq;
	bool multi; /* part of a dump (NLM_F_MULTI); notifications never are */
	int error;  /* negative errno */
	uint8_t type;
	uint32_t defaults; /* with known: bits 1 << dir that the message sets */
	uint32_t defaults_known;
	struct xspd_pol pol;
	bool typed; /* POLICY: it says of which type it is: the kernel has sub policies */
	struct xspd_spdinfo info;
	const struct nlmsghdr *msg; /* the message itself; it dies with the callback */
};

/**
 * xspd_nl_decode() - What one netlink message means for the mirror.  Pure; reads nothing
 * past @nlh->nlmsg_len, which the caller has checked against its buffer.
 *
 * Return: 0 with *ret filled, or -EBADMSG for a message that is malformed
 * (too short for its type, an attribute that ends past the message, ...).
 */
int xspd_nl_decode(const struct nlmsghdr *nlh, struct xspd_event *ret);

struct xspd_nl;

/* Bits for xspd_nl_open(): multicast groups as 1 << (XFRMNLGRP_x - 1). 0: a request socket. */
#define XSPD_NL_GROUPS                                                                             \
	((1u << (XFRMNLGRP_POLICY - 1)) | (1u << (XFRMNLGRP_EXPIRE - 1)) |                         \
	 (1u << (XFRMNLGRP_MIGRATE - 1)))

/**
 * xspd_nl_open() - A nonblocking NETLINK_XFRM socket in the caller's namespace.
 * @groups: joined before the first request can be sent.
 * @rcvbuf: bytes for SO_RCVBUFFORCE (then SO_RCVBUF), 0 = leave.
 * Return: 0, or a negative errno. Free with xspd_nl_free().
 */
int xspd_nl_open(struct xspd_nl **ret, uint32_t groups, int rcvbuf);
void xspd_nl_free(struct xspd_nl *nl);
int xspd_nl_fd(const struct xspd_nl *nl);

typedef int (*xspd_nl_cb)(void *ctx, const struct xspd_event *event);

/**
 * xspd_nl_recv() - Read what is queued, at most @max datagrams, and call @cb for each message.
 * Return: number of datagrams read (0: nothing queued), -ENOBUFS if the kernel
 * dropped messages, another negative errno, or the first negative return of @cb (reading stops
 * there). On -ENOBUFS the queue has been emptied as well: what it held was older than the loss.
 * Begin a new dump of the mirror before the next call. A malformed message reaches @cb as
 * XSPD_EVENT_UNMODELLED.
 */
int xspd_nl_recv(struct xspd_nl *nl, unsigned int max, xspd_nl_cb cb, void *ctx);

/*
 * Blocking helpers on a request socket (groups 0); 0 or negative errno.  @cb of a
 * dump sees POLICY and UNMODELLED events only; socket policies are left out.
 */
int xspd_nl_dump(struct xspd_nl *nl, xspd_nl_cb cb, void *ctx); /* GETPOLICY dump, until DONE */
/* GETSA dump: @cb sees kind NONE, with the SA in ->msg. Its keys stay in @nl until it is freed. */
int xspd_nl_dump_states(struct xspd_nl *nl, xspd_nl_cb cb, void *ctx);
int xspd_nl_spdinfo(struct xspd_nl *nl, struct xspd_spdinfo *ret);
/* Set hthresh4 and hthresh6 to those of @info; the kernel rebuilds later, without telling. */
int xspd_nl_set_hthresh(struct xspd_nl *nl, const struct xspd_spdinfo *info);
int xspd_nl_defaults(struct xspd_nl *nl, uint32_t *ret); /* GETDEFAULT; kernels without it: 0 */
int xspd_nl_policy(struct xspd_nl *nl, uint32_t index, const struct xspd_pol *like,
		   struct xspd_pol *ret); /* GETPOLICY by index; mark, if_id, type from @like */

/* Send a GETPOLICY dump request on @nl; its entries then arrive through xspd_nl_recv(). */
int xspd_nl_request_dump(struct xspd_nl *nl, uint32_t seq);

/*
 * Encoding (tests, bench, snapshot): append one request to @buf.
 * Templates: pol->tmpl.count copies with pol->tmpl's reqid, proto and mode, the last
 * (count - required) of them optional.
 */
struct nlmsghdr *xspd_nl_put_policy(void *buf, const struct xspd_pol *pol, uint16_t msg_type,
				    uint16_t flags,
				    uint32_t seq); /* XFRM_MSG_NEWPOLICY, _UPDPOLICY */
struct nlmsghdr *xspd_nl_put_delete(void *buf, const struct xspd_pol *pol, bool by_index,
				    uint16_t flags, uint32_t seq);
struct nlmsghdr *xspd_nl_put_flush(void *buf, uint8_t type, uint16_t flags, uint32_t seq);

/*
 * Requests packed into few sends, errors matched by sequence number. @failed is called for each
 * request that the kernel refused. One batch object serves any number of requests.
 */
#define XSPD_BATCH_ROOM	    2048 /* of one request */
#define XSPD_BATCH_MESSAGES 128	 /* at most between two sends */
struct xspd_batch;
typedef void (*xspd_batch_failed)(void *ctx, uint32_t seq, int error, const char *extack);
int xspd_batch_new(struct xspd_batch **ret, struct xspd_nl *nl, xspd_batch_failed failed,
		   void *ctx);
void xspd_batch_free(struct xspd_batch *batch);
/* Room for one message of up to XSPD_BATCH_ROOM; flushes first when there is none. NULL with errno on
 * failure. */
void *xspd_batch_room(struct xspd_batch *batch, uint32_t *ret_seq);
void xspd_batch_commit(struct xspd_batch *batch, const struct nlmsghdr *nlh);
int xspd_batch_flush(struct xspd_batch *batch); /* send, and wait until the kernel has answered */

#endif
