/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Packets through a gateway: three namespaces joined by veth.  Frames are made in
 * the kernel, received by the gateway's device in its native XDP path, and counted by
 * XDP at the sink.  The receive loops of gateway and sink are kernel threads
 * (threaded NAPI): the gateway's CPU time tells what a packet costs there, source
 * and sink aside, and whatever else the machine is doing.
 *
 * All three run on one CPU, the two threads before anybody else: the source makes a
 * batch, the gateway takes it whole, the sink counts it.  Nothing is lost on the way.
 */
#ifndef XSPD_BENCH_PATH_H
#define XSPD_BENCH_PATH_H

#include "bench/shape.h"
#include "plane/plane.h"

enum xspd_path_node { XSPD_PATH_SOURCE, XSPD_PATH_GATEWAY, XSPD_PATH_SINK, XSPD_PATH_NODES };

struct xspd_path {
	int netns[XSPD_PATH_NODES];
	int sysfs;   /* the gateway's /sys */
	char in[16]; /* names and numbers of the devices */
	char out[16];
	char sink[16];
	uint32_t source_if, in_if, out_if, sink_if;
	uint8_t source_mac[6], in_mac[6], out_mac[6], sink_mac[6];
};

/* What makes the frames and counts them; one for all paths. */
struct xspd_traffic {
	struct xspd_plane *plane;
	struct xspd_flow *flows; /* the map's memory */
	int frame, sink;	 /* programs */
	int source, sunk;	 /* maps */
	uint32_t count;
};

int xspd_traffic_new(struct xspd_traffic *traffic);
void xspd_traffic_free(struct xspd_traffic *traffic);

/**
 * xspd_path_new() - Three namespaces with addresses, routes and neighbours; @nr tells paths apart.
 * Needs ip(8). The calling thread is in the gateway's namespace afterwards.
 *
 * Return: 0 or a negative errno.
 */
int xspd_path_new(struct xspd_path *path, unsigned int nr, const struct xspd_traffic *traffic);
int xspd_path_enter(const struct xspd_path *path, enum xspd_path_node node);
void xspd_path_free(struct xspd_path *path);

/* Run a command in the calling thread's namespace, @input on its stdin. 0 or a negative errno. */
int xspd_path_run(char *const argv[], const char *input);

/* What came through in one sample. */
struct xspd_path_sample {
	uint64_t received;  /* by the gateway */
	uint64_t delivered; /* to the sink */
	double cpu_ns;	    /* the gateway's, for all of them */
	double wall_ns;
};

/* Send until the gateway has spent @ms of CPU time, and wait until all is through. */
int xspd_path_sample(const struct xspd_path *path, const struct xspd_traffic *traffic,
		     unsigned int ms, struct xspd_path_sample *ret);

/* --- what is compared ------------------------------------------------------------- */

enum xspd_path_spd {
	XSPD_PATH_NONE,	   /* no policy at all */
	XSPD_PATH_HEALTHY, /* road warriors: the kernel finds them by hash */
	XSPD_PATH_CLIFF,   /* the same under the /16 of their pool: it walks a list */
	XSPD_PATH_BLOCK,   /* blocks between host pairs, which all traffic meets */
	XSPD_PATH_SPDS,
};

enum xspd_path_way {
	XSPD_PATH_KERNEL,
	XSPD_PATH_BYPASS,  /* xspd at XDP */
	XSPD_PATH_ENFORCE, /* xspd at XDP */
	XSPD_PATH_OBSERVE, /* xspd at tc ingress */
	XSPD_PATH_OBSERVE_XDP,
	XSPD_PATH_NFT_PREROUTING, /* no policy; the same pairs in a verdict map */
	XSPD_PATH_NFT_INGRESS,
	XSPD_PATH_XDP_DROP, /* an XDP program that does nothing else: the floor */
	XSPD_PATH_XDP_REDIRECT,
	XSPD_PATH_TC_PASS, /* a tc program that does nothing: the floor there */
};

/* A gateway with its policies, and xspd for them. */
struct xspd_path_rig {
	struct xspd_path path;
	struct xspd_spd *spd;
	struct xspd_plane *plane;
	int xdp, tc; /* entry programs */
	int link;    /* tc's, where it is TCX */
};

#define XSPD_PATH_ROUNDS_MOST 32

/* Medians over the rounds; minimums where named so. Rates are per second of the gateway's CPU. */
struct xspd_path_row {
	const char *setup, *spd;
	uint32_t policies, flows, rounds;
	bool drops;			     /* the traffic is to be dropped */
	double mpps;			     /* delivered, or dropped where that is the aim */
	double mpps_most;		     /* the best round */
	double mpps_wall;		     /* per second of the clock */
	double ns;			     /* per packet */
	uint64_t received, delivered, acted; /* of all rounds; acted: by xspd's own count */
	double floor_ns;  /* the least that any could take at that place; 0: not measured */
	double ratio;	  /* to the kernel, on the same policies and flows; 0: not measured */
	double ratio_net; /* the same, the floor taken off both; 0: not measured */
};

/* The samples of one setup. */
struct xspd_path_sums {
	double mpps[XSPD_PATH_ROUNDS_MOST], wall[XSPD_PATH_ROUNDS_MOST];
	uint64_t received, delivered, acted;
};

/* path_switch.c: switch one way of @rig on or off. 0 or a negative errno. */
int xspd_path_switch(struct xspd_path_rig *rig, enum xspd_path_way way, bool on);

/* path_row.c: medians, and how rows of the same run compare. */
void xspd_path_row_sum(struct xspd_path_row *row, struct xspd_path_sums *sums, uint32_t rounds);
void xspd_path_rows_compare(struct xspd_path_row *rows, size_t count);

struct xspd_path_request {
	uint32_t policies;
	uint32_t rounds;
	uint32_t ms;	    /* of the gateway's CPU time, a sample */
	const char *setups; /* only these, between commas; NULL: all */
	uint32_t flows;	    /* only so many; 0: each number in turn */
	void (*row)(void *ctx, const struct xspd_path_row *row);
	void *ctx;
};

/**
 * xspd_bench_path() - All setups, alternating, for 1 to 65,536 flows.
 * @ret_what: on failure, what failed.
 *
 * Return: 0 or a negative errno (-EBADE: a setup did not treat the packets as it should).
 */
int xspd_bench_path(const struct xspd_path_request *request, const char **ret_what);

/* path_spd.c: the policies, and traffic that meets them. */
int xspd_path_policies(enum xspd_path_spd spd, uint32_t policies, struct xspd_bench_set *ret);
void xspd_path_flows(enum xspd_path_spd spd, uint32_t policies, uint32_t count,
		     struct xspd_flow *ret);
/* The pairs of XSPD_PATH_BLOCK as a ruleset for nft -f; free() it. */
char *xspd_path_nft(uint32_t policies, const char *device);

#endif
