// SPDX-License-Identifier: GPL-2.0-only
#include <arpa/inet.h>
#include <errno.h>
#include <linux/xfrm.h>
#include <libmnl/libmnl.h>
#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/oracle.h"
#include "lib/oracle_send.h"
#include "util.h"

#define ORACLE_BATCH	  128	     /* questions per sendmsg() */
#define ORACLE_LARVAL	  256	     /* of oracle_send(), before they are flushed */
#define ORACLE_REQID_NONE 0xfffffffe /* no test policy has it */

struct oracle {
	int fd;
	uint32_t seq;
	unsigned int larval;	      /* SAs that oracle_send() has left behind */
	struct oracle_sender *sender; /* opened when first asked */
	char buf[ORACLE_BATCH * 256];
};

static int oracle_socket(void)
{
	struct sockaddr_nl addr = {.nl_family = AF_NETLINK};
	xspd_autoclose int fd = -1;
	int one = 1, size = 4 << 20;

	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_XFRM);
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
	    setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &one, sizeof(one)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0)
		return -errno;
	return xspd_take_fd(&fd);
}

int oracle_new(struct oracle **ret)
{
	xspd_autofree struct oracle *oracle = calloc(1, sizeof(*oracle));

	if (!oracle)
		return -ENOMEM;
	oracle->fd = oracle_socket();
	if (oracle->fd < 0)
		return oracle->fd;
	*ret = xspd_take(oracle);
	return 0;
}

void oracle_free(struct oracle *oracle)
{
	if (!oracle)
		return;
	oracle_sender_free(oracle->sender);
	close(oracle->fd);
	free(oracle);
}

bool oracle_migrates(void)
{
	return xspd_kernel_since(6, 12);
}

int oracle_request(struct oracle *oracle, struct nlmsghdr *nlh)
{
	char buf[8192];
	struct nlmsghdr *reply = (struct nlmsghdr *)buf;
	ssize_t len;

	nlh->nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
	nlh->nlmsg_seq = ++oracle->seq;
	if (send(oracle->fd, nlh, nlh->nlmsg_len, 0) < 0)
		return -errno;
	do {
		len = recv(oracle->fd, buf, sizeof(buf), 0);
		if (len < 0)
			return -errno;
	} while (reply->nlmsg_seq != oracle->seq || reply->nlmsg_type != NLMSG_ERROR);
	return ((struct nlmsgerr *)NLMSG_DATA(reply))->error;
}

int oracle_flush_states(struct oracle *oracle)
{
	char buf[64] = {};
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct xfrm_usersa_flush *flush = mnl_nlmsg_put_extra_header(nlh, sizeof(*flush));
	int err;

	nlh->nlmsg_type = XFRM_MSG_FLUSHSA;
	flush->proto = 255; /* IPSEC_PROTO_ANY */
	err = oracle_request(oracle, nlh);
	oracle->larval = 0;
	return err == -ESRCH ? 0 : err;
}

int oracle_set_default(struct oracle *oracle, uint8_t dir, uint8_t action)
{
	char buf[64] = {};
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct xfrm_userpolicy_default *def = mnl_nlmsg_put_extra_header(nlh, sizeof(*def));
	uint8_t value = action == XSPD_BLOCK ? XFRM_USERPOLICY_BLOCK : XFRM_USERPOLICY_ACCEPT;

	nlh->nlmsg_type = XFRM_MSG_SETDEFAULT;
	if (dir == XSPD_IN)
		def->in = value;
	else if (dir == XSPD_OUT)
		def->out = value;
	else
		def->fwd = value;
	return oracle_request(oracle, nlh);
}

int oracle_set_hthresh(struct oracle *oracle, const struct oracle_hthresh *bits)
{
	char buf[64] = {};
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	uint32_t *flags = mnl_nlmsg_put_extra_header(nlh, sizeof(*flags));
	struct xfrmu_spdhthresh v4 = {bits->lbits4, bits->rbits4};
	struct xfrmu_spdhthresh v6 = {bits->lbits6, bits->rbits6};

	*flags = 0xffffffff;
	nlh->nlmsg_type = XFRM_MSG_NEWSPDINFO;
	mnl_attr_put(nlh, XFRMA_SPD_IPV4_HTHRESH, sizeof(v4), &v4);
	mnl_attr_put(nlh, XFRMA_SPD_IPV6_HTHRESH, sizeof(v6), &v6);
	return oracle_request(oracle, nlh);
}

