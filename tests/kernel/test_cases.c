// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every situation of tests/cases, asked of the kernel and of xspd: the kernel must say what
 * the file says, and so must the BPF program and the linear reference, both with a mirror
 * that saw every event and with one that saw only a dump at the end.
 */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <errno.h>
#include <glob.h>
#include <linux/xfrm.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "lib/casefile.h"
#include "lib/judge.h"
#include "lib/mirror.h"
#include "lib/netns.h"
#include "lib/packet.h"
#include "lib/scale.h"
#include "reason.h"
#include "util.h"

#define GROUPS_MAX	     128
#define KERNEL(major, minor) ((major) << 8 | (minor))

/* A process is dear on a slow machine: at less than full scale it takes several files. */
struct group {
	size_t first, step;
};

/* One file in @stride; each of them is a test of its own at full scale. */
static struct criterion_test_params groups(size_t stride)
{
	static struct group params[GROUPS_MAX];
	glob_t found = {};
	size_t files, count;

	cr_assert_eq(glob("tests/cases/*.case", 0, NULL, &found), 0);
	files = (found.gl_pathc + stride - 1) / stride;
	globfree(&found);
	count = scaled((uint32_t)files);
	cr_assert_leq(count, GROUPS_MAX);
	for (size_t i = 0; i < count; i++)
		params[i] = (struct group){.first = i * stride, .step = count * stride};
	return cr_make_param_array(struct group, params, count);
}

/* Where programs have to be loaded for each. */
static struct criterion_test_params some_groups(void)
{
	return groups(scaled(100) < 100 ? 4 : 1);
}

static unsigned int running_kernel(void)
{
	unsigned int major = 0, minor = 0;
	struct utsname name;

	cr_assert(uname(&name) == 0 && sscanf(name.release, "%u.%u", &major, &minor) == 2);
	return KERNEL(major, minor);
}

/*
 * A namespace of its own with everything in it that the questions need.  The
 * kernel names policies by their templates, so there every one has one; xspd gets
 * them as the file says, and policies are told by their identity.
 */
struct bench {
	struct casefile *cf;
	struct oracle *oracle;
	struct packet_way *way;
	struct mirror *mirror;
	bool *live;	   /* by number of the policy: it is in the kernel */
	bool sub;	   /* the file has sub policies */
	bool ties;	   /* the mirror came by a dump: any tie may be deferred */
	uint32_t defaults; /* bit 1 << dir: block */
};

static const struct xspd_plane_opts plane_opts = {.capacity = 64, .lease_ms = 60000};

/* Return: false if the running kernel is older than the file asks for. */
static bool bench_open(struct bench *b, const char *path)
{
	char error[256];

	cr_assert_eq(netns_enter(), 0, "needs root");
	cr_assert_eq(oracle_new(&b->oracle), 0);
	cr_assert_eq(casefile_read(path, &b->cf, error, sizeof(error)), 0, "%s: %s", path, error);
	cr_assert_gt(b->cf->steps, 0, "%s: empty", path);
	b->live = calloc(b->cf->policies, sizeof(*b->live));
	cr_assert(b->live);
	for (size_t i = 0; i < b->cf->policies; i++)
		b->sub |= b->cf->policy[i].pol.type == XSPD_SUB;
	if (b->cf->kernel > running_kernel())
		return false;
	return true;
}

static void bench_close(struct bench *b)
{
	mirror_free(b->mirror);
	packet_way_free(b->way);
	oracle_free(b->oracle);
	casefile_free(b->cf);
	free(b->live);
}

static void bench_account(struct bench *b, const struct case_step *step)
{
	switch (step->kind) {
	case CASE_POLICY:
	case CASE_UPDATE:
	case CASE_DELETE:
		b->live[step->pol.tmpl.reqid - 1] = step->kind != CASE_DELETE;
		break;
	case CASE_FLUSH:
		for (size_t i = 0; i < b->cf->policies; i++)
			b->live[i] &= b->cf->policy[i].pol.type == XSPD_SUB;
		break;
	case CASE_DEFAULT:
		b->defaults &= ~(1u << step->pol.dir);
		b->defaults |= (uint32_t)step->pol.action << step->pol.dir;
		break;
	case CASE_FLOW:
		break;
	}
}

