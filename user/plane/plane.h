/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The classification tables: compiles the mirror into BPF maps and publishes
 * each change in one visible step.  Never reads netlink.  One writer thread.
 */
#ifndef XSPD_PLANE_PLANE_H
#define XSPD_PLANE_PLANE_H

#include "plane/pure/info.h" /* xspd_info_fill() */
#include "spd/spd.h"

struct xspd_plane;

struct xspd_plane_opts {
	const char *pin;   /* directory for pins (made, with parents), NULL: nothing is pinned */
	uint32_t capacity; /* policies to make room for at first; 0: default */
	uint32_t ifids;	   /* of them with an interface id, a partition each */
	uint32_t lease_ms; /* 0: 3000 */
	bool bench; /* load xspd_bench and xspd_null too (batched queries through xspd_ask) */
	bool ask;   /* for questions only: the hooks' programs are not loaded */
	uint32_t prune_at;   /* tuples above which the tries are asked; 0: default */
	uint32_t coarsen_at; /* tuples above which classes are merged; 0: default */
	bool steer;	     /* keep out policies over all if_ids too, see xspd_plane_steer() */
	uint32_t cache;	     /* flow cache entries a CPU, a power of two; 0: no cache */
	uint32_t samples;    /* packets sampled a second and CPU, at most; 0: none */
	/* Do not wait for a larger set to be loaded: xspd_plane_build() and _change() may say
	 * -EAGAIN
	 */
	bool later;
};

/**
 * xspd_plane_new() - A plane with doubt START.  Without opts->pin an empty set serves at once. With
 * it, it is the first xspd_plane_build() that loads one, pins the entry programs, and puts its set
 * behind them.  A pin directory of this ABI version that already holds entry programs is taken
 * over: hooks attached through them stay attached, with the set of the former daemon behind them
 * until then.
 * Return: 0 or a negative errno (-EBUSY: another daemon holds the pin directory; -EPERM).
 */
int xspd_plane_new(struct xspd_plane **ret, const struct xspd_plane_opts *opts);

/* Sets doubt STOPPED, leaves pins and hooks in place (they answer DEFER). */
void xspd_plane_free(struct xspd_plane *plane);

/*
 * xspd_plane_build() - Build a fresh set from @spd, sized for it, and swap it in. Sets slot and
 * tuple of every policy. On failure the old set stays in service, with doubt GROWING raised.
 * -EAGAIN (with opts.later): a set is being loaded, call again in a millisecond or two.
 * -EOPNOTSUPP: kernel.
 */
int xspd_plane_build(struct xspd_plane *plane, struct xspd_spd *spd);

/* Have a set loaded for the build to come; false: that takes some time yet, and nothing is amiss
 * meanwhile. */
bool xspd_plane_prepare(struct xspd_plane *plane, const struct xspd_spd *spd);

/* Pins of other ABI versions beside ours that could not be taken over: hooks there are not ours. */
unsigned int xspd_plane_left_alone(const struct xspd_plane *plane);

/*
 * xspd_plane_change() - Publish one change of @spd (an xspd_spd_listener's work). When there is no
 * room, builds a larger set itself. 0 or a negative errno, and then the plane is on DEFER until
 * xspd_plane_build() has succeeded.
 */
int xspd_plane_change(struct xspd_plane *plane, struct xspd_spd *spd,
		      const struct xspd_change *change);

/* A change that is left to the next build; what it takes away goes on to linger. */
void xspd_plane_skip(struct xspd_plane *plane, struct xspd_spd *spd,
		     const struct xspd_change *change);

/*
 * xspd_plane_steer() - Keep out policies over all if_ids too (XSPD_STEER), or not any more: with
 * the first set if none has been built, else in a new one, as xspd_plane_build() does; with
 * opts.later it is the caller who builds when that is due (xspd_plane_steer_due()). Then
 * the steering program serves, too, where the kernel takes it: xspd_plane_steers().
 */
