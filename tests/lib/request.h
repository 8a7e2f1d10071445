/* SPDX-License-Identifier: GPL-2.0-only */
/* Changes of policies as messages to the kernel. */
#ifndef XSPD_TESTS_LIB_REQUEST_H
#define XSPD_TESTS_LIB_REQUEST_H

#include "nl/nl.h"

/* Into @batch: @type is XFRM_MSG_NEWPOLICY, _UPDPOLICY, or _DELPOLICY, which goes by the selector.
 */
void request_put(struct xspd_batch *batch, const struct xspd_pol *pol, uint16_t type);
/* ... and send all that is in @batch. */
void request_send(struct xspd_batch *batch, const struct xspd_pol *pol, uint16_t type);
/* Flush the policies of type @ptype (XSPD_MAIN, _SUB). */
void request_flush(struct xspd_batch *batch, uint8_t ptype);

/* MIGRATE, into @room: the IPv4 tunnel of @pol leads to @to (host order) from now on. */
struct nlmsghdr *request_migrate(void *room, const struct xspd_pol *pol, uint32_t to, uint32_t seq);

#endif
