// SPDX-License-Identifier: GPL-2.0-only
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "util.h"
#include "words/change.h"
#include "words/tmpl.h"

/* ip takes a selector in one run of words, and in it all of the upper layer in one run. */
enum run { RUN_NOT_YET, RUN_NOW, RUN_OVER };

struct reader {
	struct xspd_words w;
	uint32_t (*device)(const char *name);
	struct xspd_line *line;
	enum run selector, upper;
	bool dir, type_given, index; /* were said */
	bool ports, types, key;
};

typedef int (*key_reader)(struct reader *r);

static struct xfrm_selector *sel_of(struct reader *r)
{
	return &r->line->pol.sel;
}

static int family_set(struct reader *r, uint16_t family)
{
	struct xfrm_selector *sel = sel_of(r);

	if (sel->family && sel->family != family)
		return xspd_words_refuse(&r->w, "src and dst are of two families");
	sel->family = family;
	return 0;
}

static int read_src(struct reader *r)
{
	uint16_t family;
	struct xfrm_selector *sel = sel_of(r);
	int err = xspd_words_address(&r->w, xspd_words_next(&r->w), &sel->saddr, &sel->prefixlen_s,
				     &family);

	return err ? err : family_set(r, family);
}

static int read_dst(struct reader *r)
{
	uint16_t family;
	struct xfrm_selector *sel = sel_of(r);
	int err = xspd_words_address(&r->w, xspd_words_next(&r->w), &sel->daddr, &sel->prefixlen_d,
				     &family);

	return err ? err : family_set(r, family);
}

static int read_dev(struct reader *r)
{
	const char *name = xspd_words_next(&r->w);

	if (!name)
		return xspd_words_refuse(&r->w, "dev: no name");
	if (!strcmp(name, "none"))
		return 0;
	sel_of(r)->ifindex = (int)r->device(name);
	return sel_of(r)->ifindex ? 0 : xspd_words_refuse(&r->w, "dev %s: no such device", name);
}

static int read_proto(struct reader *r)
{
	return xspd_words_proto(&r->w, xspd_words_next(&r->w), &sel_of(r)->proto);
}

/* Port 0 is any port to ip; type and code 0 are not. */
static int read_half(struct reader *r, __be16 *port, __be16 *mask, uint32_t max, bool zero)
{
	uint32_t value;

	if (xspd_words_number(&r->w, xspd_words_next(&r->w), max, &value))
		return -EINVAL;
	*port = htons((uint16_t)value);
	if (value || zero)
		*mask = 0xffff;
	return 0;
}

static int read_sport(struct reader *r)
{
	r->ports = true;
	return read_half(r, &sel_of(r)->sport, &sel_of(r)->sport_mask, 0xffff, false);
}

static int read_dport(struct reader *r)
{
	r->ports = true;
	return read_half(r, &sel_of(r)->dport, &sel_of(r)->dport_mask, 0xffff, false);
}

static int read_type(struct reader *r)
{
	r->types = true;
	return read_half(r, &sel_of(r)->sport, &sel_of(r)->sport_mask, 0xff, true);
}

static int read_code(struct reader *r)
{
	r->types = true;
	return read_half(r, &sel_of(r)->dport, &sel_of(r)->dport_mask, 0xff, true);
}

static int read_key(struct reader *r)
{
	struct xfrm_selector *sel = sel_of(r);
	const char *word = xspd_words_next(&r->w);
	struct in_addr quad;
	uint32_t value;

	r->key = true;
	if (word && strchr(word, '.') && inet_pton(AF_INET, word, &quad) == 1)
		value = ntohl(quad.s_addr);
	else if (xspd_words_number(&r->w, word, UINT32_MAX, &value))
		return -EINVAL;
	sel->sport = htons((uint16_t)(value >> 16));
	sel->dport = htons((uint16_t)value);
	sel->sport_mask = sel->dport_mask = 0xffff;
	return 0;
}

static int read_dir(struct reader *r)
{
	int dir = xspd_words_choice(&r->w, xspd_words_next(&r->w), xspd_words_dirs, 3);

	if (r->dir)
		return xspd_words_refuse(&r->w, "dir is given twice");
	r->dir = true;
	r->line->pol.dir = (uint8_t)dir;
	return dir < 0 ? dir : 0;
}

static int read_ptype(struct reader *r)
{
	int type = xspd_words_choice(&r->w, xspd_words_next(&r->w), xspd_words_types, 2);

	if (r->type_given)
		return xspd_words_refuse(&r->w, "ptype is given twice");
	r->type_given = true;
	r->line->pol.type = (uint8_t)type;
	return type < 0 ? type : 0;
}

