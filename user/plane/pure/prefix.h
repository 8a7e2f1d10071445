/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The inexact prefixes of one side of a partition, each with the tuples that
 * can match below it: what the LPM tries hold.  Only ever widened; a rebuild
 * of the set starts anew.  Pure.
 */
#ifndef XSPD_PLANE_PREFIX_H
#define XSPD_PLANE_PREFIX_H

#include <stddef.h>
#include <stdint.h>

#include "xspd/abi.h"

struct xspd_prefixes;

/* Called for each prefix whose bitmap must be (re)written. 0, or a negative errno that ends the
 * walk. */
typedef int (*xspd_prefix_cb)(void *ctx, const uint8_t addr[16], unsigned int len,
			      const struct xspd_trie_val *val);

struct xspd_prefixes *xspd_prefixes_new(void); /* NULL with errno */
void xspd_prefixes_free(struct xspd_prefixes *set);
size_t xspd_prefixes_count(const struct xspd_prefixes *set);

/**
 * xspd_prefixes_widen() - Tuple @id can match below @addr/@len.
 * @cb is told, the covered prefixes first, of every bitmap that this changes.
 * Bits of @addr behind @len are ignored.
 */
int xspd_prefixes_widen(struct xspd_prefixes *set, const uint8_t addr[16], unsigned int len,
			unsigned int id, xspd_prefix_cb cb, void *ctx);

#endif
