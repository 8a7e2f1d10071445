// SPDX-License-Identifier: GPL-2.0-only
/* Telling what explain.c found, as text and as JSON. */
#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "cli/explain.h"
#include "cli/selector.h"
#include "plane/pure/info.h"
#include "reason.h"
#include "util.h"

/* The first match of a type: it is what the others of the type lost to. */
static const struct xspd_pol *best(const struct cli_explain *explain, uint8_t type)
{
	for (size_t i = 0; i < explain->match_count; i++)
		if (explain->match[i]->type == type)
			return explain->match[i];
	return NULL;
}

/* Why the @i-th match is not the one that governs. */
static void why_lost(const struct cli_explain *explain, size_t i, char *buf, size_t size)
{
	const struct xspd_pol *pol = explain->match[i], *rival = best(explain, pol->type);
	const struct xspd_pol *sub = best(explain, XSPD_SUB);

	if (pol->type == XSPD_MAIN && sub && sub->action == XSPD_BLOCK)
		snprintf(buf, size, "not asked: sub policy %u blocks", sub->index);
	else if (pol == rival && pol->type == XSPD_MAIN && sub)
		snprintf(buf, size, "asked too, as sub policy %u comes first and allows",
			 sub->index);
	else if (pol == rival)
		snprintf(buf, size, "%s",
			 explain->ref.verdict == XSPD_DEFER ? "first, but not for certain"
							    : "governs");
	else if (pol->priority != rival->priority)
		snprintf(buf, size, "lost to %u: priority %u is worse than %u", rival->index,
			 pol->priority, rival->priority);
	else if (pol->tie || rival->tie || explain->ref.reason == XSPD_R_TIE)
		snprintf(buf, size, "same priority as %u, order not certain", rival->index);
	else
		snprintf(buf, size, "lost to %u: same priority, and younger", rival->index);
}

static void address_text(const struct xspd_flow *flow, const __be32 *addr, int len, char *buf,
			 size_t size)
{
	char text[INET6_ADDRSTRLEN];

	inet_ntop(flow->family == XSPD_INET6 ? AF_INET6 : AF_INET, addr, text, sizeof(text));
	if (len < 0)
		snprintf(buf, size, "%s", text);
	else
		snprintf(buf, size, "%s/%d", text, len);
}

static void port_text(__be16 port, __be16 mask, char *buf, size_t size)
{
	if (mask == 0xffff)
		snprintf(buf, size, "%u", ntohs(port));
	else
		snprintf(buf, size, "%u/0x%x", ntohs(port), ntohs(mask));
}

static void dev_text(uint32_t ifindex, char *buf, size_t size)
{
	char name[IF_NAMESIZE];

	if (!ifindex)
		snprintf(buf, size, "none");
	else if (if_indextoname(ifindex, name))
		snprintf(buf, size, "%s", name);
	else
		snprintf(buf, size, "if%u", ifindex);
}

/* One failed field: what the policy wants, and what the flow has. */
static void values(const struct xspd_pol *pol, const struct xspd_flow *flow, enum xspd_miss miss,
		   char *want, char *has, size_t size)
{
	const struct xfrm_selector *sel = &pol->sel;

	switch (miss) {
	case XSPD_MISS_IF_ID:
		snprintf(want, size, "0x%x", pol->if_id);
		snprintf(has, size, "0x%x", flow->if_id);
		break;
	case XSPD_MISS_MARK:
		snprintf(want, size, "0x%x/0x%x", pol->mark, pol->mark_mask);
		snprintf(has, size, "0x%x", flow->mark);
		break;
	case XSPD_MISS_DADDR:
		address_text(flow, sel->daddr.a6, sel->prefixlen_d, want, size);
		address_text(flow, flow->daddr, -1, has, size);
		break;
	case XSPD_MISS_SADDR:
		address_text(flow, sel->saddr.a6, sel->prefixlen_s, want, size);
		address_text(flow, flow->saddr, -1, has, size);
		break;
	case XSPD_MISS_DPORT:
		port_text(sel->dport, sel->dport_mask, want, size);
		port_text(flow->dport, 0xffff, has, size);
		break;
	case XSPD_MISS_SPORT:
		port_text(sel->sport, sel->sport_mask, want, size);
		port_text(flow->sport, 0xffff, has, size);
		break;
	case XSPD_MISS_PROTO:
		snprintf(want, size, "%s", cli_proto_name(sel->proto));
		snprintf(has, size, "%s", flow->proto ? cli_proto_name(flow->proto) : "none");
		break;
	default:
		dev_text((uint32_t)sel->ifindex, want, size);
		dev_text(flow->oif, has, size);
		break;
	}
}

