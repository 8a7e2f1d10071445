// SPDX-License-Identifier: GPL-2.0-only
/* Everything that is counted, in the text that Prometheus reads. */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "cli/selector.h"
#include "reason.h"
#include "util.h"
#include "web/web.h"

#define LAG_FIRST 50e-6 /* seconds: the first bucket's bound; each has twice the one before */

struct writer {
	FILE *out;
	bool open;	  /* OpenMetrics: counters are declared without their "_total" */
	const char *name; /* of the family */
};

static void family(struct writer *w, const char *name, const char *type, const char *help)
{
	size_t len = strlen(name);

	w->name = name;
	if (w->open && !strcmp(type, "counter"))
		len -= strlen("_total");
	fprintf(w->out, "# HELP %.*s %s\n# TYPE %.*s %s\n", (int)len, name, help, (int)len, name,
		type);
}

/* @labels: alternately name and value, ended by NULL. */
static void labels(struct writer *w, va_list ap)
{
	const char *sep = "{";

	for (;;) {
		const char *name = va_arg(ap, const char *), *value;

		if (!name)
			break;
		value = va_arg(ap, const char *);
		fprintf(w->out, "%s%s=\"", sep, name);
		for (; *value; value++) {
			if (*value == '\n')
				fputs("\\n", w->out);
			else if (*value == '"' || *value == '\\')
				fprintf(w->out, "\\%c", *value);
			else
				fputc(*value, w->out);
		}
		fputc('"', w->out);
		sep = ",";
	}
	if (*sep == ',')
		fputc('}', w->out);
}

static void count(struct writer *w, uint64_t value, ...)
{
	va_list ap;

	fputs(w->name, w->out);
	va_start(ap, value);
	labels(w, ap);
	va_end(ap);
	fprintf(w->out, " %" PRIu64 "\n", value);
}

static void number(struct writer *w, const char *name, const char *type, const char *help,
		   double value)
{
	family(w, name, type, help);
	fprintf(w->out, "%s %.17g\n", name, value);
}

static void daemon_write(struct writer *w, const struct cli_gather *g)
{
	const struct xspd_conf *conf = &g->conf;
	int64_t left = (int64_t)conf->lease_until - (int64_t)g->time;

	family(w, "xspd_build_info", "gauge", "Version of xspd.");
	count(w, 1, "version", XSPD_VERSION, NULL);
	number(w, "xspd_up", "gauge", "1 while a daemon keeps the mirror in step.", g->alive);
	number(w, "xspd_start_time_seconds", "gauge", "When the daemon was started.",
	       (double)conf->started / 1e9);
	number(w, "xspd_lease_remaining_seconds", "gauge",
	       "How long answers stand without a sign of life from the daemon.",
	       (double)left / 1e9);
	family(w, "xspd_doubt", "gauge", "1 while the mirror is in doubt and the kernel decides.");
	for (size_t bit = 0; bit < XSPD_ARRAY_SIZE(conf->doubt_times); bit++)
		count(w, conf->doubt >> bit & 1, "bit", xspd_doubt_name(1u << bit), NULL);
	family(w, "xspd_doubts_total", "counter", "Times a doubt was raised.");
	for (size_t bit = 0; bit < XSPD_ARRAY_SIZE(conf->doubt_times); bit++)
		count(w, conf->doubt_times[bit], "bit", xspd_doubt_name(1u << bit), NULL);
	family(w, "xspd_obstacle", "gauge", "1 while it keeps modes from acting.");
	for (uint32_t bit = XSPD_ENV_NETFILTER_PRE; bit <= XSPD_ENV_SYSCTL; bit <<= 1)
		count(w, (conf->env & bit) != 0, "what", xspd_env_name(bit), NULL);
}

