// SPDX-License-Identifier: GPL-2.0-only
#include <arpa/inet.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/selector.h"
#include "cli/tune.h"
#include "plane/pure/info.h"
#include "reason.h"
#include "util.h"

#define CLIFFS_SHOWN 8
#define HELPED	     0.25 /* of the cost: what thresholds leave of it where they help */

static const char *const places[] = {
	[XSPD_TUNE_HASH] = "hash", [XSPD_TUNE_BOTH] = "both", [XSPD_TUNE_SRC] = "src",
	[XSPD_TUNE_DST] = "dst",   [XSPD_TUNE_ANY] = "any",
};

static const char *const causes[] = {
	[XSPD_TUNE_COVER] = "cover", [XSPD_TUNE_MARKS] = "marks",   [XSPD_TUNE_PORTS] = "ports",
	[XSPD_TUNE_SHORT] = "short", [XSPD_TUNE_COARSE] = "coarse",
};

static const char *const remedies[] = {
	[XSPD_TUNE_COVER] = "replace the short prefix by longer ones, or give it an xfrm interface "
			    "and its if_id",
	[XSPD_TUNE_MARKS] = "give each tunnel an if_id instead of a mark; mode steer of xspd "
			    "attach chooses it",
	[XSPD_TUNE_PORTS] = "one policy without ports if all go one way; else an if_id for each "
			    "way, and mode steer of xspd attach",
	[XSPD_TUNE_SHORT] = "write networks as /16 and longer (IPv6: /48), or give each tunnel an "
			    "if_id and use mode steer of xspd attach",
	[XSPD_TUNE_COARSE] = "raise the thresholds",
};

void cli_tune_bits_text(const struct xspd_tune_bits *bits, char *buf, size_t size)
{
	snprintf(buf, size, "hthresh4 %u %u hthresh6 %u %u", bits->lbits4, bits->rbits4,
		 bits->lbits6, bits->rbits6);
}

/* "0.4 us", "111 us", "4.8 ms" */
const char *cli_tune_time_text(double ns, char *buf, size_t size)
{
	const char *unit = ns < 1e6 ? "us" : ns < 1e9 ? "ms" : "s";
	double value = ns < 1e6 ? ns / 1e3 : ns < 1e9 ? ns / 1e6 : ns / 1e9;

	snprintf(buf, size, "%.*f %s", value < 10 ? 2 : value < 100 ? 1 : 0, value, unit);
	return buf;
}

static bool helped(const struct xspd_tune_cliff *cliff)
{
	return cliff->ns_after < cliff->ns * HELPED;
}

/* The prefix that takes in the others. */
static void cover_text(const struct xspd_tune_cliff *cliff, char *buf, size_t size)
{
	const struct xfrm_selector *sel = &cliff->name[0]->sel;
	const void *addr = cliff->src ? &sel->saddr : &sel->daddr;
	char text[INET6_ADDRSTRLEN];

	inet_ntop(cliff->family, addr, text, sizeof(text));
	snprintf(buf, size, "%s %s/%u", cliff->src ? "src" : "dst", text,
		 cliff->src ? sel->prefixlen_s : sel->prefixlen_d);
}

void cli_tune_cliff_text(const struct xspd_tune_cliff *cliff, char *buf, size_t size)
{
	char cover[80];

	switch (cliff->cause) {
	case XSPD_TUNE_COVER:
		cover_text(cliff, cover, sizeof(cover));
		snprintf(buf, size, "%s pulls %u policies into one list", cover, cliff->length);
		return;
	case XSPD_TUNE_MARKS:
		snprintf(buf, size,
			 "%u policies with the same addresses and other marks are one "
			 "list",
			 cliff->length);
		return;
	case XSPD_TUNE_PORTS:
		snprintf(buf, size,
			 "%u policies with the same addresses and other ports are one "
			 "list",
			 cliff->length);
		return;
	case XSPD_TUNE_SHORT:
		snprintf(buf, size, "%u policies with prefixes below /%d are one list",
			 cliff->length, cliff->family == AF_INET6 ? 48 : 16);
		return;
	case XSPD_TUNE_COARSE:
		snprintf(buf, size, "the thresholds put %u policies into one hash bucket",
			 cliff->length);
		return;
	}
}

static const char *family_name(bool v6)
{
	return v6 ? "inet6" : "inet";
}

