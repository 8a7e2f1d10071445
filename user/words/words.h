/* SPDX-License-Identifier: GPL-2.0-only */
/* Single words of a line of text, such as `ip xfrm policy` takes. Pure. */
#ifndef XSPD_WORDS_WORDS_H
#define XSPD_WORDS_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/types.h>

struct xspd_words {
	char *save;  /* strtok_r() */
	char *error; /* what is wrong */
	size_t error_len;
};

/* The next word of the line, NULL at its end. @line begins one; it is cut up in place. */
char *xspd_words_begin(struct xspd_words *w, char *line);
char *xspd_words_next(struct xspd_words *w);
/* Next time, @word again, which was the last one. */
void xspd_words_back(struct xspd_words *w, char *word);

/* Says why in w->error. Return: -EINVAL. */
__attribute__((format(printf, 2, 3))) int xspd_words_refuse(struct xspd_words *w, const char *fmt,
							    ...);

/* @word may be NULL: the line ends where one is due. Each returns 0 or -EINVAL. */
int xspd_words_number(struct xspd_words *w, const char *word, uint32_t max, uint32_t *ret);
/* N or N/MASK; without a mask it is @full */
int xspd_words_masked(struct xspd_words *w, char *word, uint32_t full, uint32_t *value,
		      uint32_t *mask);
int xspd_words_proto(struct xspd_words *w, const char *word, uint8_t *ret);
/* A/L, or A with a prefix of all bits; with @plen NULL A alone. @addr is of 16 bytes. */
int xspd_words_address(struct xspd_words *w, char *word, void *addr, uint8_t *plen,
		       uint16_t *family);
int xspd_words_port(struct xspd_words *w, char *word, __be16 *port, __be16 *port_mask);
/* Return: the place of @word among @names, or -EINVAL */
int xspd_words_choice(struct xspd_words *w, const char *word, const char *const *names, int count);

extern const char *const xspd_words_dirs[3];	/* in, out, fwd */
extern const char *const xspd_words_actions[2]; /* allow, block */
extern const char *const xspd_words_types[2];	/* main, sub */

#endif