int oracle_get_hthresh(struct oracle *oracle, struct oracle_hthresh *ret)
{
	char buf[1024] = {};
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	uint32_t *flags = mnl_nlmsg_put_extra_header(nlh, sizeof(*flags));
	struct oracle_hthresh bits = {};
	const struct xfrmu_spdhthresh *value;
	const struct nlattr *attr;
	ssize_t len;

	*flags = 0xffffffff;
	nlh->nlmsg_type = XFRM_MSG_GETSPDINFO;
	nlh->nlmsg_flags = NLM_F_REQUEST;
	nlh->nlmsg_seq = ++oracle->seq;
	if (send(oracle->fd, nlh, nlh->nlmsg_len, 0) < 0)
		return -errno;
	len = recv(oracle->fd, buf, sizeof(buf), 0);
	if (len < 0)
		return -errno;
	if (!mnl_nlmsg_ok(nlh, len) || nlh->nlmsg_type != XFRM_MSG_NEWSPDINFO)
		return -EBADMSG;
	mnl_attr_for_each (attr, nlh, sizeof(*flags)) {
		value = mnl_attr_get_payload(attr);
		if (mnl_attr_get_type(attr) == XFRMA_SPD_IPV4_HTHRESH) {
			bits.lbits4 = value->lbits;
			bits.rbits4 = value->rbits;
		} else if (mnl_attr_get_type(attr) == XFRMA_SPD_IPV6_HTHRESH) {
			bits.lbits6 = value->lbits;
			bits.rbits6 = value->rbits;
		}
	}
	*ret = bits;
	return 0;
}

/*
 * MIGRATE copies the two port words of the selector into the flow's union as they
 * lie there: dport first.  ICMP's type and code are its first two bytes, a GRE
 * key is both words, high half first; protocols without ports ignore them.
 */
static void oracle_put_ports(struct xfrm_selector *sel, const struct xspd_flow *flow)
{
	switch (flow->proto) {
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		sel->dport = htons((ntohs(flow->sport) & 0xff) << 8 | (ntohs(flow->dport) & 0xff));
		break;
	case IPPROTO_GRE:
		sel->dport = flow->sport;
		sel->sport = flow->dport;
		break;
	default:
		sel->dport = flow->dport;
		sel->sport = flow->sport;
	}
}

static struct nlmsghdr *oracle_put(void *buf, const struct oracle_probe *probe, uint32_t seq)
{
	const struct xspd_flow *flow = probe->flow;
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct xfrm_userpolicy_id *id = mnl_nlmsg_put_extra_header(nlh, sizeof(*id));
	struct xfrm_userpolicy_type type = {.type = probe->type};
	struct xfrm_user_migrate migrate = {
		.proto = IPPROTO_ESP,
		.mode = XFRM_MODE_TRANSPORT,
		.reqid = probe->reqid ? probe->reqid : ORACLE_REQID_NONE,
		.old_family = flow->family,
		.new_family = flow->family,
	};

	memset(id, 0, sizeof(*id));
	memcpy(&id->sel.daddr, flow->daddr, sizeof(flow->daddr));
	memcpy(&id->sel.saddr, flow->saddr, sizeof(flow->saddr));
	id->sel.family = flow->family;
	id->sel.proto = flow->proto;
	id->sel.ifindex = (int)flow->oif;
	oracle_put_ports(&id->sel, flow);
	id->dir = probe->dir;
	/* any address but 0 does: transport mode compares and changes none */
	memset(&migrate.old_daddr, 1, sizeof(migrate.old_daddr));
	memset(&migrate.old_saddr, 2, sizeof(migrate.old_saddr));
	migrate.new_daddr = migrate.old_daddr;
	migrate.new_saddr = migrate.old_saddr;

