// SPDX-License-Identifier: GPL-2.0-only
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/craft.h"
#include "lib/gateway_out.h"
#include "util.h"

#define SHOWN 6

static void add(struct gateway_out *out, int where, const uint8_t *data, size_t len)
{
	struct gateway_thing *thing;

	if (out->count == out->room) {
		out->room = out->room ? out->room * 2 : 4096;
		out->thing = reallocarray(out->thing, out->room, sizeof(*out->thing));
		if (!out->thing)
			abort();
	}
	thing = &out->thing[out->count++];
	thing->len = len + 1;
	thing->bytes = malloc(thing->len);
	if (!thing->bytes)
		abort();
	thing->bytes[0] = (uint8_t)where;
	memcpy(thing->bytes + 1, data, len);
}

static bool own_v4(const uint8_t *addr)
{
	static const char *const own[] = {GATEWAY_V4_C, GATEWAY_V4_S, "192.0.2.1", "198.51.100.1",
					  "203.0.113.1"};
	struct in_addr in;

	for (size_t i = 0; i < XSPD_ARRAY_SIZE(own); i++)
		if (inet_pton(AF_INET, own[i], &in) == 1 && !memcmp(&in, addr, 4))
			return true;
	return false;
}

/* Right as they are, or left as they are. */
static void forget_id(uint8_t *ip, size_t len)
{
	uint8_t sum[2];
	size_t head = (ip[0] & 0xf) * 4;

	if (head < 20 || head > len)
		return;
	memcpy(sum, ip + 10, 2);
	craft_ip_sum(ip, head);
	if (memcmp(sum, ip + 10, 2)) {
		memcpy(ip + 10, sum, 2);
		return;
	}
	craft_be16(ip + 4, 0);
	craft_ip_sum(ip, head);
}

static bool chatter_v6(const uint8_t *ip, size_t len)
{
	uint8_t type;

	if (len < 48 || (ip[6] != 58 && !(ip[6] == 0 && len >= 56 && ip[40] == 58)))
		return false;
	type = ip[6] == 58 ? ip[40] : ip[48];
	return type == 131 || type == 132 || type == 143 || type == 133 || type == 135 ||
	       type == 137;
}

void gateway_out_forget(uint8_t *ip, size_t len)
{
	if (len >= 20 && own_v4(ip + 12))
		forget_id(ip, len);
}

void gateway_out_frame(struct gateway_out *out, int side, uint8_t *frame, size_t len)
{
	uint16_t ethertype = len < 14 ? 0 : (uint16_t)(frame[12] << 8 | frame[13]);
	uint8_t *ip = frame + 14;

	if (ethertype == 0x88b5 || ethertype == 0x0806)
		return;
	if (ethertype == 0x0800 && len >= 34 && own_v4(ip + 12) && ip[9] == 2)
		return;
	if (ethertype == 0x0800)
		gateway_out_forget(ip, len - 14);
	if (ethertype == 0x86dd && chatter_v6(ip, len - 14))
		return;
	add(out, side, frame, len);
}

void gateway_out_local(struct gateway_out *out, int socket, const uint8_t *data, size_t len)
{
	add(out, GATEWAY_SIDES + socket, data, len);
}

static int compare(const void *a, const void *b)
{
	const struct gateway_thing *x = a, *y = b;

	if (x->len != y->len)
		return x->len < y->len ? -1 : 1;
	return memcmp(x->bytes, y->bytes, x->len);
}

void gateway_out_sort(struct gateway_out *out)
{
	if (out->count)
		qsort(out->thing, out->count, sizeof(*out->thing), compare);
}

void gateway_out_free(struct gateway_out *out)
{
	if (!out)
		return;
	for (size_t i = 0; i < out->count; i++)
		free(out->thing[i].bytes);
	free(out->thing);
	free(out);
}

size_t gateway_out_count(const struct gateway_out *out, bool local)
{
	size_t count = 0;

	for (size_t i = 0; i < out->count; i++)
		count += (out->thing[i].bytes[0] >= GATEWAY_SIDES) == local;
	return count;
}

size_t gateway_out_acquires(const struct gateway_out *out)
{
	return out->acquires;
}

static void show(const struct gateway_thing *thing, const char *who)
{
	int where = thing->bytes[0];

	fprintf(stderr, "   only %s, %s %d: ", who, where < GATEWAY_SIDES ? "side" : "socket",
		where < GATEWAY_SIDES ? where : where - GATEWAY_SIDES);
	for (size_t i = 1; i < thing->len && i < 200; i++)
		fprintf(stderr, "%02x", thing->bytes[i]);
	fprintf(stderr, "\n");
}

size_t gateway_out_compare(const struct gateway_out *a, const struct gateway_out *b)
{
	size_t i = 0, j = 0, only_a = 0, only_b = 0;

	while (i < a->count || j < b->count) {
		int cmp = i == a->count	  ? 1
			  : j == b->count ? -1
					  : compare(&a->thing[i], &b->thing[j]);

		if (cmp < 0 && only_a++ < SHOWN)
			show(&a->thing[i], "without xspd");
		if (cmp > 0 && only_b++ < SHOWN)
			show(&b->thing[j], "with xspd");
		i += cmp <= 0;
		j += cmp >= 0;
	}
	return only_a + only_b;
}
