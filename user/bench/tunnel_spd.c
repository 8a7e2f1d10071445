// SPDX-License-Identifier: GPL-2.0-only
/* The SAs and policies of a gateway with many tunnels. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "bench/tunnel.h"
#include "nl/nl.h"
#include "nl/socket.h"
#include "spd/policy.h"

struct writer {
	struct xspd_nl *nl;
	struct xspd_batch *batch;
	int failed; /* the first refusal */
};

static void refused(void *ctx, uint32_t seq, int error, const char *extack)
{
	struct writer *writer = ctx;

	(void)seq;
	(void)extack;
	if (!writer->failed)
		writer->failed = error;
}

static int writer_open(struct writer *writer)
{
	int err = xspd_nl_open(&writer->nl, 0, 1 << 20);

	return err ?: xspd_batch_new(&writer->batch, writer->nl, refused, writer);
}

static int writer_close(struct writer *writer, int err)
{
	if (!err)
		err = xspd_batch_flush(writer->batch);
	xspd_batch_free(writer->batch);
	xspd_nl_free(writer->nl);
	return err < 0 ? err : writer->failed;
}

static struct nlmsghdr *alg_put(struct nlmsghdr *nlh, uint16_t attr, const char *name)
{
	struct xfrm_algo alg = {};

	strncpy(alg.alg_name, name, sizeof(alg.alg_name) - 1);
	mnl_attr_put(nlh, attr, sizeof(alg), &alg);
	return nlh;
}

static int state_put(struct writer *writer, bool out, bool first, uint32_t n,
		     enum xspd_tunnel_way way)
{
	bool forth = out == first; /* from the first gateway to the second */
	struct xfrm_usersa_info info = {
		.family = AF_INET,
		.mode = XFRM_MODE_TUNNEL,
		.reqid = n,
		.id = {.proto = IPPROTO_ESP, .spi = htonl((forth ? 0x100000 : 0x200000) + n)},
		.lft = {XFRM_INF, XFRM_INF, XFRM_INF, XFRM_INF, 0, 0, 0, 0},
		.sel.family = AF_INET,
	};
	struct nlmsghdr *nlh;
	uint32_t seq;
	void *room = xspd_batch_room(writer->batch, &seq);

	if (!room)
		return -errno;
	info.saddr.a4 = htonl(0xc0000201 + !forth);
	info.id.daddr.a4 = htonl(0xc0000201 + forth);
	nlh = xspd_nl_header(room, XFRM_MSG_NEWSA, NLM_F_REQUEST, seq);
	memcpy(mnl_nlmsg_put_extra_header(nlh, sizeof(info)), &info, sizeof(info));
	alg_put(nlh, XFRMA_ALG_CRYPT, "ecb(cipher_null)");
	alg_put(nlh, XFRMA_ALG_AUTH, "digest_null");
	if (way == XSPD_TUNNEL_INTERFACES || way == XSPD_TUNNEL_STEER)
		mnl_attr_put_u32(nlh, XFRMA_IF_ID, n);
	if (way == XSPD_TUNNEL_MARKS && !out) {
		mnl_attr_put_u32(nlh, XFRMA_SET_MARK, n);
		mnl_attr_put_u32(nlh, XFRMA_SET_MARK_MASK, ~0u);
	}
	xspd_batch_commit(writer->batch, nlh);
	return 0;
}

static int policy_put(struct writer *writer, uint8_t dir, bool first, uint32_t n,
		      enum xspd_tunnel_way way)
{
	bool forth = (dir == XSPD_OUT) == first;
	struct xspd_pol pol = {.dir = dir, .priority = 10, .sel.family = AF_INET};
	uint32_t seq;
	void *room = xspd_batch_room(writer->batch, &seq);

	if (!room)
		return -errno;
	if (way != XSPD_TUNNEL_INTERFACES) {
		/* with marks: too wide to be told apart, yet no policy for what comes out again */
		bool all = way == XSPD_TUNNEL_MARKS;
		xfrm_address_t *client = forth ? &pol.sel.saddr : &pol.sel.daddr;
		xfrm_address_t *server = forth ? &pol.sel.daddr : &pol.sel.saddr;

		client->a4 = htonl(0x0a010000);
		server->a4 = htonl(0x0a800000 + (all ? 0 : n << 8));
		pol.sel.prefixlen_s = all && !forth ? 9 : 24;
		pol.sel.prefixlen_d = all && forth ? 9 : 24;
	}
	if (way == XSPD_TUNNEL_INTERFACES || way == XSPD_TUNNEL_STEER)
		pol.if_id = n;
	if (way == XSPD_TUNNEL_MARKS) {
		pol.mark = n;
		pol.mark_mask = ~0u;
	}
	pol.tmpl = (struct xspd_tmpl){.reqid = n,
				      .family = AF_INET,
				      .proto = IPPROTO_ESP,
				      .mode = XFRM_MODE_TUNNEL,
				      .count = 1,
				      .required = 1};
	pol.tmpl.saddr[0] = htonl(0xc0000201 + !forth);
	pol.tmpl.daddr[0] = htonl(0xc0000201 + forth);
	xspd_batch_commit(writer->batch,
			  xspd_nl_put_policy(room, &pol, XFRM_MSG_NEWPOLICY, NLM_F_REQUEST, seq));
	return 0;
}

int xspd_tunnel_fill(enum xspd_tunnel_way way, uint32_t tunnels, bool first)
{
	struct writer writer = {};
	int err = writer_open(&writer);

	if (way == XSPD_TUNNEL_PLAIN)
		tunnels = 0;
	for (uint32_t n = 1; n <= tunnels && !err; n++) {
		err = state_put(&writer, true, first, n, way);
		err = err ?: state_put(&writer, false, first, n, way);
		err = err ?: policy_put(&writer, XSPD_OUT, first, n, way);
		err = err ?: policy_put(&writer, XSPD_FWD, first, n, way);
	}
	return writer_close(&writer, err);
}

int xspd_tunnel_sas(uint32_t count)
{
	struct writer writer = {};
	int err = writer_open(&writer);

	for (uint32_t n = 1; n <= count && !err; n++)
		err = state_put(&writer, true, true, n, XSPD_TUNNEL_POLICY);
	return writer_close(&writer, err);
}
