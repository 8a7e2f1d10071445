// SPDX-License-Identifier: GPL-2.0-only
/* Thresholds into the kernel: only with a prediction, measured before and after. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "bench/live.h"
#include "cli/tune.h"
#include "util.h"

#define SLOWER	  1.25
#define SLOWER_NS 200

static struct xspd_spdinfo info_of(const struct xspd_tune_bits *bits)
{
	return (struct xspd_spdinfo){
		.lbits4 = bits->lbits4,
		.rbits4 = bits->rbits4,
		.lbits6 = bits->lbits6,
		.rbits6 = bits->rbits6,
	};
}

/*
 * A rebuild puts equal priorities into the order of their age, also where an update
 * in place has left them in another: then it changes answers, not only their cost.
 */
int cli_tune_count_ties(struct cli_tune *tune)
{
	const struct xspd_lint_input input = {.spd = tune->source.spd, .no_ipv6 = true};
	struct xspd_lint_report report;

	if (tune->accept_ties)
		return XSPD_DONE;
	if (xspd_lint(&input, &report))
		return cli_fail("tune: %s", strerror(ENOMEM));
	for (size_t i = 0; i < report.count; i++)
		tune->ties += report.finding[i].id == XSPD_LINT_TIE;
	xspd_lint_drop(&report);
	return XSPD_DONE;
}

static int check_ties(const struct cli_tune *tune)
{
	if (!tune->ties)
		return XSPD_DONE;
	return cli_fail("tune: %u policies overlap others of equal priority in an order that is "
			"not certain, and a rebuild may change which of them wins; 'xspd lint' "
			"names them, --accept-ties goes on",
			tune->ties);
}

static int check_stall(const struct cli_tune *tune)
{
	double ms = tune->best.stall / 1e6;

	if (ms <= tune->max_stall)
		return XSPD_DONE;
	return cli_fail("tune: the rebuild would keep every lookup waiting for about %.0f ms, more "
			"than --max-stall %u",
			ms, tune->max_stall);
}

/* Put the old thresholds back; complains itself. */
static void restore(struct cli_tune *tune, struct xspd_nl *nl)
{
	struct xspd_spdinfo old = info_of(&tune->now.bits);
	double stall;
	int err = xspd_live_rebuild(nl, &old, tune->now.stall, &stall);

	tune->restored = !err;
	if (err)
		cli_notice("tune: restore the old thresholds: %s", strerror(-err));
}

static int judge(struct cli_tune *tune, struct xspd_nl *nl)
{
	if (tune->keep || tune->ns_after <= tune->ns_before * SLOWER ||
	    tune->ns_after <= tune->ns_before + SLOWER_NS)
		return XSPD_DONE;
	restore(tune, nl);
	return cli_fail("tune: lookups take %.0f ns, %.0f before%s; --keep would leave it so",
			tune->ns_after, tune->ns_before,
			tune->restored ? ": the old thresholds are back" : "");
}

static int change(struct cli_tune *tune, struct xspd_nl *nl, struct xspd_live *live)
{
	struct xspd_spdinfo want = info_of(&tune->best.bits);
	int err = xspd_live_time(live, &tune->ns_before);

	if (err)
		return cli_fail("tune: measure lookups: %s; nothing is changed", strerror(-err));
	tune->applied = true;
	err = xspd_live_rebuild(nl, &want, tune->best.stall, &tune->stall);
	if (!err)
		err = xspd_live_time(live, &tune->ns_after);
	/* a lookup that meets no list at all is what was taken off */
	tune->ns_before += tune->costs.base;
	tune->ns_after += tune->costs.base;
	if (!err)
		return judge(tune, nl);
	restore(tune, nl);
	return cli_fail("tune: set the thresholds: %s%s", strerror(-err),
			tune->restored ? "; the old ones are back" : "");
}

/* From the first change to the last word there must be no way out that leaves it half done. */
static void signals_hold(sigset_t *old)
{
	sigset_t all;

	sigemptyset(&all);
	sigaddset(&all, SIGINT);
	sigaddset(&all, SIGTERM);
	sigaddset(&all, SIGHUP);
	sigprocmask(SIG_BLOCK, &all, old);
}

int cli_tune_apply(struct cli_tune *tune)
{
	struct xspd_live *live = NULL;
	struct xspd_nl *nl = NULL;
	sigset_t old;
	int err, rc;

	if (!cli_tune_change(tune))
		return XSPD_DONE;
	rc = check_ties(tune);
	if (!rc)
		rc = check_stall(tune);
	if (rc)
		return rc;
	err = xspd_live_new(&live, tune->source.spd);
	if (!err)
		err = xspd_nl_open(&nl, 0, 0);
	if (err) {
		xspd_live_free(live);
		return cli_fail(
			"tune: %s; nothing is changed",
			err == -EOPNOTSUPP
				? "this kernel's lookups cannot be measured without packets "
				  "(Linux 6.12 with CONFIG_XFRM_MIGRATE can)"
				: strerror(-err));
	}
	tune->marked = xspd_live_marked(live);
	signals_hold(&old);
	rc = change(tune, nl, live);
	sigprocmask(SIG_SETMASK, &old, NULL);
	xspd_live_free(live);
	xspd_nl_free(nl);
	return rc;
}
