// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/selector.h"
#include "cli/source.h"
#include "cli/view.h"
#include "plane/pure/info.h"
#include "reason.h"
#include "snapshot/collect.h"
#include "snapshot/load.h"
#include "snapshot/state.h"
#include "util.h"

/* --- policies -------------------------------------------------------------------- */

static int policy_take(struct cli_source *source, const struct nlmsghdr *nlh)
{
	struct xspd_event event;

	if (xspd_nl_decode(nlh, &event))
		return -EBADMSG;
	if (event.kind != XSPD_EVENT_POLICY)
		return 0; /* not understood: no finding can be about it */
	source->sub_policy |= event.typed;
	return xspd_spd_dump_entry(source->spd, &event.pol);
}

static int spd_fill(struct cli_source *source, struct nlmsghdr *const *oldest, size_t count)
{
	struct xspd_spd_diff diff;
	int err;

	source->spd = xspd_spd_new();
	if (!source->spd)
		return -ENOMEM;
	source->spd->old_order = !xspd_kernel_since(6, 12);
	err = xspd_spd_dump_begin(source->spd);
	for (size_t i = count; i-- > 0 && !err;)
		err = policy_take(source, oldest[i]);
	return err ? err : xspd_spd_dump_end(source->spd, &diff);
}

static int compare_index(const void *a, const void *b)
{
	const struct xspd_pol *x = *(const struct xspd_pol *const *)a;
	const struct xspd_pol *y = *(const struct xspd_pol *const *)b;

	return (x->index > y->index) - (x->index < y->index);
}

static int list_fill(struct cli_source *source)
{
	source->count = 0;
	source->pol = calloc(HASH_COUNT(source->spd->by_index) + 1ul, sizeof(*source->pol));
	if (!source->pol)
		return -ENOMEM;
	for (const struct xspd_pol *pol = source->spd->by_index; pol; pol = pol->hh.next)
		source->pol[source->count++] = pol;
	if (source->count)
		qsort(source->pol, source->count, sizeof(*source->pol), compare_index);
	return 0;
}

static int policies_take(struct cli_source *source, const struct xspd_vault *policies)
{
	struct nlmsghdr **oldest = calloc(policies->count + 1, sizeof(*oldest));
	int err = oldest ? 0 : -ENOMEM;

	for (size_t i = 0; i < policies->count && !err; i++)
		oldest[i] = xspd_vault_get(policies, i);
	if (!err)
		err = spd_fill(source, oldest, policies->count);
	free(oldest);
	return err;
}

/* --- SAs ------------------------------------------------------------------------- */
static int state_take(struct cli_source *source, const struct nlmsghdr *nlh)
{
	struct xspd_snap_state state;
	int err = xspd_snap_state_read(nlh, &state);

	if (!err)
		source->sa[source->sas++].reqid = state.info.reqid;
	return err;
}

static int states_read(struct cli_source *source)
{
	struct xspd_vault states = {};
	int err = xspd_collect_states(&states, false);

	source->sa = calloc(states.count + 1, sizeof(*source->sa));
	if (!err && !source->sa)
		err = -ENOMEM;
	for (size_t i = 0; i < states.count && !err; i++)
		err = state_take(source, xspd_vault_get(&states, i));
	xspd_vault_empty(&states);
	source->sas_known = !err;
	return err;
}

/* Has somebody joined the group by which the kernel asks for SAs? */
static bool netlink_listens(void)
{
	xspd_autofclose FILE *f = fopen("/proc/thread-self/net/netlink", "re");
	unsigned int bus, pid, groups;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%*s %u %u %x", &bus, &pid, &groups) == 3 && bus == NETLINK_XFRM &&
		    groups & 1u << (XFRMNLGRP_ACQUIRE - 1))
			return true;
	return false;
}

/* PF_KEY asks all its sockets. */
static bool pfkey_listens(void)
{
	xspd_autofclose FILE *f = fopen("/proc/thread-self/net/pfkey", "re");
	char line[256];
	int lines = 0;

	while (f && fgets(line, sizeof(line), f))
		lines++;
	return lines > 1; /* the first one is the header */
}

static bool ipv6_missing(void)
{
	xspd_autofclose FILE *f = fopen("/proc/sys/net/ipv6/conf/all/disable_ipv6", "re");
	int value = 1;

	return !f || fscanf(f, "%d", &value) != 1 || value;
}

/* --- the kernel, a daemon, a file ----------------------------------------------------- */

/* Orders of a daemon that watches the same namespace and is in no doubt; else nothing. */
static void daemon_ask(struct cli_source *source, const char *instance)
{
	const char *at = NULL;
	struct cli_view view;
	struct xspd_info info;
	struct xspd_pol *pol;
	char path[160];

	cli_pin_path(path, sizeof(path), instance, "maps");
	if (access(path, F_OK) < 0 || cli_view_open(&view, instance))
		return;
	if (!view.conf->doubt && view.conf->netns_ino == cli_netns_ino() &&
	    view.conf->lease_until > xspd_mono())
		at = view.set;
	for (uint32_t slot = 1; at && slot < view.slots; slot++) {
		if (!cli_view_info(&view, slot, &info))
			continue;
		pol = xspd_spd_find(source->spd, info.index);
		if (pol && pol->priority == info.priority)
			pol->tie = info.policy_flags & XSPD_P_TIE;
	}
	source->daemon = at;
	cli_view_close(&view);
}

