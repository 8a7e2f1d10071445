// SPDX-License-Identifier: GPL-2.0-only
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "util.h"
#include "words/key.h"
#include "words/tmpl.h"

static struct xfrm_selector *sel_of(struct xspd_reader *r)
{
	return &r->line->pol.sel;
}

static int family_set(struct xspd_reader *r, uint16_t family)
{
	struct xfrm_selector *sel = sel_of(r);

	if (sel->family && sel->family != family)
		return xspd_words_refuse(&r->w, "src and dst are of two families");
	sel->family = family;
	return 0;
}

static int read_src(struct xspd_reader *r)
{
	uint16_t family;
	struct xfrm_selector *sel = sel_of(r);
	int err = xspd_words_address(&r->w, xspd_words_next(&r->w), &sel->saddr, &sel->prefixlen_s,
				     &family);

	return err ? err : family_set(r, family);
}

static int read_dst(struct xspd_reader *r)
{
	uint16_t family;
	struct xfrm_selector *sel = sel_of(r);
	int err = xspd_words_address(&r->w, xspd_words_next(&r->w), &sel->daddr, &sel->prefixlen_d,
				     &family);

	return err ? err : family_set(r, family);
}

static int read_dev(struct xspd_reader *r)
{
	const char *name = xspd_words_next(&r->w);

	if (!name)
		return xspd_words_refuse(&r->w, "dev: no name");
	if (!strcmp(name, "none"))
		return 0;
	sel_of(r)->ifindex = (int)r->device(name);
	return sel_of(r)->ifindex ? 0 : xspd_words_refuse(&r->w, "dev %s: no such device", name);
}

static int read_proto(struct xspd_reader *r)
{
	return xspd_words_proto(&r->w, xspd_words_next(&r->w), &sel_of(r)->proto);
}

/* Port 0 is any port to ip; type and code 0 are not. */
static int read_half(struct xspd_reader *r, __be16 *port, __be16 *mask, uint32_t max, bool zero)
{
	uint32_t value;

	if (xspd_words_number(&r->w, xspd_words_next(&r->w), max, &value))
		return -EINVAL;
	*port = htons((uint16_t)value);
	if (value || zero)
		*mask = 0xffff;
	return 0;
}

static int read_sport(struct xspd_reader *r)
{
	r->ports = true;
	return read_half(r, &sel_of(r)->sport, &sel_of(r)->sport_mask, 0xffff, false);
}

static int read_dport(struct xspd_reader *r)
{
	r->ports = true;
	return read_half(r, &sel_of(r)->dport, &sel_of(r)->dport_mask, 0xffff, false);
}

static int read_type(struct xspd_reader *r)
{
	r->types = true;
	return read_half(r, &sel_of(r)->sport, &sel_of(r)->sport_mask, 0xff, true);
}

static int read_code(struct xspd_reader *r)
{
	r->types = true;
	return read_half(r, &sel_of(r)->dport, &sel_of(r)->dport_mask, 0xff, true);
}

static int read_key(struct xspd_reader *r)
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

static int read_dir(struct xspd_reader *r)
{
	int dir = xspd_words_choice(&r->w, xspd_words_next(&r->w), xspd_words_dirs, 3);

	if (r->dir)
		return xspd_words_refuse(&r->w, "dir is given twice");
	r->dir = true;
	r->line->pol.dir = (uint8_t)dir;
	return dir < 0 ? dir : 0;
}

int xspd_key_ptype(struct xspd_reader *r)
{
	int type = xspd_words_choice(&r->w, xspd_words_next(&r->w), xspd_words_types, 2);

	if (r->type_given)
		return xspd_words_refuse(&r->w, "ptype is given twice");
	r->type_given = true;
	r->line->pol.type = (uint8_t)type;
	return type < 0 ? type : 0;
}

static int read_mark(struct xspd_reader *r)
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

static int read_index(struct xspd_reader *r)
{
	r->index = true;
	return xspd_words_number(&r->w, xspd_words_next(&r->w), UINT32_MAX, &r->line->pol.index);
}

static int read_if_id(struct xspd_reader *r)
{
	return xspd_words_number(&r->w, xspd_words_next(&r->w), UINT32_MAX, &r->line->pol.if_id);
}

static int read_action(struct xspd_reader *r)
{
	int action = xspd_words_choice(&r->w, xspd_words_next(&r->w), xspd_words_actions, 2);

	r->line->pol.action = (uint8_t)action;
	return action < 0 ? action : 0;
}

static int read_priority(struct xspd_reader *r)
{
	return xspd_words_number(&r->w, xspd_words_next(&r->w), UINT32_MAX, &r->line->pol.priority);
}

static int read_flag(struct xspd_reader *r)
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
static int read_limit(struct xspd_reader *r)
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

static int read_tmpl(struct xspd_reader *r)
{
	return xspd_tmpl_read(&r->w, r->line->pol.sel.family, &r->line->pol.tmpl);
}

enum where { PLACE_ANY, PLACE_SELECTOR, PLACE_UPPER };

/* @change: of add and update only */
static const struct {
	const char *name;
	int (*read)(struct xspd_reader *r);
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
	{"ptype", xspd_key_ptype},
	{"mark", read_mark},
	{"index", read_index},
	{"if_id", read_if_id},
	{"action", read_action, .change = true},
	{"priority", read_priority, .change = true},
	{"flag", read_flag, .change = true},
	{"limit", read_limit, .change = true},
	{"tmpl", read_tmpl, .change = true},
};

static int run_check(struct xspd_reader *r, enum where where, const char *word)
{
	if (where != PLACE_UPPER && r->upper == XSPD_RUN_NOW)
		r->upper = XSPD_RUN_OVER;
	if (where == PLACE_ANY && r->selector == XSPD_RUN_NOW)
		r->selector = XSPD_RUN_OVER;
	if (where == PLACE_ANY)
		return 0;
	if (r->selector == XSPD_RUN_OVER || (where == PLACE_UPPER && r->upper == XSPD_RUN_OVER))
		return xspd_words_refuse(&r->w, "ip takes a selector in one piece: %s", word);
	r->selector = XSPD_RUN_NOW;
	if (where == PLACE_UPPER)
		r->upper = XSPD_RUN_NOW;
	return 0;
}

int xspd_key_read(struct xspd_reader *r, const char *word, bool change)
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
