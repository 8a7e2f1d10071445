/* SPDX-License-Identifier: GPL-2.0-only */
/* What xspd and the kernel counted at one time, for `xspd verify`. */
#ifndef XSPD_CLI_VERIFY_H
#define XSPD_CLI_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xspd/abi.h"

/* A policy as xspd has it. */
struct verify_row {
	struct xspd_info info;
	uint64_t packets, acted;
};

/* The counters of /proc/net/xfrm_stat that tell what became of lookups. */
enum verify_stat {
	VERIFY_IN_BLOCK,    /* XfrmInPolBlock: in and fwd */
	VERIFY_IN_NO_POLS,  /* XfrmInNoPols: default block of in and fwd */
	VERIFY_IN_MISMATCH, /* XfrmInTmplMismatch: plaintext that had to be protected */
	VERIFY_OUT_BLOCK,   /* XfrmOutPolBlock */
	VERIFY_STAT_MAX_,
};
extern const char *const verify_stat_names[VERIFY_STAT_MAX_];

/* A policy as the kernel has it. */
struct verify_use {
	uint32_t index;
	uint64_t time; /* of last use, seconds since 1970 */
	uint8_t dir, family;
};

/* What xspd counted, twice: right before and right after the kernel was asked. */
struct verify_side {
	struct verify_row *row; /* by index */
	size_t rows, room;
	uint64_t stat[XSPD_HOOK_MAX_][XSPD_R_MAX_];
	uint64_t act[XSPD_HOOK_MAX_][XSPD_A_MAX_];
	uint64_t real; /* seconds since 1970 */
};

struct verify_sample {
	struct verify_side before, after;
	uint64_t stat[VERIFY_STAT_MAX_];
	struct verify_use *use;
	size_t uses, room;
	uint32_t defaults, doubt;
	bool lease; /* in force */
};

/* Complains itself: XSPD_DONE or XSPD_FAILED. Free in any case; *ret is zeroed by the caller. */
int verify_sample(struct verify_sample *ret, const char *instance);
void verify_sample_free(struct verify_sample *sample);

const struct verify_row *verify_row_find(const struct verify_side *side, uint32_t index);
const struct verify_use *verify_use_find(const struct verify_sample *sample, uint32_t index);

/* How the hooks lie. */
struct verify_cover {
	bool all;     /* each device that is up is seen as it receives */
	bool doubled; /* some device by XDP and at ingress: its packets count twice */
	bool inexact; /* some mode marks, or runs dry: acted on does not mean taken from the kernel
		       */
};
int verify_cover(struct verify_cover *ret, const char *instance);

/* Lookups that the kernel made, compared one by one with what the maps say. */
#define VERIFY_DIFFER 8
#define VERIFY_BLOCKS 0x80000000u /* beside the index of a block policy */
struct verify_looked {
	uint64_t same, open, differ;	      /* open: left to the kernel */
	struct xspd_flow flow[VERIFY_DIFFER]; /* of the first that differ */
	uint32_t kernel[VERIFY_DIFFER], ours[VERIFY_DIFFER];
};

struct verify_trace;
/* From now on, by fexit. NULL where it cannot be done; *ret_how says what is done, or why not. */
struct verify_trace *verify_trace_start(const char *instance, const char **ret_how);
void verify_trace_stop(struct verify_trace *trace, struct verify_looked *ret);

#endif