static void mirror_write(struct writer *w, const struct cli_gather *g)
{
	const struct xspd_conf *conf = &g->conf;
	uint64_t dirs[XSPD_DIR_MAX_][2] = {};

	for (size_t i = 0; i < g->policies; i++)
		if (g->policy[i].info.dir < XSPD_DIR_MAX_)
			dirs[g->policy[i].info.dir][g->policy[i].info.family == XSPD_INET6]++;
	family(w, "xspd_policies", "gauge", "Policies in the mirror.");
	for (int dir = 0; dir < XSPD_DIR_MAX_; dir++) {
		count(w, dirs[dir][0], "direction", xspd_dir_name(dir), "family", "inet", NULL);
		count(w, dirs[dir][1], "direction", xspd_dir_name(dir), "family", "inet6", NULL);
	}
	number(w, "xspd_policy_slots", "gauge", "Policies that the maps have room for.",
	       conf->slots);
	number(w, "xspd_tuples", "gauge", "Mask classes in the tables.", conf->tuples);
	number(w, "xspd_partitions", "gauge", "Partitions in the tables.", conf->parts);
	number(w, "xspd_ties", "gauge", "Policies whose order is not certain.", conf->ties);
	number(w, "xspd_unmodelled_policies", "gauge", "Policies left to the kernel.",
	       conf->unmodelled);
	number(w, "xspd_lingering_policies", "gauge", "Deleted policies the guard still goes by.",
	       conf->gone);
	number(w, "xspd_map_bytes", "gauge", "Memory of the maps that matching uses.",
	       (double)conf->map_bytes);
	number(w, "xspd_events_total", "counter", "Messages of the kernel applied to the mirror.",
	       (double)conf->events);
	number(w, "xspd_events_lost_total", "counter", "Times the kernel reported lost messages.",
	       (double)conf->lost);
	number(w, "xspd_dumps_total", "counter", "Times all policies were read.",
	       (double)conf->dumps);
	number(w, "xspd_swaps_total", "counter", "Sets of maps put into service.",
	       (double)conf->swaps);
	family(w, "xspd_repaired_total", "counter", "Differences that reading anew has put right.");
	count(w, conf->repaired_add, "how", "added", NULL);
	count(w, conf->repaired_del, "how", "removed", NULL);
	count(w, conf->repaired_mod, "how", "changed", NULL);
	family(w, "xspd_changes_total", "counter", "Changes of the SPD; flush counts policies.");
	for (int what = 1; what < XSPD_C_MAX_; what++)
		count(w, conf->changes[what], "change", xspd_change_name(what), NULL);
}

static void lag_write(struct writer *w, const struct xspd_conf *conf)
{
	double bound = LAG_FIRST;
	uint64_t sum = 0;

	family(w, "xspd_mirror_lag_seconds", "histogram",
	       "From waking for changes of the SPD to their being published.");
	for (int i = 0; i < XSPD_LAGS; i++, bound *= 2) {
		char le[32] = "+Inf";

		sum += conf->lag_count[i];
		if (i < XSPD_LAGS - 1)
			snprintf(le, sizeof(le), "%g", bound);
		fprintf(w->out, "xspd_mirror_lag_seconds_bucket{le=\"%s\"} %" PRIu64 "\n", le, sum);
	}
	fprintf(w->out,
		"xspd_mirror_lag_seconds_sum %.17g\nxspd_mirror_lag_seconds_count %" PRIu64 "\n",
		(double)conf->lag_sum / 1e9, sum);
	number(w, "xspd_mirror_lag_max_seconds", "gauge", "The longest such time.",
	       (double)conf->lag_max / 1e9);
}

/* Where a hook asks: on the way out only out, else all. */
static bool asks(int asked, int hook)
{
	return !asked || hook != XSPD_HOOK_EGRESS || asked == 1 + XSPD_OUT;
}

static void packets_write(struct writer *w, const struct cli_gather *g, bool bytes)
{
	family(w, bytes ? "xspd_bytes_total" : "xspd_packets_total", "counter",
	       bytes ? "Bytes of those packets."
		     : "Packets at the hooks, by the direction asked in and by the answer.");
	for (int asked = 0; asked < XSPD_ASKED_MAX_; asked++)
		for (int hook = 0; hook < XSPD_HOOK_MAX_; hook++)
			for (int reason = 1; reason < XSPD_R_MAX_ && asks(asked, hook); reason++)
				count(w,
				      bytes ? g->stat[asked][hook][reason].bytes
					    : g->stat[asked][hook][reason].packets,
				      "direction", asked ? xspd_dir_name(asked - 1) : "none",
				      "hook", xspd_hook_name(hook), "reason",
				      xspd_reason_name(reason), NULL);
}

