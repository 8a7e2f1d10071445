// SPDX-License-Identifier: GPL-2.0-only
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "lib/mirror.h"
#include "util.h"

#define MIRROR_RCVBUF (64 << 20)

static int mirror_listen(void *ctx, const struct xspd_change *change)
{
	struct mirror *mirror = ctx;
	int err = xspd_plane_change(mirror->plane, mirror->spd, change);

	mirror->changes++;
	if (err < 0 && !mirror->failed)
		mirror->failed = err;
	return err;
}

static int mirror_event(void *ctx, const struct xspd_event *event)
{
	struct mirror *mirror = ctx;
	struct xspd_spd *spd = mirror->spd;

	switch (event->kind) {
	case XSPD_EVENT_POLICY:
		return xspd_spd_upsert(spd, &event->pol);
	case XSPD_EVENT_REMOVE:
		return xspd_spd_remove(spd, event->pol.index);
	case XSPD_EVENT_FLUSH:
		return xspd_spd_flush(spd, event->type);
	case XSPD_EVENT_DEFAULTS:
		return xspd_spd_set_defaults(spd,
					     (spd->defaults & ~event->defaults_known) |
						     (event->defaults & event->defaults_known));
	case XSPD_EVENT_UNMODELLED:
	case XSPD_EVENT_ERROR:
		return -EBADMSG;
	default:
		return 0;
	}
}

static int mirror_entry(void *ctx, const struct xspd_event *event)
{
	struct mirror *mirror = ctx;

	return event->kind == XSPD_EVENT_POLICY ? xspd_spd_dump_entry(mirror->spd, &event->pol) : 0;
}

uint32_t mirror_add(struct mirror *mirror, struct xspd_pol pol)
{
	pol.index = mirror->next++ << 3 | pol.dir;
	cr_assert_eq(xspd_spd_upsert(mirror->spd, &pol), 0);
	return pol.index;
}

int mirror_drain(struct mirror *mirror)
{
	int got;

	do
		got = xspd_nl_recv(mirror->events, 1024, mirror_event, mirror);
	while (got > 0);
	return got < 0 ? got : mirror->failed;
}

int mirror_dump(struct mirror *mirror, struct xspd_spd_diff *ret)
{
	uint32_t defaults = 0;
	int err;

	err = xspd_spd_dump_begin(mirror->spd);
	if (!err)
		err = xspd_nl_dump(mirror->requests, mirror_entry, mirror);
	if (!err)
		err = xspd_nl_defaults(mirror->requests, &defaults);
	if (!err)
		err = xspd_spd_dump_end(mirror->spd, ret);
	if (!err)
		err = xspd_spd_set_defaults(mirror->spd, defaults);
	return err;
}

void mirror_beat(struct mirror *mirror)
{
	xspd_plane_beat(mirror->plane);
}

static int mirror_start(struct mirror *mirror, uint32_t groups, const struct xspd_plane_opts *opts)
{
	struct xspd_plane_opts with = *opts;
	struct xspd_spd_diff diff;
	int err;

	mirror->next = 1;
	mirror->spd = xspd_spd_new();
	if (!mirror->spd)
		return -errno;
	mirror->spd->old_order = !xspd_kernel_since(6, 12);
	with.ask |= !opts->pin; /* nobody could attach them */
	err = xspd_plane_new(&mirror->plane, &with);
	if (!err && groups)
		err = xspd_nl_open(&mirror->events, groups, MIRROR_RCVBUF);
	if (!err && groups)
		err = xspd_nl_open(&mirror->requests, 0, 0);
	if (!err && groups)
		err = mirror_dump(mirror, &diff);
	/* without pins, the set that a plane begins with serves as long as there is nothing in it
	 */
	if (!err && (mirror->spd->by_index || opts->pin))
		err = xspd_plane_build(mirror->plane, mirror->spd);
	if (err)
		return err;
	mirror->spd->listener = mirror_listen;
	mirror->spd->ctx = mirror;
	mirror_beat(mirror);
	xspd_plane_doubt(mirror->plane, 0, XSPD_DOUBT_START);
	return groups ? mirror_drain(mirror) : 0;
}

int mirror_new(struct mirror **ret, uint32_t groups, const struct xspd_plane_opts *opts)
{
	struct mirror *mirror = calloc(1, sizeof(*mirror));
	int err;

	if (!mirror)
		return -ENOMEM;
	err = mirror_start(mirror, groups, opts);
	if (err)
		mirror_free(mirror);
	else
		*ret = mirror;
	return err;
}

void mirror_free(struct mirror *mirror)
{
	if (!mirror)
		return;
	xspd_nl_free(mirror->events);
	xspd_nl_free(mirror->requests);
	xspd_plane_free(mirror->plane);
	xspd_spd_free(mirror->spd);
	free(mirror);
}

struct xspd_flow flow_make(uint8_t dir, const char *src, const char *dst, uint8_t proto,
			   uint16_t sport, uint16_t dport)
{
	struct xspd_flow flow = {.dir = dir,
				 .proto = proto,
				 .family = strchr(src, ':') ? XSPD_INET6 : XSPD_INET,
				 .sport = htons(sport),
				 .dport = htons(dport)};

	if (inet_pton(flow.family, src, flow.saddr) != 1 ||
	    inet_pton(flow.family, dst, flow.daddr) != 1)
		abort();
	return flow;
}

const struct xspd_pol *mirror_named(const struct mirror *mirror, uint32_t index)
{
	return index ? xspd_spd_find(mirror->spd, index) : NULL;
}

uint64_t mirror_hits(const struct mirror *mirror)
{
	int cpus = libbpf_num_possible_cpus(), map;
	xspd_autofree struct xspd_cache_cpu *cpu = calloc((size_t)cpus, sizeof(*cpu));
	uint32_t zero = 0;
	uint64_t sum = 0;

	map = xspd_plane_map_fd(mirror->plane, "xspd_cache_cpu");
	if (!cpu || bpf_map_lookup_elem(map, &zero, cpu) < 0)
		return UINT64_MAX;
	for (int i = 0; i < cpus; i++)
		sum += cpu[i].hits;
	return sum;
}
