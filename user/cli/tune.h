/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of "xspd tune" share. */
#ifndef XSPD_CLI_TUNE_H
#define XSPD_CLI_TUNE_H

#include "cli/cli.h"
#include "cli/source.h"
#include "tune/tune.h"

struct cli_tune {
	struct cli_common common;
	const char *file;
	const char *hthresh4, *hthresh6; /* given */
	bool calibrate, apply, keep, accept_ties;
	uint32_t max_stall; /* ms */

	struct cli_source source;
	struct xspd_tune *model;
	struct xspd_tune_costs costs;
	bool measured; /* the costs are this machine's */
	struct xspd_tune_result now, best;

	/* of --apply */
	uint32_t ties; /* that keep it from being done */
	bool applied, restored, marked;
	double ns_before, ns_after, stall; /* measured; NAN: not */
};

static inline bool cli_tune_change(const struct cli_tune *tune)
{
	return tune->now.bits.lbits4 != tune->best.bits.lbits4 ||
	       tune->now.bits.rbits4 != tune->best.bits.rbits4 ||
	       tune->now.bits.lbits6 != tune->best.bits.lbits6 ||
	       tune->now.bits.rbits6 != tune->best.bits.rbits6;
}

/* tune_print.c: the whole answer. */
void cli_tune_print(const struct cli_tune *tune);
void cli_tune_print_json(const struct cli_tune *tune);
/* "hthresh4 0 32 hthresh6 128 128", as ip xfrm policy set takes it */
void cli_tune_bits_text(const struct xspd_tune_bits *bits, char *buf, size_t size);

/* "10.77.0.0/16 pulls 10000 policies into one list", "498 us" */
void cli_tune_cliff_text(const struct xspd_tune_cliff *cliff, char *buf, size_t size);
const char *cli_tune_time_text(double ns, char *buf, size_t size);

/* tune_apply.c; both complain themselves: XSPD_DONE or XSPD_FAILED. */
/* Policies whose answers a rebuild may change, unless that is accepted: into ties. */
int cli_tune_count_ties(struct cli_tune *tune);
/* Set best, verify. */
int cli_tune_apply(struct cli_tune *tune);

#endif
