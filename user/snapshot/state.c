// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <netinet/in.h>
#include <libmnl/libmnl.h>

#include "snapshot/state.h"

/* Where the key of an algorithm attribute begins; 0: another attribute. */
static size_t key_offset(const struct nlattr *attr)
{
	switch (mnl_attr_get_type(attr)) {
	case XFRMA_ALG_AUTH:
	case XFRMA_ALG_CRYPT:
	case XFRMA_ALG_COMP:
		return offsetof(struct xfrm_algo, alg_key);
	case XFRMA_ALG_AUTH_TRUNC:
		return offsetof(struct xfrm_algo_auth, alg_key);
	case XFRMA_ALG_AEAD:
		return offsetof(struct xfrm_algo_aead, alg_key);
	}
	return 0;
}

static bool bytes_zero(const unsigned char *at, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (at[i])
			return false;
	return true;
}

/* All three structures have the name and the length of the key, in bits, in common. */
static int key_read(const struct nlattr *attr, size_t offset, struct xspd_snap_state *ret)
{
	const unsigned char *payload = mnl_attr_get_payload(attr);
	size_t len = mnl_attr_get_payload_len(attr);
	struct xfrm_algo algo;

	if (len < offset)
		return -EBADMSG;
	memcpy(&algo, payload, sizeof(algo));
	if ((algo.alg_key_len + 7ull) / 8 > len - offset)
		return -EBADMSG;
	ret->larval = false;
	if (!algo.alg_key_len)
		return 0;
	ret->keyed = true;
	ret->keys_zero = ret->keys_zero && bytes_zero(payload + offset, len - offset);
	return 0;
}

static const struct nlattr *first_attr(const struct nlmsghdr *nlh)
{
	return mnl_nlmsg_get_payload_offset(nlh, sizeof(struct xfrm_usersa_info));
}

int xspd_snap_state_read(const struct nlmsghdr *nlh, struct xspd_snap_state *ret)
{
	const char *tail = (const char *)nlh + nlh->nlmsg_len;
	struct xspd_snap_state state = {.keys_zero = true};
	const struct nlattr *attr;
	size_t offset;
	int err;

	if (nlh->nlmsg_len < NLMSG_HDRLEN + sizeof(state.info))
		return -EBADMSG;
	memcpy(&state.info, mnl_nlmsg_get_payload(nlh), sizeof(state.info));
	/* the other protocols (Mobile IPv6) need no algorithm */
	state.larval = state.info.id.proto == IPPROTO_ESP || state.info.id.proto == IPPROTO_AH ||
		       state.info.id.proto == IPPROTO_COMP;
	for (attr = first_attr(nlh); mnl_attr_ok(attr, tail - (const char *)attr);
	     attr = mnl_attr_next(attr)) {
		offset = key_offset(attr);
		err = offset ? key_read(attr, offset, &state) : 0;
		if (err)
			return err;
		state.lifetime |= mnl_attr_get_type(attr) == XFRMA_LTIME_VAL;
	}
	if ((const char *)attr < tail)
		return -EBADMSG;
	state.keys_zero = state.keys_zero && state.keyed;
	*ret = state;
	return 0;
}

void xspd_snap_state_wipe(struct nlmsghdr *nlh)
{
	const char *tail = (const char *)nlh + nlh->nlmsg_len;
	const struct nlattr *attr;
	size_t offset;

	for (attr = first_attr(nlh); mnl_attr_ok(attr, tail - (const char *)attr);
	     attr = mnl_attr_next(attr)) {
		offset = key_offset(attr);
		if (offset)
			explicit_bzero((char *)mnl_attr_get_payload(attr) + offset,
				       mnl_attr_get_payload_len(attr) - offset);
	}
}

void xspd_snap_state_age(struct nlmsghdr *nlh, const struct xspd_snap_state *state)
{
	if (!state->lifetime)
		mnl_attr_put(nlh, XFRMA_LTIME_VAL, sizeof(state->info.curlft), &state->info.curlft);
}
