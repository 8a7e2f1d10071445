// SPDX-License-Identifier: GPL-2.0-only
/*
 * The attached programs against the kernel, packet by packet: what they count
 * for a policy is what the kernel looked it up for.  Attached by hand, from the pins.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <sys/socket.h>

#include "lib/question.h"
#include "lib/mirror.h"
#include "lib/netns.h"

static char pins[64];
static struct mirror *mirror;

/* A set in service with the kernel's policies in it; pinned. */
static void serve(void)
{
	struct xspd_plane_opts opts = {.pin = pins, .lease_ms = 60000};

	snprintf(pins, sizeof(pins), "/sys/fs/bpf/xspd-test-%d", getpid());
	cr_assert_eq(mirror_new(&mirror, XSPD_NL_GROUPS, &opts), 0);
}

static void unserve(void)
{
	mirror_free(mirror);
	if (*pins)
		netns_run("rm -r %s", pins);
}

TestSuite(observe, .fini = unserve);

static uint64_t counted(size_t nr, int below, uint8_t dir)
{
	const struct xspd_pol *pol = xspd_spd_find(mirror->spd, question_index(nr, below, dir));
	struct xspd_count count = {};

	if (!pol)
		return 0;
	cr_assert_eq(xspd_plane_count(mirror->plane, pol->slot, &count), 0);
	return count.packets;
}

enum place {
	PLACE_TC_IN,
	PLACE_TC_OUT,
	PLACE_XDP,
	PLACE_LOCAL, /* tc ingress of what is delivered here */
};

static bool is_ipsec(const struct question *q)
{
	return q->flow.proto == 50 || q->flow.proto == 51 || q->flow.proto == 108;
}

/* IPv4 options, or a routing header somewhere (others are not told from it). */
static bool may_be_routed(const struct question *q)
{
	const uint8_t *ip = q->c.b + q->c.l3;

	return ip[0] >> 4 == 4 ? ip[0] != 0x45 : ip[6] == 0 || ip[6] == 43 || ip[6] == 60;
}

/*
 * What the programs leave to the kernel: IPsec going out (perhaps what a policy made
 * of another packet) or delivered here, packets that may name another destination, and ICMP
 * errors, for which the packet quoted is asked too.
 */
static bool may_defer(const struct question *q, uint8_t dir, enum place place)
{
	uint16_t type = ntohs(q->flow.sport);

	if ((place == PLACE_TC_OUT || place == PLACE_LOCAL) && is_ipsec(q))
		return true;
	if (place == PLACE_LOCAL)
		return may_be_routed(q);
	if (dir == XSPD_OUT && q->flow.family == XSPD_INET)
		return q->flow.proto == 1 && (type == 3 || type == 11);
	return dir == XSPD_OUT && q->flow.proto == 58 && type >= 1 && type <= 3;
}

/*
 * Whole packets that the kernel asked about: counted once for the policy it found.
 * Of fragments, and of what it never asked about, at most the right one is
 * counted.  In tc, datagrams cut short pass for whole ones (skb->len has the MAC in it).
 */
static size_t compare(uint8_t dir, enum place place)
{
	size_t i, same = 0;
	int below;

	for (i = 0; i < question_count; i++) {
		const struct question *q = &questions[i];
		bool asked = q->used[dir][0] || q->used[dir][1];

		if (place != PLACE_XDP && q->known == DISSECT_DROP)
			continue;
		for (below = 0; below < 2; below++) {
			uint64_t count = counted(i, below, dir);
			bool used = q->used[dir][below];

			if (asked && q->told && !q->flow.frag && !may_defer(q, dir, place)) {
				cr_assert_eq(count, used, "%s %zu, dir %u: counted %lu times",
					     q->name, i, dir, count);
				same += used;
			} else {
				cr_assert_leq(count, asked ? used : !below && q->told,
					      "%s %zu, dir %u: counted %lu times", q->name, i, dir,
					      count);
			}
		}
	}
	printf("   dir %u: %zu packets, %zu counted as the kernel did\n", dir, question_count,
	       same);
	return same;
}

static void add_questions(uint64_t rng)
{
	struct craft_spec spec;
	size_t i;

	for (i = 0; i < PACKET_ROWS; i++)
		if (packet_rows[i].spec.tags < 3)
			question_add(packet_rows[i].name, &packet_rows[i].spec);
	while (question_count < 2000) {
		craft_random(&rng, &spec);
		question_add("random", &spec);
	}
}

