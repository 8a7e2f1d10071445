// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <linux/xfrm.h>
#include <stdlib.h>
#include <string.h>

#include "lib/churn.h"

int churn_refresh(struct churn *churn)
{
	const struct xspd_spd *spd = churn->mirror->spd;
	struct xspd_pol **live, *pol, *next;

	live = realloc(churn->live, (HASH_COUNT(spd->by_index) + 1) * sizeof(*live));
	if (!live)
		return -ENOMEM;
	churn->live = live;
	churn->count = 0;
	HASH_ITER (hh, spd->by_index, pol, next)
		live[churn->count++] = pol;
	return 0;
}

const struct xspd_pol *churn_pick(struct churn *churn)
{
	return churn->count ? churn->live[gen_below(churn->gen, (uint32_t)churn->count)] : NULL;
}

static int churn_send(struct churn *churn, struct nlmsghdr *nlh)
{
	int err = oracle_request(churn->oracle, nlh);

	if (err == -EEXIST || err == -ENOENT) {
		churn->refused++;
		return 0;
	}
	return err;
}

static int churn_put(struct churn *churn, const struct xspd_pol *pol, uint16_t type)
{
	char buf[2048] = {};

	return churn_send(churn, xspd_nl_put_policy(buf, pol, type, NLM_F_REQUEST, 0));
}

static int churn_add(struct churn *churn)
{
	bool update = gen_chance(churn->gen, 20);
	struct xspd_pol pol;

	const struct xspd_pol *old = churn_pick(churn);

	gen_policy(churn->gen, &pol);
	/* now and then one that is there already, or nearly */
	if (old && gen_chance(churn->gen, 5)) {
		pol.sel = old->sel;
		pol.dir = old->dir;
		pol.type = old->type;
		pol.if_id = old->if_id;
	}
	/* an index of the user's choice is taken if it is free */
	if (!churn->tellable && gen_chance(churn->gen, 5))
		pol.index = (1u << 20 | gen_below(churn->gen, 64) << 3) + pol.dir;
	if (update && !churn->in_place && xspd_spd_find_identity(churn->mirror->spd, &pol))
		return 0;
	churn->adds++;
	return churn_put(churn, &pol, update ? XFRM_MSG_UPDPOLICY : XFRM_MSG_NEWPOLICY);
}

static int churn_update(struct churn *churn)
{
	const struct xspd_pol *old = churn_pick(churn);
	struct gen *gen = churn->gen;
	struct xspd_pol pol;

	if (!old)
		return 0;
	pol = *old;
	if (!churn->in_place || (!churn->tellable && gen_chance(gen, 40)))
		pol.priority = gen_priority(gen);
	if (pol.priority == old->priority && !churn->in_place)
		pol.priority++;
	pol.action = gen_chance(gen, gen->block) ? XSPD_BLOCK : XSPD_ALLOW;
	pol.tmpl.required = !gen->optional && gen_chance(gen, 70);
	pol.index = gen_chance(gen, 50) ? 0 : pol.index; /* ignored either way */
	churn->updates++;
	churn->in_places += pol.priority == old->priority;
	return churn_put(churn, &pol, XFRM_MSG_UPDPOLICY);
}

static int churn_delete(struct churn *churn)
{
	const struct xspd_pol *pol = churn_pick(churn);
	struct xspd_pol miss;
	char buf[1024] = {};

	if (!pol)
		return 0;
	churn->deletes++;
	if (gen_chance(churn->gen, 5)) {
		miss = *pol;
		miss.mark ^= 1; /* a delete has to spell everything as it is stored */
		pol = &miss;
	}
	return churn_send(
		churn, xspd_nl_put_delete(buf, pol, gen_chance(churn->gen, 50), NLM_F_REQUEST, 0));
}

static int churn_flush(struct churn *churn)
{
	char buf[256] = {};
	uint8_t type = gen_chance(churn->gen, 50) ? XSPD_SUB : XSPD_MAIN;

	churn->flushes++;
	return churn_send(churn, xspd_nl_put_flush(buf, type, NLM_F_REQUEST, 0));
}

/* Other thresholds: the kernel sorts its policies into other lists, in the background. */
static int churn_rebuild(struct churn *churn)
{
	static const uint8_t bits4[] = {32, 32, 24, 16, 8, 0}, bits6[] = {128, 128, 64, 48, 32, 0};
	struct gen *gen = churn->gen;
	struct oracle_hthresh want = {bits4[gen_below(gen, 6)], bits4[gen_below(gen, 6)],
				      bits6[gen_below(gen, 6)], bits6[gen_below(gen, 6)]};
	struct oracle_hthresh got;
	int err;

	churn->rebuilds++;
	err = oracle_set_hthresh(churn->oracle, &want);
	if (!err)
		err = oracle_get_hthresh(churn->oracle, &got);
	if (!err && memcmp(&want, &got, sizeof(want)))
		err = -EPROTO;
	return err;
}

static int churn_default(struct churn *churn)
{
	return oracle_set_default(churn->oracle, (uint8_t)gen_below(churn->gen, 3),
				  (uint8_t)gen_below(churn->gen, 2));
}

int churn_step(struct churn *churn)
{
	uint32_t dice = gen_below(churn->gen, 1000);
	bool full = churn->count >= churn->most;
	int err;

	if (dice < 1)
		err = churn_flush(churn);
	else if (dice < 15)
		err = churn_rebuild(churn);
	else if (dice < 25)
		err = churn_default(churn);
	else if (dice < 300 || full)
		err = churn_delete(churn);
	else if (dice < 550)
		err = churn_update(churn);
	else
		err = churn_add(churn);
	if (!err)
		err = mirror_drain(churn->mirror);
	return err ? err : churn_refresh(churn);
}

int churn_audit(struct churn *churn)
{
	const struct xspd_spd *spd = churn->mirror->spd;
	struct xspd_spd_diff diff = {};
	struct xspd_spdinfo info;
	int err;

	err = xspd_nl_spdinfo(churn->mirror->requests, &info);
	for (int dir = 0; !err && dir < XSPD_DIR_MAX_; dir++)
		if (info.count[dir] != spd->count[dir])
			err = -EPROTO;
	if (!err)
		err = mirror_dump(churn->mirror, &diff);
	if (!err && (diff.added || diff.removed || diff.modified))
		err = -EPROTO;
	return err ? err : churn_refresh(churn);
}