/* --- text ------------------------------------------------------------------------ */
static void print_sides(const struct cli_tune *tune)
{
	char a[24], b[24], c[24], d[24];

	printf("%-4s %-6s %9s %9s %9s %10s %10s", "dir", "family", "policies", "in hash", "longest",
	       "expected", "worst");
	if (cli_tune_change(tune))
		printf("  | %9s %10s %10s", "longest", "expected", "worst");
	printf("\n");
	for (int i = 0; i < XSPD_DIR_MAX_ * 2; i++) {
		const struct xspd_tune_side *now = &tune->now.side[i / 2][i & 1];
		const struct xspd_tune_side *best = &tune->best.side[i / 2][i & 1];

		if (!now->policies)
			continue;
		printf("%-4s %-6s %9u %9u %9u %10s %10s", xspd_dir_name((enum xspd_dir)(i / 2)),
		       family_name(i & 1), now->policies, now->hashed, now->longest,
		       cli_tune_time_text(now->expected, a, sizeof(a)),
		       cli_tune_time_text(now->worst, b, sizeof(b)));
		if (cli_tune_change(tune))
			printf("  | %9u %10s %10s", best->longest,
			       cli_tune_time_text(best->expected, c, sizeof(c)),
			       cli_tune_time_text(best->worst, d, sizeof(d)));
		printf("\n");
	}
}

static void print_cliff(const struct cli_tune *tune, const struct xspd_tune_cliff *cliff)
{
	char text[256], ns[24], after[24];

	cli_tune_cliff_text(cliff, text, sizeof(text));
	printf("cliff: %s %s: %s: about %s per packet", xspd_dir_name(cliff->dir),
	       family_name(cliff->family == AF_INET6), text,
	       cli_tune_time_text(cliff->ns, ns, sizeof(ns)));
	if (helped(cliff))
		printf(", %s with other thresholds\n",
		       cli_tune_time_text(cliff->ns_after, after, sizeof(after)));
	else
		printf("\n\t%s: %s\n",
		       cli_tune_change(tune) ? "these thresholds do not help"
					     : "thresholds do not help",
		       remedies[cliff->cause]);
	for (uint32_t i = 0; i < cliff->named && i < XSPD_TUNE_NAMED; i++) {
		cli_pol_text(cliff->name[i], text, sizeof(text));
		printf("\t%s\n", text);
	}
	if (cliff->named > XSPD_TUNE_NAMED)
		printf("\tand %u more\n", cliff->named - XSPD_TUNE_NAMED);
}

static void print_change(const struct cli_tune *tune)
{
	const struct xspd_tune_bits *bits = &tune->best.bits;
	char text[64], a[24], b[24], c[24];

	cli_tune_bits_text(bits, text, sizeof(text));
	printf("%s: %s: a lookup takes %s instead of %s\n",
	       tune->hthresh4 || tune->hthresh6 ? "asked" : "best", text,
	       cli_tune_time_text(tune->best.expected, a, sizeof(a)),
	       cli_tune_time_text(tune->now.expected, b, sizeof(b)));
	printf("\tthe kernel rebuilds its lists for that, and keeps every lookup waiting for about "
	       "%s\n",
	       cli_tune_time_text(tune->best.stall, c, sizeof(c)));
	printf("\tby hand: ip xfrm policy set %s\n", text);
	printf("\tstrongSwan, in strongswan.conf:\n"
	       "\t\tcharon {\n\t\t\tplugins {\n\t\t\t\tkernel-netlink {\n"
	       "\t\t\t\t\tspdh_thresh {\n"
	       "\t\t\t\t\t\tipv4 {\n\t\t\t\t\t\t\tlbits = %u\n\t\t\t\t\t\t\trbits = %u\n"
	       "\t\t\t\t\t\t}\n"
	       "\t\t\t\t\t\tipv6 {\n\t\t\t\t\t\t\tlbits = %u\n\t\t\t\t\t\t\trbits = %u\n"
	       "\t\t\t\t\t\t}\n"
	       "\t\t\t\t\t}\n\t\t\t\t}\n\t\t\t}\n\t\t}\n",
	       bits->lbits4, bits->rbits4, bits->lbits6, bits->rbits6);
}

static void print_applied(const struct cli_tune *tune)
{
	char a[24], b[24], c[24], text[64];

	cli_tune_bits_text(&tune->best.bits, text, sizeof(text));
	printf("applied: %s: measured %s before, %s after; lookups waited for %s%s\n", text,
	       cli_tune_time_text(tune->ns_before, a, sizeof(a)),
	       cli_tune_time_text(tune->ns_after, b, sizeof(b)),
	       cli_tune_time_text(tune->stall, c, sizeof(c)),
	       tune->marked ? " (asked without a mark, which all policies want)" : "");
	cli_tune_bits_text(&tune->now.bits, text, sizeof(text));
	if (tune->restored)
		printf("restored: %s\n", text);
	else
		printf("\tback: ip xfrm policy set %s\n", text);
}

void cli_tune_print(const struct cli_tune *tune)
{
	char text[64], ns[24];

	cli_tune_bits_text(&tune->now.bits, text, sizeof(text));
	printf("%u policies, %s%s\n", tune->source.count, text,
	       tune->file ? " (taken for granted: a snapshot does not tell)" : "");
	if (tune->source.count)
		print_sides(tune);
	for (uint32_t i = 0; i < tune->now.cliffs && i < CLIFFS_SHOWN; i++)
		print_cliff(tune, &tune->now.cliff[i]);
	if (tune->now.cliffs_all > CLIFFS_SHOWN)
		printf("and %u more long lists\n", tune->now.cliffs_all - CLIFFS_SHOWN);
	if (cli_tune_change(tune))
		print_change(tune);
	else if (tune->source.count)
		printf("no other thresholds are clearly cheaper: a lookup takes %s\n",
		       cli_tune_time_text(tune->now.expected, ns, sizeof(ns)));
	if (tune->applied)
		print_applied(tune);
	if (!tune->measured && tune->source.count)
		printf("reckoned with the costs of another machine; --calibrate measures this "
		       "one's\n");
}

