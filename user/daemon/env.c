// SPDX-License-Identifier: GPL-2.0-only
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <linux/netfilter.h>

#include "daemon/env.h"
#include "nl/netfilter.h"
#include "util.h"

#define NETFILTER_ALL (XSPD_ENV_NETFILTER_PRE | XSPD_ENV_NETFILTER_IN | XSPD_ENV_NETFILTER_ANY)

/* /proc/net is the main thread's */
#define PROC_NET "/proc/thread-self/net/"

static void found_add(struct xspd_env_found *found, uint32_t bits, const char *name)
{
	size_t len = strlen(found->names), more = strlen(name);

	found->bits |= bits;
	if (!(bits & found->naming))
		return;
	if (found->more || len + more + 3 > sizeof(found->names)) {
		found->more++;
		return;
	}
	snprintf(found->names + len, sizeof(found->names) - len, "%s%s", len ? ", " : "", name);
}

/* Which answers a hook can make wrong. */
static uint32_t hook_bits(const struct xspd_nf_hook *hook)
{
	/* a flow once let through goes past the checks, and NAT has hooks at every place */
	if (hook->flowtable || hook->nat)
		return NETFILTER_ALL;
	switch (hook->family) {
	case NFPROTO_NETDEV:
		return XSPD_ENV_NETFILTER_PRE | XSPD_ENV_NETFILTER_ANY;
	case NFPROTO_ARP:
	case NFPROTO_BRIDGE: /* a port of a bridge is no place to enforce or bypass */
		return 0;
	}
	switch (hook->number) {
	case NF_INET_LOCAL_IN:
		return XSPD_ENV_NETFILTER_IN;
	case NF_INET_LOCAL_OUT:
		return 0;
	case NF_INET_FORWARD:
	case NF_INET_POST_ROUTING:
		return XSPD_ENV_NETFILTER_ANY;
	default: /* prerouting, ingress */
		return XSPD_ENV_NETFILTER_PRE | XSPD_ENV_NETFILTER_ANY;
	}
}

static void hook_found(void *ctx, const struct xspd_nf_hook *hook)
{
	found_add(ctx, hook_bits(hook), hook->name);
}

static uint32_t legacy_bits(const char *table)
{
	if (!strcmp(table, "raw"))
		return XSPD_ENV_NETFILTER_PRE | XSPD_ENV_NETFILTER_ANY;
	if (!strcmp(table, "filter") || !strcmp(table, "security"))
		return XSPD_ENV_NETFILTER_IN | XSPD_ENV_NETFILTER_ANY;
	return NETFILTER_ALL; /* nat, mangle, and what we do not know */
}

/* One table a line; no file: the kernel has no such thing. */
static int legacy_scan(struct xspd_env_found *found, const char *file, const char *tool)
{
	xspd_autofclose FILE *f = fopen(file, "re");
	char table[64], name[96];

	if (!f)
		return errno == ENOENT ? 0 : -errno;
	while (fscanf(f, "%63s", table) == 1) {
		snprintf(name, sizeof(name), "%s %s", tool, table);
		found_add(found, legacy_bits(table), name);
	}
	return 0;
}

/* Services after three lines of heading; their hooks stand at input and forward. */
static int ipvs_scan(struct xspd_env_found *found)
{
	xspd_autofclose FILE *f = fopen(PROC_NET "ip_vs", "re");
	char line[256];
	int lines = 0;

	if (!f)
		return errno == ENOENT ? 0 : -errno;
	while (fgets(line, sizeof(line), f))
		lines += strchr(line, '\n') != NULL;
	if (lines > 3)
		found_add(found, NETFILTER_ALL, "IPVS services");
	return 0;
}

static bool number_is_set(const char *path)
{
	xspd_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[16] = "";

	return fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 && strtol(text, NULL, 10) != 0;
}

/* Entries without a chain: tc's act_ct, or rules that are gone. */
static void conntrack_scan(struct xspd_env_found *found)
{
	if (number_is_set("/proc/sys/net/netfilter/nf_conntrack_count"))
		found_add(found, XSPD_ENV_NETFILTER_ANY, "tracked connections");
}

static int netfilter_scan(struct xspd_env_found *found)
{
	int err = xspd_nf_tables(hook_found, found);

	err = err ?: xspd_nf_hooks(hook_found, found);
	err = err ?: legacy_scan(found, PROC_NET "ip_tables_names", "iptables");
	err = err ?: legacy_scan(found, PROC_NET "ip6_tables_names", "ip6tables");
	err = err ?: ipvs_scan(found);
	conntrack_scan(found);
	if (err)
		found_add(found, NETFILTER_ALL, "netfilter that cannot be looked at");
	return err;
}

/* lo has disable_policy and disable_xfrm by itself. "all" counts at once, "default" for the next
 * device. */
static int sysctl_scan(struct xspd_env_found *found, const char *family, const char *name)
{
	char path[400];
	const struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/sys/net/%s/conf", family);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	while ((entry = readdir(dir)) && !(found->bits & XSPD_ENV_SYSCTL)) {
		if (entry->d_name[0] == '.' || !strcmp(entry->d_name, "lo"))
			continue;
		snprintf(path, sizeof(path), "/proc/sys/net/%s/conf/%s/%s", family, entry->d_name,
			 name);
		if (!number_is_set(path))
			continue;
		found->bits |= XSPD_ENV_SYSCTL;
		snprintf(found->sysctl, sizeof(found->sysctl), "net.%s.conf.%.16s.%s", family,
			 entry->d_name, name);
	}
	closedir(dir);
	return 0;
}

int xspd_env_scan(struct xspd_env_found *ret, uint32_t naming)
{
	int err, sysctl;

	*ret = (struct xspd_env_found){.naming = naming};
	err = netfilter_scan(ret);
	sysctl = sysctl_scan(ret, "ipv4", "disable_policy");
	sysctl = sysctl ?: sysctl_scan(ret, "ipv4", "disable_xfrm");
	sysctl = sysctl ?: sysctl_scan(ret, "ipv6", "disable_policy");
	if (sysctl)
		ret->bits |= XSPD_ENV_SYSCTL;
	return err ?: sysctl;
}
