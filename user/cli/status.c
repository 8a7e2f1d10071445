// SPDX-License-Identifier: GPL-2.0-only
/* xspd status: is it running, is it in doubt, what is attached, what did the hooks see. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/acts.h"
#include "cli/cli.h"
#include "cli/hook.h"
#include "cli/mode.h"
#include "cli/selector.h"
#include "cli/view.h"
#include "reason.h"
#include "util.h"

struct status {
	struct xspd_conf conf;
	struct xspd_stat stat[XSPD_HOOK_MAX_][XSPD_R_MAX_];
	struct cli_hook *hooks;
	size_t hook_count;
	struct cli_acts acts;
	bool alive;
	int64_t lease_left_ms;
};

static int collect(const struct cli_view *view, struct status *ret)
{
	int err;

	memcpy(&ret->conf, view->conf, sizeof(ret->conf));
	ret->alive = !(ret->conf.doubt & XSPD_DOUBT_STOPPED) && ret->conf.pid &&
		     (kill((pid_t)ret->conf.pid, 0) == 0 || errno == EPERM);
	ret->lease_left_ms = ((int64_t)ret->conf.lease_until - (int64_t)xspd_mono()) / 1000000;
	for (int hook = 0; hook < XSPD_HOOK_MAX_; hook++)
		for (int reason = 0; reason < XSPD_R_MAX_; reason++) {
			err = cli_view_stat(view, hook, reason, &ret->stat[hook][reason]);
			if (err)
				return err;
		}
	err = cli_hook_list(view->instance, &ret->hooks, &ret->hook_count);
	return err ?: cli_acts_read(&ret->acts, view, ret->hooks, ret->hook_count);
}

static double seconds_since(uint64_t real_ns)
{
	uint64_t now = xspd_now(CLOCK_REALTIME);

	return now > real_ns ? (double)(now - real_ns) / 1e9 : 0;
}

static void print_daemon(const struct cli_view *view, const struct status *s)
{
	const struct xspd_conf *conf = &s->conf;
	const char *name = cli_netns_name(conf->netns_ino);

	printf("instance  %s, network namespace %s%sinode %" PRIu64 "\n", view->instance,
	       name ? name : "", name ? ", " : "", (uint64_t)conf->netns_ino);
	if (s->alive)
		printf("daemon    pid %u, up %.0f s, ", conf->pid, seconds_since(conf->started));
	else
		printf("daemon    NOT RUNNING (last pid %u), ", conf->pid);
	if (s->lease_left_ms > 0)
		printf("lease %.1f s of %.1f s left\n", (double)s->lease_left_ms / 1e3,
		       (double)conf->lease_ms / 1e3);
	else
		printf("lease EXPIRED: the kernel decides\n");
}

static void print_doubt(const struct xspd_conf *conf)
{
	unsigned int any = 0;

	printf("doubt    ");
	for (uint32_t bit = 1; bit; bit <<= 1)
		if (conf->doubt & bit)
			printf(" %s", xspd_doubt_name(bit));
	if (!conf->doubt)
		printf(" none");
	else if (conf->doubt_since)
		printf(" for %.1f s: the kernel decides", seconds_since(conf->doubt_since));
	for (size_t bit = 0; bit < XSPD_ARRAY_SIZE(conf->doubt_times); bit++)
		if (conf->doubt_times[bit])
			printf("%s %s %u", any++ ? "," : "; so far", xspd_doubt_name(1u << bit),
			       conf->doubt_times[bit]);
	printf("\n");
}

static void print_numbers(const struct xspd_conf *conf)
{
	printf("policies  %u, tuples %u, partitions %u, ties %u, unmodelled %u, room for %u\n",
	       conf->policies, conf->tuples, conf->parts, conf->ties, conf->unmodelled,
	       conf->slots - 1); /* slot 0 means none */
	if (conf->linger)
		printf("lingering %u deleted policies, each for %u s\n", conf->gone, conf->linger);
	printf("mirror    events %" PRIu64 ", lost %" PRIu64 ", dumps %" PRIu64 ", doubts %" PRIu64
	       ", swaps %" PRIu64 "\n",
	       (uint64_t)conf->events, (uint64_t)conf->lost, (uint64_t)conf->dumps,
	       (uint64_t)conf->doubts, (uint64_t)conf->swaps);
	printf("repaired  added %" PRIu64 ", removed %" PRIu64 ", changed %" PRIu64,
	       (uint64_t)conf->repaired_add, (uint64_t)conf->repaired_del,
	       (uint64_t)conf->repaired_mod);
	if (conf->last_repair)
		printf("; %.1f s ago: added %u, removed %u, changed %u",
		       seconds_since(conf->last_repair), conf->last_add, conf->last_del,
		       conf->last_mod);
	printf("\n");
	if (conf->steer)
		printf("steer     %u selectors over all if_ids\n", conf->steer - 1);
	printf("default   ");
	for (int dir = 0; dir < XSPD_DIR_MAX_; dir++)
		printf("%s%s %s", dir ? ", " : "", xspd_dir_name(dir),
		       conf->defaults & 1u << dir ? "block" : "accept");
	printf("\n");
}

