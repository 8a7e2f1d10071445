// SPDX-License-Identifier: GPL-2.0-only
/* From netlink messages to events. Pure; lengths are checked before anything is read. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <libmnl/libmnl.h>
#include <linux/xfrm.h>

#include "nl/nl.h"

/* The attributes that matter, or NULL. */
struct attrs {
	const struct nlattr *tmpl, *policy, *type, *mark, *if_id, *sec_ctx, *offload;
};

static int attr_want(const struct nlattr **slot, const struct nlattr *attr, size_t len)
{
	if (mnl_attr_get_payload_len(attr) < len)
		return -EBADMSG;
	*slot = attr;
	return 0;
}

static int attr_take(struct attrs *ret, const struct nlattr *attr)
{
	switch (mnl_attr_get_type(attr)) {
	case XFRMA_TMPL:
		return attr_want(&ret->tmpl, attr, 0);
	case XFRMA_POLICY:
		return attr_want(&ret->policy, attr, sizeof(struct xfrm_userpolicy_info));
	case XFRMA_POLICY_TYPE:
		return attr_want(&ret->type, attr, sizeof(struct xfrm_userpolicy_type));
	case XFRMA_MARK:
		return attr_want(&ret->mark, attr, sizeof(struct xfrm_mark));
	case XFRMA_IF_ID:
		return attr_want(&ret->if_id, attr, sizeof(uint32_t));
	case XFRMA_SEC_CTX:
		return attr_want(&ret->sec_ctx, attr, 0);
	case XFRMA_OFFLOAD_DEV:
		return attr_want(&ret->offload, attr, sizeof(struct xfrm_user_offload));
	}
	return 0; /* attributes of later kernels that do not bear on matching */
}

static int attrs_parse(const struct nlmsghdr *nlh, size_t skip, struct attrs *ret)
{
	const char *tail = (const char *)nlh + nlh->nlmsg_len;
	const struct nlattr *attr = mnl_nlmsg_get_payload_offset(nlh, skip);
	int err;

	for (; mnl_attr_ok(attr, tail - (const char *)attr); attr = mnl_attr_next(attr)) {
		err = attr_take(ret, attr);
		if (err < 0)
			return err;
	}
	return (const char *)attr < tail ? -EBADMSG : 0;
}

/* Addresses of IPv4 have one word; what a requester left in the others is not ours to keep. */
static void addr_copy(__be32 *ret, const xfrm_address_t *addr, uint16_t family)
{
	memset(ret, 0, 16);
	memcpy(ret, addr, family == AF_INET6 ? 16 : 4);
}

static int tmpl_fill(struct xspd_tmpl *ret, const struct nlattr *attr)
{
	struct xfrm_user_tmpl tmpl[XSPD_TMPL_MAX];
	size_t i, len = attr ? mnl_attr_get_payload_len(attr) : 0;

	memset(ret, 0, sizeof(*ret));
	if (!len)
		return 0;
	if (len % sizeof(tmpl[0]) || len > sizeof(tmpl))
		return -EBADMSG;
	memcpy(tmpl, mnl_attr_get_payload(attr), len);
	ret->count = len / sizeof(tmpl[0]);
	for (i = 0; i < ret->count; i++)
		ret->required += !tmpl[i].optional;
	ret->reqid = tmpl[0].reqid;
	ret->family = tmpl[0].family;
	ret->proto = tmpl[0].id.proto;
	ret->mode = tmpl[0].mode;
	if (ret->mode != XFRM_MODE_TRANSPORT) {
		addr_copy(ret->daddr, &tmpl[0].id.daddr, ret->family);
		addr_copy(ret->saddr, &tmpl[0].saddr, ret->family);
	}
	return 0;
}

static uint8_t type_get(const struct nlattr *attr)
{
	struct xfrm_userpolicy_type type = {.type = XFRM_POLICY_TYPE_MAIN};

	if (attr)
		memcpy(&type, mnl_attr_get_payload(attr), sizeof(type));
	return type.type;
}

static void mark_fill(struct xspd_pol *pol, const struct nlattr *attr)
{
	struct xfrm_mark mark = {};

	if (attr)
		memcpy(&mark, mnl_attr_get_payload(attr), sizeof(mark));
	pol->mark = mark.v; /* before 6.16 with bits beyond the mask: then it never matches */
	pol->mark_mask = mark.m;
}

/* Is it a policy whose every field we know how to match? */
static bool pol_modelled(const struct xspd_pol *pol)
{
	const struct xfrm_selector *sel = &pol->sel;
	unsigned int bits = sel->family == AF_INET6 ? 128 : 32;

	return pol->index && (sel->family == AF_INET || sel->family == AF_INET6) &&
	       sel->prefixlen_d <= bits && sel->prefixlen_s <= bits && pol->type < XSPD_TYPE_MAX_ &&
	       pol->action <= XFRM_POLICY_BLOCK;
}

