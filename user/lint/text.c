// SPDX-License-Identifier: GPL-2.0-only
/* Findings in words. */
#include <stdio.h>
#include <string.h>

#include "lint/lint.h"

static const char *const levels[XSPD_LINT_LEVEL_MAX_] = {"info", "warning", "error"};

static const struct {
	const char *name, *remedy;
} ids[XSPD_LINT_ID_MAX_] = {
	[XSPD_LINT_TIE] = {"ambiguous-tie",
			   "give them different priorities; until then xspd leaves such flows to "
			   "the kernel"},
	[XSPD_LINT_AGE] = {"tie-by-age",
			   "give them different priorities: a reload in another order changes the "
			   "winner"},
	[XSPD_LINT_NEVER] = {"never-wins",
			     "delete it, or give it a better (lower) priority than what covers it"},
	[XSPD_LINT_BYPASS] = {"shadowed-bypass",
			      "give the bypass a better (lower) priority, or narrow the other"},
	[XSPD_LINT_V6] = {"no-v6-default",
			  "add the same for ::/0, to protect or to block, with a bypass for "
			  "neighbour discovery"},
	[XSPD_LINT_OUT_ONLY] = {"out-only",
				"add the in policy (and fwd, on a gateway) with addresses and "
				"ports exchanged"},
	[XSPD_LINT_IN_ONLY] = {"in-only", "add the out policy with addresses and ports exchanged"},
	[XSPD_LINT_IN_ALL] = {"in-blocks-plaintext",
			      "add bypasses for what must arrive in the clear, or bind the policy "
			      "to a mark or an if_id"},
	[XSPD_LINT_NDP] = {"no-ndp-bypass",
			   "add bypasses in and out for proto ipv6-icmp type 135 and 136, with a "
			   "better priority"},
	[XSPD_LINT_FWD_BLOCK] = {"fwd-blocks-out",
				 "add fwd policies with the selectors of out (strongSwan: "
				 "policies_fwd_out = yes)"},
	[XSPD_LINT_TWIN] = {"junk-twin", "delete all but the first"},
	[XSPD_LINT_BITS] = {"junk-bits",
			    "write the selector without them; a delete must spell them as they "
			    "are"},
	[XSPD_LINT_NO_SA] = {"no-sa",
			     "none if it is a trap; else see whether the connection is up (swanctl "
			     "--list-sas)"},
	[XSPD_LINT_ORPHAN] = {"orphan", "delete it, or start the key manager that it was made by"},
};

const char *xspd_lint_id_name(enum xspd_lint_id id)
{
	return (unsigned int)id < XSPD_LINT_ID_MAX_ ? ids[id].name : "?";
}

const char *xspd_lint_level_name(enum xspd_lint_level level)
{
	return (unsigned int)level < XSPD_LINT_LEVEL_MAX_ ? levels[level] : "?";
}

const char *xspd_lint_remedy(enum xspd_lint_id id)
{
	return (unsigned int)id < XSPD_LINT_ID_MAX_ ? ids[id].remedy : "";
}

int xspd_lint_id_find(const char *name)
{
	for (int i = 0; i < XSPD_LINT_ID_MAX_; i++)
		if (!strcmp(ids[i].name, name))
			return i;
	return -1;
}

int xspd_lint_level_find(const char *name)
{
	for (int i = 0; i < XSPD_LINT_LEVEL_MAX_; i++)
		if (!strcmp(levels[i], name))
			return i;
	return -1;
}

/* "index 9", "index 9 and 17", "index 9, 17, 25 and 7 more": from pol[1] on. */
static void others(const struct xspd_lint_finding *f, char *buf, size_t size)
{
	uint32_t named = f->count < XSPD_LINT_NAMED ? f->count : XSPD_LINT_NAMED;
	size_t len = 0;

	*buf = '\0';
	for (uint32_t i = 1; i < named && len < size; i++)
		len += (size_t)snprintf(buf + len, size - len, "%s%u",
					i == 1		    ? "index "
					: i + 1 == f->count ? " and "
							    : ", ",
					f->pol[i]->index);
	if (f->count > named && len < size)
		snprintf(buf + len, size - len, " and %u more", f->count - named);
}

