// SPDX-License-Identifier: GPL-2.0-only
#include <arpa/inet.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <stdio.h>
#include <string.h>

#include "cli/path.h"
#include "cli/selector.h"

#define LOOPBACK_IFINDEX 1

/* Splits off what follows the last colon behind the address; NULL if there is no port. */
static const char *split_port(char *text, char **ret_addr)
{
	char *end = *text == '[' ? strchr(text, ']') : NULL;
	char *colon;

	*ret_addr = text;
	if (end) {
		*ret_addr = text + 1;
		*end = '\0';
		return end[1] == ':' ? end + 2 : end[1] ? "" : NULL;
	}
	colon = strchr(text, ':');
	if (!colon || strchr(colon + 1, ':')) /* an IPv6 address without a port */
		return NULL;
	*colon = '\0';
	return colon + 1;
}

int cli_nat_parse(const char *option, const char *text, struct cli_nat *ret)
{
	struct cli_nat nat = {.set = true};
	char copy[INET6_ADDRSTRLEN + 16], *addr;
	const char *port;
	uint32_t number = 0;

	snprintf(copy, sizeof(copy), "%s", text);
	port = split_port(copy, &addr);
	if (inet_pton(AF_INET, addr, nat.addr) == 1)
		nat.family = AF_INET;
	else if (inet_pton(AF_INET6, addr, nat.addr) == 1)
		nat.family = AF_INET6;
	if (!nat.family || strlen(text) >= sizeof(copy) ||
	    (port && (!cli_number(port, 65535, &number) || !number)))
		return cli_usage("lookup: --%s %s: give ADDR, ADDR:PORT or [ADDR]:PORT", option,
				 text);
	nat.port = htons((uint16_t)number);
	*ret = nat;
	return XSPD_DONE;
}

/* Fragments have ports, too, but the lookup does not see them. */
static bool has_port(const struct xspd_flow *flow)
{
	return cli_proto_has_ports(flow->proto) && !flow->frag;
}

static void set_dst(struct xspd_flow *flow, const struct cli_nat *nat)
{
	memcpy(flow->daddr, nat->addr, sizeof(flow->daddr));
	if (nat->port && has_port(flow))
		flow->dport = nat->port;
}

static void set_src(struct xspd_flow *flow, const struct cli_nat *nat)
{
	memcpy(flow->saddr, nat->addr, sizeof(flow->saddr));
	if (nat->port && has_port(flow))
		flow->sport = nat->port;
}

void cli_way_single(struct cli_way *ret, const struct xspd_flow *flow)
{
	*ret = (struct cli_way){.steps = 1};
	ret->step[0].flow = *flow;
}

/*
 * The fwd check undoes destination NAT; the way out is looked up when the
 * packet is routed, after destination NAT, and anew when source NAT has changed it.
 */
void cli_way_forward(struct cli_way *ret, const struct xspd_flow *flow, const struct cli_nat *dnat,
		     const struct cli_nat *snat)
{
	struct xspd_flow next = *flow;

	cli_way_single(ret, flow);
	next.dir = XSPD_OUT;
	if (dnat->set)
		set_dst(&next, dnat);
	ret->step[ret->steps++].flow = next;
	if (!snat->set)
		return;
	set_src(&next, snat);
	ret->step[ret->steps++].flow = next;
	ret->renamed = true;
}

static __be16 icmp_answer(const struct xspd_flow *flow)
{
	if (flow->family == XSPD_INET && ntohs(flow->sport) == ICMP_ECHO)
		return htons(ICMP_ECHOREPLY);
	if (flow->family == XSPD_INET6 && ntohs(flow->sport) == ICMP6_ECHO_REQUEST)
		return htons(ICMP6_ECHO_REPLY);
	return flow->sport;
}

static struct xspd_flow reversed(const struct xspd_flow *flow)
{
	struct xspd_flow back = *flow;