static int kernel_read(struct cli_source *source, bool states)
{
	struct xspd_vault policies = {};
	struct xspd_nl *nl = NULL;
	int err = xspd_collect_policies(&policies);

	if (!err)
		err = policies_take(source, &policies);
	xspd_vault_empty(&policies);
	if (!err)
		err = xspd_nl_open(&nl, 0, 0);
	if (!err)
		err = xspd_nl_spdinfo(nl, &source->info);
	if (!err)
		err = xspd_nl_defaults(nl, &source->spd->defaults);
	xspd_nl_free(nl);
	if (err || !states)
		return err;
	source->no_ipv6 = ipv6_missing();
	source->keyer =
		netlink_listens() || pfkey_listens() ? XSPD_LINT_KEYER_SOME : XSPD_LINT_KEYER_NONE;
	return states_read(source);
}

static int snapshot_take(struct cli_source *source, const struct xspd_snap *snap, bool states)
{
	const struct nlmsghdr *nlh = (const void *)(snap->file.at + sizeof(snap->header));
	uint32_t count = snap->header.states + snap->header.policies, i;
	struct nlmsghdr **oldest = calloc(snap->header.policies + 1ul, sizeof(*oldest));
	int err = 0;

	source->sa = calloc(snap->header.states + 1ul, sizeof(*source->sa));
	if (!oldest || !source->sa)
		err = -ENOMEM;
	for (i = 0; i < count && !err; i++) {
		if (i >= snap->header.states)
			oldest[i - snap->header.states] = (struct nlmsghdr *)nlh;
		else if (states)
			err = state_take(source, nlh);
		nlh = (const void *)((const char *)nlh + NLMSG_ALIGN(nlh->nlmsg_len));
	}
	source->sas_known = snap->header.flags & XSPD_SNAP_STATES;
	if (!err)
		err = spd_fill(source, oldest, snap->header.policies);
	free(oldest);
	return err;
}

static int file_read(struct cli_source *source, const char *command, const char *file, bool states)
{
	enum xspd_snap_fault fault;
	struct xspd_snap snap;
	int err = xspd_snap_read(file, &snap, &fault);

	if (err == -EBADMSG)
		return cli_fail("%s: %s: %s", command, file, xspd_snap_fault_text(fault));
	if (err)
		return cli_fail("%s: %s: %s", command, file, strerror(-err));
	source->info =
		(struct xspd_spdinfo){.lbits4 = 32, .rbits4 = 32, .lbits6 = 128, .rbits6 = 128};
	err = snapshot_take(source, &snap, states);
	xspd_snap_drop(&snap);
	return err ? cli_fail("%s: %s: %s", command, file, strerror(-err)) : XSPD_DONE;
}

int cli_source_open(struct cli_source *ret, const char *command, const char *file,
		    const char *instance, bool states)
{
	struct cli_source source = {};
	int rc = XSPD_DONE, err = 0;

	if (file)
		rc = file_read(&source, command, file, states);
	else
		err = kernel_read(&source, states);
	if (err == -EBUSY)
		rc = cli_fail("%s: policies change too fast to be read whole; try again", command);
	else if (err)
		rc = cli_fail("%s: read the kernel's policies: %s%s", command, strerror(-err),
			      cli_root_hint(err));
	if (!rc && !file)
		daemon_ask(&source, instance);
	if (!rc && list_fill(&source))
		rc = cli_fail("%s: %s", command, strerror(ENOMEM));
	if (rc)
		cli_source_close(&source);
	else
		*ret = source;
	return rc;
}

void cli_source_close(struct cli_source *source)
{
	xspd_spd_free(source->spd);
	free(source->pol);
	free(source->sa);
	*source = (struct cli_source){};
}

/* --- in words ----------------------------------------------------------------------- */
void cli_pol_text(const struct xspd_pol *pol, char *buf, size_t size)
{
	struct xspd_info info;
	size_t len;

	xspd_info_fill(&info, pol);
	cli_selector_text(&info, buf, size);
	len = strlen(buf);
	len += (size_t)snprintf(buf + len, size - len, " dir %s index %u priority %u",
				xspd_dir_name(pol->dir), pol->index, pol->priority);
	if (pol->action == XSPD_BLOCK && len < size)
		len += (size_t)snprintf(buf + len, size - len, " action block");
	if (pol->type == XSPD_SUB && len < size)
		len += (size_t)snprintf(buf + len, size - len, " ptype sub");
	if (pol->mark_mask && len < size)
		len += (size_t)snprintf(buf + len, size - len, " mark 0x%x/0x%x", pol->mark,
					pol->mark_mask);
	if (pol->if_id && len < size)
		snprintf(buf + len, size - len, " if_id 0x%x", pol->if_id);
}
