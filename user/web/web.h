/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What `xspd run --metrics` serves over HTTP: /metrics for Prometheus, / for people.  Reads the
 * pinned maps as any other reader does, in threads of its own: the mirror never waits for it.
 */
#ifndef XSPD_WEB_WEB_H
#define XSPD_WEB_WEB_H

#include <stdio.h>

#include "cli/gather.h"

struct xspd_web;

/**
 * xspd_web_listen() - Bind where @where says: "[ADDR:]PORT" (127.0.0.1 without ADDR),
 * "[ADDR6]:PORT", or "unix:PATH".  In the network namespace of the caller. Return: 0 with *ret_fd,
 * -EINVAL for what is no such thing, -ELIBACC without libmicrohttpd, or another negative errno.
 */
int xspd_web_listen(const char *where, int *ret_fd);

/**
 * xspd_web_start() - Serve on @fd, which is taken.
 * @top: busiest policies to tell of.
 * Return: 0 with *ret, to end with xspd_web_stop(), or a negative errno.
 */
int xspd_web_start(struct xspd_web **ret, int fd, const char *instance, uint32_t top);
/* NULL: nothing. A unix socket's file goes, too. */
void xspd_web_stop(struct xspd_web *web);

/* web/metrics.c: @open: as OpenMetrics, else in Prometheus' own text format. */
void xspd_web_metrics(FILE *out, struct cli_gather *gather, uint32_t top, bool open);
/* web/cliffs.c: what slows the kernel's own lookup down, as part of the page. */
void xspd_web_cliffs(FILE *out, const struct cli_gather *gather);
/* web/page.c; @text without what HTML would take for its own. */
void xspd_web_escape(FILE *out, const char *text);
void xspd_web_page(FILE *out, struct cli_gather *gather, const char *instance, uint32_t top);

#endif
