// SPDX-License-Identifier: GPL-2.0-only
/* What single policies say about themselves, and about what is missing beside them. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#include "lint/check.h"

/* Everything of its family, whatever mark, device or if_id. */
static bool is_default(const struct xspd_pol *pol)
{
	const struct xfrm_selector *sel = &pol->sel;

	return !sel->prefixlen_d && !sel->prefixlen_s && !sel->proto && !sel->dport_mask &&
	       !sel->sport_mask && !sel->ifindex && !pol->mark_mask && !pol->if_id;
}

static bool effective(const struct xspd_lint_item *item)
{
	return item->covered == XSPD_LINT_NONE && !item->pol->unmodelled;
}

/* --- defaults --------------------------------------------------------------------- */

/* Without one for IPv6, what has an address there goes out in the clear. */
static void check_v6(struct xspd_lint *lint)
{
	const struct xspd_lint_table *table = &lint->table;
	const struct xspd_pol *v4 = NULL;

	if (lint->input->no_ipv6 || lint->input->spd->defaults & 1u << XSPD_OUT)
		return;
	for (uint32_t i = 0; i < table->count; i++) {
		const struct xspd_pol *pol = table->item[i].pol;

		if (pol->dir != XSPD_OUT || !is_default(pol))
			continue;
		if (pol->sel.family == AF_INET6)
			return; /* somebody has thought of it */
		if (!v4 && !xspd_lint_plain(pol) && effective(&table->item[i]))
			v4 = pol;
	}
	if (v4)
		xspd_lint_add(lint, XSPD_LINT_V6, XSPD_LINT_WARNING, v4);
}

void xspd_lint_check_defaults(struct xspd_lint *lint)
{
	const struct xspd_lint_table *table = &lint->table;

	check_v6(lint);
	for (uint32_t i = 0; i < table->count && !lint->err; i++) {
		const struct xspd_pol *pol = table->item[i].pol;

		if (pol->dir != XSPD_IN || !is_default(pol) || xspd_lint_plain(pol) ||
		    !effective(&table->item[i]))
			continue;
		xspd_lint_add(lint, XSPD_LINT_IN_ALL,
			      pol->action == XSPD_BLOCK ? XSPD_LINT_INFO : XSPD_LINT_WARNING, pol);
	}
}

/* --- neighbour discovery ------------------------------------------------------------ */
struct ndp {
	const char *src, *dst;
	uint8_t type;
};

/* Solicitations by multicast and to a neighbour that is known, and the answer to one. */
static const struct ndp ndp[] = {
	{"fe80::1", "ff02::1:ff00:2", 135},
	{"fe80::1", "fe80::2", 135},
	{"fe80::2", "fe80::1", 136},
};

static const struct xspd_pol *ndp_caught(const struct xspd_spd *spd, const struct ndp *ndp,
					 enum xspd_dir dir)
{
	struct xspd_flow flow = {
		.family = XSPD_INET6,
		.dir = dir,
		.proto = IPPROTO_ICMPV6,
		.sport = htons(ndp->type),
		.unknown = XSPD_UNKNOWN_MARK | XSPD_UNKNOWN_OIF,
	};
	struct xspd_ref ref;

	inet_pton(AF_INET6, ndp->src, flow.saddr);
	inet_pton(AF_INET6, ndp->dst, flow.daddr);
	xspd_spd_lookup(spd, &flow, &ref);
	if (ref.verdict != XSPD_PROTECT && ref.verdict != XSPD_DENY)
		return NULL;
	return ref.pol && !xspd_lint_plain(ref.pol) ? ref.pol : ref.pol2;
}

static bool any_v6(const struct xspd_lint_table *table)
{
	for (uint32_t i = 0; i < table->classes; i++)
		if (table->class[i].family == AF_INET6 && table->class[i].dir != XSPD_FWD)
			return true;
	return false;
}

void xspd_lint_check_ndp(struct xspd_lint *lint)
{
	const struct xspd_pol *told[2] = {};

	if (!any_v6(&lint->table))
		return;
	for (size_t i = 0; i < sizeof(ndp) / sizeof(ndp[0]); i++)
		for (int dir = XSPD_IN; dir <= XSPD_OUT; dir++) {
			const struct xspd_pol *pol =
				ndp_caught(lint->input->spd, &ndp[i], (enum xspd_dir)dir);

			if (!pol || told[dir])
				continue;
			xspd_lint_add(lint, XSPD_LINT_NDP, XSPD_LINT_ERROR, pol);
			told[dir] = pol;
		}
}

