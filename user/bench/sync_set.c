// SPDX-License-Identifier: GPL-2.0-only
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

#include "bench/sync.h"
#include "util.h"

struct place {
	unsigned int net, third, src, dst;
};

/* 32 policies from one /30 to different ones, 32 back, then the next third byte, then second. */
static struct place place_of(uint32_t i)
{
	unsigned int step = 1 + i % 32 * 8;
	bool back = i / 32 % 2;

	return (struct place){
		.net = 1 + i / 64 / 255,
		.third = 1 + i / 64 % 255,
		.src = back ? step : 0,
		.dst = back ? 0 : step,
	};
}

void xspd_sync_pol(uint32_t i, struct xspd_pol *ret)
{
	struct place p = place_of(i);
	struct xspd_pol pol = {.dir = XSPD_OUT, .action = XSPD_BLOCK};

	pol.sel.family = AF_INET;
	pol.sel.saddr.a4 = htonl(10u << 24 | p.net << 16 | p.third << 8 | p.src);
	pol.sel.daddr.a4 = htonl(10u << 24 | (p.net + 100) << 16 | p.third << 8 | p.dst);
	pol.sel.prefixlen_s = pol.sel.prefixlen_d = 30;
	*ret = pol;
}

int xspd_sync_batch_file(uint32_t count, const char *path)
{
	xspd_autofclose FILE *file = fopen(path, "we");

	if (!file)
		return -errno;
	for (uint32_t i = 0; i < count; i++) {
		struct place p = place_of(i);

		fprintf(file,
			"xfrm policy add src 10.%u.%u.%u/30 dst 10.%u.%u.%u/30 dir out action "
			"block\n",
			p.net, p.third, p.src, p.net + 100, p.third, p.dst);
	}
	return fflush(file) || ferror(file) ? -EIO : 0;
}
