/* SPDX-License-Identifier: GPL-2.0-only */
/* The SPDs in tests/lint: see the README there for the format. */
#ifndef XSPD_TESTS_LINT_FILE_H
#define XSPD_TESTS_LINT_FILE_H

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "lint/lint.h"
#include "util.h"

#define LINT_POLICIES 64
#define LINT_EXPECTS  64

struct lint_file {
	struct xspd_spd *spd;
	struct xspd_pol pol[LINT_POLICIES];
	char name[LINT_POLICIES][24];
	uint32_t count;
	struct xspd_lint_sa sa[LINT_POLICIES];
	struct xspd_lint_input input;
	char expect[LINT_EXPECTS][128];
	uint32_t expects;
};

static char *word_next(char **save)
{
	char *word = strtok_r(NULL, " \t\n", save);

	cr_assert(word, "a line ends too early");
	return word;
}

static uint32_t number(const char *text)
{
	char *end;
	unsigned long value = strtoul(text, &end, 0);

	cr_assert(*text && !*end, "not a number: %s", text);
	return (uint32_t)value;
}

static void masked(char *word, uint32_t full, uint32_t *value, uint32_t *mask)
{
	char *slash = strchr(word, '/');

	*mask = full;
	if (slash) {
		*slash = '\0';
		*mask = number(slash + 1);
	}
	*value = number(word);
}

static void prefix(char *word, uint16_t *family, xfrm_address_t *addr, uint8_t *len)
{
	char *slash = strchr(word, '/');

	*family = strchr(word, ':') ? AF_INET6 : AF_INET;
	cr_assert(slash, "a prefix without a length: %s", word);
	*slash = '\0';
	*len = (uint8_t)number(slash + 1);
	cr_assert_eq(inet_pton(*family, word, addr), 1, "not an address: %s", word);
}

static void port(char *word, __be16 *port, __be16 *mask)
{
	uint32_t value, bits;

	masked(word, 0xffff, &value, &bits);
	*port = htons((uint16_t)value);
	*mask = htons((uint16_t)bits);
}

static uint8_t proto(const char *word)
{
	static const struct {
		const char *name;
		uint8_t number;
	} names[] = {{"tcp", 6}, {"udp", 17}, {"icmp", 1}, {"ipv6-icmp", 58}, {"gre", 47}};

	for (size_t i = 0; i < XSPD_ARRAY_SIZE(names); i++)
		if (!strcmp(names[i].name, word))
			return names[i].number;
	return (uint8_t)number(word);
}

static uint8_t choice(const char *word, const char *a, const char *b, const char *c)
{
	if (!strcmp(word, a))
		return 0;
	if (!strcmp(word, b))
		return 1;
	cr_assert(c && !strcmp(word, c), "unknown word: %s", word);
	return 2;
}

/* tmpl reqid N [mode M] [optional]: the rest of the line. */
static void tmpl(struct xspd_pol *pol, char **save)
{
	char *word;

	pol->tmpl = (struct xspd_tmpl){
		.count = 1, .required = 1, .proto = IPPROTO_ESP, .mode = XFRM_MODE_TUNNEL};
	while ((word = strtok_r(NULL, " \t\n", save))) {
		if (!strcmp(word, "reqid"))
			pol->tmpl.reqid = number(word_next(save));
		else if (!strcmp(word, "mode"))
			pol->tmpl.mode = choice(word_next(save), "transport", "tunnel", NULL);
		else if (!strcmp(word, "optional"))
			pol->tmpl.required = 0;
		else
			cr_assert_fail("unknown word of a template: %s", word);
	}
}

