// SPDX-License-Identifier: GPL-2.0-only
/* SAs as messages: what is a key, and that nothing else is touched when it goes. */
#include <criterion/criterion.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot/state.h"

#define KEY 20 /* bytes */

static _Alignas(8) char room[4096];

static struct nlmsghdr *begin(uint8_t proto)
{
	struct xfrm_usersa_info info = {.id = {.proto = proto, .spi = htonl(0x1234)},
					.curlft = {.bytes = 5, .packets = 6, .add_time = 7},
					.family = 2,
					.reqid = 9};
	struct nlmsghdr *nlh;

	memset(room, 0, sizeof(room));
	nlh = mnl_nlmsg_put_header(room);
	nlh->nlmsg_type = XFRM_MSG_NEWSA;
	memcpy(mnl_nlmsg_put_extra_header(nlh, sizeof(info)), &info, sizeof(info));
	return nlh;
}

/* An algorithm of @bits with @bytes of room for its key, every byte of it @fill. */
static void put_algo(struct nlmsghdr *nlh, uint16_t type, size_t head, uint32_t bits, size_t bytes,
		     int fill)
{
	char value[256] = "rfc4106(gcm(aes))";

	memcpy(value + 64, &bits, sizeof(bits));
	if (head == 72)
		memcpy(value + 68, &(uint32_t){128}, 4);
	memset(value + head, fill, bytes);
	mnl_attr_put(nlh, type, head + bytes, value);
}

/* Read from a block of the exact size, so that ASan sees any step too far. */
static int read_exact(const struct nlmsghdr *nlh, struct xspd_snap_state *ret)
{
	struct nlmsghdr *copy = malloc(nlh->nlmsg_len);
	int err;

	memcpy(copy, nlh, nlh->nlmsg_len);
	err = xspd_snap_state_read(copy, ret);
	free(copy);
	return err;
}

static const struct {
	uint16_t type;
	size_t head;
} algos[] = {{XFRMA_ALG_AUTH, 68},
	     {XFRMA_ALG_CRYPT, 68},
	     {XFRMA_ALG_AUTH_TRUNC, 72},
	     {XFRMA_ALG_AEAD, 72}};

Test(snapshot_state, keys_go_and_nothing_else)
{
	struct xspd_snap_state state;
	char before[4096];

	for (size_t i = 0; i < sizeof(algos) / sizeof(algos[0]); i++) {
		struct nlmsghdr *nlh = begin(IPPROTO_ESP);
		size_t at, differ = 0;

		mnl_attr_put_u32(nlh, XFRMA_IF_ID, 0xabababab);
		put_algo(nlh, algos[i].type, algos[i].head, KEY * 8, KEY, 0xab);
		mnl_attr_put_u32(nlh, XFRMA_SET_MARK, 0xabababab);
		cr_assert_eq(read_exact(nlh, &state), 0);
		cr_expect(state.keyed && !state.keys_zero && !state.larval);

		memcpy(before, room, sizeof(before));
		xspd_snap_state_wipe(nlh);
		for (at = 0; at < sizeof(before); at++)
			if (room[at] != before[at]) {
				cr_expect_eq(room[at], 0);
				differ++;
			}
		cr_expect_eq(differ, KEY, "attribute %u: %zu bytes changed", algos[i].type, differ);
		cr_assert_eq(read_exact(nlh, &state), 0);
		cr_expect(state.keyed && state.keys_zero && !state.larval);
	}
}

Test(snapshot_state, one_key_left_is_not_none)
{
	struct nlmsghdr *nlh = begin(IPPROTO_ESP);
	struct xspd_snap_state state;

	put_algo(nlh, XFRMA_ALG_AUTH, 68, KEY * 8, KEY, 0);
	put_algo(nlh, XFRMA_ALG_CRYPT, 68, KEY * 8, KEY, 1);
	cr_assert_eq(read_exact(nlh, &state), 0);
	cr_expect(state.keyed && !state.keys_zero);
}

