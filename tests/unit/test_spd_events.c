// SPDX-License-Identifier: GPL-2.0-only
#include "spd_pol.h"

Test(spd_events, new_policies_stand_in_the_order_of_their_events)
{
	struct record record = {};
	struct xspd_spd *spd = spd_watching(&record);

	upsert(spd, pol_any(7, 10));
	upsert(spd, pol_any(3, 10));
	expect_order(spd, 7, 3);
	cr_expect_not(find(spd, 7)->tie);
	cr_expect_not(find(spd, 3)->tie);
	cr_expect_eq(find(spd, 3)->slot, 0);
	cr_expect_eq(record.count, 2);
	cr_expect_eq(record.heard[1].kind, XSPD_CHANGE_ADD);
	cr_expect_eq(record.heard[1].index, INDEX(3, XSPD_OUT));
	cr_expect(record.heard[1].found);
	xspd_spd_free(spd);
}

Test(spd_events, update_at_its_priority_is_a_tie_and_newest)
{
	struct record record = {};
	struct xspd_spd *spd = spd_watching(&record);

	upsert(spd, pol_any(1, 10));
	upsert(spd, pol_any(2, 10));
	find(spd, 1)->slot = 77;
	find(spd, 1)->tuple = 5;
	upsert(spd, pol_any(1, 10));
	expect_order(spd, 2, 1);
	cr_expect(find(spd, 1)->tie);
	cr_expect_not(find(spd, 2)->tie);
	cr_expect_eq(find(spd, 1)->slot, 77);
	cr_expect_eq(find(spd, 1)->tuple, 5);
	cr_expect_eq(record.count, 3);
	cr_expect_eq(record.heard[2].kind, XSPD_CHANGE_REPLACE);
	cr_expect_eq(record.heard[2].old_pos, 1);
	cr_expect_eq(record.heard[2].pos, 3);

	upsert(spd, pol_any(1, 11));
	cr_expect_not(find(spd, 1)->tie, "a change of priority puts it last for certain");
	expect_order(spd, 2, 1);
	xspd_spd_free(spd);
}

/* Before 6.12 only policies of the same prefixes have a certain order, and no odd bits in them. */
Test(spd_events, in_the_old_order_policies_of_other_prefixes_are_apart)
{
	struct xspd_spd *spd = xspd_spd_new();
	struct xspd_pol a = pol_make(1, 100), b = pol_make(2, 100), odd = pol_any(3, 100);
	struct xspd_spd_diff diff;

	spd->old_order = true;
	odd.sel.daddr.a4 = htonl(0x0a000001);
	odd.sel.prefixlen_d = 24;
	xspd_spd_upsert(spd, &a);
	a.priority = 50;
	xspd_spd_upsert(spd, &a);
	cr_expect(find(spd, 1)->apart);
	cr_expect_not(find(spd, 1)->tie);
	for (int twice = 0; twice < 2; twice++) {
		xspd_spd_dump_begin(spd);
		xspd_spd_dump_entry(spd, &odd);
		xspd_spd_dump_entry(spd, &b);
		xspd_spd_dump_entry(spd, &a);
		cr_expect_eq(xspd_spd_dump_end(spd, &diff), 0);
		cr_expect(find(spd, 1)->apart && find(spd, 2)->apart && find(spd, 3)->apart);
		cr_expect(find(spd, 3)->tie);
		cr_expect_eq(spd->ties, 1);
		cr_expect_eq(diff.modified, 0);
	}
	odd.sel.daddr.a4 = htonl(0x0a000000);
	xspd_spd_remove(spd, odd.index);
	xspd_spd_upsert(spd, &odd);
	cr_expect_eq(spd->ties, 0);
	xspd_spd_free(spd);
}

Test(spd_events, index_of_another_policy_is_removed_then_added)
{
	struct record record = {};
	struct xspd_spd *spd = spd_watching(&record);
	struct xspd_pol other = pol_any(1, 10);

	upsert(spd, pol_any(1, 10));
	find(spd, 1)->unmodelled = XSPD_UNMODELLED_SEC_CTX;
	spd->unmodelled = 1;
	find(spd, 1)->slot = 9;
	other.sel.proto = 6;
	upsert(spd, other);
	cr_assert_eq(record.count, 3);
	cr_expect_eq(record.heard[1].kind, XSPD_CHANGE_REMOVE);
	cr_expect_eq(record.heard[1].present, 0);
	cr_expect_eq(record.heard[1].old_index, INDEX(1, XSPD_OUT));
	cr_expect_eq(record.heard[2].kind, XSPD_CHANGE_ADD);
	cr_expect(record.heard[2].found);
	cr_expect_not(find(spd, 1)->tie);
	cr_expect_eq(find(spd, 1)->slot, 0);
	cr_expect_eq(find(spd, 1)->unmodelled, 0);
	expect_order(spd, 1);
	xspd_spd_free(spd);
}

