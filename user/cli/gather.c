// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <bpf/bpf.h>

#include "cli/gather.h"
#include "cli/mode.h"
#include "plane/counts.h"
#include "util.h"

#define ATTEMPTS 5

/* In the order of the slots; an update may show a policy twice for a moment. */
static int policies_read(struct cli_gather *g, const struct cli_view *view)
{
	xspd_autofree struct xspd_count *counts = xspd_counts_read(view->count_fd, view->slots);

	g->policy = calloc(view->slots + 1, sizeof(*g->policy));
	if (!counts || !g->policy)
		return -ENOMEM;
	for (uint32_t slot = 1; slot < view->slots; slot++) {
		struct cli_counted *to = &g->policy[g->policies];

		if (!cli_view_info(view, slot, &to->info))
			continue;
		to->count = counts[slot];
		to->count.packets += to->info.base_packets;
		to->count.bytes += to->info.base_bytes;
		to->count.acted += to->info.base_acted;
		g->policies++;
	}
	return 0;
}

static struct cli_shape shape_of(const struct xspd_info *info)
{
	return (struct cli_shape){
		.dir = info->dir,
		.family = info->family,
		.dlen = info->dlen,
		.slen = info->slen,
		.proto = info->proto,
		.ports = info->sport_mask | info->dport_mask,
		.mark = info->mark_mask,
		.dev = info->ifindex,
		.if_id = info->if_id,
	};
}

static int shape_order(const void *a, const void *b)
{
	return memcmp(a, b, offsetof(struct cli_shape, policies));
}

static int shape_rank(const void *a, const void *b)
{
	const struct cli_shape *x = a, *y = b;

	return x->policies != y->policies
		       ? (x->policies < y->policies) - (x->policies > y->policies)
		       : shape_order(a, b);
}

static int shapes_make(struct cli_gather *g)
{
	size_t kept = 0;

	g->shape = calloc(g->policies + 1, sizeof(*g->shape));
	if (!g->shape)
		return -ENOMEM;
	for (size_t i = 0; i < g->policies; i++) {
		g->shape[i] = shape_of(&g->policy[i].info);
		g->shape[i].policies = 1;
		g->shape[i].packets = g->policy[i].count.packets;
	}
	qsort(g->shape, g->policies, sizeof(*g->shape), shape_order);
	for (size_t i = 0; i < g->policies; i++) {
		if (kept && !shape_order(&g->shape[kept - 1], &g->shape[i])) {
			g->shape[kept - 1].policies++;
			g->shape[kept - 1].packets += g->shape[i].packets;
		} else {
			g->shape[kept++] = g->shape[i];
		}
	}
	g->shapes = kept;
	qsort(g->shape, g->shapes, sizeof(*g->shape), shape_rank);
	return 0;
}

static int gather(struct cli_gather *g, const struct cli_view *view)
{
	int err;

	g->time = xspd_mono();
	g->cpus = view->cpus;
	memcpy(&g->conf, view->conf, sizeof(g->conf));
	g->alive = !(g->conf.doubt & XSPD_DOUBT_STOPPED) && g->conf.pid &&
		   (kill((pid_t)g->conf.pid, 0) == 0 || errno == EPERM);
	err = cli_view_stats(view, &g->stat[0][0][0]);
	err = err ?: cli_view_acts(view, &g->act[0][0]);
	cli_view_cache(view, &g->hits, &g->misses);
	err = err ?: policies_read(g, view);
	return err ?: shapes_make(g);
}

int cli_gather(struct cli_gather *ret, const char *instance)
{
	int err = -ESTALE;

	for (int i = 0; i < ATTEMPTS && err == -ESTALE; i++) {
		struct cli_gather g = {};
		struct cli_view view;

		err = cli_view_try(&view, instance);
		if (err)
			return err;
		err = gather(&g, &view);
		if (!err && cli_view_stale(&view) && i < ATTEMPTS - 1)
			err = -ESTALE;
		cli_view_close(&view);
		if (err)
			cli_gather_free(&g);
		else
			*ret = g;
	}
	return err;
}

void cli_gather_free(struct cli_gather *g)
{
	free(g->policy);
	free(g->shape);
	g->policy = NULL;
	g->shape = NULL;
}

static int busier(const void *a, const void *b)
{
	const struct cli_counted *x = a, *y = b;

	if (x->count.packets != y->count.packets)
		return x->count.packets < y->count.packets ? 1 : -1;
	return x->info.index < y->info.index ? -1 : x->info.index > y->info.index;
}

size_t cli_gather_top(struct cli_gather *g, size_t most)
{
	qsort(g->policy, g->policies, sizeof(*g->policy), busier);
	return g->policies < most ? g->policies : most;
}

void cli_shape_text(const struct cli_shape *shape, char *buf, size_t size)
{
	snprintf(buf, size, "src /%u dst /%u%s%s%s%s%s", shape->slen, shape->dlen,
		 shape->proto ? " proto" : "", shape->ports ? " ports" : "",
		 shape->mark ? " mark" : "", shape->dev ? " dev" : "",
		 shape->if_id ? " if_id" : "");
}
