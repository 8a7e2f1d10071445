// SPDX-License-Identifier: GPL-2.0-only
/*
 * No wrong verdict: the same packets through a gateway without xspd, and with xspd acting
 * early. What comes out, on the wire and at the sockets, has to be the same, byte for
 * byte, errors to the senders included. XSPD_SEED and XSPD_REPLAY (packets an SPD) vary it.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <linux/xfrm.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "lib/gateway.h"
#include "lib/mirror.h"
#include "lib/netns.h"
#include "lib/scale.h"
#include "lib/traffic.h"
#include "nl/nl.h"
#include "nl/route.h"
#include "reason.h"
#include "util.h"

#define PACKETS	   20500
#define POLICY_MAX 64

/* per cent: sub, mark, dev, block, and of the allowing ones those without a template */
static const struct spd_kind {
	const char *name;
	uint8_t policies;
	uint8_t sub, mark, dev, block, plain;
	const char *defaults; /* ip xfrm policy setdefault */
	uint32_t gateway;     /* enum gateway_option */
} kinds[] = {
	{"few blocks", 6, 0, 0, 0, 100, 0, "in accept fwd accept out accept", GATEWAY_DEFAULT},
	{"few protected", 10, 0, 0, 0, 0, 50, "in accept fwd accept out accept", GATEWAY_RP_FILTER},
	{"shunts", 40, 0, 0, 0, 8, 100, "in accept fwd accept out accept", GATEWAY_RP_FILTER},
	{"shunts above block", 60, 0, 0, 0, 0, 100, "in block fwd block out accept", 0},
	{"mixed", 40, 0, 0, 0, 40, 60, "in accept fwd accept out accept",
	 GATEWAY_RP_FILTER | GATEWAY_DEFAULT},
	{"default block", 40, 0, 0, 0, 10, 90, "in block fwd block out accept",
	 GATEWAY_RP_FILTER | GATEWAY_DEFAULT},
	{"all blocked", 40, 0, 0, 0, 10, 90, "in block fwd block out block", GATEWAY_DEFAULT},
	{"sub policies", 40, 30, 0, 0, 30, 70, "in accept fwd accept out accept", 0},
	{"marks", 24, 10, 60, 0, 40, 60, "in accept fwd accept out accept", GATEWAY_RP_FILTER},
	{"devices", 30, 10, 0, 60, 40, 60, "in accept fwd accept out block", GATEWAY_DEFAULT},
};

enum how { WITHOUT, XDP, TC, HOW_MAX_ };
static const char *const how_names[HOW_MAX_] = {"without", "xdp", "tc"};

struct replay {
	struct gen gen;
	struct xspd_pol pol[POLICY_MAX];
	size_t policies, packets;
	const struct spd_kind *kind;
	struct mirror *mirror;
	char pins[64];
	struct xspd_stat act[XSPD_A_MAX_];
};

static struct replay *cleanup; /* pins stay behind a failed assertion otherwise */

static void tidy(void)
{
	if (!cleanup)
		return;
	mirror_free(cleanup->mirror);
	cleanup->mirror = NULL;
	if (*cleanup->pins)
		netns_run("rm -rf %s", cleanup->pins);
	*cleanup->pins = '\0';
}

TestSuite(replay, .fini = tidy);

/* --- policies ------------------------------------------------------------------ */

static void make_policies(struct replay *r, const struct gateway *gw)
{
	struct gen *gen = &r->gen;

	gen->sub = r->kind->sub;
	gen->mark = r->kind->mark;
	gen->dev = r->kind->dev;
	gen->block = r->kind->block;
	gen->devs[0] = gateway_ifindex(gw, GATEWAY_C);
	gen->devs[1] = gateway_ifindex(gw, GATEWAY_S);
	gen->devs[2] = 1;
	for (r->policies = 0; r->policies < r->kind->policies; r->policies++) {
		struct xspd_pol *pol = &r->pol[r->policies];

		gen_policy(gen, pol);
		if (pol->action == XSPD_ALLOW && gen_chance(gen, r->kind->plain))
			memset(&pol->tmpl, 0, sizeof(pol->tmpl));
		/* whole halves of the world now and then, but not in most sets */
		if (pol->sel.prefixlen_d + pol->sel.prefixlen_s < 12 && gen_chance(gen, 70))
			pol->sel.proto = gen_chance(gen, 50) ? IPPROTO_UDP : IPPROTO_TCP;
	}
}

static void refused(void *ctx, uint32_t seq, int error, const char *extack)
{
	(void)ctx;
	(void)seq;
	/* the same selector twice */
	cr_assert_eq(error, -EEXIST, "refused: %d %s", error, extack ? extack : "");
}

