// SPDX-License-Identifier: GPL-2.0-only
/* xspd top: the busiest policies and reasons, live on a terminal, else as lines. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/selector.h"
#include "cli/top.h"
#include "reason.h"
#include "util.h"

#define PLAIN_POLICIES 10

const char *const top_sort_names[TOP_SORTS] = {"rate", "packets", "bytes", "index"};

static volatile sig_atomic_t stopped;

static void stop(int sig)
{
	(void)sig;
	stopped = 1;
}

bool top_stopped(void)
{
	return stopped;
}

static int index_order(const void *a, const void *b)
{
	const struct xspd_info *x = &((const struct cli_counted *)a)->info;
	const struct xspd_info *y = &((const struct cli_counted *)b)->info;

	if (x->index != y->index)
		return x->index < y->index ? -1 : 1;
	return x->pos < y->pos ? -1 : x->pos > y->pos; /* in two slots for a moment: later last */
}

void top_policy_text(const struct top_policy *policy, char *buf, size_t size)
{
	int n = snprintf(buf, size, "%-3s ", xspd_dir_name(policy->now->info.dir));

	cli_selector_text(&policy->now->info, buf + n, size - (size_t)n);
}

void top_state_text(const struct top *top, char *buf, size_t size)
{
	const struct xspd_conf *conf = &top->now.conf;
	size_t n;

	if (!top->now.alive) {
		snprintf(buf, size, "the daemon is NOT RUNNING");
		return;
	}
	n = (size_t)snprintf(buf, size, conf->doubt ? "DOUBT:" : "in step");
	for (uint32_t bit = 1; bit && n < size; bit <<= 1)
		if (conf->doubt & bit)
			n += (size_t)snprintf(buf + n, size - n, " %s", xspd_doubt_name(bit));
}

static double rate(uint64_t now, uint64_t before, double seconds)
{
	return now > before && seconds > 0 ? (double)(now - before) / seconds : 0;
}

static bool wanted(const struct top *top, const struct top_policy *policy)
{
	char text[260];

	if (top->family && (policy->now->info.family == XSPD_INET6) != (top->family == 6))
		return false;
	if (top->follow && !top->plain)
		return true; /* the screen shows it apart */
	if (top->follow && policy->now->info.index != top->follow)
		return false;
	if (!top->filter || !*top->filter)
		return true;
	top_policy_text(policy, text, sizeof(text));
	return strstr(text, top->filter) != NULL;
}

static int policy_order(const void *a, const void *b, void *ctx)
{
	const struct top_policy *x = a, *y = b;
	const struct xspd_count *m = &x->now->count, *n = &y->now->count;
	double left = 0, right = 0;

	switch (*(const enum top_sort *)ctx) {
	case TOP_RATE:
		left = x->packets, right = y->packets;
		break;
	case TOP_PACKETS:
		left = (double)m->packets, right = (double)n->packets;
		break;
	case TOP_BYTES:
		left = (double)m->bytes, right = (double)n->bytes;
		break;
	default:
		break;
	}
	if (left == right && *(const enum top_sort *)ctx == TOP_RATE)
		left = (double)m->packets, right = (double)n->packets;
	if (left != right)
		return left < right ? 1 : -1;
	return index_order(x->now, y->now);
}

void top_arrange(struct top *top)
{
	double seconds = top->two ? (double)(top->now.time - top->before.time) / 1e9 : 0;

	top->policies = 0;
	top->packets = 0;
	for (size_t i = 0; i < top->now.policies; i++) {
		const struct cli_counted *now = &top->now.policy[i], *before = NULL;
		struct top_policy one = {.now = now};

		if (i + 1 < top->now.policies && now[1].info.index == now->info.index)
			continue;
		if (top->two)
			before = bsearch(now, top->before.policy, top->before.policies,
					 sizeof(*now), index_order);
		/* one that is new has met all its packets since */
		one.packets = rate(now->count.packets, before ? before->count.packets : 0, seconds);
		one.bytes = rate(now->count.bytes, before ? before->count.bytes : 0, seconds);
		top->packets += one.packets;
		if (wanted(top, &one))
			top->policy[top->policies++] = one;
	}
	qsort_r(top->policy, top->policies, sizeof(*top->policy), policy_order, &top->sort);
}

