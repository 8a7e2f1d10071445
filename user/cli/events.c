// SPDX-License-Identifier: GPL-2.0-only
/* xspd events: what has happened to the SPD, and packets that the hooks told of. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/history.h"
#include "cli/selector.h"
#include "owner.h"
#include "reason.h"
#include "util.h"

#define PAUSE_NS 100000000 /* between two looks of --follow */

struct events {
	struct cli_common common;
	bool follow, only_changes, only_samples;
	uint32_t last; /* 0: all */
	struct cli_history history;
	uint64_t change, sample; /* the next ones' numbers */
};

static volatile sig_atomic_t stopped;

static void stop(int sig)
{
	(void)sig;
	stopped = 1;
}

static void time_text(uint64_t ns, char *buf, size_t size)
{
	time_t seconds = (time_t)(ns / 1000000000);
	struct tm tm;
	size_t n;

	localtime_r(&seconds, &tm);
	n = strftime(buf, size, "%Y-%m-%d %H:%M:%S", &tm);
	snprintf(buf + n, size - n, ".%06u", (unsigned int)(ns % 1000000000 / 1000));
}

static void print_policy(const char *lead, const struct xspd_info *info)
{
	char text[256];

	cli_selector_text(info, text, sizeof(text));
	printf("\t%s%s", lead, text);
	cli_traits_text(info, text, sizeof(text));
	printf(" %s", text);
	cli_tmpl_text(info, text, sizeof(text));
	printf("%s%s\n", *text ? " " : "", text);
}

static void defaults_text(uint32_t defaults, char *buf, size_t size)
{
	size_t n = 0;

	for (int dir = 0; dir < XSPD_DIR_MAX_ && n < size; dir++)
		n += (size_t)snprintf(buf + n, size - n, "%s%s %s", dir ? ", " : "",
				      xspd_dir_name(dir),
				      defaults & 1u << dir ? "block" : "accept");
}

/* The policy that an owner is looked for by. */
static const struct xspd_info *told(const struct xspd_changed *c)
{
	return c->after.index ? &c->after : &c->before;
}

static void print_source(const struct xspd_changed *c)
{
	const struct xspd_info *info = told(c);
	const char *why, *owner = info->index ? xspd_owner_hint(info, &why) : NULL;

	if (c->pid)
		printf(", by pid %u%s%s", c->pid, *c->comm ? " " : "", c->comm);
	if (owner)
		printf(", %s's by %s", owner, why);
	if (c->reread)
		printf(", found by reading all again");
	printf("\n");
}

static void print_change(const struct xspd_changed *c)
{
	char when[40], text[64];

	time_text(c->time, when, sizeof(when));
	printf("%s %-7s ", when, xspd_change_name(c->what));
	switch (c->what) {
	case XSPD_C_FLUSH:
		printf("%u %s policies", c->count, c->after.type == XSPD_SUB ? "sub" : "main");
		break;
	case XSPD_C_DEFAULT:
		defaults_text(c->was, text, sizeof(text));
		printf("from %s", text);
		defaults_text(c->count, text, sizeof(text));
		printf(" to %s", text);
		break;
	case XSPD_C_ALARM:
		printf("%u of %u policies deleted within a second", c->count, c->was);
		break;
	case XSPD_C_START:
		printf("%u policies read", c->count);
		break;
	case XSPD_C_LOST:
		printf("events of the kernel; what follows from reading all again is marked");
		break;
	default:
		printf("index %u", told(c)->index);
		if (told(c)->tmpl_count)
			printf(" reqid %u", told(c)->reqid);
	}
	print_source(c);
	if (c->before.index)
		print_policy(c->after.index ? "- " : "", &c->before);
	if (c->after.index)
		print_policy(c->before.index ? "+ " : "", &c->after);
}

static void json_line(struct json_object *o)
{
	puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(o);
}

static struct json_object *json_head(uint64_t time, const char *event)
{
	struct json_object *o = json_object_new_object();
	char when[40];

	time_text(time, when, sizeof(when));
	cli_json_number(o, "time_ns", time);
	cli_json_text(o, "time", when);
	cli_json_text(o, "event", event);
	return o;
}

