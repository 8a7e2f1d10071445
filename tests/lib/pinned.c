// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "lib/pinned.h"
#include "plane/ask.h"
#include "util.h"

void pinned_init(struct pinned *pinned, const char *dir)
{
	*pinned = (struct pinned){.query = -1, .count = -1};
	snprintf(pinned->dir, sizeof(pinned->dir), "%s", dir);
}

void pinned_close(struct pinned *pinned)
{
	if (pinned->conf)
		munmap((void *)pinned->conf, sizeof(*pinned->conf));
	if (pinned->info)
		munmap((void *)pinned->info, pinned->slots * sizeof(*pinned->info));
	xspd_closep(&pinned->query);
	xspd_closep(&pinned->count);
	pinned->conf = NULL;
	pinned->info = NULL;
	pinned->query = pinned->count = -1;
	pinned->set[0] = '\0';
}

static int get(const struct pinned *pinned, const char *set, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s/%s", pinned->dir, set, name);
	return bpf_obj_get(path);
}

static const void *map(int fd, size_t size)
{
	void *at = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);

	return at == MAP_FAILED ? NULL : at;
}

static int open_set(struct pinned *pinned, const char *set)
{
	xspd_autoclose int conf = get(pinned, set, "xspd_conf"),
			   info = get(pinned, set, "xspd_info");
	struct bpf_map_info about = {};
	__u32 len = sizeof(about);

	pinned->query = get(pinned, set, "xspd_query");
	pinned->count = get(pinned, set, "xspd_count");
	if (conf < 0 || info < 0 || pinned->query < 0 || pinned->count < 0 ||
	    bpf_obj_get_info_by_fd(info, &about, &len))
		return -ENOENT;
	pinned->slots = about.max_entries;
	pinned->conf = map(conf, sizeof(*pinned->conf));
	pinned->info = map(info, pinned->slots * sizeof(*pinned->info));
	return pinned->conf && pinned->info ? 0 : -ENOMEM;
}

int pinned_follow(struct pinned *pinned)
{
	char link[160], set[32];
	ssize_t len;
	int err;

	snprintf(link, sizeof(link), "%s/maps", pinned->dir);
	len = readlink(link, set, sizeof(set) - 1);
	set[len > 0 ? len : 0] = '\0';
	if (len > 0 && !strcmp(set, pinned->set))
		return 0;
	pinned_close(pinned);
	err = len > 0 ? open_set(pinned, set) : -ENOENT;
	if (err)
		pinned_close(pinned);
	else
		memcpy(pinned->set, set, sizeof(set));
	return err;
}

int pinned_ask(const struct pinned *pinned, const struct xspd_flow *flow, struct xspd_answer *ret)
{
	return xspd_ask(pinned->query, flow, 1, ret);
}

static uint32_t slot_of(const struct pinned *pinned, uint32_t index)
{
	for (uint32_t slot = 1; slot < pinned->slots; slot++)
		if (pinned->info[slot].index == index)
			return slot;
	return 0;
}

uint64_t pinned_packets(const struct pinned *pinned, uint32_t index)
{
	int cpus = libbpf_num_possible_cpus();
	xspd_autofree struct xspd_count *counts = calloc((size_t)cpus, sizeof(*counts));
	uint32_t slot = slot_of(pinned, index);
	uint64_t sum = pinned->info[slot].base_packets;

	if (!slot || !counts || bpf_map_lookup_elem(pinned->count, &slot, counts) < 0)
		return 0;
	for (int cpu = 0; cpu < cpus; cpu++)
		sum += counts[cpu].packets;
	return sum;
}

bool pinned_sure(const struct pinned *pinned)
{
	return pinned->conf && !__atomic_load_n(&pinned->conf->doubt, __ATOMIC_ACQUIRE) &&
	       __atomic_load_n(&pinned->conf->lease_until, __ATOMIC_ACQUIRE) >
		       xspd_now(CLOCK_MONOTONIC);
}

/* --- compare ------------------------------------------------------------------- */

struct compare {
	const struct pinned *pinned;
	uint32_t *slots; /* of the mirrored policies, by index */
	uint32_t count, seen, newer;
	char text[160];
};

static const struct pinned *sorting;

