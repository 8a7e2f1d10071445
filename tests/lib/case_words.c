// SPDX-License-Identifier: GPL-2.0-only
#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/case_words.h"
#include "util.h"

int refuse(struct case_reader *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->error, r->error_len, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

int read_number(struct case_reader *r, const char *word, uint32_t *ret)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(word ? word : "", &end, 0);
	if (!word || end == word || *end || errno || value > UINT32_MAX)
		return refuse(r, "not a number: %s", word ? word : "(nothing)");
	*ret = (uint32_t)value;
	return 0;
}

int read_masked(struct case_reader *r, char *word, uint32_t full, uint32_t *value, uint32_t *mask)
{
	char *slash = word ? strchr(word, '/') : NULL;

	if (slash)
		*slash++ = '\0';
	*mask = full;
	if (read_number(r, word, value))
		return -EINVAL;
	return slash ? read_number(r, slash, mask) : 0;
}

int read_proto(struct case_reader *r, const char *word, uint8_t *ret)
{
	static const struct {
		const char *name;
		uint8_t proto;
	} names[] = {
		{"tcp", IPPROTO_TCP},	{"udp", IPPROTO_UDP},	       {"sctp", IPPROTO_SCTP},
		{"icmp", IPPROTO_ICMP}, {"ipv6-icmp", IPPROTO_ICMPV6}, {"gre", IPPROTO_GRE},
	};
	uint32_t value = 0;

	for (size_t i = 0; i < XSPD_ARRAY_SIZE(names); i++) {
		if (word && strcmp(word, names[i].name) == 0) {
			*ret = names[i].proto;
			return 0;
		}
	}
	if (read_number(r, word, &value) || value > 255)
		return refuse(r, "not a protocol: %s", word ? word : "(nothing)");
	*ret = (uint8_t)value;
	return 0;
}

int read_choice(struct case_reader *r, const char *word, const char *const *names, int count)
{
	for (int i = 0; i < count; i++)
		if (word && strcmp(word, names[i]) == 0)
			return i;
	return refuse(r, "unknown word: %s", word ? word : "(nothing)");
}

int read_address(struct case_reader *r, char *word, void *addr, uint8_t *plen, uint16_t *family)
{
	char *slash = word ? strchr(word, '/') : NULL;
	uint32_t len = 0;

	if (slash)
		*slash++ = '\0';
	*family = word && strchr(word, ':') ? AF_INET6 : AF_INET;
	memset(addr, 0, 16);
	if (!word || inet_pton(*family, word, addr) != 1)
		return refuse(r, "not an address: %s", word ? word : "(nothing)");
	if (!plen)
		return slash ? refuse(r, "no prefix here: %s", slash) : 0;
	if (read_number(r, slash, &len) || len > (*family == AF_INET ? 32u : 128u))
		return refuse(r, "not a prefix length: %s", slash ? slash : "(nothing)");
	*plen = (uint8_t)len;
	return 0;
}

int read_port(struct case_reader *r, char *word, __be16 *port, __be16 *port_mask)
{
	uint32_t value, mask;

	if (read_masked(r, word, 0xffff, &value, &mask))
		return -EINVAL;
	if (value > 0xffff || mask > 0xffff)
		return refuse(r, "port out of range");
	*port = htons((uint16_t)value);
	*port_mask = htons((uint16_t)mask);
	return 0;
}
