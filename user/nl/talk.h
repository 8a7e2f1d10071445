/* SPDX-License-Identifier: GPL-2.0-only */
/* One request to the kernel over any netlink family, and its whole answer. */
#ifndef XSPD_NL_TALK_H
#define XSPD_NL_TALK_H

#include <libmnl/libmnl.h>

/**
 * xspd_nl_talk() - Send @nlh over a socket of its own, and call @cb for each message of the answer.
 * @bus: NETLINK_ROUTE, ...; sequence number and NLM_F_REQUEST are filled in.
 *
 * Return: 0, the kernel's error as a negative errno, -EINTR if a dump was not of one piece, or
 * the errno of a @cb that returned MNL_CB_ERROR.
 */
int xspd_nl_talk(int bus, struct nlmsghdr *nlh, mnl_cb_t cb, void *ctx);

#endif
