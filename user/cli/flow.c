// SPDX-License-Identifier: GPL-2.0-only
/* The words of a flow, one table row each. */
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/flow.h"
#include "cli/selector.h"
#include "reason.h"
#include "util.h"

#define LOOPBACK_IFINDEX 1 /* in every network namespace */

enum word {
	DIR,
	SRC,
	DST,
	PROTO,
	SPORT,
	DPORT,
	TYPE,
	CODE,
	KEY,
	MARK,
	IF_ID,
	DEV,
	IIF,
	FRAG,
	WORD_MAX_
};

struct words {
	const struct cli_flow_form *form;
	const char *arg[WORD_MAX_];
	uint32_t number[WORD_MAX_];
	uint8_t family[WORD_MAX_];
	uint8_t addr[WORD_MAX_][16];
	struct xspd_flow flow;
};

typedef int (*word_parser)(struct words *words, enum word word);

static int parse_number(struct words *words, enum word word);
static int parse_address(struct words *words, enum word word);
static int parse_dir(struct words *words, enum word word);
static int parse_proto(struct words *words, enum word word);
static int parse_key(struct words *words, enum word word);
static int parse_dev(struct words *words, enum word word);
static int parse_frag(struct words *words, enum word word);

static const struct {
	const char *name;
	word_parser parse;
	uint32_t max;
} table[WORD_MAX_] = {
	[DIR] = {"dir", parse_dir},
	[SRC] = {"src", parse_address},
	[DST] = {"dst", parse_address},
	[PROTO] = {"proto", parse_proto},
	[SPORT] = {"sport", parse_number, 65535},
	[DPORT] = {"dport", parse_number, 65535},
	[TYPE] = {"type", parse_number, 255},
	[CODE] = {"code", parse_number, 255},
	[KEY] = {"key", parse_key},
	[MARK] = {"mark", parse_number, UINT32_MAX},
	[IF_ID] = {"if_id", parse_number, UINT32_MAX},
	[DEV] = {"dev", parse_dev},
	[IIF] = {"iif", parse_dev},
	[FRAG] = {"frag", parse_frag},
};

