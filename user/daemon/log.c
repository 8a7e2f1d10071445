// SPDX-License-Identifier: GPL-2.0-only
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "daemon/log.h"
#include "util.h"

#define BURST	 20
#define WINDOW_S 10

void xspd_log(const char *fmt, ...)
{
	static uint64_t window, dropped;
	static unsigned int lines;
	uint64_t now = xspd_mono() / 1000000000u;
	va_list ap;

	if (!window || now - window >= WINDOW_S) {
		if (dropped)
			fprintf(stderr, "xspd: log: %" PRIu64 " lines left out\n", dropped);
		window = now;
		lines = 0;
		dropped = 0;
	}
	if (lines++ >= BURST) {
		dropped++;
		return;
	}
	fputs("xspd: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}
