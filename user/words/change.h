/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lines of a batch for `ip -batch` that change policies, and what the kernel
 * would make of them. Pure, but for /etc/protocols.
 */
#ifndef XSPD_WORDS_CHANGE_H
#define XSPD_WORDS_CHANGE_H

#include "spd/spd.h"
#include "words/words.h"

enum xspd_line_kind {
	XSPD_LINE_NOTHING = 0, /* empty, or a comment */
	XSPD_LINE_ADD,
	XSPD_LINE_UPDATE,
	XSPD_LINE_DELETE,	/* by selector */
	XSPD_LINE_DELETE_INDEX, /* by index */
	XSPD_LINE_FLUSH,
	XSPD_LINE_DEFAULTS,
};

struct xspd_line {
	enum xspd_line_kind kind;
	struct xspd_pol pol;	 /* index 0: not given; for a flush its type */
	uint32_t defaults;	 /* bit 1 << dir: block */
	uint32_t defaults_known; /* ... of these directions */
};

/**
 * xspd_line_read() - One line, without "ip" before it, into what is sent to the kernel.
 * @device: index of the device of a name, 0: none.
 * @error: why not, with -EINVAL.
 *
 * Takes the words of `ip xfrm policy` written out, and no others: what is not
 * understood is refused, never passed over. @line is cut up.
 */
int xspd_line_read(char *line, uint32_t (*device)(const char *name), struct xspd_line *ret,
		   char *error, size_t error_len);

/**
 * xspd_line_apply() - Do to @spd what the kernel would do to its policies.
 * @ret_index: of the policy that was added, if the kernel would choose its number (it is none of
 * those in use, and not the kernel's); else 0.
 *
 * Return: 0; -EEXIST, -ENOENT, -EINVAL: the kernel refuses it; -ENOMEM.
 */
int xspd_line_apply(struct xspd_spd *spd, const struct xspd_line *line, uint32_t *ret_index);

#endif