static void bench_apply(struct bench *b, const struct case_step *step)
{
	int err = case_apply(b->oracle, step);

	if (step->refused)
		cr_assert(err == -EEXIST || err == -ENOENT, "%s:%u: not refused (%d)", b->cf->path,
			  step->line, err);
	else
		cr_assert_eq(err, 0, "%s:%u: %s", b->cf->path, step->line, strerror(-err));
	if (!err)
		bench_account(b, step);
}

static void bench_apply_as_written(struct bench *b, const struct case_step *step)
{
	struct case_step bare = *step;

	if (!step->pol.tmpl.required)
		bare.pol.tmpl = (struct xspd_tmpl){};
	bare.pol.tmpl.reqid = step->pol.tmpl.reqid;
	bench_apply(b, &bare);
}

static void must_name(const struct bench *b, const struct case_step *step, const char *who,
		      uint32_t reqid)
{
	cr_expect_eq(reqid, step->winner, "%s:%u: %s says %s, the file %s", b->cf->path, step->line,
		     who, casefile_name(b->cf, reqid), casefile_name(b->cf, step->winner));
}

/* --- the kernel -------------------------------------------------------------- */

static uint32_t kernel_winner(const struct bench *b, const struct case_step *step, uint8_t type)
{
	uint32_t reqids[1024] = {step->winner}, winner = 0;

	cr_assert_lt(b->cf->policies, XSPD_ARRAY_SIZE(reqids));
	for (uint32_t i = 0; i < b->cf->policies; i++)
		reqids[i + 1] = i + 1;
	cr_assert_eq(oracle_winner(b->oracle, &step->flow, step->flow.dir, type, reqids,
				   b->cf->policies + 1, &winner),
		     0);
	return winner;
}

struct by_index {
	uint32_t index, reqid;
};

static int find_reqid(void *ctx, const struct xspd_event *event)
{
	struct by_index *want = ctx;

	if (event->kind == XSPD_EVENT_POLICY && event->pol.index == want->index)
		want->reqid = event->pol.tmpl.reqid;
	return 0;
}

/* Can a socket send it, by the routes that there are here? */
static bool sendable(const struct bench *b, const struct xspd_flow *flow)
{
	for (size_t i = 0; i < b->cf->policies; i++)
		if (b->cf->policy[i].pol.sel.ifindex)
			return false;
	return !b->sub && flow->dir == XSPD_OUT && flow->proto == IPPROTO_UDP && !flow->if_id &&
	       flow->sport && flow->dport && !flow->oif && !flow->frag;
}

/* Before 6.12: a socket sends it. */
static void ask_kernel_by_socket(const struct bench *b, const struct case_step *step)
{
	struct by_index want = {};
	struct xspd_nl *nl;
	int err;

	err = oracle_send(b->oracle, &step->flow, &want.index);
	if (err == -EPERM) {
		cr_expect(step->winner ? b->cf->policy[step->winner - 1].pol.action == XSPD_BLOCK
				       : b->defaults & 1u << XSPD_OUT,
			  "%s:%u: the kernel blocks it", b->cf->path, step->line);
		return;
	}
	if (err == -ENETUNREACH)
		return; /* to ::ffff:0:0/96 no IPv6 socket sends */
	cr_assert_eq(err, 0, "%s:%u: %s", b->cf->path, step->line, strerror(-err));
	if (want.index) {
		cr_assert_eq(xspd_nl_open(&nl, 0, 0), 0);
		cr_assert_eq(xspd_nl_dump(nl, find_reqid, &want), 0);
		xspd_nl_free(nl);
	}
	must_name(b, step, "the kernel", want.reqid);
}

/* Sub policies first, as xfrm_policy_lookup() does. */
static void ask_kernel(const struct bench *b, const struct case_step *step)
{
	uint32_t winner = kernel_winner(b, step, XSPD_SUB);

	must_name(b, step, "the kernel", winner ? winner : kernel_winner(b, step, XSPD_MAIN));
}

/*
 * MIGRATE has no mark and sees no fragment, so these flows are sent.  The policies of other
 * directions are left out (a forwarded packet must reach the OUT lookup), and each question takes
 * the SPD anew.  Return: the reqid of the policy that was used.
 */