static void reason_add(struct top *top, const char *hook, const char *dir, const char *name,
		       uint64_t now, uint64_t before, double seconds)
{
	struct top_reason *to = &top->reason[top->reasons];

	if (!now || top->reasons == TOP_REASONS)
		return;
	snprintf(to->text, sizeof(to->text), "%-7s %-4s %s", hook, dir, name);
	to->total = now;
	to->packets = top->two ? rate(now, before, seconds) : 0;
	top->reasons++;
}

static int reason_order(const void *a, const void *b)
{
	const struct top_reason *x = a, *y = b;

	if (x->packets != y->packets)
		return x->packets < y->packets ? 1 : -1;
	return x->total < y->total ? 1 : x->total > y->total ? -1 : strcmp(x->text, y->text);
}

static void reasons_make(struct top *top)
{
	double seconds = (double)(top->now.time - top->before.time) / 1e9;

	top->reasons = 0;
	for (int asked = 0; asked < XSPD_ASKED_MAX_; asked++)
		for (int hook = 0; hook < XSPD_HOOK_MAX_; hook++)
			for (int r = 1; r < XSPD_R_MAX_; r++)
				reason_add(top, xspd_hook_name(hook),
					   asked ? xspd_dir_name(asked - 1) : "-",
					   xspd_reason_name(r),
					   top->now.stat[asked][hook][r].packets,
					   top->before.stat[asked][hook][r].packets, seconds);
	for (int hook = 0; hook < XSPD_HOOK_MAX_; hook++)
		for (int a = 1; a < XSPD_A_MAX_; a++)
			reason_add(top, xspd_hook_name(hook), "act", xspd_act_name(a),
				   top->now.act[hook][a].packets, top->before.act[hook][a].packets,
				   seconds);
	qsort(top->reason, top->reasons, sizeof(*top->reason), reason_order);
}

static void past_add(struct top *top)
{
	double packets = 0;

	for (size_t i = 0; i < top->policies; i++)
		if (top->policy[i].now->info.index == top->follow)
			packets = top->policy[i].packets;
	if (top->pasts == TOP_PAST)
		memmove(top->past, top->past + 1, (TOP_PAST - 1) * sizeof(*top->past));
	else
		top->pasts++;
	top->past[top->pasts - 1] = packets;
}

int top_look(struct top *top)
{
	bool first = !top->now.time;
	struct top_policy *policy;
	struct cli_gather fresh;
	int err = cli_gather(&fresh, top->common.instance);

	if (err)
		return err;
	policy = reallocarray(top->policy, fresh.policies + 1, sizeof(*policy));
	if (!policy) {
		cli_gather_free(&fresh);
		return -ENOMEM;
	}
	qsort(fresh.policy, fresh.policies, sizeof(*fresh.policy), index_order);
	cli_gather_free(&top->before);
	top->policy = policy;
	top->before = top->now;
	top->now = fresh;
	top->two = !first;
	top_arrange(top);
	reasons_make(top);
	if (top->two)
		past_add(top);
	return 0;
}

static void print_plain(const struct top *top)
{
	char state[128], text[260];

	top_state_text(top, state, sizeof(state));
	printf("%s: %s; %u policies, %.1f packets/s\n", top->common.instance, state,
	       top->now.conf.policies, top->packets);
	for (size_t i = 0; i < top->policies && i < PLAIN_POLICIES; i++) {
		const struct top_policy *p = &top->policy[i];

		top_policy_text(p, text, sizeof(text));
		printf("policy %10.1f/s %12" PRIu64 " packets %14" PRIu64 " bytes  %8u %s\n",
		       p->packets, (uint64_t)p->now->count.packets, (uint64_t)p->now->count.bytes,
		       p->now->info.index, text);
	}
	for (size_t i = 0; i < top->reasons; i++)
		printf("reason %10.1f/s %12" PRIu64 " packets  %s\n", top->reason[i].packets,
		       top->reason[i].total, top->reason[i].text);
}