/* The kernel compares port words; people know them by other names. */
static const char *field_name(const struct xspd_pol *pol, enum xspd_miss miss)
{
	if (cli_proto_is_icmp(pol->sel.proto) && miss == XSPD_MISS_SPORT)
		return "type";
	if (cli_proto_is_icmp(pol->sel.proto) && miss == XSPD_MISS_DPORT)
		return "code";
	return xspd_miss_name(miss);
}

static void print_policy(const struct xspd_pol *pol)
{
	struct xspd_info info;
	char text[256];

	xspd_info_fill(&info, pol);
	cli_selector_text(&info, text, sizeof(text));
	printf("\t%s\n", text);
	cli_traits_text(&info, text, sizeof(text));
	printf("\t%s\n", text);
}

static void print_near(const struct cli_near *near, const struct xspd_flow *flow)
{
	char want[64], has[64];
	const char *sep = "";

	printf("near %u:", near->pol->index);
	for (enum xspd_miss miss = XSPD_MISS_IF_ID; miss < XSPD_MISS_MAX_; miss++) {
		if (!(near->fields & 1u << miss))
			continue;
		values(near->pol, flow, miss, want, has, sizeof(want));
		printf("%s %s is %s, not %s", sep, field_name(near->pol, miss), has, want);
		sep = ",";
	}
	printf("\n");
	print_policy(near->pol);
}

void cli_explain_print(const struct cli_explain *explain, const struct xspd_flow *flow)
{
	char why[128];

	printf("reference %s reason %s: %zu of %u policies match\n",
	       xspd_verdict_name(explain->ref.verdict), xspd_reason_name(explain->ref.reason),
	       explain->match_count, (unsigned int)HASH_COUNT(explain->spd->by_index));
	for (size_t i = 0; i < explain->match_count; i++) {
		why_lost(explain, i, why, sizeof(why));
		printf("match %u: %s\n", explain->match[i]->index, why);
		print_policy(explain->match[i]);
	}
	for (size_t i = 0; i < explain->near_count; i++)
		print_near(&explain->near[i], flow);
}

static struct json_object *policy_json(const struct xspd_pol *pol)
{
	struct xspd_info info;

	xspd_info_fill(&info, pol);
	return cli_policy_json(&info);
}

static struct json_object *near_json(const struct cli_near *near, const struct xspd_flow *flow)
{
	struct json_object *o = policy_json(near->pol);
	struct json_object *misses = json_object_new_array();
	char want[64], has[64];

	for (enum xspd_miss miss = XSPD_MISS_IF_ID; miss < XSPD_MISS_MAX_; miss++) {
		struct json_object *field;

		if (!(near->fields & 1u << miss))
			continue;
		values(near->pol, flow, miss, want, has, sizeof(want));
		field = json_object_new_object();
		cli_json_text(field, "field", xspd_miss_name(miss));
		cli_json_text(field, "policy", want);
		cli_json_text(field, "flow", has);
		json_object_array_add(misses, field);
	}
	json_object_object_add(o, "misses", misses);
	return o;
}

struct json_object *cli_explain_json(const struct cli_explain *explain,
				     const struct xspd_flow *flow)
{
	struct json_object *o = json_object_new_object();
	struct json_object *matches = json_object_new_array(), *nearest = json_object_new_array();
	const struct xspd_ref *ref = &explain->ref;
	char why[128];

	cli_json_text(o, "verdict", xspd_verdict_name(ref->verdict));
	cli_json_text(o, "reason", xspd_reason_name(ref->reason));
	cli_json_number(o, "index", ref->pol ? ref->pol->index : 0);
	cli_json_number(o, "index2", ref->pol2 ? ref->pol2->index : 0);
	for (size_t i = 0; i < explain->match_count; i++) {
		struct json_object *match = policy_json(explain->match[i]);

		why_lost(explain, i, why, sizeof(why));
		cli_json_text(match, "why", why);
		json_object_array_add(matches, match);
	}
	for (size_t i = 0; i < explain->near_count; i++)
		json_object_array_add(nearest, near_json(&explain->near[i], flow));
	json_object_object_add(o, "matches", matches);
	json_object_object_add(o, "nearest", nearest);
	return o;
}
