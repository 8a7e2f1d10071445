// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel judges dissection.  Each frame has an address pair of its own, with two
 * policies: one for exactly the flow that is expected of it, and below that one for
 * anything between the two addresses.  Frames go in by a tap device; the policies'
 * time of use then says what the kernel made of each.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/question.h"

/* Questions that the kernel answered, and that it was never asked though expected to be. */
static size_t judged, missing;

static void fail(const struct question *q, uint8_t dir, const char *what)
{
	char hex[2 * CRAFT_MAX + 1] = "";
	size_t i;

	for (i = 0; i < q->c.len; i++)
		sprintf(hex + 2 * i, "%02x", q->c.b[i]);
	cr_assert_fail("%s, dir %u: %s; expected proto %u, ports %04x %04x, frag %u\n%s", q->name,
		       dir, what, q->flow.proto, ntohs(q->flow.sport), ntohs(q->flow.dport),
		       q->flow.frag, hex);
}

/* The kernel validates a first hop-by-hop header, and drops what is wrong with it. */
static bool starts_with_hop(const struct question *q)
{
	const uint8_t *ip = q->c.b + q->c.l3;

	return ip[0] >> 4 == 6 && ip[6] == 0;
}

static void judge(const struct question *q, uint8_t dir)
{
	bool exact = q->used[dir][0], below = q->used[dir][1];

	if (!exact && !below) {
		missing += q->known == DISSECT_FLOW && !starts_with_hop(q);
		return;
	}
	judged++;
	if (q->known == DISSECT_DROP)
		fail(q, dir, "the kernel asks for what is held to be dropped");
	if (q->known == DISSECT_FLOW && below)
		fail(q, dir, "the kernel's flow is another one");
}

static void judge_all(uint8_t dir)
{
	size_t i;

	judged = missing = 0;
	for (i = 0; i < question_count; i++)
		judge(&questions[i], dir);
	printf("   dir %u: %zu packets, %zu answers, %zu not asked\n", dir, question_count, judged,
	       missing);
}

static void ask(int tap, const uint8_t *dirs, size_t dir_count)
{
	question_install(dirs, dir_count);
	question_send(tap);
	question_read_use();
	close(tap);
}

/* Forwarded packets are asked as fwd, then as out. */
static const uint8_t forwarded[] = {XSPD_FWD, XSPD_OUT};

Test(packets, rows_forwarded)
{
	int tap = question_way();
	size_t i, flows = 0;

	for (i = 0; i < PACKET_ROWS; i++)
		if (packet_rows[i].spec.tags < 3)
			question_add(packet_rows[i].name, &packet_rows[i].spec);
	for (i = 0; i < question_count; i++)
		flows += questions[i].known == DISSECT_FLOW;
	ask(tap, forwarded, 2);
	for (i = 0; i < 2; i++) {
		judge_all(forwarded[i]);
		cr_assert_eq(judged, flows);
	}
}

Test(packets, random_forwarded)
{
	uint64_t rng = 6718;
	struct craft_spec spec;
	int tap = question_way();
	size_t i;

	while (question_count < QUESTIONS_MAX) {
		craft_random(&rng, &spec);
		question_add("random", &spec);
	}
	ask(tap, forwarded, 2);
	for (i = 0; i < 2; i++) {
		judge_all(forwarded[i]);
		cr_assert_eq(missing, 0, "%zu", missing);
		cr_assert_gt(judged, 3600, "%zu", judged);
	}
}

/* Delivered here: asked as in, by the protocol's own code. */
Test(packets, random_delivered)
{
	static const uint8_t in[] = {XSPD_IN};
	uint64_t rng = 1867;
	struct craft_spec spec;
	int tap = question_way();

	question_local();
	while (question_count < QUESTIONS_MAX) {
		craft_random(&rng, &spec);
		if (craft_below(&rng, 2))
			spec.frag = spec.ext_count = 0;
		question_add("random", &spec);
	}
	ask(tap, in, 1);
	judge_all(XSPD_IN);
	cr_assert_gt(judged, 2000, "%zu", judged);
}
