/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef XSPD_WORDS_TMPL_H
#define XSPD_WORDS_TMPL_H

#include "spd/policy.h"
#include "words/words.h"

/**
 * xspd_tmpl_read() - The words after "tmpl", up to one that belongs to the policy.
 * @family: of the policy, which a template without addresses takes over.
 * @ret: gets one more template; what is told of them is told of the first.
 *
 * Return: 0 or -EINVAL.
 */
int xspd_tmpl_read(struct xspd_words *w, uint16_t family, struct xspd_tmpl *ret);

#endif
