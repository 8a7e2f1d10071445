// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <bpf/bpf.h>

#include "plane/ask.h"

/* At most XSPD_QUERY_MAX of them. */
static int ask_some(int fd, const struct xspd_flow *flows, size_t count, struct xspd_answer *ret)
{
	struct xspd_query query[XSPD_QUERY_MAX];
	uint32_t size = (uint32_t)(count * sizeof(*query));
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = query, .data_size_in = size,
		    .data_out = query, .data_size_out = size, .repeat = 1);

	for (size_t i = 0; i < count; i++)
		query[i] = (struct xspd_query){.flow = flows[i]};
	if (bpf_prog_test_run_opts(fd, &opts) < 0)
		return -errno;
	if (opts.data_size_out != size)
		return -EPROTO;
	for (size_t i = 0; i < count; i++) {
		if (query[i].answer.reason == XSPD_R_NONE)
			return -EPROTO;
		ret[i] = query[i].answer;
	}
	return 0;
}

int xspd_ask(int fd, const struct xspd_flow *flows, size_t count, struct xspd_answer *ret)
{
	int err = 0;

	for (size_t i = 0, n; i < count && !err; i += n) {
		n = count - i < XSPD_QUERY_MAX ? count - i : XSPD_QUERY_MAX;
		err = ask_some(fd, flows + i, n, ret + i);
	}
	return err;
}