	nlh->nlmsg_type = XFRM_MSG_MIGRATE;
	nlh->nlmsg_flags = NLM_F_REQUEST; /* no ack: only refusals are answered */
	nlh->nlmsg_seq = seq;
	mnl_attr_put(nlh, XFRMA_POLICY_TYPE, sizeof(type), &type);
	mnl_attr_put(nlh, XFRMA_MIGRATE, sizeof(migrate), &migrate);
	if (flow->if_id)
		mnl_attr_put_u32(nlh, XFRMA_IF_ID, flow->if_id);
	return nlh;
}

/* The kernel has answered everything by the time send() returns. */
static int oracle_collect(struct oracle *oracle, struct oracle_probe *probes, size_t count)
{
	char bufs[32][128];
	struct iovec iov[32];
	struct mmsghdr msgs[32] = {};
	int got;

	for (int i = 0; i < 32; i++) {
		iov[i] = (struct iovec){bufs[i], sizeof(bufs[i])};
		msgs[i].msg_hdr.msg_iov = &iov[i];
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
	while ((got = recvmmsg(oracle->fd, msgs, 32, MSG_DONTWAIT, NULL)) > 0) {
		for (int i = 0; i < got; i++) {
			const struct nlmsghdr *nlh = (void *)bufs[i];
			const struct nlmsgerr *error = NLMSG_DATA(nlh);
			uint32_t at = nlh->nlmsg_seq - (oracle->seq + 1);

			if (nlh->nlmsg_type != NLMSG_ERROR || at >= count)
				return -EBADMSG;
			probes[at].err = error->error;
		}
	}
	return got < 0 && errno != EAGAIN ? -errno : 0;
}

static int oracle_ask_some(struct oracle *oracle, struct oracle_probe *probes, size_t count)
{
	size_t len = 0;
	int err;

	for (size_t i = 0; i < count; i++) {
		assert(probes[i].flow->mark == 0);
		probes[i].err = 0;
		len += oracle_put(oracle->buf + len, &probes[i], oracle->seq + 1 + i)->nlmsg_len;
	}
	if (send(oracle->fd, oracle->buf, len, 0) < 0)
		return -errno;
	err = oracle_collect(oracle, probes, count);
	oracle->seq += count;
	for (size_t i = 0; i < count && !err; i++) {
		if (probes[i].err != 0 && probes[i].err != -ENODATA && probes[i].err != -ENOENT)
			return probes[i].err;
		if (probes[i].reqid == 0)
			probes[i].err = probes[i].err == -ENOENT ? 0 : -ENODATA;
	}
	return err;
}

int oracle_ask(struct oracle *oracle, struct oracle_probe *probes, size_t count)
{
	size_t some;
	int err = 0;

	for (size_t at = 0; at < count && !err; at += some) {
		some = count - at < ORACLE_BATCH ? count - at : ORACLE_BATCH;
		err = oracle_ask_some(oracle, probes + at, some);
	}
	return err;
}

int oracle_winner(struct oracle *oracle, const struct xspd_flow *flow, uint8_t dir, uint8_t type,
		  const uint32_t *reqids, size_t count, uint32_t *ret)
{
	struct oracle_probe probe = {.flow = flow, .dir = dir, .type = type};
	int err = oracle_ask(oracle, &probe, 1);

	if (err || probe.err == 0) {
		*ret = 0;
		return err;
	}
	for (size_t i = 0; i < count; i++) {
		probe.reqid = reqids[i];
		err = oracle_ask(oracle, &probe, 1);
		if (err)
			return err;
		if (probe.err == 0) {
			*ret = reqids[i];
			return 0;
		}
	}
	*ret = UINT32_MAX;
	return 0;
}

/* A larval SA keeps a like flow from asking again, so silence counts only when there is none. */
int oracle_send(struct oracle *oracle, const struct xspd_flow *flow, uint32_t *ret_index)
{
	uint32_t index = 0;
	int err = 0;

	if (!oracle->sender)
		err = oracle_sender_new(&oracle->sender);
	if (!err)
		err = oracle_sender_ask(oracle->sender, flow, &index);
	if (!err && !index && oracle->larval) {
		err = oracle_flush_states(oracle);
		if (!err)
			err = oracle_sender_ask(oracle->sender, flow, &index);
	}
	if (!err && index && ++oracle->larval >= ORACLE_LARVAL)
		err = oracle_flush_states(oracle);
	if (!err)
		*ret_index = index;
	return err;
}