static void acts_write(struct writer *w, const struct cli_gather *g)
{
	family(w, "xspd_acts_total", "counter",
	       "Packets that a mode acted on, or did not although the answer called for it.");
	for (int hook = 0; hook < XSPD_HOOK_MAX_; hook++)
		for (int act = 1; act < XSPD_A_MAX_; act++)
			count(w, g->act[hook][act].packets, "hook", xspd_hook_name(hook), "act",
			      xspd_act_name(act), NULL);
	family(w, "xspd_samples_total", "counter", "Packets sampled for 'xspd events'.");
	count(w, g->conf.samples, NULL);
	family(w, "xspd_samples_missed_total", "counter", "Samples left out for their number.");
	count(w, g->conf.samples_missed, NULL);
}

static void cache_write(struct writer *w, const struct cli_gather *g)
{
	uint64_t all = g->hits + g->misses;

	family(w, "xspd_cache_lookups_total", "counter", "Lookups in the flow cache.");
	count(w, g->hits, "result", "hit", NULL);
	count(w, g->misses, "result", "miss", NULL);
	number(w, "xspd_cache_hit_ratio", "gauge", "Part of them that were hits.",
	       all ? (double)g->hits / (double)all : 0);
}

enum of_policy { PACKETS, BYTES, ACTED };

static void policies_write(struct writer *w, const struct cli_gather *g, size_t top,
			   enum of_policy what)
{
	for (size_t i = 0; i < top; i++) {
		const struct cli_counted *p = &g->policy[i];
		char index[16], selector[256];

		snprintf(index, sizeof(index), "%u", p->info.index);
		cli_selector_text(&p->info, selector, sizeof(selector));
		count(w,
		      what == PACKETS ? p->count.packets
		      : what == BYTES ? p->count.bytes
				      : p->count.acted,
		      "index", index, "direction", xspd_dir_name(p->info.dir), "selector", selector,
		      NULL);
	}
}

static int by_index(const void *a, const void *b)
{
	const struct cli_counted *x = a, *y = b;

	if (x->info.index != y->info.index)
		return x->info.index < y->info.index ? -1 : 1;
	return (x->count.packets < y->count.packets) - (x->count.packets > y->count.packets);
}

/* During an update a policy is in two slots for a moment: no series may be told twice. */
static size_t doubles_drop(struct cli_gather *g, size_t top)
{
	size_t kept = 0;

	qsort(g->policy, top, sizeof(*g->policy), by_index);
	for (size_t i = 0; i < top; i++)
		if (!kept || g->policy[kept - 1].info.index != g->policy[i].info.index)
			g->policy[kept++] = g->policy[i];
	return kept;
}

/* The kernel's own counters of the namespace; none without CONFIG_XFRM_STATISTICS. */
static void kernel_write(struct writer *w)
{
	xspd_autofclose FILE *f = fopen("/proc/thread-self/net/xfrm_stat", "re");
	unsigned long long value;
	char name[64];

	if (!f)
		return;
	family(w, "xspd_xfrm_stat_total", "counter", "Counters of /proc/net/xfrm_stat.");
	while (fscanf(f, "%63s %llu", name, &value) == 2)
		count(w, value, "counter", name, NULL);
}

void xspd_web_metrics(FILE *out, struct cli_gather *g, uint32_t top, bool open)
{
	struct writer w = {.out = out, .open = open};
	size_t shown = doubles_drop(g, cli_gather_top(g, top));

	daemon_write(&w, g);
	mirror_write(&w, g);
	lag_write(&w, &g->conf);
	packets_write(&w, g, false);
	packets_write(&w, g, true);
	acts_write(&w, g);
	cache_write(&w, g);
	family(&w, "xspd_policy_packets_total", "counter", "Packets of the busiest policies.");
	policies_write(&w, g, shown, PACKETS);
	family(&w, "xspd_policy_bytes_total", "counter", "Bytes of the busiest policies.");
	policies_write(&w, g, shown, BYTES);
	family(&w, "xspd_policy_acted_total", "counter",
	       "Packets of the busiest policies that a mode acted on.");
	policies_write(&w, g, shown, ACTED);
	kernel_write(&w);
	if (open)
		fputs("# EOF\n", out);
}