static void json_change(const struct xspd_changed *c)
{
	struct json_object *o = json_head(c->time, xspd_change_name(c->what));
	const char *why = NULL, *owner = told(c)->index ? xspd_owner_hint(told(c), &why) : NULL;
	char text[64];

	cli_json_bool(o, "reread", c->reread);
	if (c->pid)
		cli_json_number(o, "pid", c->pid);
	else
		cli_json_text(o, "pid", NULL);
	cli_json_text(o, "process", *c->comm ? c->comm : NULL);
	cli_json_text(o, "owner", owner);
	cli_json_text(o, "owner_by", why);
	if (c->what == XSPD_C_DEFAULT) {
		defaults_text(c->was, text, sizeof(text));
		cli_json_text(o, "before", text);
		defaults_text(c->count, text, sizeof(text));
		cli_json_text(o, "after", text);
	} else {
		json_object_object_add(o, "before",
				       c->before.index ? cli_policy_json(&c->before) : NULL);
		json_object_object_add(o, "after",
				       c->after.index ? cli_policy_json(&c->after) : NULL);
		cli_json_number(o, "count", c->count);
		cli_json_number(o, "of", c->was);
	}
	json_line(o);
}

static void show_change(const struct events *e, const struct xspd_changed *c)
{
	if (e->common.json)
		json_change(c);
	else
		print_change(c);
}

static void show_sample(const struct events *e, const struct xspd_sample *s)
{
	char when[40], flow[192], rest[192];
	struct json_object *o;

	if (e->common.json) {
		o = json_head(s->time, xspd_sample_name(s->kind));
		json_object_object_add(o, "packet", cli_sample_json(s));
		json_line(o);
		return;
	}
	time_text(s->time, when, sizeof(when));
	cli_sample_flow(s, flow, sizeof(flow));
	cli_sample_rest(s, rest, sizeof(rest));
	printf("%s %-7s %s %s", when, xspd_sample_name(s->kind), flow, rest);
	if (s->missed)
		printf(" (and %u before it)", s->missed);
	printf("\n");
}

/* Both histories up to where they are now, in the order of time. */
static void show(struct events *e, uint64_t changes, uint64_t samples)
{
	struct xspd_changed c;
	struct xspd_sample s;
	bool have_c = false, have_s = false;

	for (;;) {
		while (!have_c && e->change <= changes)
			have_c = cli_history_change(&e->history, e->change++, &c);
		while (!have_s && e->sample <= samples)
			have_s = cli_history_sample(&e->history, e->sample++, &s);
		if (!have_c && !have_s)
			return;
		if (have_c && (!have_s || c.time <= s.time)) {
			show_change(e, &c);
			have_c = false;
		} else {
			show_sample(e, &s);
			have_s = false;
		}
	}
}

/* The first number to show, of @count that there were and as many as are kept. */
static uint64_t first(uint64_t count, uint64_t kept, uint32_t last)
{
	if (last && last < kept)
		kept = last;
	return count >= kept ? count - kept + 1 : 1;
}

/* Only the next places are looked at: the whole is large, and rests most of the time. */
static uint64_t ahead(const void *ring, size_t size, uint64_t places, uint64_t next)
{
	for (;; next++) {
		const uint64_t *seq = (const void *)((const char *)ring + next % places * size);

		if (__atomic_load_n(seq, __ATOMIC_ACQUIRE) < next)
			return next - 1;
	}
}

static int run(struct events *e)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	uint64_t changes = cli_history_changes(&e->history);
	uint64_t samples = cli_history_samples(&e->history);

	e->change = first(changes, XSPD_CHANGES, e->last);
	e->sample = first(samples, XSPD_SAMPLES, e->last);
	for (;;) {
		show(e, e->only_samples ? 0 : changes, e->only_changes ? 0 : samples);
		if (!e->follow)
			return XSPD_DONE;
		if (fflush(stdout) || ferror(stdout))
			return XSPD_FAILED; /* main() tells */
		if (stopped)
			return XSPD_DONE;
		nanosleep(&pause, NULL);
		changes = ahead(e->history.change, sizeof(*e->history.change), XSPD_CHANGES,
				changes + 1);
		samples = ahead(e->history.sample, sizeof(*e->history.sample), XSPD_SAMPLES,
				samples + 1);
	}
}

int events_main(int argc, char **argv)
{
	struct events e = {.common.reads = true};
	const struct cli_option options[] = {
		{"follow", CLI_FLAG, &e.follow},
		{"changes", CLI_FLAG, &e.only_changes},
		{"samples", CLI_FLAG, &e.only_samples},
		{"last", CLI_NUMBER, &e.last, 1, XSPD_CHANGES},
		{},
	};
	int rc = cli_parse(&e.common, options, &argc, &argv);

	if (rc || e.common.help)
		return rc;
	if (argc)
		return cli_usage("events: takes no words, not '%s'", argv[0]);
	if (e.only_changes && e.only_samples)
		return cli_usage("events: --changes and --samples: without both, both are told");
	rc = cli_enter_netns(e.common.netns);
	if (!rc)
		rc = cli_history_open(&e.history, e.common.instance);
	if (rc)
		return rc;
	signal(SIGINT, stop);
	signal(SIGTERM, stop);
	rc = run(&e);
	cli_history_close(&e.history);
	return rc;
}