/* every part of the identity, one at a time: none of them may pass for an update */
static void edit_host_bits(struct xspd_pol *p)
{
	p->sel.daddr.a4 ^= htonl(1);
}
static void edit_unused_words(struct xspd_pol *p)
{
	p->sel.daddr.a6[3] = 1;
}
static void edit_unmasked_port(struct xspd_pol *p)
{
	p->sel.sport = 1;
}
static void edit_pad(struct xspd_pol *p)
{
	((uint8_t *)&p->sel)[45] = 1;
}
static void edit_user(struct xspd_pol *p)
{
	p->sel.user ^= 1;
}
static void edit_ifindex(struct xspd_pol *p)
{
	p->sel.ifindex = 1;
}
static void edit_mark(struct xspd_pol *p)
{
	p->mark = 1;
}
static void edit_mark_mask(struct xspd_pol *p)
{
	p->mark_mask = 1;
}
static void edit_if_id(struct xspd_pol *p)
{
	p->if_id = 1;
}
static void edit_type(struct xspd_pol *p)
{
	p->type = XSPD_SUB;
}

Test(spd_events, identity_is_raw)
{
	static void (*const edits[])(struct xspd_pol *) = {
		edit_host_bits, edit_unused_words, edit_unmasked_port, edit_pad,   edit_user,
		edit_ifindex,	edit_mark,	   edit_mark_mask,     edit_if_id, edit_type,
	};
	struct xspd_pol base = pol_any(1, 10), other;
	struct xspd_spd *spd = spd_watching(NULL);
	size_t i;

	for (i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
		upsert(spd, base);
		other = base;
		edits[i](&other);
		cr_expect_null(xspd_spd_find_identity(spd, &other), "edit %zu", i);
		upsert(spd, other);
		cr_expect_not(find(spd, 1)->tie, "edit %zu passed for an update", i);
		cr_expect_not_null(xspd_spd_find_identity(spd, &other), "edit %zu", i);
		cr_expect_null(xspd_spd_find_identity(spd, &base), "edit %zu", i);
	}
	xspd_spd_free(spd);
}

Test(spd_events, an_event_does_not_clear_a_security_context)
{
	struct xspd_spd *spd = spd_watching(NULL);
	struct xspd_pol pol = pol_any(1, 10);

	pol.unmodelled = XSPD_UNMODELLED_SEC_CTX | XSPD_UNMODELLED_OFFLOAD;
	upsert(spd, pol);
	pol.unmodelled = 0;
	upsert(spd, pol);
	cr_expect_eq(find(spd, 1)->unmodelled, XSPD_UNMODELLED_SEC_CTX);
	expect_order(spd, 1);
	xspd_spd_free(spd);
}

Test(spd_events, remove)
{
	struct record record = {};
	struct xspd_spd *spd = spd_watching(&record);

	upsert(spd, pol_any(1, 10));
	upsert(spd, pol_any(2, 10));
	cr_expect_eq(xspd_spd_remove(spd, INDEX(9, XSPD_OUT)), 0);
	cr_expect_eq(record.count, 2, "an unknown index is no news");
	cr_expect_eq(xspd_spd_remove(spd, INDEX(1, XSPD_OUT)), 0);
	cr_assert_eq(record.count, 3);
	cr_expect_eq(record.heard[2].kind, XSPD_CHANGE_REMOVE);
	cr_expect_eq(record.heard[2].old_index, INDEX(1, XSPD_OUT));
	cr_expect_eq(record.heard[2].present, 1);
	expect_order(spd, 2);
	xspd_spd_free(spd);
}