static int read_mark(struct reader *r)
{
	struct xspd_pol *pol = &r->line->pol;
	char *word;

	if (xspd_words_number(&r->w, xspd_words_next(&r->w), UINT32_MAX, &pol->mark))
		return -EINVAL;
	pol->mark_mask = UINT32_MAX;
	word = xspd_words_next(&r->w);
	if (!word)
		return 0;
	if (!strcmp(word, "mask"))
		return xspd_words_number(&r->w, xspd_words_next(&r->w), UINT32_MAX,
					 &pol->mark_mask);
	xspd_words_back(&r->w, word);
	return 0;
}

static int read_index(struct reader *r)
{
	r->index = true;
	return xspd_words_number(&r->w, xspd_words_next(&r->w), UINT32_MAX, &r->line->pol.index);
}

static int read_if_id(struct reader *r)
{
	return xspd_words_number(&r->w, xspd_words_next(&r->w), UINT32_MAX, &r->line->pol.if_id);
}

static int read_action(struct reader *r)
{
	int action = xspd_words_choice(&r->w, xspd_words_next(&r->w), xspd_words_actions, 2);

	r->line->pol.action = (uint8_t)action;
	return action < 0 ? action : 0;
}

static int read_priority(struct reader *r)
{
	return xspd_words_number(&r->w, xspd_words_next(&r->w), UINT32_MAX, &r->line->pol.priority);
}

static int read_flag(struct reader *r)
{
	static const char *const flags[] = {"localok", "icmp"};
	char *word = xspd_words_next(&r->w);
	bool any = false;

	for (; word; word = xspd_words_next(&r->w)) {
		int flag = xspd_words_choice(&r->w, word, flags, 2);

		if (flag < 0 && any) {
			xspd_words_back(&r->w, word);
			return 0;
		}
		if (flag < 0)
			return flag;
		r->line->pol.flags |= (uint8_t)(1u << flag);
		any = true;
	}
	return any ? 0 : xspd_words_refuse(&r->w, "flag: no name");
}

/* Limits end a policy some day; they decide no lookup. */
static int read_limit(struct reader *r)
{
	static const char *const limits[] = {"time-soft",     "time-hard",  "time-use-soft",
					     "time-use-hard", "byte-soft",  "byte-hard",
					     "packet-soft",   "packet-hard"};
	const char *word;
	char *end;

	if (xspd_words_choice(&r->w, xspd_words_next(&r->w), limits, 8) < 0)
		return -EINVAL;
	word = xspd_words_next(&r->w);
	if (!word || *word < '0' || *word > '9' || (strtoull(word, &end, 0), *end))
		return xspd_words_refuse(&r->w, "not a number: %s", word ? word : "(nothing)");
	return 0;
}

static int read_tmpl(struct reader *r)
{
	return xspd_tmpl_read(&r->w, r->line->pol.sel.family, &r->line->pol.tmpl);
}

enum where { PLACE_ANY, PLACE_SELECTOR, PLACE_UPPER };

/* @change: of add and update only */
static const struct {
	const char *name;
	key_reader read;
	enum where where;
	bool change;
} keys[] = {
	{"src", read_src, PLACE_SELECTOR},
	{"dst", read_dst, PLACE_SELECTOR},
	{"dev", read_dev, PLACE_SELECTOR},
	{"proto", read_proto, PLACE_UPPER},
	{"sport", read_sport, PLACE_UPPER},
	{"dport", read_dport, PLACE_UPPER},
	{"type", read_type, PLACE_UPPER},
	{"code", read_code, PLACE_UPPER},
	{"key", read_key, PLACE_UPPER},
	{"dir", read_dir},
	{"ptype", read_ptype},
	{"mark", read_mark},
	{"index", read_index},
	{"if_id", read_if_id},
	{"action", read_action, .change = true},
	{"priority", read_priority, .change = true},
	{"flag", read_flag, .change = true},
	{"limit", read_limit, .change = true},
	{"tmpl", read_tmpl, .change = true},
};

static int run_check(struct reader *r, enum where where, const char *word)
{
	if (where != PLACE_UPPER && r->upper == RUN_NOW)
		r->upper = RUN_OVER;
	if (where == PLACE_ANY && r->selector == RUN_NOW)
		r->selector = RUN_OVER;
	if (where == PLACE_ANY)
		return 0;
	if (r->selector == RUN_OVER || (where == PLACE_UPPER && r->upper == RUN_OVER))
		return xspd_words_refuse(&r->w, "ip takes a selector in one piece: %s", word);
	r->selector = RUN_NOW;
	if (where == PLACE_UPPER)
		r->upper = RUN_NOW;
	return 0;
}

static int read_one(struct reader *r, const char *word, bool change)
{
	int err;

	for (size_t i = 0; i < XSPD_ARRAY_SIZE(keys); i++) {
		if (strcmp(keys[i].name, word) || (keys[i].change && !change))
			continue;
		err = run_check(r, keys[i].where, word);
		return err ? err : keys[i].read(r);
	}
	return xspd_words_refuse(&r->w, "not understood: %s", word);
}

