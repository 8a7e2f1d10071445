/* SPDX-License-Identifier: GPL-2.0-only */
/* The words that describe a policy, each with what follows it. Private to words/. */
#ifndef XSPD_WORDS_KEY_H
#define XSPD_WORDS_KEY_H

#include "words/change.h"

/* ip takes a selector in one run of words, and in it all of the upper layer in one run. */
enum xspd_run { XSPD_RUN_NOT_YET, XSPD_RUN_NOW, XSPD_RUN_OVER };

/* A line being read. */
struct xspd_reader {
	struct xspd_words w;
	uint32_t (*device)(const char *name);
	struct xspd_line *line;
	enum xspd_run selector, upper;
	bool dir, type_given, index; /* were said */
	bool ports, types, key;
};

/*
 * Take @word and its values into r->line->pol.
 * @change: it is of an add or an update, which take more words than a delete.
 * Return: 0 or -EINVAL.
 */
int xspd_key_read(struct xspd_reader *r, const char *word, bool change);
/* ... the value of "ptype". */
int xspd_key_ptype(struct xspd_reader *r);

#endif
