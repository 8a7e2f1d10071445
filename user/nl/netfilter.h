/* SPDX-License-Identifier: GPL-2.0-only */
/* What of netfilter is in the way of packets, in the calling thread's network namespace. */
#ifndef XSPD_NL_NETFILTER_H
#define XSPD_NL_NETFILTER_H

#include <stdbool.h>
#include <stdint.h>

/* One of the kernel's hooks that somebody uses. */
struct xspd_nf_hook {
	uint8_t family;	  /* NFPROTO_IPV4, ... */
	uint32_t number;  /* enum nf_inet_hooks; of NFPROTO_NETDEV: enum nf_dev_hooks */
	bool nat;	  /* changes addresses, wherever it stands */
	bool flowtable;	  /* forwards before any hook */
	const char *name; /* "nft inet filter forward": whose it is */
};

typedef void (*xspd_nf_cb)(void *ctx, const struct xspd_nf_hook *hook);

/* Base chains and flowtables of nf_tables. 0 (also without nf_tables), or a negative errno. */
int xspd_nf_tables(xspd_nf_cb cb, void *ctx);

/*
 * Every hook, where the kernel tells them (CONFIG_NETFILTER_NETLINK_HOOK, 5.14): also those that
 * are neither a chain nor a table. Chains of nf_tables are left out. As above.
 */
int xspd_nf_hooks(xspd_nf_cb cb, void *ctx);

/* A socket that becomes readable when nf_tables change, -1 with errno if there is none. */
int xspd_nf_watch(void);
/* Empty it; whatever it said, look again. */
void xspd_nf_watched(int fd);

#endif
