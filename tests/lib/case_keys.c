// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/xfrm.h>

#include "lib/case_keys.h"
#include "lib/netns.h"
#include "util.h"

/* The template that names the policy is there in any case; "tmpl" makes it a required one. */
static int read_tmpl(struct case_reader *r, struct xspd_pol *pol)
{
	char *word = xspd_words_next(&r->w);
	uint32_t ignored;

	if (!word || strcmp(word, "reqid"))
		return xspd_words_refuse(&r->w, "tmpl without reqid");
	pol->tmpl.required = 1;
	return xspd_words_number(&r->w, xspd_words_next(&r->w), UINT32_MAX, &ignored);
}

static int read_action(struct case_reader *r, const char *word, struct xspd_pol *pol)
{
	int action = xspd_words_choice(&r->w, word, xspd_words_actions, 2);

	if (action < 0)
		return action;
	pol->action = (uint8_t)action;
	if (action == XSPD_BLOCK)
		pol->tmpl.required = 0;
	return 0;
}

/* One key of a policy line, its value taken from the line. */
static int read_policy_key(struct case_reader *r, const char *key, struct xspd_pol *pol)
{
	struct xfrm_selector *sel = &pol->sel;
	char *word;
	int choice;

	if (strcmp(key, "tmpl") == 0)
		return read_tmpl(r, pol);
	word = xspd_words_next(&r->w);
	if (strcmp(key, "src") == 0)
		return xspd_words_address(&r->w, word, &sel->saddr, &sel->prefixlen_s,
					  &sel->family);
	if (strcmp(key, "dst") == 0)
		return xspd_words_address(&r->w, word, &sel->daddr, &sel->prefixlen_d,
					  &sel->family);
	if (strcmp(key, "proto") == 0)
		return xspd_words_proto(&r->w, word, &sel->proto);
	if (strcmp(key, "sport") == 0)
		return xspd_words_port(&r->w, word, &sel->sport, &sel->sport_mask);
	if (strcmp(key, "dport") == 0)
		return xspd_words_port(&r->w, word, &sel->dport, &sel->dport_mask);
	if (strcmp(key, "mark") == 0)
		return xspd_words_masked(&r->w, word, 0xffffffff, &pol->mark, &pol->mark_mask);
	if (strcmp(key, "if_id") == 0)
		return xspd_words_number(&r->w, word, UINT32_MAX, &pol->if_id);
	if (strcmp(key, "priority") == 0)
		return xspd_words_number(&r->w, word, UINT32_MAX, &pol->priority);
	if (strcmp(key, "action") == 0)
		return read_action(r, word, pol);
	if (strcmp(key, "dev") == 0) {
		sel->ifindex = word ? (int)netns_device(word) : 0;
		return sel->ifindex ? 0
				    : xspd_words_refuse(&r->w, "no device: %s",
							word ? word : "(nothing)");
	}
	if (strcmp(key, "dir") == 0) {
		choice = xspd_words_choice(&r->w, word, xspd_words_dirs, 3);
		pol->dir = (uint8_t)choice;
		return choice < 0 ? choice : 0;
	}
	if (strcmp(key, "ptype") == 0) {
		choice = xspd_words_choice(&r->w, word, xspd_words_types, 2);
		pol->type = (uint8_t)choice;
		return choice < 0 ? choice : 0;
	}
	return xspd_words_refuse(&r->w, "unknown key: %s", key);
}

int case_read_policy_keys(struct case_reader *r, struct xspd_pol *pol)
{
	const char *key;
	int err;

	while ((key = xspd_words_next(&r->w))) {
		err = read_policy_key(r, key, pol);
		if (err)
			return err;
	}
	return 0;
}

static int read_flow_key(struct case_reader *r, const char *key, struct xspd_flow *flow)
{
	static const char *const frags[] = {"none", "first", "later"};
	char *word = xspd_words_next(&r->w);
	uint16_t family = flow->family;
	uint32_t value;
	__be16 mask;
	int err;

	if (strcmp(key, "src") == 0)
		err = xspd_words_address(&r->w, word, flow->saddr, NULL, &family);
	else if (strcmp(key, "dst") == 0)
		err = xspd_words_address(&r->w, word, flow->daddr, NULL, &family);
	else if (strcmp(key, "proto") == 0)
		err = xspd_words_proto(&r->w, word, &flow->proto);
	else if (strcmp(key, "sport") == 0)
		err = xspd_words_port(&r->w, word, &flow->sport, &mask);
	else if (strcmp(key, "dport") == 0)
		err = xspd_words_port(&r->w, word, &flow->dport, &mask);
	else if (strcmp(key, "mark") == 0)
		err = xspd_words_number(&r->w, word, UINT32_MAX, &flow->mark);
	else if (strcmp(key, "if_id") == 0)
		err = xspd_words_number(&r->w, word, UINT32_MAX, &flow->if_id);
	else if (strcmp(key, "dir") == 0)
		flow->dir = (uint8_t)(err = xspd_words_choice(&r->w, word, xspd_words_dirs, 3));
	else if (strcmp(key, "frag") == 0)
		flow->frag = (uint8_t)(err = xspd_words_choice(&r->w, word, frags, 3));
	else if (strcmp(key, "dev") == 0) {
		value = word ? netns_device(word) : 0;
		flow->oif = value;
		err = value ? 0
			    : xspd_words_refuse(&r->w, "no device: %s", word ? word : "(nothing)");
	} else
		err = xspd_words_refuse(&r->w, "unknown key: %s", key);
	flow->family = (uint8_t)family;
	return err < 0 ? err : 0;
}

/* Up to the arrow or the end of the line. */
int case_read_flow_keys(struct case_reader *r, struct xspd_flow *flow)
{
	const char *key;
	int err;

	while ((key = xspd_words_next(&r->w)) && strcmp(key, "->")) {
		err = read_flow_key(r, key, flow);
		if (err)
			return err;
	}
	/* received packets are looked up with the loopback device, whatever they came in by */
	if (flow->dir == XSPD_IN)
		flow->oif = 1;
	return 0;
}

/* Words are next ones once a first one has begun the line. */
static char *words_begin(struct case_reader *r, const char *words)
{
	char *copy = malloc(strlen(words) + 3);

	if (copy) {
		sprintf(copy, ". %s", words);
		xspd_words_begin(&r->w, copy);
	}
	return copy;
}

struct xspd_pol case_pol(const char *words)
{
	char error[128] = "";
	struct case_reader reader = {.w = {.error = error, .error_len = sizeof(error)}};
	xspd_autofree char *copy = words_begin(&reader, words);
	struct xspd_pol pol = {};

	if (!copy || case_read_policy_keys(&reader, &pol)) {
		fprintf(stderr, "%s: %s\n", words, error);
		abort();
	}
	if (pol.tmpl.required) {
		pol.tmpl.count = 1;
		pol.tmpl.proto = IPPROTO_ESP;
	}
	return pol;
}

struct xspd_flow case_flow(const char *words)
{
	char error[128] = "";
	struct case_reader reader = {.w = {.error = error, .error_len = sizeof(error)}};
	xspd_autofree char *copy = words_begin(&reader, words);
	struct xspd_flow flow = {};

	if (!copy || case_read_flow_keys(&reader, &flow)) {
		fprintf(stderr, "%s: %s\n", words, error);
		abort();
	}
	return flow;
}