/* @attach and @detach: command lines, the former with one %s for the pin directory. */
static void observe(enum place place, const char *attach, const char *detach, const uint8_t *dirs,
		    size_t dir_count)
{
	int tap = question_way();
	char line[256];
	size_t i;

	if (place == PLACE_LOCAL)
		question_local();
	add_questions(4711);
	question_install(dirs, dir_count);
	serve();
	snprintf(line, sizeof(line), attach, pins);
	cr_assert_eq(netns_run("%s", line), 0);
	question_send(tap);
	question_read_use();
	for (i = 0; i < dir_count; i++)
		cr_assert_gt(compare(dirs[i], place), place == PLACE_LOCAL ? 700 : 1300);
	cr_assert_eq(netns_run("%s", detach), 0);
	close(tap);
}

static const uint8_t forwarded[] = {XSPD_FWD, XSPD_OUT};
static const uint8_t delivered[] = {XSPD_IN};

#define INGRESS                                                                                    \
	"tc qdisc add dev tap0 clsact && "                                                         \
	"tc filter add dev tap0 ingress bpf da object-pinned %s/xspd_tc_in"

Test(observe, tc_ingress)
{
	observe(PLACE_TC_IN, INGRESS, "tc qdisc del dev tap0 clsact", forwarded, 2);
}

Test(observe, tc_ingress_local)
{
	observe(PLACE_LOCAL, INGRESS, "tc qdisc del dev tap0 clsact", delivered, 1);
}

/* Tagged packets belong to the VLAN's device; here there is none, and the kernel drops them. */
Test(observe, vlan)
{
	struct craft_spec spec = {V4, .tags = 1, .vid = 5, .proto = 17, L4(20, UDP_BYTES)};
	int tap = question_way();
	size_t i;

	question_add("one tag", &spec);
	spec.tags = 2;
	question_add("two tags", &spec);
	spec.family = 6;
	question_add("two tags, IPv6", &spec);
	question_install(forwarded, 2);
	serve();
	cr_assert_eq(netns_run(INGRESS, pins), 0);
	question_send(tap);
	cr_assert_eq(netns_run("tc qdisc del dev tap0 clsact"), 0);
	cr_assert_eq(netns_run("ip link set tap0 xdpgeneric pinned %s/xspd_xdp", pins), 0);
	question_send(tap);
	question_read_use();
	for (i = 0; i < question_count; i++) {
		cr_assert(!questions[i].used[XSPD_FWD][0], "%s", questions[i].name);
		cr_assert_eq(counted(i, 0, XSPD_FWD), 0, "%s", questions[i].name);
	}
	close(tap);
}

/* A frame so large that the kernel keeps all but its Ethernet header in page fragments. */
static void send_large(const char *dev, const struct question *q)
{
	struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_ifindex = if_nametoindex(dev)};
	int fd = socket(AF_PACKET, SOCK_RAW, 0);
	uint8_t frame[6000] = {};

	memcpy(frame, q->c.b, q->c.len);
	craft_be16(frame + q->c.l3 + 2, sizeof(frame) - q->c.l3);
	craft_ip_sum(frame + q->c.l3, 20);
	cr_assert_eq(sendto(fd, frame, sizeof(frame), 0, (void *)&to, sizeof(to)),
		     (ssize_t)sizeof(frame));
	close(fd);
}

Test(observe, headers_in_page_fragments)
{
	struct craft_spec spec = {V4, .proto = 17, L4(20, UDP_BYTES)};
	int i, tap = question_way();

	question_add("large", &spec);
	question_install(forwarded, 2);
	serve();
	cr_assert_eq(netns_run("ip link add large0 mtu 9000 type veth peer name large1 mtu 9000 && "
			       "ip link set large1 address 02:00:00:00:00:01 && "
			       "ip link set large0 up && ip link set large1 up && "
			       "tc qdisc add dev large1 clsact && tc filter add dev large1 "
			       "ingress bpf da object-pinned %s/xspd_tc_in",
			       pins),
		     0);
	send_large("large0", &questions[0]);
	for (i = 0; i < 100 && !questions[0].used[XSPD_OUT][0]; i++) {
		usleep(10000);
		question_read_use();
	}
	cr_assert_eq(compare(XSPD_FWD, PLACE_TC_IN), 1);
	cr_assert_eq(compare(XSPD_OUT, PLACE_TC_IN), 1);
	close(tap);
}

Test(observe, tc_egress)
{
	observe(PLACE_TC_OUT,
		"tc qdisc add dev away0 clsact && "
		"tc filter add dev away0 egress bpf da object-pinned %s/xspd_tc_out",
		"tc qdisc del dev away0 clsact", forwarded + 1, 1);
}

Test(observe, xdp_generic)
{
	observe(PLACE_XDP, "ip link set tap0 xdpgeneric pinned %s/xspd_xdp",
		"ip link set tap0 xdpgeneric off", forwarded, 2);
}
