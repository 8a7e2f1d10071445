// SPDX-License-Identifier: GPL-2.0-only
/*
 * No plaintext past a new policy: under a flood of bypassed packets a protect policy is added,
 * again and again. Each packet carries the time at which it was sent; none that reaches the sink
 * may have been sent after the change was published.
 */
#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/xfrm.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "lib/gateway.h"
#include "lib/mirror.h"
#include "lib/netns.h"
#include "lib/packet.h"
#include "lib/scale.h"
#include "util.h"

#define ROUNDS	60 /* at full scale */
#define PAYLOAD (14 + 20 + 8)

static char pins[64];
static struct mirror *mirror;

static void tidy(void)
{
	mirror_free(mirror);
	if (*pins)
		netns_run("rm -rf %s", pins);
}

TestSuite(lag, .fini = tidy);

static int packet_socket(const char *dev, uint16_t proto)
{
	struct sockaddr_ll addr = {.sll_family = AF_PACKET, .sll_protocol = htons(proto)};
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), on = 1, size = 64 << 20;

	addr.sll_ifindex = (int)if_nametoindex(dev);
	cr_assert_geq(fd, 0);
	cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)), 0);
	cr_assert_eq(setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof(on)), 0);
	cr_assert_eq(bind(fd, (void *)&addr, sizeof(addr)), 0);
	return fd;
}

/* --- the flood ----------------------------------------------------------------- */

struct flood {
	pthread_t thread;
	int fd;
	uint8_t frame[PACKET_MAX];
	size_t len;
	atomic_bool stop;
	uint64_t sent;
};

static void *flood_main(void *arg)
{
	struct flood *flood = arg;
	uint64_t now;

	while (!atomic_load_explicit(&flood->stop, memory_order_relaxed)) {
		now = xspd_now(CLOCK_MONOTONIC);
		memcpy(flood->frame + PAYLOAD, &now, sizeof(now));
		if (send(flood->fd, flood->frame, flood->len, 0) > 0)
			flood->sent++;
	}
	return NULL;
}

static void flood_start(struct flood *flood, const struct gateway *gw)
{
	struct xspd_flow flow = flow_make(XSPD_OUT, "10.0.1.1", "10.128.1.1", IPPROTO_UDP, 1, 2);

	flood->fd = packet_socket("c1", 0);
	flood->len = packet_build(flood->frame, &flow);
	memcpy(flood->frame, gateway_mac(gw, GATEWAY_C), 6);
	cr_assert_eq(pthread_create(&flood->thread, NULL, flood_main, flood), 0);
}

static void flood_stop(struct flood *flood)
{
	atomic_store(&flood->stop, true);
	pthread_join(flood->thread, NULL);
	close(flood->fd);
}

/* --- the sink ------------------------------------------------------------------ */

struct sink {
	int fd;
	uint64_t count;
	uint64_t last;	/* the latest time of sending among what came */
	uint64_t after; /* that came although sent after @since */
	uint64_t since;
};

static void sink_drain(struct sink *sink)
{
	uint8_t frame[256];
	uint64_t sent;
	ssize_t len;

	while ((len = recv(sink->fd, frame, sizeof(frame), MSG_DONTWAIT)) > 0) {
		if (len < PAYLOAD + 8 || frame[12] != 0x08 || frame[13] != 0)
			continue;
		memcpy(&sent, frame + PAYLOAD, sizeof(sent));
		sink->count++;
		sink->last = sent > sink->last ? sent : sink->last;
		sink->after += sent > sink->since;
	}
}

/* Until something sent later than @when has come. */
static void sink_flows(struct sink *sink, uint64_t when)
{
	for (int i = 0; i < 4000 && sink->last <= when; i++) {
		usleep(500);
		mirror_beat(mirror);
		sink_drain(sink);
	}
	cr_assert_gt(sink->last, when, "nothing comes through");
}

/* --- the change ---------------------------------------------------------------- */

static void refused(void *ctx, uint32_t seq, int error, const char *extack)
{
	(void)ctx;
	cr_assert_fail("%u: %d %s", seq, error, extack ? extack : "");
}

/* Returns when the kernel has done it. */
static void change(struct xspd_batch *batch, const struct xspd_pol *pol, bool add)
{
	uint32_t seq;
	void *room = xspd_batch_room(batch, &seq);
	uint16_t flags = NLM_F_REQUEST | NLM_F_ACK;

	xspd_batch_commit(batch, add ? xspd_nl_put_policy(room, pol, XFRM_MSG_NEWPOLICY, flags, seq)
				     : xspd_nl_put_delete(room, pol, false, flags, seq));
	cr_assert_eq(xspd_batch_flush(batch), 0);
}