static void install(const struct replay *r)
{
	struct xspd_batch *batch;
	struct xspd_nl *nl;
	uint32_t seq;

	cr_assert_eq(xspd_nl_open(&nl, 0, 0), 0);
	cr_assert_eq(xspd_batch_new(&batch, nl, refused, NULL), 0);
	for (size_t i = 0; i < r->policies; i++) {
		void *room = xspd_batch_room(batch, &seq);

		cr_assert_not_null(room);
		xspd_batch_commit(batch, xspd_nl_put_policy(room, &r->pol[i], XFRM_MSG_NEWPOLICY,
							    NLM_F_REQUEST | NLM_F_ACK, seq));
	}
	cr_assert_eq(xspd_batch_flush(batch), 0);
	xspd_batch_free(batch);
	xspd_nl_free(nl);
	cr_assert_eq(netns_run("ip xfrm policy setdefault %s", r->kind->defaults), 0);
}

/* --- xspd ---------------------------------------------------------------------- */

static void set_mode(struct replay *r, const struct gateway *gw, enum gateway_side side,
		     uint32_t hook, uint32_t flags)
{
	struct xspd_mode_key key = {.ifindex = gateway_ifindex(gw, side), .hook = hook};
	struct xspd_mode mode = {.flags = flags};

	memcpy(mode.mac, gateway_mac(gw, side), sizeof(mode.mac));
	cr_assert_eq(bpf_map_update_elem(xspd_plane_map_fd(r->mirror->plane, "xspd_mode"), &key,
					 &mode, BPF_ANY),
		     0);
}

static void exempt(struct replay *r)
{
	struct xspd_exempt key = {.dport = htons(GATEWAY_EXEMPT), .proto = IPPROTO_UDP};
	uint32_t one = 1;

	cr_assert_eq(bpf_map_update_elem(xspd_plane_map_fd(r->mirror->plane, "xspd_exempt"), &key,
					 &one, BPF_ANY),
		     0);
}

static void act_early(struct replay *r, const struct gateway *gw, enum how how)
{
	struct xspd_plane_opts opts = {.pin = r->pins, .lease_ms = 3600000, .cache = 256};
	struct xspd_routes routes;

	snprintf(r->pins, sizeof(r->pins), "/sys/fs/bpf/xspd-replay-%d", getpid());
	cr_assert_eq(mirror_new(&r->mirror, XSPD_NL_GROUPS, &opts), 0);
	exempt(r);
	cr_assert_eq(xspd_routes_scan(&routes), 0);
	cr_assert_eq(routes.mtu, GATEWAY_ROUTE_MTU);
	xspd_plane_routes(r->mirror->plane, routes.mtu, routes.many, routes.rules);
	for (int side = GATEWAY_C; side <= GATEWAY_S; side++) {
		if (how == XDP)
			set_mode(r, gw, side, XSPD_HOOK_XDP, XSPD_MODE_ENFORCE | XSPD_MODE_BYPASS);
		else
			set_mode(r, gw, side, XSPD_HOOK_INGRESS, XSPD_MODE_ENFORCE);
	}
	for (const char *dev = "cs"; *dev; dev++) {
		if (how == XDP)
			cr_assert_eq(netns_run("ip link set %c0 xdpdrv pinned %s/xspd_xdp", *dev,
					       r->pins),
				     0);
		else
			cr_assert_eq(netns_run("tc qdisc add dev %c0 clsact && tc filter add dev "
					       "%c0 ingress bpf da object-pinned %s/xspd_tc_in",
					       *dev, *dev, r->pins),
				     0);
	}
}

/* What was done early, summed up over CPUs, and added to @total. */
static void read_acts(struct replay *r, enum how how, uint64_t *total)
{
	int fd = xspd_plane_map_fd(r->mirror->plane, "xspd_act"), cpus = libbpf_num_possible_cpus();
	struct xspd_stat *stat = calloc((size_t)cpus, sizeof(*stat));

	for (uint32_t act = 1; act < XSPD_A_MAX_; act++) {
		uint32_t hook = how == XDP ? XSPD_HOOK_XDP : XSPD_HOOK_INGRESS;
		uint32_t key = hook * XSPD_A_MAX_ + act;

		cr_assert_eq(bpf_map_lookup_elem(fd, &key, stat), 0);
		for (int i = 0; i < cpus; i++)
			total[act] += stat[i].packets;
	}
	free(stat);
}

/* --- the run ------------------------------------------------------------------- */

