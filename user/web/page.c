// SPDX-License-Identifier: GPL-2.0-only
/* The status page: plain HTML, nothing to load, nothing to click. */
#include <inttypes.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/history.h"
#include "cli/selector.h"
#include "reason.h"
#include "util.h"
#include "web/web.h"

#define SHAPES 20

static const char head[] =
	"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
	"<meta http-equiv=\"refresh\" content=\"10\">"
	"<meta name=\"viewport\" content=\"width=device-width\"><title>xspd</title><style>"
	"body{font:14px/1.4 system-ui,sans-serif;margin:1.5em auto;max-width:70em;padding:0 1em;"
	"color:#222;background:#fff}"
	"h1{font-size:1.4em;margin:0}h2{font-size:1.1em;margin:1.6em 0 .4em}"
	"table{border-collapse:collapse;width:100%}"
	"th,td{text-align:left;padding:.2em .8em .2em 0;border-bottom:1px solid #ddd;"
	"vertical-align:top}"
	"th{font-weight:600;color:#555}.n{text-align:right;font-variant-numeric:tabular-nums}"
	"code{font:13px ui-monospace,monospace}.good{color:#176b2c}.bad{color:#a3210f;"
	"font-weight:600}"
	"p{margin:.3em 0}.bar{background:#dce6f5;height:.9em}.w{width:20%}"
	"</style></head><body>\n";

void xspd_web_escape(FILE *out, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '&':
			fputs("&amp;", out);
			break;
		case '"':
			fputs("&quot;", out);
			break;
		default:
			fputc(*text, out);
		}
	}
}

static void bar(FILE *out, uint64_t part, uint64_t whole)
{
	fprintf(out, "<td class=\"w\"><div class=\"bar\" style=\"width:%.1f%%\"></div></td>",
		whole ? 100.0 * (double)part / (double)whole : 0);
}

static void state(FILE *out, const struct cli_gather *g, const char *instance)
{
	const struct xspd_conf *conf = &g->conf;
	uint64_t all = g->hits + g->misses;

	fputs("<h1>xspd: ", out);
	xspd_web_escape(out, instance);
	fputs("</h1>\n<p>", out);
	if (!g->alive)
		fputs("<span class=\"bad\">The daemon is not running: the kernel decides.</span>",
		      out);
	else if (conf->doubt)
		fputs("<span class=\"bad\">In doubt, the kernel decides:", out);
	else
		fputs("<span class=\"good\">In step with the kernel.</span>", out);
	if (g->alive && conf->doubt) {
		for (uint32_t bit = 1; bit; bit <<= 1)
			if (conf->doubt & bit)
				fprintf(out, " %s", xspd_doubt_name(bit));
		fputs("</span>", out);
	}
	if (conf->env) {
		fputs(" Modes are kept from acting by:", out);
		for (uint32_t bit = 1; bit; bit <<= 1)
			if (conf->env & bit)
				fprintf(out, " %s", xspd_env_name(bit));
		fputc('.', out);
	}
	fprintf(out,
		"</p>\n<p>%u policies, %u of them in no certain order, room for %u; %" PRIu64
		" events, %" PRIu64 " losses, %" PRIu64 " full reads; longest lag %.3f ms; "
		"flow cache %.1f %% hits.</p>\n",
		conf->policies, conf->ties, conf->slots, (uint64_t)conf->events,
		(uint64_t)conf->lost, (uint64_t)conf->dumps, (double)conf->lag_max / 1e6,
		all ? 100.0 * (double)g->hits / (double)all : 0);
}

