/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef XSPD_PLANE_CRASH_H
#define XSPD_PLANE_CRASH_H

/*
 * Called between any two steps that somebody else can see: stores into live tables, pins, jump
 * tables.  Does nothing.  It is a weak function: a test program that has its own dies in it,
 * to show that whatever such a death leaves behind gives no wrong answer.
 */
void xspd_crash_point(const char *step);

#endif