static uint32_t packet_winner(struct bench *b, size_t at)
{
	struct xspd_flow packet = b->cf->step[at].packet;
	struct case_step step = {.kind = CASE_FLUSH};
	struct packet_used used[4];
	uint32_t winner = 0;
	size_t count;

	case_apply(b->oracle, &step);
	for (size_t i = 0; i < at; i++) {
		step = b->cf->step[i];
		if (step.kind == CASE_FLOW || step.kind == CASE_DEFAULT ||
		    (step.kind != CASE_FLUSH && step.pol.dir != packet.dir))
			continue;
		step.pol.tmpl.required = 0;
		bench_apply(b, &step);
	}
	cr_assert_eq(packet_send(b->way, &packet), 0);
	cr_assert_eq(packet_used(used, XSPD_ARRAY_SIZE(used), &count), 0);
	for (size_t i = 0; i < count && i < XSPD_ARRAY_SIZE(used); i++)
		if (used[i].dir == packet.dir)
			winner = winner ? UINT32_MAX : used[i].reqid;
	return winner;
}

static void ask_kernel_by_packet(struct bench *b, size_t at)
{
	const struct case_step *flow = &b->cf->step[at];
	uint32_t winner = UINT32_MAX;

	cr_assert_not(b->sub, "%s:%u: marked flows and sub policies", b->cf->path, flow->line);
	/* the kernel may have sent something of its own meanwhile, which used a policy too */
	for (int tries = 0; tries < PACKET_TRIES && winner != flow->winner; tries++)
		winner = packet_winner(b, at);
	must_name(b, flow, "a packet", winner);
}

/* --- xspd -------------------------------------------------------------------- */

/* The name, as a reqid, of a policy in the mirror; NULL: none. */
static uint32_t name_of(const struct bench *b, const struct xspd_pol *pol)
{
	if (!pol)
		return 0;
	for (uint32_t i = 0; i < b->cf->policies; i++) {
		const struct xspd_pol *named = &b->cf->policy[i].pol;

		if (b->live[i] && named->dir == pol->dir && named->type == pol->type &&
		    named->if_id == pol->if_id && named->mark_mask == pol->mark_mask &&
		    (named->mark & named->mark_mask) == pol->mark &&
		    memcmp(&named->sel, &pol->sel, sizeof(pol->sel)) == 0)
			return i + 1;
	}
	return UINT32_MAX;
}

static int verdict_of(const struct xspd_pol *pol)
{
	if (pol->action == XSPD_BLOCK)
		return XSPD_DENY;
	return pol->tmpl.required ? XSPD_PROTECT : XSPD_PLAIN;
}

static int verdict_due(const struct bench *b, const struct case_step *step,
		       const struct xspd_pol *named)
{
	if (step->verdict >= 0)
		return step->verdict;
	if (named)
		return b->sub ? -1 : verdict_of(named);
	return b->defaults & 1u << step->flow.dir ? XSPD_DENY : XSPD_PLAIN;
}

/* Two or more policies of the best priority match, and the order of one of them is not certain. */
static bool tie_is_real(const struct bench *b, const struct case_step *step)
{
	const struct xspd_pol **match = NULL;
	size_t count = 0;
	bool tie;

	cr_assert_eq(xspd_spd_matches(b->mirror->spd, &step->flow, &match, &count), 0);
	judge_tied(match, count, &tie);
	free(match);
	return tie;
}

static bool may_defer(const struct bench *b, const struct case_step *step)
{
	return (step->expect == CASE_AMBIGUOUS || b->ties || b->mirror->spd->old_order) &&
	       tie_is_real(b, step);
}

static void judge(const struct bench *b, const struct case_step *step, const char *who,
		  const struct xspd_pol *named, enum xspd_verdict verdict, enum xspd_reason reason)
{
	int due = verdict_due(b, step, named);

	if (verdict == XSPD_DEFER) {
		cr_expect(reason == XSPD_R_TIE && may_defer(b, step), "%s:%u: %s defers: %s",
			  b->cf->path, step->line, who, xspd_reason_name(reason));
		return;
	}
	must_name(b, step, who, name_of(b, named));
	if (due >= 0)
		cr_expect_eq(verdict, due, "%s:%u: %s says %s", b->cf->path, step->line, who,
			     xspd_verdict_name(verdict));
}

