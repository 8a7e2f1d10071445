/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The next, larger set: loading it (the kernel verifies its programs anew) takes 0.1 s or more, so
 * it is done in a thread of its own, while the set in service goes on serving.  At most one.
 */
#ifndef XSPD_PLANE_SPARE_H
#define XSPD_PLANE_SPARE_H

#include <stdint.h>

struct xspd_plane;
struct xspd_set;

/* 0: loaded, with room for @capacity policies; -EAGAIN: being loaded; -ENOENT: none of that size;
 * another negative errno: loading has failed. */
int xspd_spare_ready(struct xspd_plane *plane, uint32_t capacity);
/* The same, but begin to load it if there is none of that size. */
int xspd_spare_want(struct xspd_plane *plane, uint32_t capacity, uint32_t ifids);
/* The set, empty, and the caller's from then on; NULL: none is ready. */
struct xspd_set *xspd_spare_take(struct xspd_plane *plane, uint32_t capacity);
/* Free what nobody has needed for a while. */
void xspd_spare_expire(struct xspd_plane *plane);
void xspd_spare_drop(struct xspd_plane *plane);

#endif
