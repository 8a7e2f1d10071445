/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The running kernel as the judge: which policy wins a flow, asked of the
 * kernel's own SPD in the caller's network namespace (6.12 and later).
 *
 * XFRM_MSG_MIGRATE with the same end points before and after changes nothing,
 * and tells whether the policy that xfrm_policy_lookup_bytype() finds has a
 * template of the given reqid.  So every test policy has a transport mode ESP
 * template (optional where the policy is a bypass) with a reqid of its own.
 * MIGRATE has no mark; for the others see oracle_send() and packet.h.  Before 6.12 it finds
 * its policy by an equal selector, and is no oracle: oracle_send() and packets are.
 */
#ifndef XSPD_TESTS_LIB_ORACLE_H
#define XSPD_TESTS_LIB_ORACLE_H

#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "spd/policy.h"

struct oracle;

int oracle_new(struct oracle **ret);
void oracle_free(struct oracle *oracle);

/* Send one request with an ack, wait for the kernel's answer: 0 or its negative errno. */
int oracle_request(struct oracle *oracle, struct nlmsghdr *nlh);

/* Requests of xfrm that user/nl has no encoder for. */
int oracle_flush_states(struct oracle *oracle);
int oracle_set_default(struct oracle *oracle, uint8_t dir, uint8_t action);
struct oracle_hthresh {
	uint8_t lbits4, rbits4, lbits6, rbits6;
};
/* The kernel rebuilds its tables later, in a work queue; oracle_get_hthresh() reads back. */
int oracle_set_hthresh(struct oracle *oracle, const struct oracle_hthresh *bits);
int oracle_get_hthresh(struct oracle *oracle, struct oracle_hthresh *ret);

/* Is MIGRATE an oracle here? */
bool oracle_migrates(void);

/*
 * One question.  @reqid is the template of the policy thought to win, 0: no policy.
 * @dir and @type say which policies to ask (they may differ from flow->dir:
 * behind a sub policy fwd asks main policies as in).  @err is the kernel's answer: 0 right; -ENODATA another policy wins;
 * -ENOENT no policy does (for reqid 0: 0 is right and -ENODATA some policy wins).
 */
struct oracle_probe {
	const struct xspd_flow *flow; /* mark must be 0 */
	uint32_t reqid;
	uint8_t dir;
	uint8_t type;
	int err;
};
int oracle_ask(struct oracle *oracle, struct oracle_probe *probes, size_t count);

/* The winner's reqid among @reqids, one question each; 0: none; UINT32_MAX: none of these. */
int oracle_winner(struct oracle *oracle, const struct xspd_flow *flow, uint8_t dir, uint8_t type,
		  const uint32_t *reqids, size_t count, uint32_t *ret);

/*
 * OUT with a mark: a UDP datagram of no bytes is "sent" with MSG_PROBE, from any
 * address (IP_TRANSPARENT), and the winner's template asks for an SA (XFRM_MSG_ACQUIRE).
 * Needs netns_routes(), and flow->oif is taken to be the device that these lead to (IPv6:
 * 0, an unbound socket is looked up without a device).  Flush the SAs
 * it leaves behind (oracle_flush_states()) before the next oracle_ask(). @ret_index gets the
 * kernel's index of the winner, 0: none. Return: 0, -EPERM (a block policy or default block), or
 * another negative errno.
 */
int oracle_send(struct oracle *oracle, const struct xspd_flow *flow, uint32_t *ret_index);

#endif
