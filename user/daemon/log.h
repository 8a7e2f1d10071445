/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef XSPD_DAEMON_LOG_H
#define XSPD_DAEMON_LOG_H

/*
 * One line "xspd: ..." on stderr.  What events can trigger must not fill a
 * disk: more than a handful of lines in a few seconds are counted instead.
 */
void xspd_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
