/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef XSPD_SNAPSHOT_LOAD_H
#define XSPD_SNAPSHOT_LOAD_H

#include <signal.h>
#include <stdbool.h>

#include "snapshot/format.h"
#include "snapshot/vault.h"

/* A file in memory. */
struct xspd_snap {
	struct xspd_snap_header header;
	struct xspd_vault file; /* all of it, without message offsets */
};

/**
 * xspd_snap_read() - Read and check the file @path; changes nothing.
 * @ret_fault: what is wrong with it, with -EBADMSG.
 *
 * Return: 0 with *ret, to be left with xspd_snap_drop() (which wipes it), or a
 * negative errno. ret->header is filled as far as it could be read.
 */
int xspd_snap_read(const char *path, struct xspd_snap *ret, enum xspd_snap_fault *ret_fault);
void xspd_snap_drop(struct xspd_snap *snap);

struct xspd_load {
	bool states; /* load SAs, too */
	const volatile sig_atomic_t *stop;

	/* An entry that is not loaded: @error negative; @text: the kernel's (or our) reason or
	 * NULL. */
	void (*refused)(void *ctx, const struct nlmsghdr *nlh, int error, const char *text);
	void (*progress)(void *ctx, uint64_t done, uint64_t total); /* may be NULL */
	void *ctx;
};

struct xspd_load_result {
	uint32_t states, policies;		   /* loaded */
	uint32_t states_refused, policies_refused; /* each told through refused() */
	uint32_t policies_unchanged;		   /* were there already, at their place */
	uint64_t left;				   /* not tried, after @stop */
};

/**
 * xspd_snap_load() - Bring what @snap holds into the caller's namespace: SAs, then policies.
 *
 * What is there already is updated (policies: replaced; SAs: the kernel keeps
 * keys and sequence numbers of an SA that exists), so that it can be repeated.  Leading
 * policies that are there already in the same order are left alone: updating them
 * would cost the kernel's certainty about ties, and time.
 * Return: 0 also if entries were refused, -EINTR after @stop, or another
 * negative errno that ended it. *ret is filled in any case.
 */
int xspd_snap_load(const struct xspd_snap *snap, const struct xspd_load *load,
		   struct xspd_load_result *ret);

#endif