static void policy_key(struct xspd_pol *pol, const char *key, char **save)
{
	struct xfrm_selector *sel = &pol->sel;

	if (!strcmp(key, "dir"))
		pol->dir = choice(word_next(save), "in", "out", "fwd");
	else if (!strcmp(key, "src"))
		prefix(word_next(save), &sel->family, &sel->saddr, &sel->prefixlen_s);
	else if (!strcmp(key, "dst"))
		prefix(word_next(save), &sel->family, &sel->daddr, &sel->prefixlen_d);
	else if (!strcmp(key, "proto"))
		sel->proto = proto(word_next(save));
	else if (!strcmp(key, "sport"))
		port(word_next(save), &sel->sport, &sel->sport_mask);
	else if (!strcmp(key, "dport"))
		port(word_next(save), &sel->dport, &sel->dport_mask);
	else if (!strcmp(key, "mark"))
		masked(word_next(save), ~0u, &pol->mark, &pol->mark_mask);
	else if (!strcmp(key, "if_id"))
		pol->if_id = number(word_next(save));
	else if (!strcmp(key, "dev"))
		sel->ifindex = (int)number(word_next(save));
	else if (!strcmp(key, "priority"))
		pol->priority = number(word_next(save));
	else if (!strcmp(key, "action"))
		pol->action = choice(word_next(save), "allow", "block", NULL);
	else if (!strcmp(key, "ptype"))
		pol->type = choice(word_next(save), "main", "sub", NULL);
	else if (!strcmp(key, "user"))
		sel->user = number(word_next(save));
	else if (!strcmp(key, "labelled"))
		pol->unmodelled = XSPD_UNMODELLED_SEC_CTX;
	else
		cr_assert_fail("unknown key: %s", key);
}

static void policy_read(struct lint_file *file, char **save)
{
	struct xspd_pol pol = {};
	char *key;

	cr_assert_lt(file->count, LINT_POLICIES);
	snprintf(file->name[file->count], sizeof(file->name[0]), "%s", word_next(save));
	while ((key = strtok_r(NULL, " \t\n", save))) {
		if (!strcmp(key, "tmpl"))
			tmpl(&pol, save);
		else
			policy_key(&pol, key, save);
	}
	pol.index = (file->count + 1) << 3 | pol.dir;
	file->pol[file->count++] = pol;
	cr_assert_eq(xspd_spd_upsert(file->spd, &pol), 0);
}

static uint32_t policy_number(const struct lint_file *file, const char *name)
{
	for (uint32_t i = 0; i < file->count; i++)
		if (!strcmp(file->name[i], name))
			return i;
	cr_assert_fail("no policy %s", name);
	return 0;
}

static void line_read(struct lint_file *file, char *line)
{
	char *save = NULL, *word = strtok_r(line, " \t\n", &save);
	uint32_t dir;

	if (!word || *word == '#')
		return;
	if (!strcmp(word, "policy")) {
		policy_read(file, &save);
	} else if (!strcmp(word, "update")) {
		dir = policy_number(file, word_next(&save));
		cr_assert_eq(xspd_spd_upsert(file->spd, &file->pol[dir]), 0);
	} else if (!strcmp(word, "default")) {
		dir = choice(word_next(&save), "in", "out", "fwd");
		xspd_spd_set_defaults(file->spd, file->spd->defaults | 1u << dir);
	} else if (!strcmp(word, "sa")) {
		file->sa[file->input.sa_count++].reqid = number(word_next(&save));
		file->input.sas_known = true;
	} else if (!strcmp(word, "sas")) {
		file->input.sas_known = !strcmp(word_next(&save), "known");
	} else if (!strcmp(word, "keyer")) {
		file->input.keyer =
			(enum xspd_lint_keyer)choice(word_next(&save), "unknown", "none", "some");
	} else if (!strcmp(word, "ipv6")) {
		file->input.no_ipv6 = true;
	} else if (!strcmp(word, "expect")) {
		cr_assert_lt(file->expects, LINT_EXPECTS);
		snprintf(file->expect[file->expects], sizeof(file->expect[0]), "%s",
			 save + strspn(save, " "));
		file->expect[file->expects][strcspn(file->expect[file->expects], "\n")] = '\0';
		file->expects++;
	} else {
		cr_assert_fail("unknown line: %s", word);
	}
}

static void lint_file_read(struct lint_file *file, const char *path)
{
	xspd_autofclose FILE *f = fopen(path, "re");
	char line[512];

	cr_assert(f, "%s", path);
	*file = (struct lint_file){.spd = xspd_spd_new()};
	while (fgets(line, sizeof(line), f))
		line_read(file, line);
	file->input.spd = file->spd;
	file->input.sas = file->sa;
}

/* "never-wins A B": as an expect line has it. */
static void finding_text(const struct lint_file *file, const struct xspd_lint_finding *finding,
			 char *buf, size_t size)
{
	size_t len = (size_t)snprintf(buf, size, "%s", xspd_lint_id_name(finding->id));

	for (uint32_t i = 0; i < finding->count && i < XSPD_LINT_NAMED; i++)
		len += (size_t)snprintf(buf + len, size - len, " %s",
					file->name[(finding->pol[i]->index >> 3) - 1]);
}

#endif
