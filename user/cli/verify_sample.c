// SPDX-License-Identifier: GPL-2.0-only
/* Reading both sides for `xspd verify`. */
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <linux/xfrm.h>
#include <bpf/bpf.h>

#include "cli/cli.h"
#include "cli/hook.h"
#include "cli/mode.h"
#include "cli/verify.h"
#include "cli/view.h"
#include "nl/nl.h"
#include "util.h"

/* From a hook to the check it takes far less, unless the machine is overwhelmed. */
#define SETTLE_NS 50000000

const char *const verify_stat_names[VERIFY_STAT_MAX_] = {"XfrmInPolBlock", "XfrmInNoPols",
							 "XfrmInTmplMismatch", "XfrmOutPolBlock"};

/* --- xspd's side --------------------------------------------------------------- */

static int row_add(struct verify_side *side, const struct verify_row *row)
{
	if (side->rows == side->room) {
		size_t room = side->room ? side->room * 2 : 64;
		struct verify_row *grown = reallocarray(side->row, room, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		side->row = grown;
		side->room = room;
	}
	side->row[side->rows++] = *row;
	return 0;
}

static int row_compare(const void *a, const void *b)
{
	const struct verify_row *x = a, *y = b;

	return x->info.index < y->info.index ? -1 : x->info.index > y->info.index;
}

static int rows_read(struct verify_side *side, const struct cli_view *view)
{
	struct verify_row row = {};
	struct xspd_count count;
	int err = 0;

	for (uint32_t slot = 1; slot < view->slots && !err; slot++) {
		if (!cli_view_info(view, slot, &row.info))
			continue;
		err = cli_view_count(view, slot, &row.info, &count);
		row.packets = count.packets;
		row.acted = count.acted;
		err = err ?: row_add(side, &row);
	}
	if (side->rows)
		qsort(side->row, side->rows, sizeof(*side->row), row_compare);
	return err;
}

/* Sums over CPUs of xspd_act. */
static int acts_read(struct verify_side *side, const struct cli_view *view)
{
	xspd_autoclose int fd = cli_lasting_open(view->instance, "xspd_act");
	struct xspd_stat cpu[view->cpus];

	if (fd < 0)
		return -ENOENT;
	for (uint32_t key = 0; key < XSPD_HOOK_MAX_ * XSPD_A_MAX_; key++) {
		if (bpf_map_lookup_elem(fd, &key, cpu) < 0)
			return -errno;
		for (uint32_t i = 0; i < view->cpus; i++)
			side->act[key / XSPD_A_MAX_][key % XSPD_A_MAX_] += cpu[i].packets;
	}
	return 0;
}

static int side_read(struct verify_side *side, const struct cli_view *view)
{
	struct xspd_stat stat;
	int err = 0;

	side->real = xspd_now(CLOCK_REALTIME) / 1000000000;
	for (int hook = 0; hook < XSPD_HOOK_MAX_; hook++)
		for (int reason = 0; reason < XSPD_R_MAX_ && !err; reason++) {
			err = cli_view_stat(view, hook, reason, &stat);
			side->stat[hook][reason] = stat.packets;
		}
	err = err ?: acts_read(side, view);
	return err ?: rows_read(side, view);
}

/* --- the kernel's -------------------------------------------------------------- */

static int stat_read(struct verify_sample *sample)
{
	xspd_autofclose FILE *f = fopen("/proc/thread-self/net/xfrm_stat", "re");
	unsigned long long value;
	char name[64];

	if (!f)
		return -errno;
	while (fscanf(f, "%63s %llu", name, &value) == 2)
		for (int i = 0; i < VERIFY_STAT_MAX_; i++)
			if (!strcmp(name, verify_stat_names[i]))
				sample->stat[i] = value;
	return 0;
}

static int use_add(void *ctx, const struct xspd_event *event)
{
	struct verify_sample *sample = ctx;
	struct xfrm_userpolicy_info info;

	if (event->kind != XSPD_EVENT_POLICY)
		return 0;
	memcpy(&info, NLMSG_DATA(event->msg), sizeof(info)); /* only 4 bytes aligned */
	if (sample->uses == sample->room) {
		size_t room = sample->room ? sample->room * 2 : 64;
		struct verify_use *grown = reallocarray(sample->use, room, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		sample->use = grown;
		sample->room = room;
	}
	sample->use[sample->uses++] = (struct verify_use){.index = info.index,
							  .time = info.curlft.use_time,
							  .dir = info.dir,
							  .family = (uint8_t)info.sel.family};
	return 0;
}

static int use_compare(const void *a, const void *b)
{
	const struct verify_use *x = a, *y = b;

	return x->index < y->index ? -1 : x->index > y->index;
}

static int kernel_read(struct verify_sample *sample)
{
	struct xspd_nl *nl;
	int err = stat_read(sample);

	if (err)
		return err;
	err = xspd_nl_open(&nl, 0, 0);
	if (err)
		return err;
	err = xspd_nl_dump(nl, use_add, sample);
	xspd_nl_free(nl);
	if (sample->uses)
		qsort(sample->use, sample->uses, sizeof(*sample->use), use_compare);
	return err;
}

/* --- both ---------------------------------------------------------------------- */

static int side_open(struct verify_side *side, struct verify_sample *sample, const char *instance)
{
	struct cli_view view;
	int err;

	/* anew each time: a set that is history counts no more */
	if (cli_view_open(&view, instance))
		return -EREMOTE;
	err = side_read(side, &view);
	sample->defaults = view.conf->defaults;
	sample->doubt |= view.conf->doubt;
	sample->lease = view.conf->lease_until > xspd_mono();
	cli_view_close(&view);
	return err;
}

int verify_sample(struct verify_sample *ret, const char *instance)
{
	struct timespec settle = {.tv_nsec = SETTLE_NS};
	int err = side_open(&ret->before, ret, instance);

	if (!err) {
		nanosleep(&settle, NULL);
		err = kernel_read(ret);
	}
	if (!err) {
		nanosleep(&settle, NULL);
		err = side_open(&ret->after, ret, instance);
	}
	if (err == -EREMOTE) /* told already */
		return XSPD_FAILED;
	return err ? cli_fail("verify: %s", strerror(-err)) : XSPD_DONE;
}

void verify_sample_free(struct verify_sample *sample)
{
	free(sample->before.row);
	free(sample->after.row);
	free(sample->use);
}

/* During an update a policy is in two slots for a moment: either will do. */
const struct verify_row *verify_row_find(const struct verify_side *side, uint32_t index)
{
	struct verify_row key = {.info.index = index};

	if (!side->rows)
		return NULL;
	return bsearch(&key, side->row, side->rows, sizeof(key), row_compare);
}

const struct verify_use *verify_use_find(const struct verify_sample *sample, uint32_t index)
{
	struct verify_use key = {.index = index};

	if (!sample->uses)
		return NULL;
	return bsearch(&key, sample->use, sample->uses, sizeof(key), use_compare);
}

/* --- hooks --------------------------------------------------------------------- */

static bool is_up(int fd, const char *name)
{
	struct ifreq ifr = {};

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	return ioctl(fd, SIOCGIFFLAGS, &ifr) == 0 && ifr.ifr_flags & IFF_UP;
}

static int modes_read(struct verify_cover *ret, const char *instance)
{
	xspd_autoclose int fd = cli_lasting_open(instance, "xspd_mode");
	struct xspd_mode_key key, *last = NULL;
	struct xspd_mode mode;

	if (fd < 0)
		return XSPD_FAILED;
	for (; bpf_map_get_next_key(fd, last, &key) == 0; last = &key)
		if (bpf_map_lookup_elem(fd, &key, &mode) == 0 &&
		    mode.flags & (XSPD_MODE_MARK | XSPD_MODE_DRY_RUN))
			ret->inexact = true;
	return XSPD_DONE;
}

int verify_cover(struct verify_cover *ret, const char *instance)
{
	xspd_autoclose int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct if_nameindex *devs = if_nameindex();
	struct cli_hook *hooks = NULL;
	size_t count = 0;
	int err = cli_hook_list(instance, &hooks, &count);

	*ret = (struct verify_cover){.all = true};
	for (size_t i = 0; devs && devs[i].if_index && !err; i++) {
		int seen = 0;

		for (size_t h = 0; h < count; h++)
			seen += hooks[h].ifindex == devs[i].if_index &&
				hooks[h].hook != XSPD_HOOK_EGRESS;
		if (strcmp(devs[i].if_name, "lo") && is_up(fd, devs[i].if_name))
			ret->all &= seen > 0;
		ret->doubled |= seen > 1;
	}
	free(hooks);
	if (devs)
		if_freenameindex(devs);
	return err ? cli_fail("verify: hooks: %s", strerror(-err)) : modes_read(ret, instance);
}
