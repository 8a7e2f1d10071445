// SPDX-License-Identifier: GPL-2.0-only
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <libmnl/libmnl.h>

#include "lib/writer.h"
#include "nl/nl.h"

struct xspd_pol writer_pol(uint32_t who, uint32_t n, struct gen *with)
{
	struct xspd_pol pol = {.dir = n % XSPD_DIR_MAX_, .priority = 2 + gen_below(with, 20)};

	pol.type = n % 5 == 0;
	pol.sel.family = n % 4 ? AF_INET : AF_INET6;
	pol.sel.saddr.a6[0] = htonl(n % 4 ? 0x0b000000 + n * 7 : 0x20010db8 + n);
	pol.sel.prefixlen_s = n % 33;
	pol.sel.daddr.a6[0] = n % 4 ? htonl(0x0a000000 + (n << 8)) : htonl(0x20010db8);
	pol.sel.prefixlen_d = pol.type ? (n % 4 ? 24 : 32) : n % 25;
	if (pol.type && n % 4 == 0)
		pol.sel.daddr.a6[0] = htonl(0x20020000 + n);
	pol.sel.dport = htons(n);
	pol.sel.dport_mask = n % 6 ? 0 : 0xff0f;
	pol.sel.proto = n % 6 ? 0 : IPPROTO_UDP;
	pol.sel.user = who + 1; /* the writers' policies are never the same */
	pol.mark_mask = n % 7 ? 0 : 0xf;
	pol.mark = n & pol.mark_mask;
	pol.if_id = n % 9 ? 0 : n % 32;
	pol.action = gen_chance(with, 30);
	pol.tmpl = (struct xspd_tmpl){.reqid = gen_next(with), .proto = IPPROTO_ESP, .mode = 1};
	pol.tmpl.count = pol.tmpl.required = 1;
	pol.tmpl.family = pol.sel.family;
	pol.tmpl.daddr[0] = htonl(0xc0000200 + gen_below(with, 256));
	return pol;
}

/* Without its policies' indexes a writer cannot delete by index: it is told at each dump. */
struct writer {
	uint32_t who;
	struct gen gen;
	struct writer_shared *shared;
	struct xspd_nl *nl;
	struct xspd_batch *batch;
	uint32_t index[WRITER_POLICIES];
	int sock;
};

static int index_note(void *ctx, const struct xspd_event *event)
{
	struct writer *w = ctx;

	if (event->kind == XSPD_EVENT_POLICY && event->pol.sel.user == w->who + 1)
		w->index[ntohs(event->pol.sel.dport) % WRITER_POLICIES] = event->pol.index;
	return 0;
}

static void socket_policy(struct writer *w)
{
	struct xfrm_userpolicy_info info = {.action = XFRM_POLICY_ALLOW};

	if (w->sock >= 0) {
		close(w->sock);
		w->sock = -1;
		return;
	}
	w->sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	info.sel.family = AF_INET;
	info.dir = gen_below(&w->gen, 2);
	setsockopt(w->sock, SOL_IP, IP_XFRM_POLICY, &info, sizeof(info));
	w->shared->sockets++;
}

static struct nlmsghdr *timed(struct writer *w, struct nlmsghdr *nlh)
{
	struct xfrm_userpolicy_info *info = mnl_nlmsg_get_payload(nlh);

	info->lft.hard_add_expires_seconds = 1;
	w->shared->timers++;
	return nlh;
}

static void change(struct writer *w)
{
	uint32_t n = gen_below(&w->gen, WRITER_POLICIES), seq, dice = gen_below(&w->gen, 1000);
	struct xspd_pol pol = writer_pol(w->who, n, &w->gen);
	void *room = xspd_batch_room(w->batch, &seq);
	struct nlmsghdr *nlh;

	if (!room)
		abort();
	if (dice < 350) {
		nlh = xspd_nl_put_policy(room, &pol, XFRM_MSG_NEWPOLICY, 0, seq);
	} else if (dice < 650) {
		nlh = xspd_nl_put_policy(room, &pol, XFRM_MSG_UPDPOLICY, 0, seq);
	} else if (dice < 850) {
		nlh = xspd_nl_put_delete(room, &pol, false, 0, seq);
	} else if (dice < 950) {
		pol.index = w->index[n];
		nlh = pol.index ? xspd_nl_put_delete(room, &pol, true, 0, seq)
				: xspd_nl_put_policy(room, &pol, XFRM_MSG_NEWPOLICY, 0, seq);
	} else if (dice < 999) {
		nlh = timed(w, xspd_nl_put_policy(room, &pol, XFRM_MSG_UPDPOLICY, 0, seq));
	} else {
		nlh = xspd_nl_put_flush(room, XSPD_SUB, 0, seq);
		w->shared->flushes++;
	}
	xspd_batch_commit(w->batch, nlh);
	if (dice == 350)
		socket_policy(w);
	w->shared->changes[w->who]++;
}

void writer_run(uint32_t who, const struct gen *gen, struct writer_shared *shared)
{
	struct writer w = {.who = who, .gen = *gen, .shared = shared, .sock = -1};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	w.gen.state += who + 1;
	/* refusals are part of it: what is there already, what is not */
	if (xspd_nl_open(&w.nl, 0, 1 << 20) || xspd_batch_new(&w.batch, w.nl, NULL, NULL))
		_exit(1);
	while (!shared->stop) {
		for (uint32_t left = 1 + gen_below(&w.gen, 500); left; left--)
			change(&w);
		xspd_batch_flush(w.batch);
		if (gen_chance(&w.gen, 1))
			xspd_nl_dump(w.nl, index_note, &w);
		if (shared->gentle)
			usleep(20000 + gen_below(&w.gen, 150000));
		shared->paused[who] = shared->pause;
		while (shared->pause && !shared->stop)
			usleep(2000);
		shared->paused[who] = false;
	}
	_exit(0);
}