/* One line, which names the file and its line if there is one. Returns @rc. */
static int complain(const struct words *words, int rc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static int complain(const struct words *words, int rc, const char *fmt, ...)
{
	const struct cli_flow_form *form = words->form;
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (form->file)
		cli_notice("lookup: %s:%zu: %s", form->file, form->line, text);
	else
		cli_notice("lookup: %s", text);
	return rc;
}

static int parse_number(struct words *words, enum word word)
{
	if (cli_number(words->arg[word], table[word].max, &words->number[word]))
		return XSPD_DONE;
	return complain(words, XSPD_USAGE, "%s %s: give a number from 0 to %u", table[word].name,
			words->arg[word], table[word].max);
}

static int parse_dir(struct words *words, enum word word)
{
	for (int dir = 0; dir < XSPD_DIR_MAX_; dir++)
		if (!strcmp(words->arg[word], xspd_dir_name(dir))) {
			words->flow.dir = dir;
			return XSPD_DONE;
		}
	return complain(words, XSPD_USAGE, "dir %s: give in, out or fwd", words->arg[word]);
}

static int check_prefix(const struct words *words, enum word word, const char *prefix)
{
	uint32_t len, most = words->family[word] == AF_INET ? 32 : 128;

	if (!cli_number(prefix, UINT32_MAX, &len) || len > most)
		return complain(words, XSPD_USAGE, "%s %s: prefix length out of range, 0 to %u",
				table[word].name, words->arg[word], most);
	if (len < most)
		return complain(words, XSPD_USAGE,
				"%s %s: a flow has one address, not a prefix; leave out "
				"'/%s'",
				table[word].name, words->arg[word], prefix);
	return XSPD_DONE;
}

static int parse_address(struct words *words, enum word word)
{
	const char *slash = strchr(words->arg[word], '/');
	size_t len = slash ? (size_t)(slash - words->arg[word]) : strlen(words->arg[word]);
	char text[INET6_ADDRSTRLEN];

	if (len >= sizeof(text))
		len = sizeof(text) - 1;
	memcpy(text, words->arg[word], len);
	text[len] = '\0';
	if (inet_pton(AF_INET, text, words->addr[word]) == 1)
		words->family[word] = AF_INET;
	else if (inet_pton(AF_INET6, text, words->addr[word]) == 1)
		words->family[word] = AF_INET6;
	else
		return complain(words, XSPD_USAGE, "%s %s: give an IPv4 or IPv6 address",
				table[word].name, words->arg[word]);
	return slash ? check_prefix(words, word, slash + 1) : XSPD_DONE;
}

static int parse_proto(struct words *words, enum word word)
{
	if (cli_proto_number(words->arg[word], &words->flow.proto))
		return XSPD_DONE;
	return complain(words, XSPD_USAGE, "proto %s: give a name of /etc/protocols, or 0 to 255",
			words->arg[word]);
}

static int parse_key(struct words *words, enum word word)
{
	struct in_addr quad;

	if (cli_number(words->arg[word], UINT32_MAX, &words->number[word]))
		return XSPD_DONE;
	if (inet_pton(AF_INET, words->arg[word], &quad) == 1) {
		words->number[word] = ntohl(quad.s_addr);
		return XSPD_DONE;
	}
	return complain(words, XSPD_USAGE, "key %s: give a number, or a dotted quad",
			words->arg[word]);
}

static int parse_dev(struct words *words, enum word word)
{
	static char last[IF_NAMESIZE]; /* files name few: spare the system calls */
	static uint32_t last_index;

	if (!last_index || strcmp(last, words->arg[word])) {
		last_index = if_nametoindex(words->arg[word]);
		snprintf(last, sizeof(last), "%s", words->arg[word]);
	}
	words->number[word] = last_index;
	if (last_index)
		return XSPD_DONE;
	return complain(words, XSPD_FAILED,
			"dev %s: no such device in this network namespace; --netns names "
			"another",
			words->arg[word]);
}

static int parse_frag(struct words *words, enum word word)
{
	if (!strcmp(words->arg[word], "first"))
		words->flow.frag = XSPD_FRAG_FIRST;
	else if (!strcmp(words->arg[word], "later"))
		words->flow.frag = XSPD_FRAG_LATER;
	else
		return complain(words, XSPD_USAGE, "frag %s: give first or later",
				words->arg[word]);
	return XSPD_DONE;
}

static int read_words(int argc, char **argv, struct words *words)
{
	for (int i = 0; i < argc; i += 2) {
		int word = 0, rc;

		while (word < WORD_MAX_ && strcmp(argv[i], table[word].name))
			word++;
		if (word == WORD_MAX_)
			return complain(words, XSPD_USAGE,
					"unknown word '%s'; see 'xspd help lookup'", argv[i]);
		if (words->arg[word])
			return complain(words, XSPD_USAGE, "'%s' is given twice", argv[i]);
		if (i + 1 == argc)
			return complain(words, XSPD_USAGE, "'%s' lacks its value", argv[i]);
		words->arg[word] = argv[i + 1];
		rc = table[word].parse(words, word);
		if (rc)
			return rc;
	}
	return XSPD_DONE;
}

/* Words that belong to some protocols only. */
static int check_words(const struct words *words)
{
	uint8_t proto = words->flow.proto;

	for (enum word word = words->form->path ? SRC : DIR; word <= DST; word++)
		if (!words->arg[word])
			return complain(words, XSPD_USAGE,
					"'%s' is missing; see 'xspd help lookup'",
					table[word].name);
	if (words->arg[DIR] && words->form->path)
		return complain(words, XSPD_USAGE,
				"dir %s: --forward asks fwd, then out; leave out 'dir'",
				words->arg[DIR]);
	if (words->arg[IIF] && !words->form->reverse)
		return complain(words, XSPD_USAGE, "'iif' goes with --reverse");
	if (words->family[SRC] != words->family[DST])
		return complain(words, XSPD_USAGE, "src %s and dst %s are of two families",
				words->arg[SRC], words->arg[DST]);
	for (enum word word = SPORT; word <= KEY; word++) {
		bool fits = word <= DPORT  ? cli_proto_has_ports(proto)
			    : word <= CODE ? cli_proto_is_icmp(proto)
					   : proto == IPPROTO_GRE;

		if (words->arg[word] && !fits)
			return complain(words, XSPD_USAGE, "'%s' goes with %s; add that 'proto'",
					table[word].name,
					word <= DPORT  ? "tcp, udp, sctp or udplite"
					: word <= CODE ? "icmp or ipv6-icmp"
						       : "gre");
	}
	return XSPD_DONE;
}

/* As the kernel's dissector fills the port words. */
static void set_ports(struct words *words)
{
	struct xspd_flow *flow = &words->flow;
	bool v6 = flow->family == XSPD_INET6;

	if (flow->frag != XSPD_FRAG_NONE)
		return;
	if (cli_proto_has_ports(flow->proto)) {
		flow->sport = htons((uint16_t)words->number[SPORT]);
		flow->dport = htons((uint16_t)words->number[DPORT]);
	} else if (flow->proto == (v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP)) {
		flow->sport = htons((uint16_t)words->number[TYPE]);
		flow->dport = htons((uint16_t)words->number[CODE]);
	} else if (flow->proto == IPPROTO_GRE) {
		flow->sport = htons((uint16_t)(words->number[KEY] >> 16));
		flow->dport = htons((uint16_t)words->number[KEY]);
	}
}

/* The device that the kernel would compare. */
static void set_device(struct words *words)
{
	struct xspd_flow *flow = &words->flow;

	flow->oif = words->number[DEV];
	if (words->form->path) {
		flow->dir = XSPD_FWD;
		flow->unknown = words->arg[DEV] ? 0 : XSPD_UNKNOWN_OIF;
	} else if (flow->dir == XSPD_IN && !words->arg[DEV]) {
		flow->oif = LOOPBACK_IFINDEX;
	}
}

/* What is taken as said although the kernel would not ask it so. */
static void notice(const struct words *words)
{
	const struct xspd_flow *flow = &words->flow;

	if (words->form->file || flow->dir != XSPD_IN)
		return;
	if (flow->oif != LOOPBACK_IFINDEX)
		cli_notice("lookup: dev %s: taken as said, but for 'dir in' the kernel compares "
			   "lo (or a VRF), never the device a packet came by",
			   words->arg[DEV]);
	if (flow->frag)
		cli_notice("lookup: frag %s: taken as said, but for 'dir in' the kernel puts "
			   "fragments together first, and then sees the ports",
			   words->arg[FRAG]);
}

int cli_flow_parse(const struct cli_flow_form *form, int argc, char **argv, struct xspd_flow *ret,
		   uint32_t *ret_iif)
{
	struct words words = {.form = form};
	struct xspd_flow *flow = &words.flow;
	int rc = read_words(argc, argv, &words);

	if (!rc)
		rc = check_words(&words);
	if (rc)
		return rc;
	flow->family = words.family[SRC] == AF_INET6 ? XSPD_INET6 : XSPD_INET;
	memcpy(flow->saddr, words.addr[SRC], sizeof(flow->saddr));
	memcpy(flow->daddr, words.addr[DST], sizeof(flow->daddr));
	flow->mark = words.number[MARK];
	flow->if_id = words.number[IF_ID];
	set_device(&words);
	notice(&words);
	set_ports(&words);
	*ret = *flow;
	if (ret_iif)
		*ret_iif = words.number[IIF];
	return XSPD_DONE;
}
