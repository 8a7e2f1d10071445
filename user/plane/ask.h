/* SPDX-License-Identifier: GPL-2.0-only */
/* Asking the program xspd_query, whoever loaded it. */
#ifndef XSPD_PLANE_ASK_H
#define XSPD_PLANE_ASK_H

#include <stddef.h>

#include "xspd/abi.h"

/**
 * xspd_ask() - Ask the xspd_query behind @fd about @count flows.
 * @ret: an answer for each.
 *
 * Every XSPD_QUERY_MAX flows are one system call; each flow is answered on its
 * own, so that a change of the SPD may fall between any two.
 * Return: 0 or a negative errno (-EPROTO: not a program of ours).
 */
int xspd_ask(int fd, const struct xspd_flow *flows, size_t count, struct xspd_answer *ret);

#endif
