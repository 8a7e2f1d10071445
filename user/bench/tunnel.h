/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Traffic through one of many tunnels: client - gateway - gateway - server, four namespaces joined
 * by veth, ESP without encryption or integrity between the gateways.  What is compared is how a
 * gateway is told which tunnel a packet belongs to.
 */
#ifndef XSPD_BENCH_TUNNEL_H
#define XSPD_BENCH_TUNNEL_H

#include <netinet/in.h>
#include <sys/types.h>

#include "bench/child.h"

enum xspd_tunnel_node {
	XSPD_TUNNEL_CLIENT,
	XSPD_TUNNEL_GW1,
	XSPD_TUNNEL_GW2,
	XSPD_TUNNEL_SERVER,
	XSPD_TUNNEL_NODES,
};

enum xspd_tunnel_way {
	XSPD_TUNNEL_PLAIN,	/* no IPsec: what the rest of the way costs */
	XSPD_TUNNEL_POLICY,	/* policies by net, and nothing else */
	XSPD_TUNNEL_INTERFACES, /* an xfrm interface a tunnel */
	XSPD_TUNNEL_MARKS,	/* a mark a tunnel, as VTI has it: all policies in one list */
	XSPD_TUNNEL_STEER,	/* xspd over one xfrm interface */
	XSPD_TUNNEL_WAYS,
};

#define XSPD_TUNNELS_MOST 16000

struct xspd_tunnel {
	enum xspd_tunnel_way way;
	uint32_t tunnels;
	int netns[XSPD_TUNNEL_NODES];
	struct in_addr host; /* of the server, behind the last tunnel */
	struct xspd_child child[2];
	pid_t iperf; /* its server; 0: none */
	double setup_s;
};

/**
 * xspd_tunnel_new() - All of a set-up. Needs ip(8), tc(8), iperf3(1).
 * @ret_what: on failure, what failed.
 *
 * Return: 0 or a negative errno.
 */
int xspd_tunnel_new(struct xspd_tunnel *tunnel, enum xspd_tunnel_way way, uint32_t tunnels,
		    bool streams, const char **ret_what);
void xspd_tunnel_free(struct xspd_tunnel *tunnel);
int xspd_tunnel_enter(const struct xspd_tunnel *tunnel, enum xspd_tunnel_node node);

/* tunnel_spd.c: SAs and policies of a gateway, of the calling thread's namespace; 0 or -errno. */
int xspd_tunnel_fill(enum xspd_tunnel_way way, uint32_t tunnels, bool first);
/* @count SAs, over netlink. */
int xspd_tunnel_sas(uint32_t count);

/* tunnel_flow.c: one measurement each; 0 or a negative errno (-EBADE: nothing comes through). */
int xspd_tunnel_rr(const struct xspd_tunnel *tunnel, uint32_t ms, double *ret_per_s);
int xspd_tunnel_stream(const struct xspd_tunnel *tunnel, bool udp, double *ret_per_s);

/* What a packet costs in the steering program of the first gateway, by the kernel's own count. */
int xspd_tunnel_steer_ns(const struct xspd_tunnel *tunnel, uint32_t ms, double *ret_ns);

/* tunnel_sa.c: how long @count SAs take to load, in a namespace of their own. */
enum xspd_sa_way { XSPD_SA_BATCH, XSPD_SA_SNAPSHOT, XSPD_SA_PFKEY, XSPD_SA_NETLINK, XSPD_SA_WAYS };
extern const char *const xspd_sa_names[XSPD_SA_WAYS];
int xspd_tunnel_load(enum xspd_sa_way way, uint32_t count, double *ret_s);

/* tunnel.c */
#define XSPD_TUNNEL_ROUNDS_MOST 32
#define XSPD_TUNNEL_SIZES	8

struct xspd_tunnel_cell {
	double median, least, most;
};

struct xspd_tunnel_row {
	const char *way;
	uint32_t tunnels, rounds;
	double setup_s;
	struct xspd_tunnel_cell rr;  /* transactions a second */
	struct xspd_tunnel_cell tcp; /* bits a second */
	struct xspd_tunnel_cell udp; /* datagrams a second that arrive */
	double steer_ns;	     /* of the program, a packet; 0: not measured */
};

struct xspd_tunnel_request {
	uint32_t sizes[XSPD_TUNNEL_SIZES];
	uint32_t size_count;
	uint32_t ways; /* bit 1 << enum xspd_tunnel_way */
	uint32_t rounds, ms;
	bool streams;
	void (*note)(void *ctx, const char *text); /* of progress */
	void (*row)(void *ctx, const struct xspd_tunnel_row *row);
	void *ctx;
};

int xspd_bench_tunnel(const struct xspd_tunnel_request *request, const char **ret_what);
const char *xspd_tunnel_name(enum xspd_tunnel_way way);

#endif
