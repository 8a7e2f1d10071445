// SPDX-License-Identifier: GPL-2.0-only
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>

#include "lib/request.h"
#include "lib/transition.h"

#define GROWTH	100 /* more than there is room for */
#define TUNNELS 4   /* of the first policies, the last ones with an if_id each: flows 240, 241 ... \
		     */

/* Number @n: 10.n.0.0/@len, out. */
static struct xspd_pol policy(uint32_t n, uint8_t len, uint32_t priority)
{
	struct xspd_pol pol = {.dir = XSPD_OUT, .priority = priority};

	pol.index = n << 3 | XSPD_OUT;
	pol.sel.family = AF_INET;
	pol.sel.daddr.a4 = htonl(0x0a000000 + (n << 16));
	pol.sel.prefixlen_d = len;
	pol.tmpl = (struct xspd_tmpl){.reqid = n, .family = AF_INET, .proto = IPPROTO_ESP};
	pol.tmpl.count = pol.tmpl.required = 1;
	return pol;
}

void transition_base(struct xspd_batch *batch)
{
	request_flush(batch, XSPD_MAIN);
	request_flush(batch, XSPD_SUB);
	for (uint32_t n = 1; n <= TRANSITION_BASE - TUNNELS; n++) {
		struct xspd_pol pol = policy(n, 16, 10);

		request_send(batch, &pol, XFRM_MSG_NEWPOLICY);
	}
	for (uint32_t n = 240; n < 240 + TUNNELS; n++) {
		struct xspd_pol pol = policy(n, 16, 10);

		pol.if_id = n;
		request_send(batch, &pol, XFRM_MSG_NEWPOLICY);
	}
}

/* The if_ids that may be named for flow 240 + n over all of them; 0: none. */
static const uint32_t tunnels[TUNNELS + 1][3] = {
	{240, 240, 240}, /* its policy is updated in place, and at another priority */
	{241, 0, 0},	 /* deleted */
	{242, 0, 250},	 /* another tunnel gets the same policy, and the first loses it */
	{243, 251, 251}, /* another tunnel gets a better one */
	{0, 0, 0},
};

static void tunnels_change(struct xspd_batch *batch)
{
	struct xspd_pol pol = policy(240, 16, 10);

	pol.if_id = 240;
	pol.flags = XFRM_POLICY_ICMP;
	request_send(batch, &pol, XFRM_MSG_UPDPOLICY);
	pol.priority = 12;
	request_send(batch, &pol, XFRM_MSG_UPDPOLICY);
	pol = policy(241, 16, 10);
	pol.if_id = 241;
	request_send(batch, &pol, XFRM_MSG_DELPOLICY);
	pol = policy(242, 16, 10);
	pol.index = 250 << 3 | XSPD_OUT;
	pol.if_id = 250;
	request_send(batch, &pol, XFRM_MSG_NEWPOLICY);
	pol = policy(242, 16, 10);
	pol.if_id = 242;
	request_send(batch, &pol, XFRM_MSG_DELPOLICY);
	pol = policy(243, 19, 9);
	pol.index = 251 << 3 | XSPD_OUT;
	pol.if_id = 251;
	request_send(batch, &pol, XFRM_MSG_NEWPOLICY);
}

/* What may govern flow @n, which goes to 10.n.0.1: numbers of policies, 0: none. */
static const uint32_t governs[TRANSITION_FLOWS][3] = {
	[0] = {0, 0, 0},     /* nothing ever does */
	[1] = {1, 1, 1},     /* never changes: the sentinels */
	[2] = {2, 2, 2},     /* ... updated in place, at its priority */
	[3] = {3, 3, 3},     /* at another priority, still before one with the same key */
	[4] = {4, 4, 0},     /* deleted */
	[5] = {5, 105, 105}, /* a better one of a class of its own is added */
	[6] = {6, 6, 6},     /* a sub policy with an if_id comes and is flushed */
	[7] = {7, 7, 7},
};

/* One change of each kind. */
void transition_change(struct xspd_batch *batch)
{
	struct xspd_pol pol;

	pol = policy(2, 16, 10);
	pol.flags = XFRM_POLICY_ICMP;
	request_send(batch, &pol, XFRM_MSG_UPDPOLICY);
	pol = policy(101, 16, 20); /* host bits make it another policy under the same key */
	pol.sel.daddr.a4 = htonl(0x0a030001);
	request_send(batch, &pol, XFRM_MSG_NEWPOLICY);
	pol = policy(3, 16, 15);
	request_send(batch, &pol, XFRM_MSG_UPDPOLICY);
	pol = policy(4, 16, 10);
	request_send(batch, &pol, XFRM_MSG_DELPOLICY);
	pol = policy(105, 24, 5);
	pol.sel.daddr.a4 = htonl(0x0a050000);
	request_send(batch, &pol, XFRM_MSG_NEWPOLICY);
	for (uint32_t n = 110; n < 114; n++) { /* the last of their classes, and gone again */
		pol = policy(n, (uint8_t)(n - 93), 5);
		pol.type = n & 1;
		pol.if_id = n & 2 ? 7 : 0;
		request_send(batch, &pol, XFRM_MSG_NEWPOLICY);
	}
	pol = policy(110, 17, 5);
	request_send(batch, &pol, XFRM_MSG_DELPOLICY);
	tunnels_change(batch);
	request_flush(batch, XSPD_SUB);
	for (uint32_t n = 120; n < 120 + GROWTH; n++) {
		pol = policy(n, 20, 40);
		request_send(batch, &pol, XFRM_MSG_NEWPOLICY);
	}
}

struct xspd_answer transition_ask(const struct pinned *pinned, uint32_t n)
{
	struct xspd_flow flow = {.family = XSPD_INET, .dir = XSPD_OUT, .proto = IPPROTO_UDP};
	struct xspd_answer answer = {};

	flow.daddr[0] = n ? htonl(0x0a000001 + (n << 16)) : htonl(0xc0000201);
	cr_assert_eq(pinned_ask(pinned, &flow, &answer), 0);
	return answer;
}

static void tunnels_expect(const struct pinned *pinned, const char *when)
{
	for (uint32_t n = 0; n <= TUNNELS; n++) {
		struct xspd_flow flow = {
			.family = XSPD_INET, .dir = XSPD_STEER, .proto = IPPROTO_UDP};
		struct xspd_answer answer = {};
		bool right;

		flow.daddr[0] = htonl(0x0a000001 + ((240 + n) << 16));
		cr_assert_eq(pinned_ask(pinned, &flow, &answer), 0);
		right = answer.verdict == XSPD_DEFER && !answer.index2;
		for (int i = 0; i < 3; i++)
			right |= answer.index2 == tunnels[n][i];
		cr_assert(right, "%s: flow %u: if_id %u, verdict %u", when, 240 + n, answer.index2,
			  answer.verdict);
	}
}

void transition_expect(struct pinned *pinned, const char *when)
{
	if (pinned_follow(pinned))
		return; /* nothing was ever put into service */
	for (uint32_t n = 0; n < TRANSITION_FLOWS; n++) {
		struct xspd_answer answer = transition_ask(pinned, n);
		bool right = answer.verdict == XSPD_DEFER;

		for (int i = 0; i < 3; i++)
			right |=
				answer.index == (governs[n][i] ? governs[n][i] << 3 | XSPD_OUT : 0);
		cr_assert(right, "%s: flow %u: index %u, verdict %u", when, n, answer.index,
			  answer.verdict);
	}
	tunnels_expect(pinned, when);
}
