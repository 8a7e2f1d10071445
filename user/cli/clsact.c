// SPDX-License-Identifier: GPL-2.0-only
/* tc filters on kernels without TCX, by libbpf. */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <bpf/libbpf.h>

#include "cli/hook.h"
#include "util.h"

/* Fixed, so that two attachments collide, and a filter can be told by sight. */
#define CLSACT_HANDLE	1
#define CLSACT_PRIORITY 88

static struct bpf_tc_hook tc_hook(const struct cli_hook *hook)
{
	return (struct bpf_tc_hook){
		.sz = sizeof(struct bpf_tc_hook),
		.ifindex = (int)hook->ifindex,
		.attach_point = hook->hook == XSPD_HOOK_INGRESS ? BPF_TC_INGRESS : BPF_TC_EGRESS,
	};
}

int cli_clsact_attach(const struct cli_hook *hook, int prog_fd)
{
	LIBBPF_OPTS(bpf_tc_opts, opts, .prog_fd = prog_fd, .handle = CLSACT_HANDLE,
		    .priority = CLSACT_PRIORITY);
	struct bpf_tc_hook tc = tc_hook(hook);

	return bpf_tc_attach(&tc, &opts);
}

int cli_clsact_detach(const struct cli_hook *hook, uint32_t prog_id)
{
	LIBBPF_OPTS(bpf_tc_opts, found, .handle = CLSACT_HANDLE, .priority = CLSACT_PRIORITY);
	LIBBPF_OPTS(bpf_tc_opts, opts, .handle = CLSACT_HANDLE, .priority = CLSACT_PRIORITY);
	struct bpf_tc_hook tc = tc_hook(hook);
	int err = bpf_tc_query(&tc, &found);

	/* no qdisc, no filter, or somebody else's: nothing of ours is there */
	if (err == -ENOENT || err == -EINVAL || err == -ENODEV)
		return 0;
	if (!err && found.prog_id != prog_id)
		return 0;
	return err ? err : bpf_tc_detach(&tc, &opts);
}

static int count_filter(const struct nlmsghdr *nlh, void *ctx)
{
	if (nlh->nlmsg_type == RTM_NEWTFILTER)
		++*(unsigned int *)ctx;
	return MNL_CB_OK;
}

/* Filters under one side of the qdisc; a negative errno if they cannot be told. */
static int count_filters(struct mnl_socket *nl, uint32_t ifindex, uint32_t parent)
{
	char buf[MNL_SOCKET_BUFFER_SIZE];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct tcmsg *tcm;
	unsigned int count = 0;
	ssize_t len;
	int run;

	nlh->nlmsg_type = RTM_GETTFILTER;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	nlh->nlmsg_seq = parent;
	tcm = mnl_nlmsg_put_extra_header(nlh, sizeof(*tcm));
	tcm->tcm_family = AF_UNSPEC;
	tcm->tcm_ifindex = (int)ifindex;
	tcm->tcm_parent = parent;
	if (mnl_socket_sendto(nl, nlh, nlh->nlmsg_len) < 0)
		return -errno;
	do {
		len = mnl_socket_recvfrom(nl, buf, sizeof(buf));
		if (len < 0)
			return -errno;
		run = mnl_cb_run(buf, (size_t)len, parent, mnl_socket_get_portid(nl), count_filter,
				 &count);
	} while (run > 0);
	return run < 0 ? -errno : (int)count;
}

void cli_clsact_tidy(const struct cli_hook *hook)
{
	struct bpf_tc_hook tc = tc_hook(hook);
	struct mnl_socket *nl;

	if (!hook->made_qdisc)
		return;
	nl = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	if (!nl)
		return;
	tc.attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS; /* both: the qdisc itself */
	if (mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) == 0 &&
	    count_filters(nl, hook->ifindex, TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS)) == 0 &&
	    count_filters(nl, hook->ifindex, TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS)) == 0)
		bpf_tc_hook_destroy(&tc);
	mnl_socket_close(nl);
}