static struct json_object *side_json(const struct xspd_tune_side *side, int dir, bool v6)
{
	struct json_object *o = json_object_new_object();

	cli_json_text(o, "dir", xspd_dir_name((enum xspd_dir)dir));
	cli_json_text(o, "family", family_name(v6));
	cli_json_number(o, "policies", side->policies);
	cli_json_number(o, "hashed", side->hashed);
	cli_json_number(o, "lists", side->lists);
	cli_json_number(o, "longest", side->longest);
	cli_json_decimal(o, "expected_ns", side->expected, "%.1f");
	cli_json_decimal(o, "worst_ns", side->worst, "%.1f");
	return o;
}

static struct json_object *cliff_json(const struct xspd_tune_cliff *cliff, bool compared)
{
	struct json_object *o = json_object_new_object(), *pols = json_object_new_array();
	struct xspd_info info;
	char text[256];

	cli_tune_cliff_text(cliff, text, sizeof(text));
	cli_json_text(o, "dir", xspd_dir_name(cliff->dir));
	cli_json_text(o, "family", family_name(cliff->family == AF_INET6));
	cli_json_text(o, "cause", causes[cliff->cause]);
	cli_json_text(o, "list", places[cliff->place]);
	cli_json_number(o, "length", cliff->length);
	cli_json_decimal(o, "ns", cliff->ns, "%.1f");
	cli_json_decimal(o, "ns_best", compared ? cliff->ns_after : NAN, "%.1f");
	cli_json_text(o, "reason", text);
	cli_json_text(o, "remedy",
		      compared && helped(cliff) ? "thresholds" : remedies[cliff->cause]);
	for (uint32_t i = 0; i < cliff->named && i < XSPD_TUNE_NAMED; i++) {
		xspd_info_fill(&info, cliff->name[i]);
		json_object_array_add(pols, cli_policy_json(&info));
	}
	cli_json_number(o, "policy_count", cliff->named);
	json_object_object_add(o, "policies", pols);
	return o;
}

static struct json_object *result_json(const struct xspd_tune_result *result, bool stall,
				       bool compared)
{
	struct json_object *o = json_object_new_object(), *sides = json_object_new_array();
	struct json_object *cliffs = json_object_new_array();

	cli_json_number(o, "lbits4", result->bits.lbits4);
	cli_json_number(o, "rbits4", result->bits.rbits4);
	cli_json_number(o, "lbits6", result->bits.lbits6);
	cli_json_number(o, "rbits6", result->bits.rbits6);
	cli_json_decimal(o, "expected_ns", result->expected, "%.1f");
	cli_json_decimal(o, "stall_ms", stall ? result->stall / 1e6 : NAN, "%.1f");
	for (int i = 0; i < XSPD_DIR_MAX_ * 2; i++)
		if (result->side[i / 2][i & 1].policies)
			json_object_array_add(sides,
					      side_json(&result->side[i / 2][i & 1], i / 2, i & 1));
	json_object_object_add(o, "sides", sides);
	for (uint32_t i = 0; i < result->cliffs; i++)
		json_object_array_add(cliffs, cliff_json(&result->cliff[i], compared));
	cli_json_number(o, "cliff_count", result->cliffs_all);
	json_object_object_add(o, "cliffs", cliffs);
	return o;
}

static struct json_object *applied_json(const struct cli_tune *tune)
{
	struct json_object *o;

	if (!tune->applied)
		return NULL;
	o = json_object_new_object();
	cli_json_decimal(o, "ns_before", tune->ns_before, "%.1f");
	cli_json_decimal(o, "ns_after", tune->ns_after, "%.1f");
	cli_json_decimal(o, "stall_ms", tune->stall / 1e6, "%.1f");
	cli_json_bool(o, "restored", tune->restored);
	return o;
}

void cli_tune_print_json(const struct cli_tune *tune)
{
	struct json_object *o = json_object_new_object();

	cli_json_number(o, "policies", tune->source.count);
	cli_json_bool(o, "sub_policies", tune->costs.sub_policy);
	cli_json_text(o, "costs", tune->measured ? "measured" : "built in");
	cli_json_bool(o, "change", cli_tune_change(tune));
	json_object_object_add(o, "now", result_json(&tune->now, false, true));
	json_object_object_add(o, "best", result_json(&tune->best, cli_tune_change(tune), false));
	json_object_object_add(o, "applied", applied_json(tune));
	cli_json_print(o);
}
