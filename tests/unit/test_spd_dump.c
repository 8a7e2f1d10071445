// SPDX-License-Identifier: GPL-2.0-only
#include "spd_dump.h"

Test(spd_dump, entries_come_newest_first)
{
	struct record record = {};
	struct xspd_spd *spd = spd_make(&record);
	struct xspd_spd_diff diff;

	dump(spd, &diff, 9, 5, 2);
	expect_order(spd, 2, 5, 9);
	expect_diff(diff, 3, 0, 0);
	cr_expect_eq(spd->ties, 0);
	cr_expect_eq(record.count, 3);

	dump(spd, &diff, 9, 5, 2);
	expect_diff(diff, 0, 0, 0);
	cr_expect_eq(record.count, 3, "the same again is no news");
	expect_order(spd, 2, 5, 9);
	xspd_spd_free(spd);
}

Test(spd_dump, differences_are_told_additions_first_removals_last)
{
	struct record record = {};
	struct xspd_spd *spd = spd_make(&record);
	struct xspd_spd_diff diff;
	struct xspd_pol pol;

	dump(spd, NULL, 4, 3, 2, 1);
	record.count = 0;
	begin(spd);
	entry(spd, pol_any(5, 10)); /* new */
	pol = pol_any(4, 10);
	pol.action = XSPD_BLOCK; /* changed */
	entry(spd, pol);
	entry(spd, pol_any(2, 10));
	entry(spd, pol_any(1, 10));
	diff = end(spd);
	expect_diff(diff, 1, 1, 1);
	expect_order(spd, 1, 2, 4, 5);
	cr_assert_eq(record.count, 3);
	cr_expect_eq(record.heard[0].kind, XSPD_CHANGE_ADD);
	cr_expect(record.heard[0].found);
	cr_expect_eq(record.heard[1].kind, XSPD_CHANGE_REPLACE);
	cr_expect_eq(record.heard[1].index, INDEX(4, XSPD_OUT));
	cr_expect_eq(record.heard[2].kind, XSPD_CHANGE_REMOVE);
	cr_expect_eq(record.heard[2].old_index, INDEX(3, XSPD_OUT));
	cr_expect_eq(record.heard[2].present, 4);
	cr_expect(find(spd, 4)->tie, "an update that nobody saw");
	cr_expect_eq(find(spd, 4)->action, XSPD_BLOCK);
	xspd_spd_free(spd);
}

Test(spd_dump, missed_update_moves_and_ties)
{
	struct xspd_spd *spd = spd_make(NULL);
	struct xspd_spd_diff diff;

	dump(spd, NULL, 4, 3, 2, 1);
	dump(spd, &diff, 2, 4, 3, 1);
	expect_order(spd, 1, 3, 4, 2);
	expect_diff(diff, 0, 0, 1);
	cr_expect(find(spd, 2)->tie);
	cr_expect_eq(spd->ties, 1);
	cr_expect_eq(find(spd, 4)->pos, 4, "older ones keep their numbers");

	dump(spd, &diff, 2, 4, 3, 1);
	expect_diff(diff, 0, 0, 0);
	cr_expect(find(spd, 2)->tie, "what is known is not forgotten");
	xspd_spd_free(spd);
}

Test(spd_dump, events_win_over_entries)
{
	struct xspd_spd *spd = spd_make(NULL);
	struct xspd_pol old = pol_any(3, 10), new = pol_any(3, 50);
	struct xspd_spd_diff diff;

	dump(spd, NULL, 4, 3, 2, 1);
	begin(spd);
	upsert(spd, new); /* before its entry */
	entry(spd, pol_any(4, 10));
	entry(spd, old);
	entry(spd, pol_any(2, 10));
	entry(spd, pol_any(1, 10));
	upsert(spd, pol_any(1, 60)); /* after its entry */
	diff = end(spd);
	expect_order(spd, 2, 4, 3, 1);
	cr_expect_eq(find(spd, 3)->priority, 50);
	cr_expect_eq(find(spd, 1)->priority, 60);
	expect_diff(diff, 0, 0, 0);
	xspd_spd_free(spd);
}

Test(spd_dump, what_an_event_removed_is_not_resurrected)
{
	struct xspd_spd *spd = spd_make(NULL);

	dump(spd, NULL, 3, 2, 1);
	begin(spd);
	cr_assert_eq(xspd_spd_remove(spd, INDEX(2, XSPD_OUT)), 0); /* known, before its entry */
	cr_assert_eq(xspd_spd_remove(spd, INDEX(7, XSPD_OUT)), 0); /* unknown, before its entry */
	entry(spd, pol_any(8, 10));
	entry(spd, pol_any(7, 10));
	entry(spd, pol_any(3, 10));
	entry(spd, pol_any(2, 10));
	entry(spd, pol_any(1, 10));
	cr_assert_eq(xspd_spd_remove(spd, INDEX(1, XSPD_OUT)), 0); /* known, after */
	cr_assert_eq(xspd_spd_remove(spd, INDEX(8, XSPD_OUT)), 0); /* unknown, after */
	end(spd);
	expect_order(spd, 3);

	begin(spd); /* removed and made again: the later event counts */
	cr_assert_eq(xspd_spd_remove(spd, INDEX(3, XSPD_OUT)), 0);
	upsert(spd, pol_any(3, 44));
	entry(spd, pol_any(3, 10));
	end(spd);
	expect_order(spd, 3);
	cr_expect_eq(find(spd, 3)->priority, 44);
	xspd_spd_free(spd);
}