static void print_hooks(const struct status *s)
{
	for (size_t i = 0; i < s->hook_count; i++) {
		char mode[96];

		cli_mode_text(&s->acts.mode[i], mode, sizeof(mode));
		printf("attached  %s %s (%s) %s%s\n", s->hooks[i].dev,
		       xspd_hook_name(s->hooks[i].hook), cli_hook_kind_name(s->hooks[i].kind), mode,
		       s->hooks[i].ifindex ? "" : ": device is gone, 'xspd detach' tidies up");
	}
	if (!s->hook_count)
		printf("attached  nothing by 'xspd attach'\n");
}

static void print_stats(const struct status *s)
{
	bool head = false;

	for (int hook = 0; hook < XSPD_HOOK_MAX_; hook++)
		for (int reason = 0; reason < XSPD_R_MAX_; reason++) {
			const struct xspd_stat *stat = &s->stat[hook][reason];

			if (!stat->packets)
				continue;
			if (!head)
				printf("%-9s %-14s %14s %16s\n", "hook", "reason", "packets",
				       "bytes");
			head = true;
			printf("%-9s %-14s %14" PRIu64 " %16" PRIu64 "\n", xspd_hook_name(hook),
			       xspd_reason_name(reason), (uint64_t)stat->packets,
			       (uint64_t)stat->bytes);
		}
}

static struct json_object *daemon_json(const struct status *s)
{
	struct json_object *o = json_object_new_object();

	cli_json_number(o, "pid", s->conf.pid);
	cli_json_bool(o, "alive", s->alive);
	cli_json_number(o, "started_ns", s->conf.started);
	cli_json_number(o, "lease_ms", s->conf.lease_ms);
	json_object_object_add(o, "lease_left_ms", json_object_new_int64(s->lease_left_ms));
	return o;
}

static struct json_object *doubt_json(const struct xspd_conf *conf)
{
	struct json_object *o = json_object_new_array();

	for (uint32_t bit = 1; bit; bit <<= 1)
		if (conf->doubt & bit)
			json_object_array_add(o, json_object_new_string(xspd_doubt_name(bit)));
	return o;
}

static struct json_object *doubt_times_json(const struct xspd_conf *conf)
{
	struct json_object *o = json_object_new_object();

	for (size_t bit = 0; bit < XSPD_ARRAY_SIZE(conf->doubt_times); bit++)
		cli_json_number(o, xspd_doubt_name(1u << bit), conf->doubt_times[bit]);
	return o;
}

static struct json_object *hooks_json(const struct status *s)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < s->hook_count; i++) {
		struct json_object *o = json_object_new_object();

		cli_json_text(o, "dev", s->hooks[i].dev);
		cli_json_text(o, "hook", xspd_hook_name(s->hooks[i].hook));
		cli_json_text(o, "kind", cli_hook_kind_name(s->hooks[i].kind));
		cli_json_number(o, "ifindex", s->hooks[i].ifindex);
		json_object_object_add(o, "mode", cli_mode_json(s->acts.mode[i].flags));
		cli_json_bool(o, "dry_run", s->acts.mode[i].flags & XSPD_MODE_DRY_RUN);
		cli_json_bool(o, "ignore_netfilter", s->acts.mode[i].flags & XSPD_MODE_NETFILTER);
		cli_json_bool(o, "drop", s->acts.mode[i].flags & XSPD_MODE_DROP);
		cli_json_number(o, "linger_s", s->acts.mode[i].linger);
		json_object_array_add(array, o);
	}
	return array;
}

/* { hook: { reason: { packets, bytes } } }, zeros included. */
static struct json_object *stats_json(const struct status *s)
{
	struct json_object *all = json_object_new_object();

