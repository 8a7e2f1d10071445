/* SPDX-License-Identifier: GPL-2.0-only */
/* Frames of every shape that dissection tells apart, odd and broken ones included. */
#ifndef XSPD_TESTS_CRAFT_H
#define XSPD_TESTS_CRAFT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CRAFT_L4_MAX  64
#define CRAFT_EXT_MAX 18
#define CRAFT_MAX     (14 + 12 + 40 + (CRAFT_EXT_MAX + 1) * 64 + 8 + CRAFT_L4_MAX + 64)

enum craft_frag {
	CRAFT_WHOLE = 0,
	CRAFT_FIRST,
	CRAFT_MIDDLE,
	CRAFT_LAST,
	CRAFT_ATOMIC, /* IPv6: a fragment header on a whole packet */
	CRAFT_FRAG_MAX_,
};

struct craft_ext {
	uint8_t type;
	uint8_t len; /* as in the header: units of 8 bytes beyond the first; at most 7 */
};

struct craft_spec {
	uint8_t family;	 /* 4 or 6 */
	uint8_t tags;	 /* 802.1Q and 802.1AD by turns */
	uint8_t vid;	 /* in each of them; 0: priority only */
	uint8_t options; /* IPv4: words of them */
	uint8_t ext_count;
	struct craft_ext ext[CRAFT_EXT_MAX];
	enum craft_frag frag;
	uint8_t inner; /* IPv6: an extension header behind the fragment header, 0: none */
	uint8_t proto;
	uint8_t l4_len;
	uint8_t l4[CRAFT_L4_MAX];
	uint8_t pad;	   /* bytes behind the datagram */
	int16_t length;	   /* what the IP length is off by */
	uint8_t no_length; /* IPv6: payload length 0 */
	uint16_t id;	   /* the addresses: 10.1.0.0 + id to 10.2.0.0 + id, fd01:: and fd02:: */
};

struct craft {
	uint8_t b[CRAFT_MAX];
	size_t l3; /* offset of the IP header */
	size_t len;
};

static inline void craft_put(struct craft *c, const void *data, size_t n)
{
	memcpy(c->b + c->len, data, n);
	c->len += n;
}

static inline void craft_be16(uint8_t *at, unsigned int v)
{
	at[0] = v >> 8;
	at[1] = v;
}