static void ask_xspd(const struct bench *b, const struct case_step *step)
{
	struct xspd_answer answer = {};
	struct xspd_ref ref = {};

	xspd_spd_lookup(b->mirror->spd, &step->flow, &ref);
	judge(b, step, "the reference", ref.pol, ref.verdict, ref.reason);
	mirror_beat(b->mirror);
	cr_assert_eq(xspd_plane_query(b->mirror->plane, &step->flow, &answer), 0);
	judge(b, step, "xspd", mirror_named(b->mirror, answer.index), answer.verdict,
	      answer.reason);
}

/* --- tests ------------------------------------------------------------------- */

static bool needs_packet(const struct case_step *step)
{
	return step->flow.mark || step->flow.frag;
}

/* Each file of a group, in a namespace of its own. */
static void each(const struct group *group, void (*ask)(struct bench *b))
{
	glob_t found = {};
	size_t asked = 0;

	cr_assert_eq(glob("tests/cases/*.case", 0, NULL, &found), 0);
	for (size_t i = group->first; i < found.gl_pathc; i += group->step) {
		struct bench b = {};

		if (bench_open(&b, found.gl_pathv[i])) {
			ask(&b);
			asked++;
		} else {
			printf("%s: kernel too old\n", found.gl_pathv[i]);
		}
		bench_close(&b);
	}
	globfree(&found);
	if (!asked)
		cr_skip("kernel too old");
}

ParameterizedTestParameters(cases, kernel)
{
	return groups(1);
}

static void file_kernel(struct bench *b)
{
	if (!oracle_migrates())
		cr_assert_eq(netns_routes(), 0);
	for (size_t i = 0; i < b->cf->steps; i++) {
		const struct case_step *step = &b->cf->step[i];

		if (step->kind != CASE_FLOW)
			bench_apply(b, step);
		else if (oracle_migrates() && !step->flow.mark)
			ask_kernel(b, step);
		else if (!oracle_migrates() && sendable(b, &step->flow))
			ask_kernel_by_socket(b, step);
	}
}

ParameterizedTest(struct group *group, cases, kernel)
{
	each(group, file_kernel);
}

ParameterizedTestParameters(cases, packets)
{
	return groups(1);
}

static void file_packets(struct bench *b)
{
	for (size_t i = 0; i < b->cf->steps; i++) {
		if (b->cf->step[i].kind != CASE_FLOW || !needs_packet(&b->cf->step[i]))
			continue;
		if (!b->way) {
			cr_assert_eq(netns_routes(), 0);
			cr_assert_eq(packet_way_new(&b->way), 0);
		}
		ask_kernel_by_packet(b, i);
	}
}

ParameterizedTest(struct group *group, cases, packets)
{
	each(group, file_packets);
}

ParameterizedTestParameters(cases, events)
{
	return some_groups();
}

static void file_events(struct bench *b)
{
	cr_assert_eq(mirror_new(&b->mirror, XSPD_NL_GROUPS, &plane_opts), 0);
	for (size_t i = 0; i < b->cf->steps; i++) {
		if (b->cf->step[i].kind != CASE_FLOW) {
			bench_apply_as_written(b, &b->cf->step[i]);
			continue;
		}
		cr_assert_eq(mirror_drain(b->mirror), 0);
		ask_xspd(b, &b->cf->step[i]);
	}
}

ParameterizedTest(struct group *group, cases, events)
{
	each(group, file_events);
}

ParameterizedTestParameters(cases, dump)
{
	return some_groups();
}

static void file_dump(struct bench *b)
{
	size_t last = 0;

	b->ties = true;
	for (size_t i = 0; i < b->cf->steps; i++) {
		if (b->cf->step[i].kind == CASE_FLOW)
			continue;
		bench_apply_as_written(b, &b->cf->step[i]);
		last = i;
	}
	cr_assert_eq(mirror_new(&b->mirror, XSPD_NL_GROUPS, &plane_opts), 0);
	for (size_t i = last + 1; i < b->cf->steps; i++)
		ask_xspd(b, &b->cf->step[i]);
}

ParameterizedTest(struct group *group, cases, dump)
{
	each(group, file_dump);
}