static struct gateway_out *run(struct replay *r, enum how how, uint64_t seed, uint64_t *acts)
{
	struct traffic traffic = {.gen = &r->gen, .pols = r->pol, .marks = r->kind->mark != 0};
	struct traffic_frame frame;
	struct gateway_out *out;
	struct gateway *gw;
	size_t i;

	cr_assert_eq(gateway_new(&gw, r->kind->gateway), 0);
	gen_init(&r->gen, r->kind->name, seed);
	make_policies(r, gw);
	install(r);
	if (how != WITHOUT)
		act_early(r, gw, how);
	traffic.count = r->policies;
	for (i = 0; i < r->packets; i++) {
		traffic_next(&traffic, &frame);
		cr_assert_eq(gateway_send(gw, frame.side, frame.mark, frame.b, frame.len), 0,
			     "packet %zu of %zu bytes", i, frame.len);
	}
	cr_assert_eq(gateway_finish(gw), 0);
	if (how != WITHOUT)
		read_acts(r, how, acts);
	tidy();
	out = gateway_take(gw);
	gateway_free(gw);
	return out;
}

static size_t differences;

static void tell(const struct replay *r, enum how how, const struct gateway_out *out, size_t differ)
{
	printf("   %-18s %-7s %6zu packets: %6zu out, %5zu at sockets, %4zu acquires; %zu differ\n",
	       r->kind->name, how_names[how], r->packets, gateway_out_count(out, false),
	       gateway_out_count(out, true), gateway_out_acquires(out), differ);
}

static void compare(struct replay *r, enum how how, const struct gateway_out *plain, uint64_t seed,
		    uint64_t *acts)
{
	struct gateway_out *out = run(r, how, seed, acts);
	size_t differ = gateway_out_compare(plain, out);

	tell(r, how, out, differ);
	differences += differ;
	cr_expect_eq(differ, 0, "%s, %s: %zu differ", r->kind->name, how_names[how], differ);
	cr_expect_eq(gateway_out_acquires(plain), gateway_out_acquires(out), "%s, %s: %zu acquires",
		     r->kind->name, how_names[how], gateway_out_acquires(out));
	gateway_out_free(out);
}

/* Each thing that may be done early has to have been done. */
static void tell_acts(const uint64_t acts[HOW_MAX_][XSPD_A_MAX_], size_t packets)
{
	static const uint8_t drops[] = {XSPD_A_DROP_BLOCK, XSPD_A_DROP_DEFAULT, XSPD_A_DROP_PLAIN};

	for (int how = XDP; how < HOW_MAX_; how++) {
		uint64_t dropped = 0;

		printf("   %s:", how_names[how]);
		for (int act = 1; act < XSPD_A_MAX_; act++)
			if (acts[how][act])
				printf(" %s %lu", xspd_act_name(act),
				       (unsigned long)acts[how][act]);
		printf("\n");
		for (size_t i = 0; i < XSPD_ARRAY_SIZE(drops); i++) {
			dropped += acts[how][drops[i]];
			cr_expect_gt(acts[how][drops[i]], packets / 200, "%s: %s %lu",
				     how_names[how], xspd_act_name(drops[i]),
				     (unsigned long)acts[how][drops[i]]);
		}
		cr_expect_gt(dropped, packets / 8, "%s: only %lu dropped", how_names[how],
			     (unsigned long)dropped);
	}
	cr_expect_gt(acts[XDP][XSPD_A_FORWARDED], packets / 8, "only %lu forwarded",
		     (unsigned long)acts[XDP][XSPD_A_FORWARDED]);
}

Test(replay, same_with_and_without)
{
	static uint64_t acts[HOW_MAX_][XSPD_A_MAX_];
	const char *packets = getenv("XSPD_REPLAY");
	struct replay *r = calloc(1, sizeof(*r));
	size_t total = 0;

	cleanup = r;
	r->packets = packets ? strtoul(packets, NULL, 0) : scaled(PACKETS);
	for (size_t i = 0; i < XSPD_ARRAY_SIZE(kinds); i++) {
		uint64_t seed = 20261130 + i;
		struct gateway_out *plain;

		r->kind = &kinds[i];
		plain = run(r, WITHOUT, seed, NULL);
		tell(r, WITHOUT, plain, 0);
		compare(r, XDP, plain, seed, acts[XDP]);
		compare(r, TC, plain, seed, acts[TC]);
		total += r->packets;
		gateway_out_free(plain);
	}
	printf("   %zu packets, each three times; %zu differences\n", total, differences);
	tell_acts((const void *)acts, total);
	free(r);
	cleanup = NULL;
}
