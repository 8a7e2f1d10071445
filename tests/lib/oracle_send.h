/* SPDX-License-Identifier: GPL-2.0-only */
/* The sockets behind oracle_send(). */
#ifndef XSPD_TESTS_LIB_ORACLE_SEND_H
#define XSPD_TESTS_LIB_ORACLE_SEND_H

#include <stdint.h>

#include "xspd/abi.h"

struct oracle_sender;

int oracle_sender_new(struct oracle_sender **ret);
void oracle_sender_free(struct oracle_sender *sender);

/* @ret_index: the policy that asked for an SA, 0: none did. 0, -EPERM, or another negative errno.
 */
int oracle_sender_ask(struct oracle_sender *sender, const struct xspd_flow *flow,
		      uint32_t *ret_index);

#endif
