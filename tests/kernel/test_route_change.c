// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is remembered of a flow is no older than the routes: after each change of them the very
 * next packet is treated by the new ones, and by the old ones when they are back.
 */
#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "lib/gateway.h"
#include "lib/mirror.h"
#include "lib/netns.h"
#include "lib/packet.h"
#include "util.h"

#define TICK_US 50000 /* a mode is followed from the next tick on */
#define PASS	-1    /* TC_ACT_UNSPEC */

static char pins[64];
static struct mirror *mirror;
static struct gateway *gw;

static void tidy(void)
{
	mirror_free(mirror);
	if (*pins)
		netns_run("rm -rf %s", pins);
}

TestSuite(route_change, .fini = tidy);

static void begin(enum xspd_hook hook, uint32_t flags)
{
	struct xspd_plane_opts opts = {.pin = pins, .lease_ms = 60000, .cache = 256};

	snprintf(pins, sizeof(pins), "/sys/fs/bpf/xspd-routes-%d", getpid());
	cr_assert_eq(mirror_new(&mirror, XSPD_NL_GROUPS, &opts), 0);
	for (int side = GATEWAY_C; side <= GATEWAY_S; side++) {
		struct xspd_mode_key key = {.ifindex = gateway_ifindex(gw, side), .hook = hook};
		struct xspd_mode mode = {.flags = flags};

		memcpy(mode.mac, gateway_mac(gw, side), 6);
		cr_assert_eq(bpf_map_update_elem(xspd_plane_map_fd(mirror->plane, "xspd_mode"),
						 &key, &mode, BPF_ANY),
			     0);
	}
	usleep(TICK_US);
}

static size_t frame_make(uint8_t *frame)
{
	struct xspd_flow flow = flow_make(XSPD_OUT, "10.0.1.1", "10.128.1.1", IPPROTO_UDP, 1, 2);
	size_t len = packet_build(frame, &flow);

	memcpy(frame, gateway_mac(gw, GATEWAY_C), 6);
	return len;
}

static int received_tc(void)
{
	struct __sk_buff ctx = {.ifindex = gateway_ifindex(gw, GATEWAY_C)};
	uint8_t frame[PACKET_MAX];
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .ctx_in = &ctx,
		    .ctx_size_in = sizeof(ctx), .repeat = 1);

	opts.data_size_in = (uint32_t)frame_make(frame);
	cr_assert_eq(bpf_prog_test_run_opts(xspd_plane_prog_fd(mirror->plane, "xspd_do_in"), &opts),
		     0, "%d", errno);
	return (int)opts.retval;
}

static int received_xdp(void)
{
	uint8_t frame[PACKET_MAX];
	struct xdp_md ctx = {.ingress_ifindex = gateway_ifindex(gw, GATEWAY_C)};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .ctx_in = &ctx,
		    .ctx_size_in = sizeof(ctx), .repeat = 1);

	opts.data_size_in = ctx.data_end = (uint32_t)frame_make(frame);
	cr_assert_eq(
		bpf_prog_test_run_opts(xspd_plane_prog_fd(mirror->plane, "xspd_do_xdp"), &opts), 0,
		"%d", errno);
	return (int)opts.retval;
}

static const struct change {
	const char *what, *change, *back;
	bool forwards; /* by s0 all the same */
} changes[] = {
	{"its own address", "ip addr add 10.128.1.1/32 dev s0", "ip addr del 10.128.1.1/32 dev s0"},
	{"another device", "ip route add 10.128.1.1/32 dev t0", "ip route del 10.128.1.1/32"},
	{"a blackhole", "ip route add blackhole 10.128.1.1/32", "ip route del 10.128.1.1/32"},
	{"unreachable", "ip route add unreachable 10.128.1.0/24", "ip route del 10.128.1.0/24"},
	{"a rule", "ip rule add to 10.128.1.1 prohibit", "ip rule del to 10.128.1.1 prohibit"},
	{"a rule for the source", "ip rule add from 10.0.1.1 blackhole",
	 "ip rule del from 10.0.1.1 blackhole"},
	{"a rule for the port", "ip rule add ipproto udp dport 2 blackhole",
	 "ip rule del ipproto udp dport 2 blackhole"},
	{"a rule for the source's port", "ip rule add ipproto udp sport 1 prohibit",
	 "ip rule del ipproto udp sport 1 prohibit"},
	{"the device does not forward", "sysctl -qw net.ipv4.conf.c0.forwarding=0",
	 "sysctl -qw net.ipv4.conf.c0.forwarding=1"},
	{"no device forwards", "sysctl -qw net.ipv4.ip_forward=0",
	 "sysctl -qw net.ipv4.ip_forward=1"},
	{"nothing that matters", "ip route add 10.77.0.0/16 dev t0", "ip route del 10.77.0.0/16",
	 true},
};

static void each_change(int (*received)(void), int acted, int left)
{
	uint64_t before;

	for (size_t i = 0; i < XSPD_ARRAY_SIZE(changes); i++) {
		const struct change *change = &changes[i];

		cr_expect_eq(received(), acted, "before: %s", change->what);
		before = mirror_hits(mirror);
		cr_expect_eq(received(), acted, "again, before: %s", change->what);
		cr_expect_eq(mirror_hits(mirror), before + 1, "not remembered before: %s",
			     change->what);
		cr_assert_eq(netns_run("%s", change->change), 0);
		for (int k = 0; k < 3; k++)
			cr_expect_eq(received(), change->forwards ? acted : left, "%s, packet %d",
				     change->what, k);
		cr_assert_eq(netns_run("%s", change->back), 0);
		for (int k = 0; k < 3; k++)
			cr_expect_eq(received(), acted, "not any more: %s, packet %d", change->what,
				     k);
	}
}

Test(route_change, enforced_as_routed_now)
{
	cr_assert_eq(gateway_new(&gw, 0), 0);
	cr_assert_eq(netns_run("ip xfrm policy add src 0.0.0.0/0 dst 0.0.0.0/0 dev s0 dir fwd "
			       "action block"),
		     0);
	begin(XSPD_HOOK_INGRESS, XSPD_MODE_ENFORCE);
	each_change(received_tc, TC_ACT_SHOT, PASS);
}

Test(route_change, bypassed_as_routed_now)
{
	cr_assert_eq(gateway_new(&gw, 0), 0);
	begin(XSPD_HOOK_XDP, XSPD_MODE_BYPASS);
	for (const char *dev = "cs"; *dev; dev++)
		cr_assert_eq(netns_run("ip link set %c0 xdpdrv pinned %s/xspd_xdp", *dev, pins), 0);
	each_change(received_xdp, XDP_REDIRECT, XDP_PASS);

	/* the way back to its source */
	cr_assert_eq(netns_run("ip route add 10.0.1.0/24 dev t0"), 0);
	for (int k = 0; k < 3; k++)
		cr_expect_eq(received_xdp(), XDP_PASS, "source by another device, packet %d", k);
	cr_assert_eq(netns_run("ip route del 10.0.1.0/24"), 0);
	for (int k = 0; k < 3; k++)
		cr_expect_eq(received_xdp(), XDP_REDIRECT, "source by this device, packet %d", k);
}
