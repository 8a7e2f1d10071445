/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Policies to think about: the kernel's, as it lists them now, or a snapshot's.  A
 * daemon that mirrors the same namespace adds what no dump tells: which orders are certain.
 */
#ifndef XSPD_CLI_SOURCE_H
#define XSPD_CLI_SOURCE_H

#include "lint/lint.h"
#include "nl/nl.h"
#include "xspd/abi.h"

struct cli_source {
	struct xspd_spd *spd;
	const struct xspd_pol **pol; /* all of them, by index */
	uint32_t count;
	bool sub_policy;	  /* the kernel asks for sub policies, too */
	bool daemon;		  /* its orders are in */
	struct xspd_spdinfo info; /* thresholds: the kernel's own defaults for a file */

	/* with SAs */
	struct xspd_lint_sa *sa;
	size_t sas;
	bool sas_known;
	enum xspd_lint_keyer keyer;
	bool no_ipv6;
};

/**
 * cli_source_open() - Read all that is there.
 * @command: for complaints. @file: a snapshot, or NULL for the caller's namespace.
 * @instance: whose daemon to ask; there need not be one. @states: SAs, too.
 *
 * Complains itself: XSPD_DONE or XSPD_FAILED. Leave with cli_source_close().
 */
int cli_source_open(struct cli_source *ret, const char *command, const char *file,
		    const char *instance, bool states);
void cli_source_close(struct cli_source *source);

/* "dir out src 10.1.0.0/16 dst 10.2.0.0/16 ... index 9 priority 100": one line. */
void cli_pol_text(const struct xspd_pol *pol, char *buf, size_t size);

#endif
