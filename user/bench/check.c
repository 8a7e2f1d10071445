// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>

#include "bench/bench.h"
#include "util.h"

#define CHECK_WORK  20000000u /* policies that the linear reference looks at, in all */
#define CHECK_MOST  2000u
#define CHECK_LEAST 20u

/* Slot to policy, to tell which one an answer means. */
static int by_slot(struct xspd_bench *b, const struct xspd_pol ***ret, uint32_t *ret_count)
{
	const struct xspd_pol **slots;
	struct xspd_pol *pol, *tmp;
	uint32_t most = 0;

	HASH_ITER (hh, b->spd->by_index, pol, tmp)
		if (pol->slot > most)
			most = pol->slot;
	slots = calloc(most + 1, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	HASH_ITER (hh, b->spd->by_index, pol, tmp)
		slots[pol->slot] = pol;
	slots[0] = NULL;
	*ret = slots;
	*ret_count = most + 1;
	return 0;
}

static void check_answer(struct xspd_bench *b, uint32_t i, const struct xspd_pol *found)
{
	struct xspd_ref ref;

	xspd_spd_lookup(b->spd, &b->flows[i], &ref);
	b->row.checked++;
	if (ref.pol != found || ref.verdict != b->answers[i].verdict)
		b->row.wrong++;
}

int xspd_bench_check(struct xspd_bench *b, const uint32_t *winner, bool hit)
{
	uint32_t sample = CHECK_WORK / (b->row.policies + 1), slots;
	xspd_autofree const struct xspd_pol **slot = NULL;
	int err;

	b->what = "check the answers";
	err = by_slot(b, &slot, &slots);
	if (err < 0)
		return err;
	sample = sample > CHECK_MOST ? CHECK_MOST : sample < CHECK_LEAST ? CHECK_LEAST : sample;
	for (uint32_t i = 0; i < b->count; i++) {
		const struct xspd_answer *answer = &b->answers[i];
		const struct xspd_pol *found = answer->slot < slots ? slot[answer->slot] : NULL;

		if (answer->verdict == XSPD_DEFER) {
			b->row.deferred++;
			continue;
		}
		if (hit && !found)
			b->row.wrong++;
		if (winner) {
			b->row.checked++;
			if ((found ? xspd_bench_number(found->index) : 0) != winner[i])
				b->row.wrong++;
		} else if (i < sample) {
			check_answer(b, i, found);
		}
	}
	return 0;
}

int xspd_bench_keep_misses(struct xspd_bench *b)
{
	xspd_autofree const struct xspd_pol **slot = NULL;
	uint32_t slots, kept = 0, checks = CHECK_LEAST;
	int err;

	b->what = "check the answers";
	err = by_slot(b, &slot, &slots);
	if (err < 0)
		return err;
	for (uint32_t i = 0; i < b->count; i++) {
		uint32_t found = b->answers[i].slot;

		if (!found)
			b->flows[kept++] = b->flows[i];
		else if (checks && checks--)
			check_answer(b, i, found < slots ? slot[found] : NULL);
	}
	b->count = kept;
	return 0;
}