static void shapes(FILE *out, const struct cli_gather *g)
{
	size_t shown = g->shapes < SHAPES ? g->shapes : SHAPES;

	fputs("<h2>Policies by shape</h2>\n<table><tr><th>direction<th>family<th>selector"
	      "<th class=\"n\">policies<th class=\"n\">packets<th></tr>\n",
	      out);
	for (size_t i = 0; i < shown; i++) {
		const struct cli_shape *shape = &g->shape[i];
		char text[128];

		cli_shape_text(shape, text, sizeof(text));
		fprintf(out,
			"<tr><td>%s<td>%s<td><code>%s</code><td class=\"n\">%u<td "
			"class=\"n\">%" PRIu64,
			xspd_dir_name(shape->dir), shape->family == XSPD_INET6 ? "IPv6" : "IPv4",
			text, shape->policies, shape->packets);
		bar(out, shape->policies, g->policies);
		fputs("</tr>\n", out);
	}
	fputs("</table>\n", out);
	if (shown < g->shapes)
		fprintf(out, "<p>and %zu more shapes</p>\n", g->shapes - shown);
}

static void hot(FILE *out, const struct cli_gather *g, size_t top)
{
	uint64_t most = top ? g->policy[0].count.packets : 0;

	fputs("<h2>Busiest policies</h2>\n<table><tr><th class=\"n\">index<th>policy"
	      "<th class=\"n\">packets<th class=\"n\">bytes<th></tr>\n",
	      out);
	for (size_t i = 0; i < top && g->policy[i].count.packets; i++) {
		const struct cli_counted *p = &g->policy[i];
		char text[256];

		cli_selector_text(&p->info, text, sizeof(text));
		fprintf(out, "<tr><td class=\"n\">%u<td><code>%s ", p->info.index,
			xspd_dir_name(p->info.dir));
		xspd_web_escape(out, text);
		fprintf(out, "</code><td class=\"n\">%" PRIu64 "<td class=\"n\">%" PRIu64,
			(uint64_t)p->count.packets, (uint64_t)p->count.bytes);
		bar(out, p->count.packets, most);
		fputs("</tr>\n", out);
	}
	fputs("</table>\n", out);
}

static void reasons(FILE *out, const struct cli_gather *g)
{
	fputs("<h2>What the hooks answered</h2>\n<table><tr><th>hook<th>asked as<th>reason"
	      "<th class=\"n\">packets<th class=\"n\">bytes</tr>\n",
	      out);
	for (int hook = 0; hook < XSPD_HOOK_MAX_; hook++)
		for (int asked = 0; asked < XSPD_ASKED_MAX_; asked++)
			for (int reason = 1; reason < XSPD_R_MAX_; reason++) {
				const struct xspd_stat *stat = &g->stat[asked][hook][reason];

				if (!stat->packets)
					continue;
				fprintf(out,
					"<tr><td>%s<td>%s<td>%s<td class=\"n\">%" PRIu64
					"<td class=\"n\">%" PRIu64 "</tr>\n",
					xspd_hook_name(hook), asked ? xspd_dir_name(asked - 1) : "",
					xspd_reason_name(reason), (uint64_t)stat->packets,
					(uint64_t)stat->bytes);
			}
	fputs("</table>\n<h2>What the modes did</h2>\n<table><tr><th>hook<th>act"
	      "<th class=\"n\">packets<th class=\"n\">bytes</tr>\n",
	      out);
	for (int hook = 0; hook < XSPD_HOOK_MAX_; hook++)
		for (int act = 1; act < XSPD_A_MAX_; act++)
			if (g->act[hook][act].packets)
				fprintf(out,
					"<tr><td>%s<td>%s<td class=\"n\">%" PRIu64
					"<td class=\"n\">%" PRIu64 "</tr>\n",
					xspd_hook_name(hook), xspd_act_name(act),
					(uint64_t)g->act[hook][act].packets,
					(uint64_t)g->act[hook][act].bytes);
	fputs("</table>\n", out);
}

void xspd_web_page(FILE *out, struct cli_gather *g, const char *instance, uint32_t top)
{
	size_t shown = cli_gather_top(g, top);

	fputs(head, out);
	state(out, g, instance);
	shapes(out, g);
	xspd_web_cliffs(out, g);
	hot(out, g, shown);
	reasons(out, g);
	fputs("<p><a href=\"/metrics\">metrics</a></p>\n</body></html>\n", out);
}
