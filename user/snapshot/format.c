// SPDX-License-Identifier: GPL-2.0-only
#include <string.h>
#include <libmnl/libmnl.h>
#include <linux/xfrm.h>
#include <zlib.h>

#include "nl/nl.h"
#include "snapshot/format.h"
#include "snapshot/state.h"
#include "util.h"

static uint32_t header_crc(const struct xspd_snap_header *header)
{
	return xspd_snap_crc(0, header, offsetof(struct xspd_snap_header, header_crc));
}

void xspd_snap_seal(struct xspd_snap_header *header)
{
	memcpy(header->magic, XSPD_SNAP_MAGIC, sizeof(header->magic));
	header->order = XSPD_SNAP_ORDER;
	header->version = XSPD_SNAP_VERSION;
	header->header_crc = header_crc(header);
}

uint32_t xspd_snap_crc(uint32_t crc, const void *data, size_t size)
{
	/* zlib takes a NULL for "begin anew" */
	return size ? (uint32_t)crc32_z(crc, data, size) : crc;
}

static enum xspd_snap_fault header_check(const void *file, size_t size,
					 struct xspd_snap_header *header)
{
	size_t part = size < sizeof(*header) ? size : sizeof(*header);

	if (size < sizeof(header->magic))
		return XSPD_SNAP_FOREIGN;
	memcpy(header, file, part);
	if (memcmp(header->magic, XSPD_SNAP_MAGIC, sizeof(header->magic)))
		return XSPD_SNAP_FOREIGN;
	if (part < sizeof(*header))
		return XSPD_SNAP_TRUNCATED;
	if (header->order != XSPD_SNAP_ORDER)
		return XSPD_SNAP_OTHER_ORDER;
	if (header->version != XSPD_SNAP_VERSION)
		return XSPD_SNAP_OTHER_VERSION;
	if (header->header_crc != header_crc(header))
		return XSPD_SNAP_BAD_HEADER;
	return XSPD_SNAP_FINE;
}

/* Of the kind that is due at this place, whole, and of a size that can be sent? */
static bool message_ok(const struct nlmsghdr *nlh, bool state)
{
	struct xspd_snap_state sa;
	struct xspd_event event;

	if (nlh->nlmsg_len > XSPD_BATCH_ROOM)
		return false;
	if (state)
		return nlh->nlmsg_type == XFRM_MSG_NEWSA && !xspd_snap_state_read(nlh, &sa);
	return nlh->nlmsg_type == XFRM_MSG_NEWPOLICY && !xspd_nl_decode(nlh, &event) &&
	       event.kind == XSPD_EVENT_POLICY;
}

static bool body_ok(const struct xspd_snap_header *header, const char *at)
{
	uint64_t left = header->body_size, count = (uint64_t)header->states + header->policies;
	const struct nlmsghdr *nlh;

	for (uint64_t i = 0; i < count; i++) {
		nlh = (const void *)at;
		if (left < sizeof(*nlh) || nlh->nlmsg_len < sizeof(*nlh) ||
		    NLMSG_ALIGN((uint64_t)nlh->nlmsg_len) > left ||
		    !message_ok(nlh, i < header->states))
			return false;
		at += NLMSG_ALIGN(nlh->nlmsg_len);
		left -= NLMSG_ALIGN(nlh->nlmsg_len);
	}
	return !left;
}

enum xspd_snap_fault xspd_snap_check(const void *file, size_t size, struct xspd_snap_header *ret)
{
	struct xspd_snap_header header = {};
	enum xspd_snap_fault fault = header_check(file, size, &header);
	const char *body = (const char *)file + sizeof(header);

	*ret = (struct xspd_snap_header){};
	if (fault == XSPD_SNAP_FOREIGN || fault == XSPD_SNAP_OTHER_ORDER)
		return fault;
	*ret = header;
	if (fault)
		return fault;
	if (size - sizeof(header) < header.body_size)
		return XSPD_SNAP_TRUNCATED;
	if (size - sizeof(header) > header.body_size)
		return XSPD_SNAP_LONGER;
	if (xspd_snap_crc(0, body, header.body_size) != header.body_crc)
		return XSPD_SNAP_BAD_BODY;
	return body_ok(&header, body) ? XSPD_SNAP_FINE : XSPD_SNAP_BAD_MESSAGE;
}

const char *xspd_snap_fault_text(enum xspd_snap_fault fault)
{
	static const char *const text[] = {
		[XSPD_SNAP_FINE] = "sound",
		[XSPD_SNAP_FOREIGN] = "not a snapshot",
		[XSPD_SNAP_OTHER_ORDER] = "written on a machine of another byte order",
		[XSPD_SNAP_OTHER_VERSION] = "a snapshot of another format version",
		[XSPD_SNAP_TRUNCATED] = "truncated",
		[XSPD_SNAP_BAD_HEADER] = "corrupted (checksum of the header)",
		[XSPD_SNAP_LONGER] = "corrupted (longer than its header says)",
		[XSPD_SNAP_BAD_BODY] = "corrupted (checksum of the body)",
		[XSPD_SNAP_BAD_MESSAGE] = "corrupted (a malformed entry)",
	};

	_Static_assert(XSPD_ARRAY_SIZE(text) == XSPD_SNAP_FAULT_MAX_, "a text for each fault");
	return fault < XSPD_SNAP_FAULT_MAX_ ? text[fault] : "?";
}

static void info_read(const struct nlmsghdr *nlh, struct xfrm_userpolicy_info *ret)
{
	memcpy(ret, NLMSG_DATA(nlh), sizeof(*ret));
	ret->index = 0;
	memset(&ret->curlft, 0, sizeof(ret->curlft));
}

bool xspd_snap_same_policy(const struct nlmsghdr *a, const struct nlmsghdr *b)
{
	size_t skip = NLMSG_HDRLEN + sizeof(struct xfrm_userpolicy_info);
	struct xfrm_userpolicy_info info_a, info_b;

	if (a->nlmsg_len != b->nlmsg_len || a->nlmsg_len < skip)
		return false;
	info_read(a, &info_a);
	info_read(b, &info_b);
	return !memcmp(&info_a, &info_b, sizeof(info_a)) &&
	       !memcmp((const char *)a + skip, (const char *)b + skip, a->nlmsg_len - skip);
}
