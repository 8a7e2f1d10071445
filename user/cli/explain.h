/* SPDX-License-Identifier: GPL-2.0-only */
/* Why a flow got its answer, from the linear reference. */
#ifndef XSPD_CLI_EXPLAIN_H
#define XSPD_CLI_EXPLAIN_H

#include <json-c/json.h>

#include "spd/spd.h"

#define EXPLAIN_NEAREST 5

/* A policy that does not match, and the fields that keep it from it. */
struct cli_near {
	const struct xspd_pol *pol;
	uint32_t fields; /* bit 1 << enum xspd_miss */
	uint32_t count;	 /* of them */
	uint32_t bits;	 /* of the failing prefixes, from the first that differs on */
	enum xspd_miss first;
};

struct cli_explain {
	const struct xspd_spd *spd; /* the caller's */
	struct xspd_ref ref;
	const struct xspd_pol **match; /* best first, sub before main */
	size_t match_count;
	struct cli_near near[EXPLAIN_NEAREST];
	size_t near_count;
};

/**
 * cli_explain_new() - Ask the reference about @flow, over @spd, which must outlive *ret.
 * Return: 0 or -ENOMEM. Leave with cli_explain_free().
 */
int cli_explain_new(struct cli_explain *ret, const struct xspd_spd *spd,
		    const struct xspd_flow *flow);
void cli_explain_free(struct cli_explain *explain);

/*
 * Does the program's answer stand beside the reference's?  A deferral always
 * does: it claims nothing.
 */
bool cli_explain_agrees(const struct cli_explain *explain, const struct xspd_answer *answer);

void cli_explain_print(const struct cli_explain *explain, const struct xspd_flow *flow);
struct json_object *cli_explain_json(const struct cli_explain *explain,
				     const struct xspd_flow *flow);

#endif