	memcpy(back.daddr, flow->saddr, sizeof(back.daddr));
	memcpy(back.saddr, flow->daddr, sizeof(back.saddr));
	if (has_port(flow)) {
		back.dport = flow->sport;
		back.sport = flow->dport;
	} else if (cli_proto_is_icmp(flow->proto)) {
		back.sport = icmp_answer(flow);
	}
	return back;
}

/* To the other side of this host, where received packets are looked up with the loopback device. */
static struct xspd_flow other_side(const struct xspd_flow *flow)
{
	struct xspd_flow back = reversed(flow);

	if (flow->dir == XSPD_OUT) {
		back.dir = XSPD_IN;
		back.oif = LOOPBACK_IFINDEX;
	} else if (flow->dir == XSPD_IN) {
		back.dir = XSPD_OUT;
		back.oif = 0;
		back.unknown = XSPD_UNKNOWN_OIF;
	} else {
		back.oif = 0;
		back.unknown = XSPD_UNKNOWN_OIF;
	}
	return back;
}

void cli_way_back(struct cli_way *ret, const struct cli_way *there, const struct cli_nat *dnat,
		  const struct cli_nat *snat, uint32_t iif)
{
	const struct xspd_flow *first = &there->step[0].flow;
	const struct xspd_flow *last = &there->step[there->steps - 1].flow;
	struct cli_nat src = {.set = dnat->set, .family = dnat->family};
	struct cli_nat dst = {.set = snat->set, .family = snat->family};
	struct xspd_flow back;

	if (there->steps == 1) {
		back = other_side(first);
		if (first->dir != XSPD_OUT && iif) {
			back.oif = iif;
			back.unknown = 0;
		}
		cli_way_single(ret, &back);
		return;
	}
	back = reversed(last);
	back.dir = XSPD_FWD;
	back.oif = iif;
	back.unknown = iif ? 0 : XSPD_UNKNOWN_OIF;
	memcpy(src.addr, first->daddr, sizeof(src.addr));
	memcpy(dst.addr, first->saddr, sizeof(dst.addr));
	if (has_port(first)) {
		src.port = first->dport;
		dst.port = first->sport;
	}
	cli_way_forward(ret, &back, &dst, &src);
}

const char *cli_fate_name(enum cli_fate fate)
{
	static const char *const names[] = {"plain", "protected", "demands-ipsec", "dropped",
					    "deferred"};

	return names[fate];
}

enum cli_fate cli_fate_of(const struct cli_answer *answer)
{
	switch (answer->answer.verdict) {
	case XSPD_PLAIN:
		return CLI_FATE_PLAIN;
	case XSPD_PROTECT:
		return answer->flow.dir == XSPD_OUT ? CLI_FATE_PROTECTED : CLI_FATE_DEMANDS;
	case XSPD_DENY:
		return CLI_FATE_DROPPED;
	default:
		return CLI_FATE_DEFERRED;
	}
}

const char *cli_fate_counter(const struct cli_answer *answer, const char **ret_when)
{
	bool out = answer->flow.dir == XSPD_OUT;

	*ret_when = "always";
	switch (cli_fate_of(answer)) {
	case CLI_FATE_DEMANDS:
		*ret_when = "unprotected";
		return "XfrmInTmplMismatch";
	case CLI_FATE_PROTECTED:
		*ret_when = "no_sa";
		return "XfrmOutNoStates";
	case CLI_FATE_DROPPED:
		if (answer->answer.reason == XSPD_R_BLOCK)
			return out ? "XfrmOutPolBlock" : "XfrmInPolBlock";
		/* a default of block drops on the way out without counting */
		if (!out)
			return "XfrmInNoPols";
		break;
	default:
		break;
	}
	*ret_when = NULL;
	return NULL;
}

const struct cli_answer *cli_way_end(const struct cli_way *way)
{
	for (size_t i = 0; i + 1 < way->steps; i++) {
		enum cli_fate fate = cli_fate_of(&way->step[i]);

		if (fate == CLI_FATE_DROPPED || fate == CLI_FATE_DEFERRED)
			return &way->step[i];
	}
	return &way->step[way->steps - 1];
}
