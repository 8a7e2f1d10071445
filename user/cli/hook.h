/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The hooks that `xspd attach` made.  Each is one entry in the instance's
 * links/ directory: a pinned BPF link, or, for a clsact filter, which cannot
 * be pinned, a symbolic link whose text says where the filter is.
 */
#ifndef XSPD_CLI_HOOK_H
#define XSPD_CLI_HOOK_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xspd/abi.h"

enum cli_hook_kind {
	CLI_HOOK_TCX,
	CLI_HOOK_CLSACT,
	CLI_HOOK_XDP, /* native or generic, not known from here */
	CLI_HOOK_XDP_NATIVE,
	CLI_HOOK_XDP_GENERIC,
	CLI_HOOK_KIND_MAX_,
};

struct cli_hook {
	char dev[IF_NAMESIZE];
	enum xspd_hook hook;
	enum cli_hook_kind kind;
	uint32_t ifindex;   /* 0: the device is gone */
	uint64_t elsewhere; /* a clsact filter in this other namespace: out of reach */
	bool made_qdisc;    /* the clsact qdisc is ours to remove */
};

const char *cli_hook_kind_name(enum cli_hook_kind kind);

/* Every entry, by name. 0 or a negative errno; the caller frees *ret. */
int cli_hook_list(const char *instance, struct cli_hook **ret, size_t *ret_count);

enum cli_hook_how {
	CLI_HOOK_NO_TCX = 1,	  /* clsact, without trying TCX */
	CLI_HOOK_NATIVE_ONLY = 2, /* XDP: do not fall back to generic */
};

/**
 * cli_hook_attach() - Attach the pinned entry program of @hook to a device of this namespace.
 * @how: enum cli_hook_how.
 * Complains itself; nothing is left attached on failure.
 * Return: XSPD_DONE or XSPD_FAILED.
 */
int cli_hook_attach(const char *instance, const char *dev, enum xspd_hook hook, uint32_t how);

/* Is there an entry of @hook of this very device? Fills *ret. */
bool cli_hook_find(const char *instance, const char *dev, enum xspd_hook hook,
		   struct cli_hook *ret);

/* Take one off, its entry too; a device that is gone is no failure. Complains itself. */
int cli_hook_detach(const char *instance, const struct cli_hook *hook);

/* clsact filters, in cli/clsact.c: 0 or a negative errno. */
int cli_clsact_attach(const struct cli_hook *hook, int prog_fd);
/* @prog_id: only a filter with this program is taken off. */
int cli_clsact_detach(const struct cli_hook *hook, uint32_t prog_id);
/* Made a qdisc and have no filter left in it: take it off. */
void cli_clsact_tidy(const struct cli_hook *hook);

#endif