/* --- bits ------------------------------------------------------------------------- */
static bool host_bits(const xfrm_address_t *addr, uint16_t family, uint8_t len)
{
	int words = family == AF_INET6 ? 4 : 1;

	for (int w = 0; w < words; w++) {
		unsigned int fixed = len > w * 32 ? len - w * 32u : 0;
		uint32_t host = fixed >= 32 ? 0 : fixed ? ~0u >> fixed : ~0u;

		if (ntohl(addr->a6[w]) & host)
			return true;
	}
	return false;
}

static bool unused_bits(const struct xfrm_selector *sel)
{
	const uint8_t *pad = &sel->proto + 1;
	uint32_t bits = sel->user;

	for (const uint8_t *p = pad; p < (const uint8_t *)&sel->ifindex; p++)
		bits |= *p;
	for (int w = 1; w < 4 && sel->family == AF_INET; w++)
		bits |= sel->daddr.a6[w] | sel->saddr.a6[w];
	return bits;
}

static uint32_t junk_of(const struct xspd_pol *pol)
{
	const struct xfrm_selector *sel = &pol->sel;
	uint32_t junk = 0;

	if (host_bits(&sel->daddr, sel->family, sel->prefixlen_d))
		junk |= XSPD_LINT_BITS_DST;
	if (host_bits(&sel->saddr, sel->family, sel->prefixlen_s))
		junk |= XSPD_LINT_BITS_SRC;
	if (sel->dport & ~sel->dport_mask)
		junk |= XSPD_LINT_BITS_DPORT;
	if (sel->sport & ~sel->sport_mask)
		junk |= XSPD_LINT_BITS_SPORT;
	if (pol->mark & ~pol->mark_mask)
		junk |= XSPD_LINT_BITS_MARK;
	if (unused_bits(sel))
		junk |= XSPD_LINT_BITS_PAD;
	return junk;
}

void xspd_lint_check_bits(struct xspd_lint *lint)
{
	for (uint32_t i = 0; i < lint->table.count && !lint->err; i++) {
		const struct xspd_pol *pol = lint->table.item[i].pol;
		uint32_t junk = junk_of(pol);
		size_t nr;

		if (!junk)
			continue;
		nr = xspd_lint_add(lint, XSPD_LINT_BITS, XSPD_LINT_INFO, pol);
		if (!lint->err)
			lint->report->finding[nr].detail = junk;
	}
}

/* --- SAs -------------------------------------------------------------------------- */
static int compare_reqid(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* A template with reqid 0 takes any SA on the way in, and on the way out those without. */
static bool has_sa(const struct xspd_pol *pol, const uint32_t *reqids, size_t count)
{
	uint32_t reqid = pol->tmpl.reqid;

	if (!count)
		return false;
	if (!reqid && pol->dir != XSPD_OUT)
		return true;
	return bsearch(&reqid, reqids, count, sizeof(*reqids), compare_reqid);
}

void xspd_lint_check_sas(struct xspd_lint *lint)
{
	const struct xspd_lint_input *input = lint->input;
	uint32_t *reqids = malloc((input->sa_count + 1) * sizeof(*reqids));

	if (!reqids) {
		lint->err = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < input->sa_count; i++)
		reqids[i] = input->sas[i].reqid;
	qsort(reqids, input->sa_count, sizeof(*reqids), compare_reqid);
	for (uint32_t i = 0; i < lint->table.count && !lint->err && input->sas_known; i++) {
		const struct xspd_pol *pol = lint->table.item[i].pol;

		if (!xspd_lint_protects(pol) || has_sa(pol, reqids, input->sa_count))
			continue;
		if (input->keyer == XSPD_LINT_KEYER_NONE)
			xspd_lint_add(lint, XSPD_LINT_ORPHAN, XSPD_LINT_WARNING, pol);
		else
			xspd_lint_add(lint, XSPD_LINT_NO_SA, XSPD_LINT_INFO, pol);
	}
	free(reqids);
}
