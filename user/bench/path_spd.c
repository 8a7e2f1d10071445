// SPDX-License-Identifier: GPL-2.0-only
/* Policies of the path benchmark, and traffic that meets them. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "bench/path.h"
#include "util.h"

#define GOLDEN 0x9e3779b1u /* odd: multiplying by it permutes the low bits */
#define HOSTS  0xea60u	   /* of the pool's 65,536, those that traffic may go to */

static uint32_t scatter(uint32_t i)
{
	return i * GOLDEN & 0xffff;
}

static void protect(struct xspd_pol *pol, uint32_t i)
{
	pol->tmpl.reqid = i + 1;
	pol->tmpl.proto = IPPROTO_ESP;
	pol->tmpl.mode = XFRM_MODE_TUNNEL;
	pol->tmpl.family = AF_INET;
	pol->tmpl.count = pol->tmpl.required = 1;
	pol->tmpl.daddr[0] = htonl(0xc0000201);
	pol->tmpl.saddr[0] = htonl(0xc0000202);
}

/* A client of the pool 10.1.0.0/16; number 0 is the pool itself, in the clear. */
static void client(uint32_t i, bool pool, struct xspd_pol *pol)
{
	pol->sel.prefixlen_d = pool && !i ? 16 : 32;
	pol->sel.daddr.a4 = htonl(0x0a010000 | (pool && !i ? 0 : scatter(i)));
	pol->priority = 400000 - pol->sel.prefixlen_d * 512u;
	if (!pool || i)
		protect(pol, i);
}

/* The sides of pair number @i: as many on either, roughly. */
static void pair(uint32_t i, __be32 *saddr, __be32 *daddr)
{
	*saddr = htonl(0xac100000 | (i & 0xff));
	*daddr = htonl(0x0a020000 | i >> 8);
}

static void block(uint32_t i, struct xspd_pol *pol)
{
	pair(i, &pol->sel.saddr.a4, &pol->sel.daddr.a4);
	pol->sel.prefixlen_s = pol->sel.prefixlen_d = 32;
	pol->action = XSPD_BLOCK;
	pol->priority = 100;
}

/* Half of the policies are for forwarding, half go out; blocks are all for forwarding. */
int xspd_path_policies(enum xspd_path_spd spd, uint32_t policies, struct xspd_bench_set *ret)
{
	struct xspd_bench_set set = {.name = "path", .count = policies};

	if (spd == XSPD_PATH_NONE)
		set.count = 0;
	set.pols = calloc(set.count + 1, sizeof(*set.pols));
	if (!set.pols)
		return -ENOMEM;
	for (uint32_t i = 0; i < set.count; i++) {
		struct xspd_pol *pol = &set.pols[i];

		pol->sel.family = AF_INET;
		pol->dir = spd == XSPD_PATH_BLOCK || i & 1 ? XSPD_FWD : XSPD_OUT;
		if (spd == XSPD_PATH_BLOCK)
			block(i, pol);
		else
			client(i / 2, spd == XSPD_PATH_CLIFF, pol);
	}
	*ret = set;
	return 0;
}

void xspd_path_flows(enum xspd_path_spd spd, uint32_t policies, uint32_t count,
		     struct xspd_flow *ret)
{
	uint32_t clients = policies / 2, room = HOSTS > clients ? HOSTS - clients : 1;

	for (uint32_t i = 0; i < count; i++) {
		struct xspd_flow flow = {
			.family = XSPD_INET,
			.dir = XSPD_FWD,
			.proto = IPPROTO_UDP,
			.sport = htons(40000),
			.dport = htons((uint16_t)(1024 + i / 8192)),
		};

		flow.saddr[0] = htonl(0xac100002 + i % 61);
		/* beside the clients: by another /16, or by a number that none of them has */
		flow.daddr[0] = htonl(0x0b010000 | scatter(i));
		if (spd == XSPD_PATH_CLIFF)
			flow.daddr[0] = htonl(0x0a010000 | scatter(clients + 1 + i % room));
		if (spd == XSPD_PATH_BLOCK)
			pair(i % policies, &flow.saddr[0], &flow.daddr[0]);
		ret[i] = flow;
	}
}

char *xspd_path_nft(uint32_t policies, const char *device)
{
	FILE *out;
	char *text = NULL, s[INET_ADDRSTRLEN], d[INET_ADDRSTRLEN];
	__be32 saddr, daddr;
	size_t len;

	out = open_memstream(&text, &len);
	if (!out)
		return NULL;
	fprintf(out, "table %s bench {\n\tmap pairs {\n\t\ttype ipv4_addr . ipv4_addr : verdict\n",
		device ? "netdev" : "ip");
	fprintf(out, "\t\telements = {");
	for (uint32_t i = 0; i < policies; i++) {
		pair(i, &saddr, &daddr);
		inet_ntop(AF_INET, &saddr, s, sizeof(s));
		inet_ntop(AF_INET, &daddr, d, sizeof(d));
		fprintf(out, "%s %s . %s : drop", i ? "," : "", s, d);
	}
	fprintf(out, " }\n\t}\n\tchain in {\n\t\ttype filter hook ");
	if (device)
		fprintf(out, "ingress device \"%s\" priority 0", device);
	else
		fprintf(out, "prerouting priority raw");
	fprintf(out, "; policy accept;\n\t\tip saddr . ip daddr vmap @pairs\n\t}\n}\n");
	fclose(out); /* only now the text is there */
	return text;
}