Test(spd_events, flush_takes_one_type)
{
	struct record record = {};
	struct xspd_spd *spd = spd_watching(&record);
	struct xspd_pol sub = pol_any(2, 10);

	sub.type = XSPD_SUB;
	cr_expect_eq(xspd_spd_flush(spd, XSPD_MAIN), 0);
	cr_expect_eq(record.count, 0, "nothing was there to flush");
	upsert(spd, pol_any(1, 10));
	upsert(spd, sub);
	upsert(spd, pol_any(3, 10));
	cr_expect_eq(xspd_spd_flush(spd, XSPD_MAIN), 0);
	cr_assert_eq(record.count, 4);
	cr_expect_eq(record.heard[3].kind, XSPD_CHANGE_FLUSH);
	cr_expect_eq(record.heard[3].type, XSPD_MAIN);
	cr_expect(record.heard[3].found, "told before they are freed");
	expect_order(spd, 2);
	cr_expect_eq(xspd_spd_flush(spd, XSPD_SUB), 0);
	cr_expect_eq(HASH_COUNT(spd->by_index), 0);
	cr_expect_eq(spd->count[XSPD_OUT], 0);
	xspd_spd_free(spd);
}

Test(spd_events, defaults_are_told_when_they_change)
{
	struct record record = {};
	struct xspd_spd *spd = spd_make(&record);

	cr_expect_eq(xspd_spd_set_defaults(spd, 0), 0);
	cr_expect_eq(record.count, 0);
	cr_expect_eq(xspd_spd_set_defaults(spd, 1 << XSPD_FWD), 0);
	cr_expect_eq(xspd_spd_set_defaults(spd, 1 << XSPD_FWD), 0);
	cr_assert_eq(record.count, 1);
	cr_expect_eq(record.heard[0].kind, XSPD_CHANGE_DEFAULTS);
	cr_expect_eq(spd->defaults, 1 << XSPD_FWD);
	xspd_spd_free(spd);
}

Test(spd_events, pos_overflow_renumbers)
{
	struct record record = {};
	struct xspd_spd *spd = spd_watching(&record);

	upsert(spd, pol_any(1, 10));
	upsert(spd, pol_any(2, 10));
	upsert(spd, pol_any(1, 10));
	find(spd, 2)->slot = 4;
	spd->next_pos = UINT32_MAX - 2;
	upsert(spd, pol_any(3, 10));
	cr_expect_eq(record.heard[3].kind, XSPD_CHANGE_ADD, "there is room for one more");
	upsert(spd, pol_any(4, 10));
	cr_assert_eq(record.count, 5);
	cr_expect_eq(record.heard[4].kind, XSPD_CHANGE_RENUMBER);
	cr_expect_eq(record.heard[4].present, 4);
	expect_order(spd, 2, 1, 3, 4);
	cr_expect_eq(find(spd, 2)->pos, 1);
	cr_expect_eq(find(spd, 2)->slot, 4);
	cr_expect(find(spd, 1)->tie);
	cr_expect_eq(spd->next_pos, 5);

	spd->next_pos = UINT32_MAX - 1;
	upsert(spd, pol_any(2, 10));
	cr_expect_eq(record.heard[5].kind, XSPD_CHANGE_RENUMBER);
	upsert(spd, pol_any(5, 10));
	cr_expect_eq(record.heard[6].kind, XSPD_CHANGE_ADD, "and then life goes on");
	expect_order(spd, 1, 3, 4, 2, 5);
	xspd_spd_free(spd);
}

Test(spd_events, the_listeners_failure_is_passed_on)
{
	struct record record = {.answer = -ENOSPC};
	struct xspd_spd *spd = spd_watching(&record);
	struct xspd_pol pol = pol_any(1, 10);

	cr_expect_eq(xspd_spd_upsert(spd, &pol), -ENOSPC);
	cr_expect_not_null(find(spd, 1));
	cr_expect_eq(xspd_spd_upsert(spd, &pol), -ENOSPC);
	cr_expect(find(spd, 1)->tie);
	cr_expect_eq(xspd_spd_flush(spd, XSPD_MAIN), -ENOSPC);
	cr_expect_null(find(spd, 1));
	cr_expect_eq(xspd_spd_set_defaults(spd, 1), -ENOSPC);
	cr_expect_eq(spd->defaults, 1);
	record.answer = 1;
	cr_expect_eq(xspd_spd_upsert(spd, &pol), 0, "only negative returns are failures");
	xspd_spd_free(spd);
}