Test(snapshot_state, larval_and_keyless)
{
	struct xspd_snap_state state;
	struct nlmsghdr *nlh = begin(IPPROTO_ESP);

	cr_assert_eq(read_exact(nlh, &state), 0);
	cr_expect(state.larval && !state.keyed && !state.keys_zero);
	put_algo(nlh, XFRMA_ALG_CRYPT, 68, 0, 0, 0); /* cipher_null */
	cr_assert_eq(read_exact(nlh, &state), 0);
	cr_expect(!state.larval && !state.keyed && !state.keys_zero);
	nlh = begin(IPPROTO_COMP);
	cr_assert_eq(read_exact(nlh, &state), 0);
	cr_expect(state.larval);
	put_algo(nlh, XFRMA_ALG_COMP, 68, 0, 0, 0);
	cr_assert_eq(read_exact(nlh, &state), 0);
	cr_expect(!state.larval && !state.keyed);
	nlh = begin(IPPROTO_ROUTING); /* Mobile IPv6 has no algorithm */
	cr_assert_eq(read_exact(nlh, &state), 0);
	cr_expect(!state.larval);
}

Test(snapshot_state, malformed)
{
	struct xspd_snap_state state;
	struct nlmsghdr *nlh;

	for (size_t i = 0; i < sizeof(algos) / sizeof(algos[0]); i++) {
		nlh = begin(IPPROTO_ESP);
		put_algo(nlh, algos[i].type, algos[i].head, KEY * 8, KEY - 1, 1);
		cr_expect_eq(read_exact(nlh, &state), -EBADMSG, "a key longer than its attribute");
		nlh = begin(IPPROTO_ESP);
		put_algo(nlh, algos[i].type, algos[i].head, ~0u, KEY, 1);
		cr_expect_eq(read_exact(nlh, &state), -EBADMSG, "a length that wraps");
		nlh = begin(IPPROTO_ESP);
		mnl_attr_put(nlh, algos[i].type, algos[i].head - 1, room);
		cr_expect_eq(read_exact(nlh, &state), -EBADMSG, "too short for its struct");
	}
	nlh = begin(IPPROTO_ESP);
	nlh->nlmsg_len--;
	cr_expect_eq(read_exact(nlh, &state), -EBADMSG);
	nlh = begin(IPPROTO_ESP);
	put_algo(nlh, XFRMA_ALG_AEAD, 72, KEY * 8, KEY, 1);
	for (uint32_t cut = 1; cut < 72 + KEY + NLA_HDRLEN; cut++) {
		nlh->nlmsg_len--;
		cr_expect_eq(read_exact(nlh, &state), -EBADMSG, "cut by %u", cut);
	}
}

Test(snapshot_state, age_is_told_once)
{
	struct nlmsghdr *nlh = begin(IPPROTO_ESP);
	struct xspd_snap_state state;
	uint32_t len = nlh->nlmsg_len;
	const struct nlattr *attr;

	cr_assert_eq(read_exact(nlh, &state), 0);
	cr_expect_not(state.lifetime);
	xspd_snap_state_age(nlh, &state);
	cr_assert_eq(nlh->nlmsg_len, len + NLA_HDRLEN + sizeof(state.info.curlft));
	attr = mnl_nlmsg_get_payload_offset(nlh, sizeof(state.info));
	cr_expect_eq(mnl_attr_get_type(attr), XFRMA_LTIME_VAL);
	cr_expect_arr_eq(mnl_attr_get_payload(attr), &state.info.curlft, sizeof(state.info.curlft));
	cr_assert_eq(read_exact(nlh, &state), 0);
	cr_expect(state.lifetime);
	xspd_snap_state_age(nlh, &state);
	cr_expect_eq(nlh->nlmsg_len, len + NLA_HDRLEN + sizeof(state.info.curlft));
}