static const char *answer(const struct xspd_pol *pol)
{
	if (pol->action == XSPD_BLOCK)
		return "blocks";
	return (pol->dir == XSPD_OUT ? pol->tmpl.count : pol->tmpl.required) ? "protects"
									     : "lets pass";
}

static void bits_reason(const struct xspd_lint_finding *f, char *buf, size_t size)
{
	static const char *const names[] = {"dst",   "src",  "dport",
					    "sport", "mark", "unused fields"};
	size_t len = (size_t)snprintf(buf, size, "bits outside the mask in");
	const char *comma = "";

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && len < size; i++)
		if (f->detail & 1u << i) {
			len += (size_t)snprintf(buf + len, size - len, "%s %s", comma, names[i]);
			comma = ",";
		}
}

void xspd_lint_reason(const struct xspd_lint_finding *f, char *buf, size_t size)
{
	const struct xspd_pol *pol = f->pol[0];
	char list[128];

	others(f, list, sizeof(list));
	switch (f->id) {
	case XSPD_LINT_TIE:
		snprintf(buf, size,
			 "priority %u overlaps %s of the same priority; which of them wins is not "
			 "certain",
			 pol->priority, list);
		return;
	case XSPD_LINT_AGE:
		snprintf(buf, size,
			 "priority %u overlaps %s of the same priority; only their age decides",
			 pol->priority, list);
		return;
	case XSPD_LINT_NEVER:
		snprintf(buf, size, "never decides: %s, preferred to it, cover%s all it matches%s",
			 list, f->detail ? "" : "s", f->detail ? " together" : "");
		return;
	case XSPD_LINT_BYPASS:
		snprintf(buf, size, "%s, preferred to it, %s a part of what this one lets pass",
			 list, f->pol[1] ? answer(f->pol[1]) : "takes");
		return;
	case XSPD_LINT_V6:
		snprintf(buf, size,
			 "%s all IPv4 that leaves, and no policy says anything of all "
			 "IPv6",
			 answer(pol));
		return;
	case XSPD_LINT_OUT_ONLY:
		snprintf(buf, size,
			 "protects what leaves, but no in or fwd policy fits the answers");
		return;
	case XSPD_LINT_IN_ONLY:
		snprintf(buf, size,
			 "wants protection of what arrives, but no out policy fits the "
			 "answers");
		return;
	case XSPD_LINT_IN_ALL:
		snprintf(buf, size,
			 "%s all that arrives, without mark and if_id: plaintext to "
			 "this host is dropped",
			 pol->action == XSPD_BLOCK ? "blocks" : "wants protection of");
		return;
	case XSPD_LINT_NDP:
		snprintf(buf, size, "%s neighbour discovery: no bypass for it is preferred",
			 answer(pol));
		return;
	case XSPD_LINT_FWD_BLOCK:
		snprintf(buf, size,
			 "blocks forwarded packets before the out policy is asked that "
			 "would protect them: %s",
			 list);
		return;
	case XSPD_LINT_TWIN:
		snprintf(buf, size,
			 "has the selector of %s; only bits that match nothing tell "
			 "them apart",
			 list);
		return;
	case XSPD_LINT_BITS:
		bits_reason(f, buf, size);
		return;
	case XSPD_LINT_NO_SA:
		snprintf(buf, size, "no SA has its reqid %u", pol->tmpl.reqid);
		return;
	case XSPD_LINT_ORPHAN:
		snprintf(buf, size,
			 "no SA has its reqid %u, and no key manager listens that could "
			 "make one",
			 pol->tmpl.reqid);
		return;
	default:
		*buf = '\0';
	}
}
