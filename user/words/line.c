// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "util.h"
#include "words/change.h"
#include "words/key.h"

static int upper_check(struct xspd_reader *r)
{
	uint8_t proto = r->line->pol.sel.proto;

	if (r->ports && proto != IPPROTO_TCP && proto != IPPROTO_UDP && proto != IPPROTO_SCTP &&
	    proto != IPPROTO_DCCP)
		return xspd_words_refuse(&r->w, "ip takes ports with tcp, udp, sctp and dccp only");
	if (r->types && proto != IPPROTO_ICMP && proto != IPPROTO_ICMPV6 && proto != IPPROTO_MH)
		return xspd_words_refuse(&r->w, "ip takes type and code with icmp only");
	if (r->key && proto != IPPROTO_GRE)
		return xspd_words_refuse(&r->w, "ip takes a key with gre only");
	return 0;
}

static int read_keys(struct xspd_reader *r, bool change)
{
	char *word;
	int err = 0;

	while (!err && (word = xspd_words_next(&r->w)))
		err = xspd_key_read(r, word, change);
	if (!err)
		err = upper_check(r);
	if (!err && !r->dir)
		err = xspd_words_refuse(&r->w, "dir is missing");
	if (!r->line->pol.sel.family)
		r->line->pol.sel.family = AF_INET;
	return err;
}

static int read_change(struct xspd_reader *r)
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

static int read_delete(struct xspd_reader *r)
{
	struct xspd_pol *pol = &r->line->pol;

	if (read_keys(r, false))
		return -EINVAL;
	if ((r->selector != XSPD_RUN_NOT_YET) == r->index)
		return xspd_words_refuse(&r->w, "delete takes either a selector or an index");
	/* ip sends no mark of which nothing is left */
	if (!(pol->mark & pol->mark_mask))
		pol->mark = pol->mark_mask = 0;
	if (r->index)
		r->line->kind = XSPD_LINE_DELETE_INDEX;
	return 0;
}

static int read_flush(struct xspd_reader *r)
{
	char *word = xspd_words_next(&r->w);

	if (!word)
		return 0;
	if (strcmp(word, "ptype") || xspd_key_ptype(r))
		return xspd_words_refuse(&r->w, "not understood: %s", word);
	word = xspd_words_next(&r->w);
	return word ? xspd_words_refuse(&r->w, "not understood: %s", word) : 0;
}

static int read_defaults(struct xspd_reader *r)
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

static int read_verb(struct xspd_reader *r, const char *verb)
{
	static const struct {
		const char *name;
		enum xspd_line_kind kind;
		int (*read)(struct xspd_reader *r);
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
	struct xspd_reader r = {
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
