// SPDX-License-Identifier: GPL-2.0-only
/* A policy in the words of `ip xfrm policy`. */
#include <arpa/inet.h>
#include <math.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/selector.h"
#include "reason.h"
#include "util.h"

/* Not left to /etc/protocols, which may be missing, or name 58 otherwise. */
static const struct {
	uint8_t number;
	const char *name;
} protos[] = {
	{IPPROTO_ICMP, "icmp"},	      {IPPROTO_TCP, "tcp"},	     {IPPROTO_UDP, "udp"},
	{IPPROTO_GRE, "gre"},	      {IPPROTO_ESP, "esp"},	     {IPPROTO_AH, "ah"},
	{IPPROTO_COMP, "comp"},	      {IPPROTO_ICMPV6, "ipv6-icmp"}, {IPPROTO_SCTP, "sctp"},
	{IPPROTO_UDPLITE, "udplite"},
};

const char *cli_proto_name(uint8_t proto)
{
	static char number[8];
	struct protoent *entry;

	for (size_t i = 0; i < XSPD_ARRAY_SIZE(protos); i++)
		if (protos[i].number == proto)
			return protos[i].name;
	entry = getprotobynumber(proto);
	if (entry)
		return entry->p_name;
	snprintf(number, sizeof(number), "%u", proto);
	return number;
}

bool cli_proto_number(const char *text, uint8_t *ret)
{
	struct protoent *entry;
	uint32_t number;

	if (cli_number(text, 255, &number)) {
		*ret = (uint8_t)number;
		return true;
	}
	for (size_t i = 0; i < XSPD_ARRAY_SIZE(protos); i++)
		if (!strcmp(protos[i].name, text)) {
			*ret = protos[i].number;
			return true;
		}
	entry = getprotobyname(text);
	if (!entry || entry->p_proto < 0 || entry->p_proto > 255)
		return false;
	*ret = (uint8_t)entry->p_proto;
	return true;
}

bool cli_proto_is_icmp(uint8_t proto)
{
	return proto == IPPROTO_ICMP || proto == IPPROTO_ICMPV6 || proto == IPPROTO_MH;
}

bool cli_proto_has_ports(uint8_t proto)
{
	return proto == IPPROTO_TCP || proto == IPPROTO_UDP || proto == IPPROTO_UDPLITE ||
	       proto == IPPROTO_SCTP;
}

static void append(char *buf, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void append(char *buf, size_t size, const char *fmt, ...)
{
	size_t len = strlen(buf);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf + len, size - len, fmt, ap);
	va_end(ap);
}

static const char *address(uint8_t family, const uint8_t *addr, char *buf, size_t size)
{
	return inet_ntop(family == AF_INET6 ? AF_INET6 : AF_INET, addr, buf, (socklen_t)size);
}

static void append_port(char *buf, size_t size, const char *word, __be16 port, __be16 mask)
{
	if (!mask)
		return;
	append(buf, size, " %s %u", word, ntohs(port));
	if (mask != 0xffff)
		append(buf, size, "/0x%x", ntohs(mask));
}

static void append_ports(char *buf, size_t size, const struct xspd_info *info)
{
	bool icmp = cli_proto_is_icmp(info->proto);

	if (info->proto == IPPROTO_GRE && info->sport_mask == 0xffff &&
	    info->dport_mask == 0xffff) {
		append(buf, size, " key %u",
		       (uint32_t)ntohs(info->sport) << 16 | ntohs(info->dport));
		return;
	}
	append_port(buf, size, icmp ? "type" : "sport", info->sport, info->sport_mask);
	append_port(buf, size, icmp ? "code" : "dport", info->dport, info->dport_mask);
}

void cli_selector_text(const struct xspd_info *info, char *buf, size_t size)
{
	char addr[INET6_ADDRSTRLEN], dev[IF_NAMESIZE];

	*buf = '\0';
	append(buf, size, "src %s/%u", address(info->family, info->saddr, addr, sizeof(addr)),
	       info->slen);
	append(buf, size, " dst %s/%u", address(info->family, info->daddr, addr, sizeof(addr)),
	       info->dlen);
	if (info->proto)
		append(buf, size, " proto %s", cli_proto_name(info->proto));
	append_ports(buf, size, info);
	if (info->ifindex && if_indextoname(info->ifindex, dev))
		append(buf, size, " dev %s", dev);
	else if (info->ifindex)
		append(buf, size, " dev if%u", info->ifindex);
}

void cli_traits_text(const struct xspd_info *info, char *buf, size_t size)
{
	*buf = '\0';
	append(buf, size, "dir %s", xspd_dir_name(info->dir));
	if (info->action == XSPD_BLOCK)
		append(buf, size, " action block");
	append(buf, size, " index %u priority %u", info->index, info->priority);
	if (info->type == XSPD_SUB)
		append(buf, size, " ptype sub");
	if (info->mark | info->mark_mask)
		append(buf, size, " mark 0x%x/0x%x", info->mark, info->mark_mask);
	if (info->if_id)
		append(buf, size, " if_id 0x%x", info->if_id);
	append(buf, size, " pos %u", info->pos);
	if (info->policy_flags & XSPD_P_TIE)
		append(buf, size, " (order not certain)");
	if (info->policy_flags & XSPD_P_UNMODELLED)
		append(buf, size, " (unmodelled: the kernel decides)");
}