Test(spd_dump, what_was_flushed_is_not_resurrected)
{
	struct xspd_spd *spd = spd_make(NULL);
	struct xspd_pol sub = pol_any(9, 10), sub2 = pol_any(10, 10);

	sub.type = sub2.type = XSPD_SUB;
	dump(spd, NULL, 2, 1);
	begin(spd);
	entry(spd, sub);
	entry(spd, pol_any(5, 10)); /* not known yet */
	entry(spd, pol_any(2, 10));
	cr_assert_eq(xspd_spd_flush(spd, XSPD_MAIN), 0);
	upsert(spd, pol_any(6, 10)); /* made after the flush */
	entry(spd, pol_any(4, 10));  /* walked before the flush */
	entry(spd, pol_any(1, 10));
	entry(spd, sub2);
	end(spd);
	expect_order(spd, 10, 9, 6);
	xspd_spd_free(spd);
}

Test(spd_dump, begin_twice_starts_over)
{
	struct xspd_spd *spd = spd_make(NULL);

	begin(spd);
	entry(spd, pol_any(1, 10));
	begin(spd);
	entry(spd, pol_any(2, 10));
	end(spd);
	expect_order(spd, 2);
	xspd_spd_free(spd);
}

Test(spd_dump, entry_twice)
{
	struct record record = {};
	struct xspd_spd *spd = spd_make(&record);

	dump(spd, NULL, 2, 1, 2);
	cr_expect_eq(HASH_COUNT(spd->by_index), 2);
	cr_expect_eq(record.count, 2);
	dump(spd, NULL, 1, 1, 2, 2);
	cr_expect_eq(HASH_COUNT(spd->by_index), 2);
	xspd_spd_free(spd);
}

Test(spd_dump, security_context_is_learnt_even_from_outdated_entries)
{
	struct xspd_spd *spd = spd_make(NULL);
	struct xspd_pol pol = pol_any(1, 10);

	pol.unmodelled = XSPD_UNMODELLED_SEC_CTX;
	begin(spd);
	upsert(spd, pol_any(1, 20));
	entry(spd, pol);
	end(spd);
	cr_expect_eq(find(spd, 1)->unmodelled, XSPD_UNMODELLED_SEC_CTX);
	cr_expect_eq(find(spd, 1)->priority, 20);
	expect_order(spd, 1);
	xspd_spd_free(spd);
}

Test(spd_dump, other_templates_are_no_update)
{
	struct record record = {};
	struct xspd_spd *spd = spd_make(&record);
	struct xspd_pol pol = pol_any(1, 10);
	struct xspd_spd_diff diff;

	dump(spd, NULL, 2, 1);
	record.count = 0;
	pol.tmpl.daddr[0] = 5;
	begin(spd);
	entry(spd, pol_any(2, 10));
	entry(spd, pol);
	diff = end(spd);
	expect_diff(diff, 0, 0, 1);
	cr_assert_eq(record.count, 1);
	cr_expect_eq(record.heard[0].old_pos, record.heard[0].pos);
	cr_expect_not(find(spd, 1)->tie);
	cr_expect_eq(find(spd, 1)->tmpl.daddr[0], 5);
	expect_order(spd, 1, 2);
	xspd_spd_free(spd);
}

Test(spd_dump, index_that_now_names_another_policy)
{
	struct record record = {};
	struct xspd_spd *spd = spd_make(&record);
	struct xspd_pol pol = pol_any(1, 10);
	struct xspd_spd_diff diff;

	dump(spd, NULL, 2, 1);
	record.count = 0;
	pol.sel.proto = 6;
	begin(spd);
	entry(spd, pol);
	entry(spd, pol_any(2, 10));
	diff = end(spd);
	expect_diff(diff, 1, 1, 0);
	cr_assert_eq(record.count, 2);
	cr_expect_eq(record.heard[0].kind, XSPD_CHANGE_REMOVE);
	cr_expect_eq(record.heard[1].kind, XSPD_CHANGE_ADD);
	expect_order(spd, 2, 1);
	xspd_spd_free(spd);
}

Test(spd_dump, pos_overflow_is_told_once_instead_of_everything)
{
	struct record record = {};
	struct xspd_spd *spd = spd_make(&record);

	dump(spd, NULL, 3, 2, 1);
	record.count = 0;
	spd->next_pos = UINT32_MAX - 3;
	begin(spd);
	upsert(spd, pol_any(4, 10)); /* fits */
	entry(spd, pol_any(5, 10));
	entry(spd, pol_any(3, 10));
	entry(spd, pol_any(1, 10));
	end(spd);
	expect_order(spd, 1, 3, 5, 4);
	cr_assert_eq(record.count, 2);
	cr_expect_eq(record.heard[0].kind, XSPD_CHANGE_ADD);
	cr_expect_eq(record.heard[1].kind, XSPD_CHANGE_RENUMBER);
	cr_expect_eq(record.heard[1].present, 4);
	cr_expect_lt(spd->next_pos, 20);
	xspd_spd_free(spd);
}

Test(spd_dump, goes_on_after_a_failing_listener)
{
	struct record record = {};
	struct xspd_spd *spd = spd_make(&record);
	struct xspd_pol pol = pol_any(4, 10);

	dump(spd, NULL, 2, 1);
	record.count = 0;
	record.answer = -ENOSPC;
	begin(spd);
	entry(spd, pol);
	entry(spd, pol_any(3, 10));
	entry(spd, pol_any(1, 10));
	cr_expect_eq(xspd_spd_dump_end(spd, NULL), -ENOSPC);
	cr_expect_eq(record.count, 3);
	expect_order(spd, 1, 3, 4);
	xspd_spd_free(spd);
}
