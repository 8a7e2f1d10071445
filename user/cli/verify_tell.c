// SPDX-License-Identifier: GPL-2.0-only
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/socket.h>

#include "cli/verify_tell.h"
#include "reason.h"

static const char *const results[] = {"agree", "disagree", "nothing", "skipped"};

static void count(struct verify *v, enum verify_result result)
{
	v->agreed += result == VERIFY_AGREE;
	v->disagreed += result == VERIFY_DISAGREE;
}

void verify_tell_stat(struct verify *v, enum verify_stat which, struct verify_range want,
		      bool upper, uint64_t kernel, enum verify_result result)
{
	struct json_object *o;
	char bound[40] = "or more";

	count(v, result);
	if (upper)
		snprintf(bound, sizeof(bound), "to %" PRIu64, want.hi);
	if (!v->checks) {
		printf("%-8s  %-18s kernel %" PRIu64 ", expected %" PRIu64 " %s\n", results[result],
		       verify_stat_names[which], kernel, want.lo, bound);
		return;
	}
	o = json_object_new_object();
	cli_json_text(o, "check", verify_stat_names[which]);
	cli_json_text(o, "result", results[result]);
	cli_json_number(o, "kernel", kernel);
	cli_json_number(o, "expected_min", want.lo);
	if (upper)
		cli_json_number(o, "expected_max", want.hi);
	else
		cli_json_text(o, "expected_max", NULL);
	json_object_array_add(v->checks, o);
}

void verify_tell_policy(struct verify *v, const struct verify_use *use, const char *what)
{
	struct json_object *o;

	count(v, VERIFY_DISAGREE);
	if (!v->checks) {
		printf("%-8s  policy %u dir %s: %s\n", results[VERIFY_DISAGREE], use->index,
		       xspd_dir_name(use->dir), what);
		return;
	}
	o = json_object_new_object();
	cli_json_text(o, "check", "policy");
	cli_json_text(o, "result", results[VERIFY_DISAGREE]);
	cli_json_number(o, "index", use->index);
	cli_json_text(o, "dir", xspd_dir_name(use->dir));
	cli_json_text(o, "what", what);
	json_object_array_add(v->checks, o);
}

void verify_tell_uses(struct verify *v, unsigned int same, enum verify_result result)
{
	struct json_object *o;

	count(v, result);
	if (!v->checks) {
		printf("%-8s  %-18s %u policies used by both, or by neither for certain\n",
		       results[result], "use times", same);
		return;
	}
	o = json_object_new_object();
	cli_json_text(o, "check", "use_times");
	cli_json_text(o, "result", results[result]);
	cli_json_number(o, "policies", same);
	json_object_array_add(v->checks, o);
}

static void tell_difference(const struct verify_looked *looked, size_t i)
{
	const struct xspd_flow *flow = &looked->flow[i];
	int family = flow->family == XSPD_INET6 ? AF_INET6 : AF_INET;
	char src[INET6_ADDRSTRLEN], dst[INET6_ADDRSTRLEN];

	inet_ntop(family, flow->saddr, src, sizeof(src));
	inet_ntop(family, flow->daddr, dst, sizeof(dst));
	printf("%-8s  the kernel found policy %u%s, xspd %u%s: dir %s src %s dst %s proto %u sport "
	       "%u "
	       "dport %u mark 0x%x if_id 0x%x\n",
	       "", looked->kernel[i] & ~VERIFY_BLOCKS,
	       looked->kernel[i] & VERIFY_BLOCKS ? " (block)" : "",
	       looked->ours[i] & ~VERIFY_BLOCKS, looked->ours[i] & VERIFY_BLOCKS ? " (block)" : "",
	       xspd_dir_name(flow->dir), src, dst, flow->proto, ntohs(flow->sport),
	       ntohs(flow->dport), flow->mark, flow->if_id);
}

void verify_tell_looked(struct verify *v)
{
	const struct verify_looked *looked = &v->looked;
	enum verify_result result = looked->differ ? VERIFY_DISAGREE
				    : looked->same ? VERIFY_AGREE
						   : VERIFY_NOTHING;
	struct json_object *o;

	count(v, result);
	if (v->checks) {
		o = json_object_new_object();
		cli_json_text(o, "check", "lookups");
		cli_json_text(o, "result", results[result]);
		cli_json_number(o, "same", looked->same);
		cli_json_number(o, "differ", looked->differ);
		cli_json_number(o, "deferred", looked->open);
		json_object_array_add(v->checks, o);
		return;
	}
	printf("%-8s  %-18s %" PRIu64 " the same, %" PRIu64 " not, %" PRIu64
	       " left to the kernel\n",
	       results[result], "lookups", looked->same, looked->differ, looked->open);
	for (size_t i = 0; i < VERIFY_DIFFER && i < looked->differ; i++)
		tell_difference(looked, i);
}

void verify_print_text(const struct verify *v)
{
	printf("%-8s  %-18s %s\n", "", "fexit", v->fexit);
	if (!v->cover.all)
		printf("%-8s  a device that is up has no hook: the kernel may do more than xspd "
		       "sees\n",
		       "");
	if (v->cover.doubled)
		printf("%-8s  a device has XDP and ingress: its packets count twice\n", "");
	if (v->start.doubt | v->end.doubt || !v->end.lease)
		printf("%-8s  xspd was in doubt or without lease: the kernel decided\n", "");
	printf("%u agree, %u disagree; %" PRIu64 " questions left to the kernel\n", v->agreed,
	       v->disagreed, v->deferred.lo);
}

void verify_print_json(const struct verify *v)
{
	struct json_object *o = json_object_new_object();

	cli_json_number(o, "seconds", v->seconds);
	cli_json_bool(o, "agreement", !v->disagreed);
	cli_json_number(o, "agree", v->agreed);
	cli_json_number(o, "disagree", v->disagreed);
	cli_json_number(o, "deferred", v->deferred.lo);
	cli_json_bool(o, "all_devices", v->cover.all);
	cli_json_bool(o, "in_force", !(v->start.doubt | v->end.doubt) && v->end.lease);
	cli_json_text(o, "fexit", v->fexit);
	json_object_object_add(o, "checks", v->checks);
	cli_json_print(o);
}
