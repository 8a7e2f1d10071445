/* SPDX-License-Identifier: GPL-2.0-only */
/* A real "xspd run" beside the benchmark, and its data plane as anybody sees it. */
#ifndef XSPD_BENCH_CHILD_H
#define XSPD_BENCH_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "xspd/abi.h"

struct xspd_child {
	char instance[48];
	pid_t pid; /* 0: not running */
};

/* In the caller's network namespace, with pins of its own. 0 or a negative errno. */
int xspd_child_start(struct xspd_child *child);
/*
 * Wait until no doubt is left and @policies are mirrored; *ret_ns is how long that
 * took. 0 or a negative errno (-ECHILD: the daemon ended; -ETIMEDOUT: @seconds are over).
 */
int xspd_child_await(struct xspd_child *child, uint32_t policies, unsigned int seconds,
		     double *ret_ns);
/* The record that `xspd status` shows. */
int xspd_child_conf(const struct xspd_child *child, struct xspd_conf *ret);
/* A file descriptor of a pin of the set in service, or a negative errno. */
int xspd_child_pin(const struct xspd_child *child, const char *name);
/* The policies that its maps hold, counted one by one; 0 if they cannot be read. */
uint32_t xspd_child_count(const struct xspd_child *child);
/*
 * In place of the daemon: a process that has joined the groups it would, and does nothing else
 * (@reads: but read what comes), with its receive buffer. What it costs to be told at all.
 */
int xspd_child_listen(struct xspd_child *child, bool reads);
/* End it and remove its pins. */
void xspd_child_stop(struct xspd_child *child);

/* A program that says nothing: its pid, or a negative errno. The caller waits for it. */
pid_t xspd_child_spawn(const char *path, char *const argv[]);

#endif