/* As the daemon does: woken by the event, publish. The time at which the change was visible. */
static uint64_t publish(void)
{
	struct pollfd poll_fd = {.fd = xspd_nl_fd(mirror->events), .events = POLLIN};
	const struct xspd_conf *conf = xspd_plane_conf(mirror->plane);
	uint64_t generation = conf->generation;

	while (conf->generation == generation) {
		cr_assert_eq(poll(&poll_fd, 1, 2000), 1);
		cr_assert_eq(mirror_drain(mirror), 0);
		conf = xspd_plane_conf(mirror->plane);
	}
	return xspd_now(CLOCK_MONOTONIC);
}

static uint64_t forwarded(void)
{
	uint32_t key = XSPD_HOOK_XDP * XSPD_A_MAX_ + XSPD_A_FORWARDED;
	struct xspd_stat stat[64] = {};
	uint64_t sum = 0;

	cr_assert_leq(libbpf_num_possible_cpus(), 64);
	cr_assert_eq(bpf_map_lookup_elem(xspd_plane_map_fd(mirror->plane, "xspd_act"), &key, stat),
		     0);
	for (int i = 0; i < libbpf_num_possible_cpus(); i++)
		sum += stat[i].packets;
	return sum;
}

static void bypass(const struct gateway *gw)
{
	struct xspd_plane_opts opts = {.pin = pins, .lease_ms = 60000, .cache = 256};
	int side;

	snprintf(pins, sizeof(pins), "/sys/fs/bpf/xspd-lag-%d", getpid());
	cr_assert_eq(mirror_new(&mirror, XSPD_NL_GROUPS, &opts), 0);
	for (side = GATEWAY_C; side <= GATEWAY_S; side++) {
		struct xspd_mode_key key = {.ifindex = gateway_ifindex(gw, side),
					    .hook = XSPD_HOOK_XDP};
		struct xspd_mode mode = {.flags = XSPD_MODE_BYPASS};

		memcpy(mode.mac, gateway_mac(gw, side), 6);
		cr_assert_eq(bpf_map_update_elem(xspd_plane_map_fd(mirror->plane, "xspd_mode"),
						 &key, &mode, BPF_ANY),
			     0);
		cr_assert_eq(
			netns_run("ip link set %c0 xdpdrv pinned %s/xspd_xdp", "cs"[side], pins),
			0);
	}
}

static void any_cpu(void)
{
	cpu_set_t cpus;

	memset(&cpus, 0xff, sizeof(cpus));
	cr_assert_eq(sched_setaffinity(0, sizeof(cpus), &cpus), 0);
}

Test(lag, nothing_plain_after_publication)
{
	struct xspd_pol pol = {
		.sel = {.family = AF_INET, .daddr.a4 = inet_addr("10.128.1.0"), .prefixlen_d = 24},
		.dir = XSPD_OUT,
		.priority = 10,
		.tmpl = {.reqid = 7, .proto = IPPROTO_ESP, .count = 1, .required = 1}};
	uint64_t worst = 0, sum = 0, late = 0, through;
	uint32_t rounds = scaled(ROUNDS);
	struct xspd_batch *batch;
	struct flood flood = {};
	struct sink sink = {};
	struct gateway *gw;
	struct xspd_nl *nl;

	cr_assert_eq(gateway_new(&gw, 0), 0);
	any_cpu();
	bypass(gw);
	cr_assert_eq(xspd_nl_open(&nl, 0, 0), 0);
	cr_assert_eq(xspd_batch_new(&batch, nl, refused, NULL), 0);
	sink.fd = packet_socket("s1", ETH_P_ALL);
	flood_start(&flood, gw);
	for (uint32_t round = 0; round < rounds; round++) {
		uint64_t committed, published;

		through = forwarded();
		sink.since = UINT64_MAX;
		sink_flows(&sink, xspd_now(CLOCK_MONOTONIC) + 2000000);
		cr_assert_gt(forwarded(), through, "the kernel forwards, not xspd");
		sink.after = 0;
		change(batch, &pol, true);
		sink.since = committed = xspd_now(CLOCK_MONOTONIC);
		published = publish();
		usleep(5000);
		sink_drain(&sink);
		cr_assert_leq(sink.last, published,
			      "round %u: %lu ns after publication still in the clear", round,
			      (unsigned long)(sink.last - published));
		late += sink.after;
		sum += published - committed;
		worst = published - committed > worst ? published - committed : worst;
		change(batch, &pol, false);
		publish();
	}
	flood_stop(&flood);
	printf("   %u changes under %lu packets, %lu through; from commit to publication %.0f us "
	       "on "
	       "average, %.0f at most; %lu packets in between, none later\n",
	       rounds, (unsigned long)flood.sent, (unsigned long)sink.count,
	       (double)sum / rounds / 1e3, (double)worst / 1e3, (unsigned long)late);
	xspd_batch_free(batch);
	xspd_nl_free(nl);
	close(sink.fd);
	gateway_free(gw);
}
