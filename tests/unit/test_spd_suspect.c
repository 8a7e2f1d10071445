// SPDX-License-Identifier: GPL-2.0-only
/* Which ties are suspected when nobody saw the updates. */
#include "spd_dump.h"

Test(spd_suspect, first_dump_suspects_low_indexes_that_are_newer)
{
	struct xspd_spd *spd = spd_make(NULL);

	dump(spd, NULL, 1, 5, 3, 4, 2);
	expect_order(spd, 2, 4, 3, 5, 1);
	cr_expect(find(spd, 1)->tie);
	cr_expect(find(spd, 3)->tie);
	cr_expect_not(find(spd, 2)->tie);
	cr_expect_not(find(spd, 4)->tie);
	cr_expect_not(find(spd, 5)->tie);
	xspd_spd_free(spd);
}

static void apart_priority(struct xspd_pol *p)
{
	p->priority = 11;
}

static void apart_if_id(struct xspd_pol *p)
{
	p->if_id = 1;
}

static void apart_type(struct xspd_pol *p)
{
	p->type = XSPD_SUB;
}

static void apart_family(struct xspd_pol *p)
{
	p->sel.family = AF_INET6;
}

static void apart_dir(struct xspd_pol *p)
{
	p->dir = XSPD_FWD;
	p->index = INDEX(p->index >> 3, XSPD_FWD);
}

Test(spd_suspect, suspicion_stays_within_one_list)
{
	static void (*const edits[])(struct xspd_pol *) = {NULL,       apart_priority, apart_if_id,
							   apart_type, apart_family,   apart_dir};
	size_t i;

	for (i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
		struct xspd_spd *spd = spd_make(NULL);
		struct xspd_pol pol = pol_any(1, 10);

		if (edits[i])
			edits[i](&pol);
		begin(spd);
		entry(spd, pol);
		entry(spd, pol_any(2, 10));
		end(spd);
		cr_expect_eq(xspd_spd_find(spd, pol.index)->tie, i == 0, "edit %zu", i);
		xspd_spd_free(spd);
	}
}

Test(spd_suspect, certain_order_survives_a_dump)
{
	struct xspd_spd *spd = spd_watching(NULL);
	struct xspd_pol pol = pol_any(1, 10);
	struct xspd_spd_diff diff;

	upsert(spd, pol_any(1, 20));
	upsert(spd, pol_any(2, 10));
	upsert(spd, pol); /* 20 -> 10: last of them, as was seen */
	cr_assert_not(find(spd, 1)->tie);
	begin(spd);
	entry(spd, pol);
	entry(spd, pol_any(2, 10));
	diff = end(spd);
	expect_diff(diff, 0, 0, 0);
	cr_expect_not(find(spd, 1)->tie, "seen with our own eyes, the index proves nothing");
	xspd_spd_free(spd);
}

Test(spd_suspect, update_seen_before_its_first_entry_is_suspect)
{
	struct xspd_spd *spd = spd_make(NULL);

	begin(spd);
	upsert(spd, pol_any(1, 10)); /* UPDPOLICY of what the dump would have shown */
	upsert(spd, pol_any(5, 10)); /* NEWPOLICY */
	entry(spd, pol_any(3, 10));
	end(spd);
	expect_order(spd, 3, 1, 5);
	cr_expect(find(spd, 1)->tie);
	cr_expect_not(find(spd, 5)->tie);
	cr_expect_not(find(spd, 3)->tie);
	xspd_spd_free(spd);
}

Test(spd_suspect, abort_changes_nothing_but_suspicion_stays)
{
	struct record record = {};
	struct xspd_spd *spd = spd_watching(&record);

	upsert(spd, pol_any(2, 10));
	upsert(spd, pol_any(3, 10));
	record.count = 0;
	begin(spd); /* events were lost */
	entry(spd, pol_any(8, 10));
	upsert(spd, pol_any(1, 10)); /* its NEWPOLICY was among them */
	xspd_spd_dump_abort(spd);
	cr_expect_not(spd->dumping);
	cr_expect_eq(record.count, 1);
	expect_order(spd, 2, 3, 1);
	cr_expect_eq(xspd_spd_dump_entry(spd, find(spd, 2)), -EINVAL);
	cr_expect_eq(xspd_spd_dump_end(spd, NULL), -EINVAL);

	dump(spd, NULL, 1, 3, 2);
	expect_order(spd, 2, 3, 1);
	cr_expect(find(spd, 1)->tie);
	cr_expect_eq(spd->ties, 1);
	xspd_spd_free(spd);
}

Test(spd_suspect, events_before_the_first_dump_are_suspect)
{
	struct xspd_spd *spd = spd_make(NULL);

	upsert(spd, pol_any(3, 10));
	upsert(spd, pol_any(1, 10)); /* an update of what nobody has seen yet */
	dump(spd, NULL, 1, 3);
	expect_order(spd, 3, 1);
	cr_expect(find(spd, 1)->tie);
	xspd_spd_free(spd);
}

Test(spd_suspect, suspicion_survives_renumbering)
{
	struct xspd_spd *spd = spd_watching(NULL);

	upsert(spd, pol_any(9, 20));
	upsert(spd, pol_any(2, 10));
	upsert(spd, pol_any(9, 10)); /* 20 -> 10, as was seen */
	upsert(spd, pol_any(5, 20));
	upsert(spd, pol_any(5, 10)); /* likewise: certain, whatever the indexes say */
	begin(spd);
	upsert(spd, pol_any(1, 10)); /* may have been lost, and updated */
	spd->next_pos = UINT32_MAX - 2;
	entry(spd, pol_any(5, 10));
	entry(spd, pol_any(9, 10));
	entry(spd, pol_any(2, 10));
	end(spd);
	expect_order(spd, 2, 9, 5, 1);
	cr_expect_lt(spd->next_pos, 20);
	cr_expect(find(spd, 1)->tie);
	cr_expect_not(find(spd, 5)->tie);
	cr_expect_eq(spd->ties, 1);
	xspd_spd_free(spd);
}
