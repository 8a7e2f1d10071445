// SPDX-License-Identifier: GPL-2.0-only
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util.h"
#include "words/words.h"

#define BLANKS " \t\r\n"

const char *const xspd_words_dirs[3] = {"in", "out", "fwd"};
const char *const xspd_words_actions[2] = {"allow", "block"};
const char *const xspd_words_types[2] = {"main", "sub"};

char *xspd_words_begin(struct xspd_words *w, char *line)
{
	return strtok_r(line, BLANKS, &w->save);
}

char *xspd_words_next(struct xspd_words *w)
{
	return strtok_r(NULL, BLANKS, &w->save);
}

void xspd_words_back(struct xspd_words *w, char *word)
{
	char *end = word + strlen(word);

	/* where it was cut off */
	if (w->save > end)
		*end = ' ';
	w->save = word;
}

int xspd_words_refuse(struct xspd_words *w, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(w->error, w->error_len, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* A leading zero means octal, as it does to ip. */
int xspd_words_number(struct xspd_words *w, const char *word, uint32_t max, uint32_t *ret)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(word ? word : "", &end, 0);
	if (!word || *word < '0' || *word > '9' || *end || errno || value > UINT32_MAX)
		return xspd_words_refuse(w, "not a number: %s", word ? word : "(nothing)");
	if (value > max)
		return xspd_words_refuse(w, "more than %u: %s", max, word);
	*ret = (uint32_t)value;
	return 0;
}

int xspd_words_masked(struct xspd_words *w, char *word, uint32_t full, uint32_t *value,
		      uint32_t *mask)
{
	char *slash = word ? strchr(word, '/') : NULL;

	if (slash)
		*slash++ = '\0';
	*mask = full;
	if (xspd_words_number(w, word, UINT32_MAX, value))
		return -EINVAL;
	return slash ? xspd_words_number(w, slash, UINT32_MAX, mask) : 0;
}

int xspd_words_proto(struct xspd_words *w, const char *word, uint8_t *ret)
{
	/* not left to /etc/protocols, which may be missing */
	static const struct {
		const char *name;
		uint8_t proto;
	} names[] = {
		{"tcp", IPPROTO_TCP},
		{"udp", IPPROTO_UDP},
		{"sctp", IPPROTO_SCTP},
		{"icmp", IPPROTO_ICMP},
		{"ipv6-icmp", IPPROTO_ICMPV6},
		{"gre", IPPROTO_GRE},
		{"any", 0},
	};
	struct protoent *entry;
	uint32_t value = 0;

	if (!word)
		return xspd_words_refuse(w, "not a protocol: (nothing)");
	for (size_t i = 0; i < XSPD_ARRAY_SIZE(names); i++) {
		if (strcmp(word, names[i].name) == 0) {
			*ret = names[i].proto;
			return 0;
		}
	}
	entry = *word < '0' || *word > '9' ? getprotobyname(word) : NULL;
	if (entry)
		value = (uint32_t)entry->p_proto;
	else if (xspd_words_number(w, word, 255, &value))
		return xspd_words_refuse(w, "not a protocol: %s", word);
	*ret = (uint8_t)value;
	return 0;
}

int xspd_words_choice(struct xspd_words *w, const char *word, const char *const *names, int count)
{
	for (int i = 0; i < count; i++)
		if (word && strcmp(word, names[i]) == 0)
			return i;
	return xspd_words_refuse(w, "unknown word: %s", word ? word : "(nothing)");
}

int xspd_words_address(struct xspd_words *w, char *word, void *addr, uint8_t *plen,
		       uint16_t *family)
{
	char *slash = word ? strchr(word, '/') : NULL;
	uint32_t len, most;

	if (slash)
		*slash++ = '\0';
	*family = word && strchr(word, ':') ? AF_INET6 : AF_INET;
	most = *family == AF_INET ? 32 : 128;
	memset(addr, 0, 16);
	if (!word || inet_pton(*family, word, addr) != 1)
		return xspd_words_refuse(w, "not an address: %s", word ? word : "(nothing)");
	if (!plen)
		return slash ? xspd_words_refuse(w, "no prefix here: %s", slash) : 0;
	len = most;
	if (slash && xspd_words_number(w, slash, most, &len))
		return xspd_words_refuse(w, "not a prefix length: %s", slash);
	*plen = (uint8_t)len;
	return 0;
}

int xspd_words_port(struct xspd_words *w, char *word, __be16 *port, __be16 *port_mask)
{
	uint32_t value, mask;

	if (xspd_words_masked(w, word, 0xffff, &value, &mask))
		return -EINVAL;
	if (value > 0xffff || mask > 0xffff)
		return xspd_words_refuse(w, "port out of range");
	*port = htons((uint16_t)value);
	*port_mask = htons((uint16_t)mask);
	return 0;
}
