/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What surrounds the policies: netfilter and sysctls that make the kernel look up another packet
 * than the one that a hook sees, or none at all.
 */
#ifndef XSPD_DAEMON_ENV_H
#define XSPD_DAEMON_ENV_H

#include <stdint.h>

#include "xspd/abi.h"

struct xspd_env_found {
	uint32_t bits;	 /* enum xspd_env */
	uint32_t naming; /* netfilter that raises one of these is named */
	uint32_t more;	 /* of them, for which there was no room */
	char names[400]; /* "nft ip nat post, iptables filter" */
	char sysctl[96]; /* the first that raised XSPD_ENV_SYSCTL: "net.ipv4.conf.c0.disable_policy"
			  */
};

/**
 * xspd_env_scan() - Look around in the calling thread's network namespace.
 * @naming: enum xspd_env, see there.
 *
 * What cannot be looked at is taken to be there. Return: 0, or the negative errno of the first
 * such look; *ret is filled in any case.
 */
int xspd_env_scan(struct xspd_env_found *ret, uint32_t naming);

#endif