static const char *mode_name(uint8_t mode)
{
	static const char *const modes[] = {"transport",  "tunnel", "route-optimization",
					    "in-trigger", "beet",   "iptfs"};

	return mode < XSPD_ARRAY_SIZE(modes) ? modes[mode] : "?";
}

void cli_tmpl_text(const struct xspd_info *info, char *buf, size_t size)
{
	char addr[INET6_ADDRSTRLEN];

	*buf = '\0';
	if (!info->tmpl_count)
		return;
	append(buf, size, "tmpl src %s",
	       address(info->tmpl_family, info->tmpl_saddr, addr, sizeof(addr)));
	append(buf, size, " dst %s",
	       address(info->tmpl_family, info->tmpl_daddr, addr, sizeof(addr)));
	append(buf, size, " proto %s reqid %u mode %s", cli_proto_name(info->tmpl_proto),
	       info->reqid, mode_name(info->tmpl_mode));
	if (info->tmpl_count > 1)
		append(buf, size, " (first of %u)", info->tmpl_count);
	if (info->tmpl_required < info->tmpl_count)
		append(buf, size, " (%u required)", info->tmpl_required);
}

void cli_json_number(struct json_object *o, const char *key, uint64_t value)
{
	json_object_object_add(o, key, json_object_new_uint64(value));
}

void cli_json_decimal(struct json_object *o, const char *key, double value, const char *format)
{
	char text[32];

	snprintf(text, sizeof(text), format, value);
	json_object_object_add(o, key, isnan(value) ? NULL : json_object_new_double_s(value, text));
}

void cli_json_text(struct json_object *o, const char *key, const char *value)
{
	json_object_object_add(o, key, value ? json_object_new_string(value) : NULL);
}

void cli_json_bool(struct json_object *o, const char *key, bool value)
{
	json_object_object_add(o, key, json_object_new_boolean(value));
}

static struct json_object *prefix_json(uint8_t family, const uint8_t *addr, unsigned int len)
{
	char text[INET6_ADDRSTRLEN], prefix[INET6_ADDRSTRLEN + 8];

	snprintf(prefix, sizeof(prefix), "%s/%u", address(family, addr, text, sizeof(text)), len);
	return json_object_new_string(prefix);
}

static struct json_object *tmpl_json(const struct xspd_info *info)
{
	struct json_object *o;
	char addr[INET6_ADDRSTRLEN];

	if (!info->tmpl_count)
		return NULL;
	o = json_object_new_object();
	cli_json_number(o, "count", info->tmpl_count);
	cli_json_number(o, "required", info->tmpl_required);
	cli_json_text(o, "proto", cli_proto_name(info->tmpl_proto));
	cli_json_text(o, "mode", mode_name(info->tmpl_mode));
	cli_json_number(o, "reqid", info->reqid);
	cli_json_text(o, "src", address(info->tmpl_family, info->tmpl_saddr, addr, sizeof(addr)));
	cli_json_text(o, "dst", address(info->tmpl_family, info->tmpl_daddr, addr, sizeof(addr)));
	return o;
}

struct json_object *cli_policy_json(const struct xspd_info *info)
{
	struct json_object *o = json_object_new_object();
	char dev[IF_NAMESIZE];

	cli_json_number(o, "index", info->index);
	cli_json_text(o, "dir", xspd_dir_name(info->dir));
	cli_json_text(o, "type", info->type == XSPD_SUB ? "sub" : "main");
	cli_json_text(o, "action", info->action == XSPD_BLOCK ? "block" : "allow");
	cli_json_text(o, "family", info->family == XSPD_INET6 ? "inet6" : "inet");
	json_object_object_add(o, "src", prefix_json(info->family, info->saddr, info->slen));
	json_object_object_add(o, "dst", prefix_json(info->family, info->daddr, info->dlen));
	cli_json_number(o, "proto", info->proto);
	cli_json_number(o, "sport", ntohs(info->sport));
	cli_json_number(o, "sport_mask", ntohs(info->sport_mask));
	cli_json_number(o, "dport", ntohs(info->dport));
	cli_json_number(o, "dport_mask", ntohs(info->dport_mask));
	cli_json_number(o, "ifindex", info->ifindex);
	cli_json_text(o, "dev", info->ifindex ? if_indextoname(info->ifindex, dev) : NULL);
	cli_json_number(o, "mark", info->mark);
	cli_json_number(o, "mark_mask", info->mark_mask);
	cli_json_number(o, "if_id", info->if_id);
	cli_json_number(o, "priority", info->priority);
	cli_json_number(o, "pos", info->pos);
	cli_json_bool(o, "order_certain", !(info->policy_flags & XSPD_P_TIE));
	cli_json_bool(o, "modelled", !(info->policy_flags & XSPD_P_UNMODELLED));
	cli_json_number(o, "reqid", info->reqid);
	json_object_object_add(o, "tmpl", tmpl_json(info));
	return o;
}

void cli_json_print(struct json_object *object)
{
	puts(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PRETTY |
							    JSON_C_TO_STRING_SPACED |
							    JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(object);
}
