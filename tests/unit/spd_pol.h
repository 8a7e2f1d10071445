/* SPDX-License-Identifier: GPL-2.0-only */
/* Policies and flows for the tests of spd/ and nl/, and a listener that keeps a record. */
#ifndef XSPD_TEST_SPD_POL_H
#define XSPD_TEST_SPD_POL_H

#include <arpa/inet.h>
#include <errno.h>
#include <criterion/criterion.h>
#include <string.h>
#include "spd/spd.h"

/* Sequence number @n of the kernel's counter, in direction @dir. */
#define INDEX(n, dir) ((uint32_t)(n) << 3 | (dir))

/* An IPv4 policy "0/0 -> 10.0.0.@n/32" out, main, allow. */
static inline struct xspd_pol pol_make(uint32_t n, uint32_t priority)
{
	struct xspd_pol pol = {.index = INDEX(n, XSPD_OUT), .priority = priority};

	pol.dir = XSPD_OUT;
	pol.sel.family = AF_INET;
	pol.sel.daddr.a4 = htonl(0x0a000000 + n);
	pol.sel.prefixlen_d = 32;
	return pol;
}

/* "0/0 -> 0/0" with reqid @n */
static inline struct xspd_pol pol_any(uint32_t n, uint32_t priority)
{
	struct xspd_pol pol = pol_make(n, priority);

	pol.sel.daddr.a4 = 0;
	pol.sel.prefixlen_d = 0;
	pol.sel.user = n; /* part of the identity, never matched */
	pol.tmpl = (struct xspd_tmpl){.reqid = n, .proto = 50, .count = 1, .required = 1};
	return pol;
}

static inline struct xspd_flow flow_make(const char *daddr, const char *saddr)
{
	struct xspd_flow flow = {.family = XSPD_INET, .dir = XSPD_OUT, .proto = 17};
	int family = strchr(daddr, ':') ? AF_INET6 : AF_INET;

	flow.family = family == AF_INET6 ? XSPD_INET6 : XSPD_INET;
	cr_assert_eq(inet_pton(family, daddr, flow.daddr), 1);
	cr_assert_eq(inet_pton(family, saddr, flow.saddr), 1);
	return flow;
}

/* What a listener heard. */
struct heard {
	enum xspd_change_kind kind;
	uint32_t index, old_index;
	uint32_t pos, old_pos;
	bool tie;
	uint8_t type;
	uint32_t present; /* policies in the mirror at that time */
	bool found;	  /* pol (FLUSH: any of the type) was in the mirror at that time */
};

struct record {
	struct xspd_spd *spd;
	struct heard heard[64];
	size_t count;
	int answer;
};

static inline int record_listener(void *ctx, const struct xspd_change *change)
{
	struct record *record = ctx;
	struct heard *heard = &record->heard[record->count++];
	struct xspd_pol *pol;

	cr_assert_leq(record->count, 64);
	*heard = (struct heard){.kind = change->kind, .type = change->type};
	heard->present = HASH_COUNT(record->spd->by_index);
	if (change->pol) {
		heard->index = change->pol->index;
		heard->pos = change->pol->pos;
		heard->tie = change->pol->tie;
		heard->found = xspd_spd_find(record->spd, heard->index) == change->pol;
	}
	if (change->old) {
		heard->old_index = change->old->index;
		heard->old_pos = change->old->pos;
	}
	if (change->kind == XSPD_CHANGE_FLUSH)
		for (pol = record->spd->by_index; pol; pol = pol->hh.next)
			heard->found |= pol->type == change->type;
	return record->answer;
}

static inline struct xspd_spd *spd_make(struct record *record)
{
	struct xspd_spd *spd = xspd_spd_new();

	cr_assert_not_null(spd);
	if (record) {
		record->spd = spd;
		spd->listener = record_listener;
		spd->ctx = record;
	}
	return spd;
}

/* The mirror with its first dump behind it. */
static inline struct xspd_spd *spd_watching(struct record *record)
{
	struct xspd_spd *spd = spd_make(record);

	cr_assert_eq(xspd_spd_dump_begin(spd), 0);
	cr_assert_eq(xspd_spd_dump_end(spd, NULL), 0);
	return spd;
}

static inline void upsert(struct xspd_spd *spd, struct xspd_pol pol)
{
	/* none of these may be read */
	pol.pos = pol.slot = 0xdead;
	pol.tuple = 0xdead;
	pol.tie = true;
	cr_assert_eq(xspd_spd_upsert(spd, &pol), 0);
}

static inline struct xspd_pol *find(struct xspd_spd *spd, uint32_t n)
{
	return xspd_spd_find(spd, INDEX(n, XSPD_OUT));
}

/* One dump with the policies @n.., newest first, 0 ends. All at priority 10 */
#define dump(spd, ret, ...) dump_((spd), (ret), (const uint32_t[]){__VA_ARGS__, 0})
static inline void dump_(struct xspd_spd *spd, struct xspd_spd_diff *ret, const uint32_t *n)
{
	struct xspd_pol pol;

	cr_assert_eq(xspd_spd_dump_begin(spd), 0);
	for (; *n; n++) {
		pol = pol_any(*n, 10);
		cr_assert_eq(xspd_spd_dump_entry(spd, &pol), 0);
	}
	cr_assert_eq(xspd_spd_dump_end(spd, ret), 0);
}

/* Are @n.. exactly the policies, oldest first? And do the counters add up? */
#define expect_order(spd, ...) expect_order_((spd), (const uint32_t[]){__VA_ARGS__, 0}, __LINE__)
static inline void expect_order_(struct xspd_spd *spd, const uint32_t *n, int line)
{
	uint32_t last = 0, count[XSPD_DIR_MAX_] = {}, ties = 0, unmodelled = 0, seen = 0;
	struct xspd_pol *pol;

	for (; *n; n++, seen++) {
		pol = find(spd, *n);
		cr_assert_not_null(pol, "line %d: %u is missing", line, *n);
		cr_assert_gt(pol->pos, last, "line %d: %u is out of order", line, *n);
		last = pol->pos;
	}
	cr_assert_eq(HASH_COUNT(spd->by_index), seen, "line %d: %u policies", line,
		     HASH_COUNT(spd->by_index));
	cr_assert_gt(spd->next_pos, last, "line %d", line);
	for (pol = spd->by_index; pol; pol = pol->hh.next) {
		count[pol->dir]++;
		ties += pol->tie;
		unmodelled += !!pol->unmodelled;
	}
	cr_assert_arr_eq(count, spd->count, sizeof(count), "line %d", line);
	cr_assert_eq(ties, spd->ties, "line %d: %u ties", line, ties);
	cr_assert_eq(unmodelled, spd->unmodelled, "line %d", line);
}

#endif