static int pol_fill(struct xspd_pol *pol, const struct xfrm_userpolicy_info *info,
		    const struct attrs *attrs)
{
	pol->sel = info->sel;
	pol->index = info->index;
	pol->priority = info->priority;
	pol->dir = info->dir;
	pol->action = info->action;
	pol->flags = info->flags;
	pol->type = type_get(attrs->type);
	mark_fill(pol, attrs->mark);
	if (attrs->if_id)
		pol->if_id = mnl_attr_get_u32(attrs->if_id);
	if (attrs->sec_ctx)
		pol->unmodelled |= XSPD_UNMODELLED_SEC_CTX;
	if (attrs->offload) /* policies know packet offload only */
		pol->unmodelled |= XSPD_UNMODELLED_OFFLOAD;
	return tmpl_fill(&pol->tmpl, attrs->tmpl);
}

/* Those of sockets are dumped with the others, in directions 3 and 4, and match no packet here. */
static bool info_is_socket(const struct xfrm_userpolicy_info *info)
{
	return info->dir >= XFRM_POLICY_MAX || (info->index & 7) >= XFRM_POLICY_MAX;
}

/* @info was copied from the message, @skip bytes of it come before the attributes. */
static int policy_decode(const struct nlmsghdr *nlh, size_t skip,
			 const struct xfrm_userpolicy_info *info, enum xspd_event_kind kind,
			 struct xspd_event *ret)
{
	struct attrs attrs = {};
	int err = attrs_parse(nlh, skip, &attrs);

	if (err < 0 || info_is_socket(info))
		return err;
	err = pol_fill(&ret->pol, info, &attrs);
	if (err < 0)
		return err;
	ret->kind = kind;
	ret->typed = attrs.type;
	if (kind == XSPD_EVENT_POLICY && !pol_modelled(&ret->pol))
		ret->kind = XSPD_EVENT_UNMODELLED;
	return 0;
}

static int newpolicy_decode(const struct nlmsghdr *nlh, struct xspd_event *ret)
{
	struct xfrm_userpolicy_info info;

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(info))
		return -EBADMSG;
	memcpy(&info, mnl_nlmsg_get_payload(nlh), sizeof(info));
	return policy_decode(nlh, sizeof(info), &info, XSPD_EVENT_POLICY, ret);
}

/* The header repeats the request; what went away is in XFRMA_POLICY. */
static int delpolicy_decode(const struct nlmsghdr *nlh, struct xspd_event *ret)
{
	struct xfrm_userpolicy_info info;
	struct attrs attrs = {};
	int err;

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(struct xfrm_userpolicy_id))
		return -EBADMSG;
	err = attrs_parse(nlh, sizeof(struct xfrm_userpolicy_id), &attrs);
	if (err < 0)
		return err;
	if (!attrs.policy)
		return -EBADMSG;
	memcpy(&info, mnl_attr_get_payload(attrs.policy), sizeof(info));
	return policy_decode(nlh, sizeof(struct xfrm_userpolicy_id), &info, XSPD_EVENT_REMOVE, ret);
}

static int polexpire_decode(const struct nlmsghdr *nlh, struct xspd_event *ret)
{
	struct xfrm_user_polexpire expire;

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(expire))
		return -EBADMSG;
	memcpy(&expire, mnl_nlmsg_get_payload(nlh), sizeof(expire));
	return policy_decode(nlh, sizeof(expire), &expire.pol,
			     expire.hard ? XSPD_EVENT_REMOVE : XSPD_EVENT_NONE, ret);
}

static int flush_decode(const struct nlmsghdr *nlh, struct xspd_event *ret)
{
	struct attrs attrs = {};
	int err = attrs_parse(nlh, 0, &attrs);

	if (err < 0)
		return err;
	ret->type = type_get(attrs.type);
	ret->kind = ret->type < XSPD_TYPE_MAX_ ? XSPD_EVENT_FLUSH : XSPD_EVENT_UNMODELLED;
	return 0;
}

static void default_take(struct xspd_event *ret, enum xspd_dir dir, uint8_t value)
{
	if (value == XFRM_USERPOLICY_UNSPEC)
		return;
	ret->defaults_known |= 1u << dir;
	if (value == XFRM_USERPOLICY_BLOCK)
		ret->defaults |= 1u << dir;
}

static int defaults_decode(const struct nlmsghdr *nlh, struct xspd_event *ret)
{
	struct xfrm_userpolicy_default def;

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(def))
		return -EBADMSG;
	memcpy(&def, mnl_nlmsg_get_payload(nlh), sizeof(def));
	default_take(ret, XSPD_IN, def.in);
	default_take(ret, XSPD_FWD, def.fwd);
	default_take(ret, XSPD_OUT, def.out);
	ret->kind = XSPD_EVENT_DEFAULTS;
	return 0;
}

