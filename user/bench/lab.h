/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's side of a benchmark: a namespace with an SPD, and what a lookup in it costs. */
#ifndef XSPD_BENCH_LAB_H
#define XSPD_BENCH_LAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xspd/abi.h"

/* One socket a source port, bound on first use: a port cannot be said per message. */
struct xspd_lab_socket {
	int fd;
	__be16 sport;
	uint8_t family;
};

struct xspd_lab {
	int netns;
	int tun; /* keeps the device */
	uint32_t oif;
	struct xspd_lab_socket *sockets;
	uint32_t socket_count;
	int netlink; /* for MIGRATE */
};

/**
 * xspd_lab_new() - A fresh network namespace, entered by the calling thread, with a
 * device that every address is routed to. Nothing is ever sent through it.
 * @ret_oif: that device's index.
 *
 * Return: 0 or a negative errno (-EPERM: not root; -ENODEV, -ENOENT: no /dev/net/tun).
 */
int xspd_lab_new(struct xspd_lab **ret, uint32_t *ret_oif);
int xspd_lab_enter(const struct xspd_lab *lab);
/* The namespace goes with its last process and socket; the thread stays where it is. */
void xspd_lab_free(struct xspd_lab *lab);

/* How the kernel is asked. */
enum xspd_lab_way {
	XSPD_LAB_SEND,	  /* an empty UDP sendmsg() that stops after route and policy lookup */
	XSPD_LAB_MIGRATE, /* an XFRM_MSG_MIGRATE that finds the policy and then no template */
};

/**
 * xspd_lab_time() - Ask the lab's kernel about @count flows, one after the other.
 * @ret_ns: nanoseconds per flow, system calls, routing and all: subtract another lab's.
 *
 * Return: 0 or a negative errno.
 */
int xspd_lab_time(struct xspd_lab *lab, enum xspd_lab_way way, const struct xspd_flow *flows,
		  uint32_t count, double *ret_ns);

/*
 * Does this kernel answer XSPD_LAB_MIGRATE by looking a flow up, for the namespace the thread is in?
 * 0, -EOPNOTSUPP, or another negative errno.
 */
int xspd_lab_migrate_works(void);

#endif
