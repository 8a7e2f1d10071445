// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <string.h>

#include "cli/tune.h"
#include "nl/nl.h"
#include "plane/pure/info.h"
#include "reason.h"
#include "tune/tune.h"
#include "util.h"
#include "web/web.h"

#define SHOWN 8
#define MOST  200000 /* policies: more take too long for a page */

/* The thresholds in force, or the kernel's own. */
static struct xspd_tune_bits bits_read(void)
{
	struct xspd_tune_bits bits = {32, 32, 128, 128};
	struct xspd_spdinfo info;
	struct xspd_nl *nl;

	if (xspd_nl_open(&nl, 0, 0))
		return bits;
	if (!xspd_nl_spdinfo(nl, &info))
		bits = (struct xspd_tune_bits){info.lbits4, info.rbits4, info.lbits6, info.rbits6};
	xspd_nl_free(nl);
	return bits;
}

static void table(FILE *out, const struct xspd_tune_result *result)
{
	fputs("<h2>What slows the kernel's own lookup down</h2>\n", out);
	if (!result->cliffs) {
		fputs("<p>Nothing: no list of its policies is long.</p>\n", out);
		return;
	}
	fputs("<table><tr><th>direction<th>family<th>why<th class=\"n\">a packet, about</tr>\n",
	      out);
	for (uint32_t i = 0; i < result->cliffs && i < SHOWN; i++) {
		const struct xspd_tune_cliff *cliff = &result->cliff[i];
		char text[256], time[32];

		cli_tune_cliff_text(cliff, text, sizeof(text));
		fprintf(out, "<tr><td>%s<td>%s<td>", xspd_dir_name(cliff->dir),
			cliff->family == XSPD_INET6 ? "IPv6" : "IPv4");
		xspd_web_escape(out, text);
		fprintf(out, "<td class=\"n\">%s</tr>\n",
			cli_tune_time_text(cliff->ns, time, sizeof(time)));
	}
	fputs("</table>\n<p><code>xspd tune</code> knows what helps.</p>\n", out);
}

void xspd_web_cliffs(FILE *out, const struct cli_gather *g)
{
	xspd_autofree struct xspd_pol *pol = calloc(g->policies + 1, sizeof(*pol));
	xspd_autofree const struct xspd_pol **pols = calloc(g->policies + 1, sizeof(*pols));
	struct xspd_tune_bits bits = bits_read();
	struct xspd_tune_result result;
	struct xspd_tune *tune;

	if (!pol || !pols || !g->policies || g->policies > MOST)
		return;
	for (size_t i = 0; i < g->policies; i++) {
		xspd_pol_of_info(&pol[i], &g->policy[i].info);
		pols[i] = &pol[i];
	}
	if (xspd_tune_new(&tune, pols, g->policies, &bits, &xspd_tune_costs_builtin))
		return;
	xspd_tune_predict(tune, &bits, &result);
	table(out, &result);
	xspd_tune_free(tune);
}