static int slot_order(const void *a, const void *b)
{
	uint32_t x = sorting->info[*(const uint32_t *)a].index,
		 y = sorting->info[*(const uint32_t *)b].index;

	return x < y ? -1 : x > y;
}

static int slot_find(const void *key, const void *slot)
{
	uint32_t x = *(const uint32_t *)key, y = sorting->info[*(const uint32_t *)slot].index;

	return x < y ? -1 : x > y;
}

static const char *tmpl_differs(const struct xspd_tmpl *tmpl, const struct xspd_info *info)
{
	if (info->reqid != tmpl->reqid)
		return "reqid";
	if (info->tmpl_count != tmpl->count || info->tmpl_required != tmpl->required)
		return "number of templates";
	if (info->tmpl_proto != tmpl->proto || info->tmpl_mode != tmpl->mode ||
	    info->tmpl_family != (uint8_t)tmpl->family)
		return "kind of template";
	if (memcmp(info->tmpl_daddr, tmpl->daddr, sizeof(info->tmpl_daddr)) ||
	    memcmp(info->tmpl_saddr, tmpl->saddr, sizeof(info->tmpl_saddr)))
		return "end points";
	return NULL;
}

static const char *differs(const struct xspd_pol *pol, const struct xspd_info *info)
{
	const struct xfrm_selector *sel = &pol->sel;

	if (memcmp(info->daddr, &sel->daddr, 16) || memcmp(info->saddr, &sel->saddr, 16) ||
	    info->dlen != sel->prefixlen_d || info->slen != sel->prefixlen_s)
		return "addresses";
	if (info->dport != sel->dport || info->dport_mask != sel->dport_mask ||
	    info->sport != sel->sport || info->sport_mask != sel->sport_mask)
		return "ports";
	if (info->proto != sel->proto || info->ifindex != (uint32_t)sel->ifindex ||
	    info->family != sel->family || info->user != sel->user)
		return "protocol, device, family or user";
	if (info->dir != pol->dir || info->type != pol->type || info->if_id != pol->if_id)
		return "direction, type or if_id";
	if (info->mark != pol->mark || info->mark_mask != pol->mark_mask)
		return "mark";
	if (info->priority != pol->priority)
		return "priority";
	if (info->action != pol->action || info->flags != pol->flags)
		return "action or flags";
	return tmpl_differs(&pol->tmpl, info);
}

static int entry_compare(void *ctx, const struct xspd_event *event)
{
	struct compare *compare = ctx;
	const struct xspd_info *info;
	const uint32_t *slot;
	const char *what;

	if (event->kind != XSPD_EVENT_POLICY)
		return -EBADMSG;
	compare->seen++;
	if (compare->text[0])
		return 0;
	slot = bsearch(&event->pol.index, compare->slots, compare->count, sizeof(*slot), slot_find);
	info = slot ? &compare->pinned->info[*slot] : NULL;
	what = info ? differs(&event->pol, info) : "not mirrored";
	if (!what && info->pos >= compare->newer) /* newest first */
		what = "order";
	if (what)
		snprintf(compare->text, sizeof(compare->text), "index %u: %s", event->pol.index,
			 what);
	else
		compare->newer = info->pos;
	return 0;
}

const char *pinned_compare(const struct pinned *pinned, struct xspd_nl *requests)
{
	static struct compare compare;
	xspd_autofree uint32_t *slots = calloc(pinned->slots, sizeof(*slots));
	int err;

	if (!slots)
		return "out of memory";
	compare = (struct compare){.pinned = pinned, .slots = slots, .newer = UINT32_MAX};
	sorting = pinned;
	for (uint32_t slot = 1; slot < pinned->slots; slot++)
		if (__atomic_load_n(&pinned->info[slot].index, __ATOMIC_ACQUIRE))
			slots[compare.count++] = slot;
	qsort(slots, compare.count, sizeof(*slots), slot_order);
	err = xspd_nl_dump(requests, entry_compare, &compare);
	if (err < 0)
		return strerror(-err);
	if (!compare.text[0] && compare.seen != compare.count)
		snprintf(compare.text, sizeof(compare.text), "%u policies, mirrored %u",
			 compare.seen, compare.count);
	return compare.text[0] ? compare.text : NULL;
}