static void counts_fill(struct xspd_spdinfo *ret, const struct nlattr *attr)
{
	struct xfrmu_spdinfo info;

	memcpy(&info, mnl_attr_get_payload(attr), sizeof(info));
	ret->count[XSPD_IN] = info.incnt;
	ret->count[XSPD_OUT] = info.outcnt;
	ret->count[XSPD_FWD] = info.fwdcnt;
	ret->sock_count[XSPD_IN] = info.inscnt;
	ret->sock_count[XSPD_OUT] = info.outscnt;
	ret->sock_count[XSPD_FWD] = info.fwdscnt;
}

static int spdinfo_decode(const struct nlmsghdr *nlh, struct xspd_event *ret)
{
	const struct nlattr *info = NULL, *hthresh4 = NULL, *hthresh6 = NULL, *attr;
	const char *tail = (const char *)nlh + nlh->nlmsg_len;
	struct xfrmu_spdhthresh bits;
	int err = 0;

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(uint32_t))
		return -EBADMSG;
	attr = mnl_nlmsg_get_payload_offset(nlh, sizeof(uint32_t));
	for (; !err && mnl_attr_ok(attr, tail - (const char *)attr); attr = mnl_attr_next(attr)) {
		switch (mnl_attr_get_type(attr)) {
		case XFRMA_SPD_INFO:
			err = attr_want(&info, attr, sizeof(struct xfrmu_spdinfo));
			break;
		case XFRMA_SPD_IPV4_HTHRESH:
			err = attr_want(&hthresh4, attr, sizeof(bits));
			break;
		case XFRMA_SPD_IPV6_HTHRESH:
			err = attr_want(&hthresh6, attr, sizeof(bits));
			break;
		}
	}
	if (err < 0 || !info)
		return -EBADMSG;
	counts_fill(&ret->info, info);
	if (hthresh4) {
		memcpy(&bits, mnl_attr_get_payload(hthresh4), sizeof(bits));
		ret->info.lbits4 = bits.lbits;
		ret->info.rbits4 = bits.rbits;
	}
	if (hthresh6) {
		memcpy(&bits, mnl_attr_get_payload(hthresh6), sizeof(bits));
		ret->info.lbits6 = bits.lbits;
		ret->info.rbits6 = bits.rbits;
	}
	ret->kind = XSPD_EVENT_SPDINFO;
	return 0;
}

static int error_decode(const struct nlmsghdr *nlh, struct xspd_event *ret)
{
	const struct nlmsgerr *err = mnl_nlmsg_get_payload(nlh);

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(*err))
		return -EBADMSG;
	ret->error = err->error;
	ret->kind = XSPD_EVENT_ERROR;
	return 0;
}

static int done_decode(const struct nlmsghdr *nlh, struct xspd_event *ret)
{
	int32_t error = 0;

	if (mnl_nlmsg_get_payload_len(nlh) >= sizeof(error))
		memcpy(&error, mnl_nlmsg_get_payload(nlh), sizeof(error));
	if (nlh->nlmsg_flags & NLM_F_DUMP_INTR)
		error = -EINTR;
	ret->error = error < 0 ? error : 0;
	ret->kind = XSPD_EVENT_DONE;
	return 0;
}

int xspd_nl_decode(const struct nlmsghdr *nlh, struct xspd_event *ret)
{
	if (nlh->nlmsg_len < sizeof(*nlh))
		return -EBADMSG;
	memset(ret, 0, sizeof(*ret)); /* kind NONE */
	ret->nlmsg_type = nlh->nlmsg_type;
	ret->seq = nlh->nlmsg_seq;
	ret->multi = nlh->nlmsg_flags & NLM_F_MULTI;
	ret->msg = nlh;

	switch (nlh->nlmsg_type) {
	case XFRM_MSG_NEWPOLICY:
	case XFRM_MSG_UPDPOLICY:
		return newpolicy_decode(nlh, ret);
	case XFRM_MSG_DELPOLICY:
		return delpolicy_decode(nlh, ret);
	case XFRM_MSG_POLEXPIRE:
		return polexpire_decode(nlh, ret);
	case XFRM_MSG_FLUSHPOLICY:
		return flush_decode(nlh, ret);
	case XFRM_MSG_GETDEFAULT:
		return defaults_decode(nlh, ret);
	case XFRM_MSG_NEWSPDINFO:
		return spdinfo_decode(nlh, ret);
	case NLMSG_ERROR:
		return error_decode(nlh, ret);
	case NLMSG_DONE:
		return done_decode(nlh, ret);
	case XFRM_MSG_MIGRATE:
		ret->kind = XSPD_EVENT_MIGRATE;
		return 0;
	case NLMSG_NOOP:
	case XFRM_MSG_NEWSA:
	case XFRM_MSG_DELSA:
	case XFRM_MSG_UPDSA:
	case XFRM_MSG_FLUSHSA:
	case XFRM_MSG_EXPIRE:
	case XFRM_MSG_ACQUIRE:
	case XFRM_MSG_NEWAE:
	case XFRM_MSG_REPORT:
	case XFRM_MSG_MAPPING:
		return 0; /* of SAs */
	}
	ret->kind = XSPD_EVENT_UNMODELLED;
	return 0;
}
