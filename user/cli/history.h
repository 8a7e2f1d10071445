/* SPDX-License-Identifier: GPL-2.0-only */
/* What the daemon keeps of the past, in pinned rings: changes of the SPD, and sampled packets. */
#ifndef XSPD_CLI_HISTORY_H
#define XSPD_CLI_HISTORY_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "xspd/abi.h"

struct cli_history {
	const struct xspd_changed *change;
	const struct xspd_sample *sample;
};

/* Complains itself: XSPD_DONE or XSPD_FAILED. Works with and without a daemon. */
int cli_history_open(struct cli_history *ret, const char *instance);
void cli_history_close(struct cli_history *history);

/* The highest number there is; 0: nothing yet. */
uint64_t cli_history_changes(const struct cli_history *history);
uint64_t cli_history_samples(const struct cli_history *history);

/* Copy number @seq; false if it is not there (yet, or any more). */
bool cli_history_change(const struct cli_history *history, uint64_t seq, struct xspd_changed *ret);
bool cli_history_sample(const struct cli_history *history, uint64_t seq, struct xspd_sample *ret);

/* "src 10.1.0.1 dst 10.2.0.1 proto udp sport 5000 dport 53", as `xspd lookup` takes it. */
void cli_sample_flow(const struct xspd_sample *sample, char *buf, size_t size);
/* The rest: "mark 0x10 dev eth0 hook egress index 9 reason protect act leak". */
void cli_sample_rest(const struct xspd_sample *sample, char *buf, size_t size);
struct json_object *cli_sample_json(const struct xspd_sample *sample);

#endif