int xspd_plane_steer(struct xspd_plane *plane, struct xspd_spd *spd, bool on);
bool xspd_plane_steer_due(const struct xspd_plane *plane);
/* Can this kernel set if_ids from a program? The module xfrm_interface must be loaded. */
bool xspd_steer_kernel(void);
/* 0: the steering program is in service, or a negative errno: why not. */
int xspd_plane_steers(const struct xspd_plane *plane);

/* Raise / clear doubt bits (enum xspd_doubt); visible at once, survives swaps. */
void xspd_plane_doubt(struct xspd_plane *plane, uint32_t set, uint32_t clear);
/* What surrounds the policies (enum xspd_env), all of it; visible at once, survives swaps. */
void xspd_plane_env(struct xspd_plane *plane, uint32_t bits);
/*
 * The smallest MTU that a route has of its own, 0: none; packets above it are not bypassed.
 * @many: an IPv4 route has several next hops; no route is remembered then.
 * @rules: what routes go by that the FIB helper is not told; packets it may concern are deferred.
 */
void xspd_plane_routes(struct xspd_plane *plane, uint32_t mtu, bool many, enum xspd_rules rules);
/* For how long deleted out policies stay for the guard; 0: not at all. */
void xspd_plane_linger(struct xspd_plane *plane, uint32_t seconds);
/* Were all of @spd to linger, a larger set would have to be built first. */
bool xspd_plane_cramped(const struct xspd_plane *plane, const struct xspd_spd *spd);
/* Take out those whose time is over. Return: when the next one's is (CLOCK_MONOTONIC, ns), or 0. */
uint64_t xspd_plane_gone(struct xspd_plane *plane);
void xspd_plane_beat(struct xspd_plane *plane); /* renew the lease */
/* ... as of @since (CLOCK_MONOTONIC, ns): up to then the tables are known to be in step. */
void xspd_plane_lease(struct xspd_plane *plane, uint64_t since);
struct xspd_conf *
xspd_plane_conf(struct xspd_plane *plane); /* the live record, for statistics fields */

/* Ask the BPF program (BPF_PROG_TEST_RUN of xspd_query). */
int xspd_plane_query(struct xspd_plane *plane, const struct xspd_flow *flow,
		     struct xspd_answer *ret);

/*
 * Batched asking, with opts.bench: flows are copied into the map xspd_ask and asked
 * by one BPF_PROG_TEST_RUN with repeat; @ns_per_run gets the kernel's own average per run.
 * @count at most XSPD_ASK_MAX.
 */
#define XSPD_CACHE_DEFAULT 4096 /* measured: what 512 flows need to find room each */

#define XSPD_ASK_MAX 65536
int xspd_plane_ask(struct xspd_plane *plane, const struct xspd_flow *flows, uint32_t count,
		   struct xspd_answer *ret, double *ret_ns);
/* The same flows again @rounds times without copying: ns of xspd_bench and of xspd_null per run. */
int xspd_plane_bench(struct xspd_plane *plane, uint32_t count, uint32_t rounds, double *ret_ns,
		     double *ret_null_ns);

struct xspd_plane_usage {
	uint64_t match_bytes; /* policy, bucket, list, part, ifid, tries */
	uint64_t other_bytes; /* info, count, stat, conf */
	uint32_t policies, slots, buckets, tuples, parts, longest_chain;
};
void xspd_plane_usage(const struct xspd_plane *plane, struct xspd_plane_usage *ret);

/* Sum over CPUs, plus what was counted in earlier slots. */
/*
 * Packets that were under way when a policy was updated in place are counted by its former record:
 * add those up of which the last has passed. Return: when to come again, CLOCK_MONOTONIC, 0: never.
 */
uint64_t xspd_plane_settle(struct xspd_plane *plane);
int xspd_plane_count(struct xspd_plane *plane, uint32_t slot, struct xspd_count *ret);

/* File descriptors of the set in service, -1 if there is none of the name ("xspd_query",
 * "xspd_info", ...). */
int xspd_plane_prog_fd(const struct xspd_plane *plane, const char *name);
int xspd_plane_map_fd(const struct xspd_plane *plane, const char *name);

#endif
