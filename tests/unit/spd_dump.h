/* SPDX-License-Identifier: GPL-2.0-only */
/* Dumps for the tests of spd/. */
#ifndef XSPD_TEST_SPD_DUMP_H
#define XSPD_TEST_SPD_DUMP_H

#include "spd_pol.h"

static inline void entry(struct xspd_spd *spd, struct xspd_pol pol)
{
	pol.pos = 0xdead;
	pol.tie = true;
	cr_assert_eq(xspd_spd_dump_entry(spd, &pol), 0);
}

static inline void begin(struct xspd_spd *spd)
{
	cr_assert_eq(xspd_spd_dump_begin(spd), 0);
}

static inline struct xspd_spd_diff end(struct xspd_spd *spd)
{
	struct xspd_spd_diff diff = {99, 99, 99};

	cr_assert_eq(xspd_spd_dump_end(spd, &diff), 0);
	cr_assert_not(spd->dumping);
	cr_assert_null(spd->items);
	cr_assert_null(spd->gone);
	return diff;
}

static inline void expect_diff(struct xspd_spd_diff diff, uint32_t added, uint32_t removed,
			       uint32_t modified, int line)
{
	cr_expect_eq(diff.added, added, "line %d: %u added", line, diff.added);
	cr_expect_eq(diff.removed, removed, "line %d: %u removed", line, diff.removed);
	cr_expect_eq(diff.modified, modified, "line %d: %u modified", line, diff.modified);
}
#define expect_diff(diff, a, r, m) expect_diff(diff, a, r, m, __LINE__)

#endif
