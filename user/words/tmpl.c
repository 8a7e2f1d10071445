// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <linux/xfrm.h>

#include "words/tmpl.h"

struct reading {
	struct xspd_tmpl tmpl;
	uint16_t src, dst; /* families */
	bool id, any, use;
};

static int read_mode(struct xspd_words *w, struct reading *r)
{
	static const char *const modes[] = {"transport", "tunnel", "ro", "in_trigger", "beet"};
	int mode = xspd_words_choice(w, xspd_words_next(w), modes, 5);

	r->tmpl.mode = (uint8_t)mode;
	return mode < 0 ? mode : 0;
}

static int read_level(struct xspd_words *w, struct reading *r)
{
	static const char *const levels[] = {"required", "use"};
	int level = xspd_words_choice(w, xspd_words_next(w), levels, 2);

	r->use = level == 1;
	return level < 0 ? level : 0;
}

static int read_proto(struct xspd_words *w, struct reading *r)
{
	static const char *const names[] = {"esp", "ah", "comp", "route2", "hao"};
	static const uint8_t protos[] = {IPPROTO_ESP, IPPROTO_AH, IPPROTO_COMP, IPPROTO_ROUTING,
					 IPPROTO_DSTOPTS};
	int proto = xspd_words_choice(w, xspd_words_next(w), names, 5);

	if (proto < 0)
		return proto;
	r->tmpl.proto = protos[proto];
	return 0;
}

static int read_spi(struct xspd_words *w, struct reading *r)
{
	uint32_t ignored;

	(void)r;
	return xspd_words_number(w, xspd_words_next(w), UINT32_MAX, &ignored);
}

static int read_src(struct xspd_words *w, struct reading *r)
{
	return xspd_words_address(w, xspd_words_next(w), r->tmpl.saddr, NULL, &r->src);
}

static int read_dst(struct xspd_words *w, struct reading *r)
{
	return xspd_words_address(w, xspd_words_next(w), r->tmpl.daddr, NULL, &r->dst);
}

static int read_reqid(struct xspd_words *w, struct reading *r)
{
	return xspd_words_number(w, xspd_words_next(w), UINT32_MAX, &r->tmpl.reqid);
}

/* @id: of the run of words that tell the SA, which ip takes in one piece */
static const struct {
	const char *name;
	int (*read)(struct xspd_words *w, struct reading *r);
	bool id;
} keys[] = {
	{"src", read_src, true}, {"dst", read_dst, true}, {"proto", read_proto, true},
	{"spi", read_spi, true}, {"mode", read_mode},	  {"level", read_level},
	{"reqid", read_reqid},
};

/* 1: @word is none of a template. */
static int read_one(struct xspd_words *w, struct reading *r, const char *word, bool *in_id)
{
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		if (strcmp(keys[i].name, word))
			continue;
		if (keys[i].id && r->id && !*in_id)
			return 1;
		*in_id = keys[i].id;
		r->id |= keys[i].id;
		r->any = true;
		return keys[i].read(w, r);
	}
	return 1;
}

static int finish(struct xspd_words *w, const struct reading *r, struct xspd_tmpl *ret)
{
	if (!r->any)
		return xspd_words_refuse(w, "tmpl: nothing of it");
	if (r->id && !r->tmpl.proto)
		return xspd_words_refuse(w, "tmpl: proto is missing");
	if (r->src && r->dst && r->src != r->dst)
		return xspd_words_refuse(w, "tmpl: src and dst are of two families");
	if (!r->tmpl.proto)
		return xspd_words_refuse(w, "the kernel would refuse it: tmpl without proto");
	if (ret->count == XSPD_TMPL_MAX)
		return xspd_words_refuse(w, "more than %d templates", XSPD_TMPL_MAX);
	if (!ret->count) {
		uint8_t required = ret->required;

		*ret = r->tmpl;
		ret->required = required;
	}
	ret->count++;
	ret->required += !r->use;
	return 0;
}

int xspd_tmpl_read(struct xspd_words *w, uint16_t family, struct xspd_tmpl *ret)
{
	struct reading r = {};
	bool in_id = false;
	int err = 0;
	char *word;

	while (!err && (word = xspd_words_next(w))) {
		err = read_one(w, &r, word, &in_id);
		if (err == 1)
			xspd_words_back(w, word);
	}
	if (err < 0)
		return err;
	r.tmpl.family = r.src ? r.src : r.dst ? r.dst : family;
	return finish(w, &r, ret);
}