static inline void craft_ip_sum(uint8_t *ip, size_t n)
{
	uint32_t sum = 0;
	size_t i;

	craft_be16(ip + 10, 0);
	for (i = 0; i < n; i += 2)
		sum += ip[i] << 8 | ip[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	craft_be16(ip + 10, ~sum);
}

static inline void craft_ip4(struct craft *c, const struct craft_spec *s)
{
	static const uint16_t frag[CRAFT_FRAG_MAX_] = {0, 0x2000, 0x2005, 0x0009, 0x4000};
	size_t head = 20 + s->options * 4;
	uint8_t ip[60] = {};

	memset(ip + 20, 1, head - 20); /* no-operation options */
	ip[0] = 0x40 | head / 4;
	ip[1] = 0x20;
	craft_be16(ip + 2, head + s->l4_len + s->length);
	craft_be16(ip + 4, s->id);
	craft_be16(ip + 6, frag[s->frag]);
	ip[8] = 64;
	ip[9] = s->proto;
	memcpy(ip + 12, (uint8_t[]){10, 1, s->id >> 8, s->id}, 4);
	memcpy(ip + 16, (uint8_t[]){10, 2, s->id >> 8, s->id}, 4);
	craft_ip_sum(ip, head);
	craft_put(c, ip, head);
}

/* An extension header whose one option is to be skipped when it is not known. */
static inline void craft_ext(struct craft *c, unsigned int next, unsigned int len)
{
	uint8_t head[64] = {next, len, 0x1e, (len + 1) * 8 - 4};

	craft_put(c, head, (len + 1) * 8);
}

static inline void craft_ip6(struct craft *c, const struct craft_spec *s)
{
	static const uint16_t frag[CRAFT_FRAG_MAX_] = {0, 1, 5 << 3 | 1, 9 << 3, 0};
	unsigned int inner = s->frag && s->inner ? s->inner : s->proto;
	unsigned int next = s->frag ? 44 : s->proto;
	uint8_t fragment[8] = {inner, 0, 0, 0, s->id >> 8, s->id, 1, 1};
	uint8_t ip[40] = {0x62};
	size_t start = c->len;
	int i;

	ip[6] = s->ext_count ? s->ext[0].type : next;
	ip[7] = 64;
	memcpy(ip + 8, (uint8_t[]){0xfd, 1}, 2);
	memcpy(ip + 24, (uint8_t[]){0xfd, 2}, 2);
	craft_be16(ip + 22, s->id);
	craft_be16(ip + 38, s->id);
	craft_put(c, ip, 40);
	for (i = 0; i < s->ext_count; i++)
		craft_ext(c, i + 1 < s->ext_count ? s->ext[i + 1].type : next, s->ext[i].len);
	if (s->frag) {
		craft_be16(fragment + 2, frag[s->frag]);
		craft_put(c, fragment, sizeof(fragment));
		if (inner != s->proto)
			craft_ext(c, s->proto, 0);
	}
	if (!s->no_length)
		craft_be16(c->b + start + 4, c->len - start - 40 + s->l4_len + s->length);
}

/* Ethernet header (addresses 0), tags, IP and the rest. */
static inline void craft(struct craft *c, const struct craft_spec *s)
{
	static const uint16_t tpid[2] = {0x8100, 0x88a8};
	uint8_t word[4] = {};
	int i;

	memset(c, 0, sizeof(*c));
	c->len = 12;
	for (i = 0; i < s->tags; i++) {
		craft_be16(word, tpid[i & 1]);
		craft_be16(word + 2, 5 << 13 | s->vid);
		craft_put(c, word, 4);
	}
	craft_be16(word, s->family == 4 ? 0x0800 : 0x86dd);
	craft_put(c, word, 2);
	c->l3 = c->len;
	if (s->family == 4)
		craft_ip4(c, s);
	else
		craft_ip6(c, s);
	craft_put(c, s->l4, s->l4_len);
	memset(c->b + c->len, 0xee, s->pad);
	c->len += s->pad;
}

/* --- random ones: splitmix64 --- */
static inline uint64_t craft_next(uint64_t *rng)
{
	uint64_t z = *rng += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static inline unsigned int craft_below(uint64_t *rng, unsigned int n)
{
	return (uint32_t)(craft_next(rng) >> 32) % n;
}

/* Protocols with a rule of their own come more than once; then any number. */
static inline unsigned int craft_random_proto(uint64_t *rng)
{
	static const uint8_t known[] = {6,  17, 17, 132, 136, 33, 1,   58, 47,	47,  47,
					50, 51, 4,  41,	 59,  2,  108, 0,  115, 137, 135};

	if (craft_below(rng, 16) == 0)
		return craft_below(rng, 256);
	return known[craft_below(rng, sizeof(known))];
}

static inline void craft_random_gre(uint64_t *rng, uint8_t *l4)
{
	static const uint16_t inner[] = {0x0800, 0x86dd, 0x880b, 0x880b, 0x6558, 0x88be};
	unsigned int flags = craft_below(rng, 16) << 12 & ~0x4000;

	if (craft_below(rng, 6) == 0)
		flags |= 0x4000;
	if (craft_below(rng, 3) == 0)
		flags |= 1 | (craft_below(rng, 2) ? 0x80 : 0);
	if (craft_below(rng, 10) == 0)
		flags |= craft_below(rng, 8);
	craft_be16(l4, flags);
	craft_be16(l4 + 2, inner[craft_below(rng, 6)]);
}

static inline void craft_random_ip6(uint64_t *rng, struct craft_spec *s)
{
	static const uint8_t types[] = {60, 43, 60, 0};
	int i;

	if (craft_below(rng, 2) == 0)
		s->ext_count = craft_below(rng, 8) ? craft_below(rng, 4)
						   : craft_below(rng, CRAFT_EXT_MAX + 1);
	for (i = 0; i < s->ext_count; i++) {
		s->ext[i].type = types[craft_below(rng, 4)];
		s->ext[i].len = craft_below(rng, 4) ? 0 : craft_below(rng, 8);
	}
	if (s->frag && craft_below(rng, 4) == 0)
		s->inner = types[craft_below(rng, 2)];
	s->no_length = craft_below(rng, 20) == 0;
}

static inline void craft_random(uint64_t *rng, struct craft_spec *s)
{
	int i;

	memset(s, 0, sizeof(*s));
	s->family = craft_below(rng, 2) ? 4 : 6;
	s->proto = craft_random_proto(rng);
	s->l4_len = craft_below(rng, 3) ? 20 + craft_below(rng, 40) : craft_below(rng, 20);
	for (i = 0; i < CRAFT_L4_MAX; i++)
		s->l4[i] = craft_next(rng);
	if (s->proto == 47)
		craft_random_gre(rng, s->l4);
	if (craft_below(rng, 4) == 0)
		s->frag = craft_below(rng, CRAFT_FRAG_MAX_);
	if (s->family == 6)
		craft_random_ip6(rng, s);
	else if (craft_below(rng, 4) == 0)
		s->options = craft_below(rng, 11);
	if (craft_below(rng, 3) == 0)
		s->pad = craft_below(rng, 47);
	if (craft_below(rng, 12) == 0)
		s->length = (int)craft_below(rng, 40) - 20;
}

#endif
