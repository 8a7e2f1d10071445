/* SPDX-License-Identifier: GPL-2.0-only */
/* Single words of a case file. */
#ifndef XSPD_TESTS_LIB_CASE_WORDS_H
#define XSPD_TESTS_LIB_CASE_WORDS_H

#include <linux/types.h>
#include <stddef.h>
#include <stdint.h>

struct case_reader {
	struct casefile *cf;
	struct case_step *step; /* being read */
	char *save;		/* strtok_r() */
	char *comment;		/* of this line, or NULL */
	char *error;		/* what is wrong */
	size_t error_len;
};

/* Says why in r->error. Return: -EINVAL. */
__attribute__((format(printf, 2, 3))) int refuse(struct case_reader *r, const char *fmt, ...);

/* @word may be NULL: the line ends where one is due. Each returns 0 or -EINVAL. */
int read_number(struct case_reader *r, const char *word, uint32_t *ret);
/* N or N/MASK; without a mask it is @full */
int read_masked(struct case_reader *r, char *word, uint32_t full, uint32_t *value, uint32_t *mask);
int read_proto(struct case_reader *r, const char *word, uint8_t *ret);
/* A/L with @plen, A without */
int read_address(struct case_reader *r, char *word, void *addr, uint8_t *plen, uint16_t *family);
int read_port(struct case_reader *r, char *word, __be16 *port, __be16 *port_mask);
/* Return: the place of @word among @names, or -EINVAL */
int read_choice(struct case_reader *r, const char *word, const char *const *names, int count);

#endif