static int upper_check(struct reader *r)
{
	uint8_t proto = sel_of(r)->proto;

	if (r->ports && proto != IPPROTO_TCP && proto != IPPROTO_UDP && proto != IPPROTO_SCTP &&
	    proto != IPPROTO_DCCP)
		return xspd_words_refuse(&r->w, "ip takes ports with tcp, udp, sctp and dccp only");
	if (r->types && proto != IPPROTO_ICMP && proto != IPPROTO_ICMPV6 && proto != IPPROTO_MH)
		return xspd_words_refuse(&r->w, "ip takes type and code with icmp only");
	if (r->key && proto != IPPROTO_GRE)
		return xspd_words_refuse(&r->w, "ip takes a key with gre only");
	return 0;
}

static int read_keys(struct reader *r, bool change)
{
	char *word;
	int err = 0;

	while (!err && (word = xspd_words_next(&r->w)))
		err = read_one(r, word, change);
	if (!err)
		err = upper_check(r);
	if (!err && !r->dir)
		err = xspd_words_refuse(&r->w, "dir is missing");
	if (!sel_of(r)->family)
		sel_of(r)->family = AF_INET;
	return err;
}

static int read_change(struct reader *r)
{
	struct xspd_pol *pol = &r->line->pol;

	if (read_keys(r, true))
		return -EINVAL;
	/* a value that nothing is compared with is not kept; before, it kept the policy from
	 * matching */
	if (xspd_kernel_since(6, 16))
		pol->mark &= pol->mark_mask;
	return 0;
}

static int read_delete(struct reader *r)
{
	struct xspd_pol *pol = &r->line->pol;

	if (read_keys(r, false))
		return -EINVAL;
	if ((r->selector != RUN_NOT_YET) == r->index)
		return xspd_words_refuse(&r->w, "delete takes either a selector or an index");
	/* ip sends no mark of which nothing is left */
	if (!(pol->mark & pol->mark_mask))
		pol->mark = pol->mark_mask = 0;
	if (r->index)
		r->line->kind = XSPD_LINE_DELETE_INDEX;
	return 0;
}

static int read_flush(struct reader *r)
{
	char *word = xspd_words_next(&r->w);

	if (!word)
		return 0;
	if (strcmp(word, "ptype") || read_ptype(r))
		return xspd_words_refuse(&r->w, "not understood: %s", word);
	word = xspd_words_next(&r->w);
	return word ? xspd_words_refuse(&r->w, "not understood: %s", word) : 0;
}

static int read_defaults(struct reader *r)
{
	static const char *const actions[] = {"block", "accept"};
	char *word = xspd_words_next(&r->w);

	if (!word)
		return xspd_words_refuse(&r->w, "setdefault: no direction");
	for (; word; word = xspd_words_next(&r->w)) {
		int dir = xspd_words_choice(&r->w, word, xspd_words_dirs, 3), action;

		if (dir < 0)
			return dir;
		action = xspd_words_choice(&r->w, xspd_words_next(&r->w), actions, 2);
		if (action < 0)
			return action;
		r->line->defaults_known |= 1u << dir;
		if (action == 0)
			r->line->defaults |= 1u << dir;
	}
	return 0;
}

static int read_verb(struct reader *r, const char *verb)
{
	static const struct {
		const char *name;
		enum xspd_line_kind kind;
		key_reader read;
	} verbs[] = {
		{"add", XSPD_LINE_ADD, read_change},
		{"update", XSPD_LINE_UPDATE, read_change},
		{"delete", XSPD_LINE_DELETE, read_delete},
		{"flush", XSPD_LINE_FLUSH, read_flush},
		{"setdefault", XSPD_LINE_DEFAULTS, read_defaults},
	};

	for (size_t i = 0; verb && i < XSPD_ARRAY_SIZE(verbs); i++) {
		if (strcmp(verb, verbs[i].name))
			continue;
		r->line->kind = verbs[i].kind;
		return verbs[i].read(r);
	}
	return xspd_words_refuse(&r->w, "write 'xfrm policy' and add, update, delete, flush or "
					"setdefault, in full");
}

int xspd_line_read(char *text, uint32_t (*device)(const char *name), struct xspd_line *ret,
		   char *error, size_t error_len)
{
	struct xspd_line line = {};
	struct reader r = {
		.w = {.error = error, .error_len = error_len}, .device = device, .line = &line};
	const char *first, *second;

	text[strcspn(text, "#\n")] = '\0';
	first = xspd_words_begin(&r.w, text);
	if (first) {
		second = xspd_words_next(&r.w);
		if (strcmp(first, "xfrm") || !second || strcmp(second, "policy"))
			return read_verb(&r, NULL);
		if (read_verb(&r, xspd_words_next(&r.w)))
			return -EINVAL;
	}
	if (error_len)
		*error = '\0'; /* of a word that was given back */
	*ret = line;
	return 0;
}