static void print_json(const struct top *top)
{
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();

	cli_json_number(o, "time_ns", xspd_now(CLOCK_REALTIME));
	cli_json_bool(o, "alive", top->now.alive);
	cli_json_bool(o, "doubt", top->now.conf.doubt);
	json_object_object_add(o, "packets_per_s", json_object_new_double(top->packets));
	for (size_t i = 0; i < top->policies; i++) {
		const struct top_policy *p = &top->policy[i];
		struct json_object *one = cli_policy_json(&p->now->info);

		cli_json_number(one, "packets", p->now->count.packets);
		cli_json_number(one, "bytes", p->now->count.bytes);
		json_object_object_add(one, "packets_per_s", json_object_new_double(p->packets));
		json_object_object_add(one, "bytes_per_s", json_object_new_double(p->bytes));
		json_object_array_add(list, one);
	}
	json_object_object_add(o, "policies", list);
	list = json_object_new_array();
	for (size_t i = 0; i < top->reasons; i++) {
		struct json_object *one = json_object_new_object();
		char hook[16], dir[16], name[32];

		if (sscanf(top->reason[i].text, "%15s %15s %31s", hook, dir, name) != 3)
			continue;
		cli_json_text(one, "hook", hook);
		cli_json_text(one, "asked", dir);
		cli_json_text(one, "reason", name);
		cli_json_number(one, "packets", top->reason[i].total);
		json_object_object_add(one, "packets_per_s",
				       json_object_new_double(top->reason[i].packets));
		json_object_array_add(list, one);
	}
	json_object_object_add(o, "reasons", list);
	puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(o);
}

static int lines(struct top *top)
{
	const struct timespec pause = {.tv_sec = top->interval};

	for (uint32_t n = 0; !stopped && (!top->count || n < top->count); n++) {
		int err;

		nanosleep(&pause, NULL);
		if (stopped)
			break;
		err = top_look(top);
		if (err)
			return cli_fail("top: instance %s: %s", top->common.instance,
					strerror(-err));
		if (top->common.json)
			print_json(top);
		else
			print_plain(top);
		if (fflush(stdout) || ferror(stdout))
			return XSPD_FAILED; /* main() tells */
	}
	return XSPD_DONE;
}

static int parse_sort(const char *text, enum top_sort *ret)
{
	for (int i = 0; text && i < TOP_SORTS; i++)
		if (!strcmp(text, top_sort_names[i])) {
			*ret = i;
			return XSPD_DONE;
		}
	return text ? cli_usage("top: --sort %s: give rate, packets, bytes or index", text)
		    : XSPD_DONE;
}

static int run(struct top *top)
{
	struct cli_view view;
	int rc = cli_view_open(&view, top->common.instance), err;

	if (rc)
		return rc; /* said why */
	cli_view_close(&view);
	err = top_look(top);
	if (err)
		return cli_fail("top: instance %s: %s", top->common.instance, strerror(-err));
	return top->plain ? lines(top) : top_screen(top);
}

int top_main(int argc, char **argv)
{
	struct top top = {.common.reads = true, .interval = 1};
	const char *sort = NULL;
	const struct cli_option options[] = {
		{"interval", CLI_NUMBER, &top.interval, 1, 3600},
		{"count", CLI_NUMBER, &top.count, 1, UINT32_MAX},
		{"sort", CLI_STRING, &sort},
		{"filter", CLI_STRING, &top.filter},
		{"follow", CLI_NUMBER, &top.follow, 1, UINT32_MAX},
		{"plain", CLI_FLAG, &top.plain},
		{},
	};
	int rc = cli_parse(&top.common, options, &argc, &argv);

	if (rc || top.common.help)
		return rc;
	if (argc)
		return cli_usage("top: takes no words, not '%s'", argv[0]);
	rc = parse_sort(sort, &top.sort);
	if (!rc)
		rc = cli_enter_netns(top.common.netns);
	if (rc)
		return rc;
	if (top.common.json || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		top.plain = true;
	signal(SIGINT, stop);
	signal(SIGTERM, stop);
	rc = run(&top);
	cli_gather_free(&top.now);
	cli_gather_free(&top.before);
	free(top.policy);
	return rc;
}