	for (int hook = 0; hook < XSPD_HOOK_MAX_; hook++) {
		struct json_object *reasons = json_object_new_object();

		for (int reason = 0; reason < XSPD_R_MAX_; reason++) {
			struct json_object *o = json_object_new_object();

			cli_json_number(o, "packets", s->stat[hook][reason].packets);
			cli_json_number(o, "bytes", s->stat[hook][reason].bytes);
			json_object_object_add(reasons, xspd_reason_name(reason), o);
		}
		json_object_object_add(all, xspd_hook_name(hook), reasons);
	}
	return all;
}

static struct json_object *defaults_json(const struct xspd_conf *conf)
{
	struct json_object *o = json_object_new_object();

	for (int dir = 0; dir < XSPD_DIR_MAX_; dir++)
		cli_json_text(o, xspd_dir_name(dir),
			      conf->defaults & 1u << dir ? "block" : "accept");
	return o;
}

static void print_json(const struct cli_view *view, const struct status *s)
{
	const struct xspd_conf *conf = &s->conf;
	struct json_object *o = json_object_new_object();
	const struct {
		const char *key;
		uint64_t value;
	} numbers[] = {
		{"policies", conf->policies},
		{"tuples", conf->tuples},
		{"partitions", conf->parts},
		{"ties", conf->ties},
		{"unmodelled", conf->unmodelled},
		{"slots", conf->slots},
		{"map_bytes", conf->map_bytes},
		{"generation", conf->generation},
		{"events", conf->events},
		{"lost", conf->lost},
		{"dumps", conf->dumps},
		{"doubts", conf->doubts},
		{"swaps", conf->swaps},
		{"repaired_added", conf->repaired_add},
		{"repaired_removed", conf->repaired_del},
		{"repaired_changed", conf->repaired_mod},
		{"last_repair_ns", conf->last_repair},
		{"last_added", conf->last_add},
		{"last_removed", conf->last_del},
		{"last_changed", conf->last_mod},
		{"threshold_changes", conf->threshold_changes},
		{"lingering", conf->gone},
		{"samples", conf->samples},
		{"samples_missed", conf->samples_missed},
		{"lag_max_ns", conf->lag_max},
	};

	cli_json_text(o, "instance", view->instance);
	cli_json_text(o, "netns", cli_netns_name(conf->netns_ino));
	cli_json_number(o, "netns_ino", conf->netns_ino);
	json_object_object_add(o, "daemon", daemon_json(s));
	json_object_object_add(o, "doubt", doubt_json(conf));
	json_object_object_add(o, "steer",
			       conf->steer ? json_object_new_int64(conf->steer - 1) : NULL);
	cli_json_number(o, "doubt_since_ns", conf->doubt_since);
	json_object_object_add(o, "doubt_times", doubt_times_json(conf));
	json_object_object_add(o, "default", defaults_json(conf));
	for (size_t i = 0; i < XSPD_ARRAY_SIZE(numbers); i++)
		cli_json_number(o, numbers[i].key, numbers[i].value);
	json_object_object_add(o, "attached", hooks_json(s));
	json_object_object_add(o, "hooks", stats_json(s));
	json_object_object_add(o, "acts", cli_acts_json(&s->acts));
	json_object_object_add(o, "env", cli_acts_env_json(conf->env));
	json_object_object_add(o, "cache", cli_acts_cache_json(&s->acts, conf->cache));
	cli_json_print(o);
}

static void print_text(const struct cli_view *view, const struct status *s)
{
	print_daemon(view, s);
	print_doubt(&s->conf);
	print_numbers(&s->conf);
	cli_acts_print_cache(&s->acts, s->conf.cache);
	cli_acts_print_env(s->conf.env);
	print_hooks(s);
	print_stats(s);
	cli_acts_print(&s->acts);
}

int status_main(int argc, char **argv)
{
	struct cli_common common = {.reads = true};
	struct status status = {};
	struct cli_view view;
	int rc = cli_parse(&common, NULL, &argc, &argv), err;

	if (rc || common.help)
		return rc;
	if (argc)
		return cli_usage("status: takes no words, not '%s'", argv[0]);
	rc = cli_enter_netns(common.netns);
	if (!rc)
		rc = cli_view_open(&view, common.instance);
	if (rc)
		return rc;
	err = collect(&view, &status);
	if (err)
		rc = cli_fail("status: %s: %s", view.dir, strerror(-err));
	else if (common.json)
		print_json(&view, &status);
	else
		print_text(&view, &status);
	if (!rc && !status.alive)
		rc = cli_fail("status: the daemon of instance %s is not running; start 'xspd run'",
			      common.instance);
	free(status.hooks);
	cli_acts_free(&status.acts);
	cli_view_close(&view);
	return rc;
}
