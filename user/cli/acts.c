// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <bpf/bpf.h>

#include "cli/acts.h"
#include "cli/mode.h"
#include "cli/selector.h"
#include "reason.h"
#include "util.h"

static int modes_read(struct cli_acts *acts, const struct cli_view *view,
		      const struct cli_hook *hooks, size_t count)
{
	xspd_autoclose int map = -1;
	char path[256];

	cli_pin_path(path, sizeof(path), view->instance, "xspd_mode");
	map = bpf_obj_get(path);
	if (map < 0)
		return -errno;
	acts->mode = calloc(count + 1, sizeof(*acts->mode));
	if (!acts->mode)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		struct xspd_mode mode;

		if (!cli_mode_get(map, hooks[i].ifindex, hooks[i].hook, &mode))
			acts->mode[i] = mode;
	}
	return 0;
}

int cli_acts_read(struct cli_acts *ret, const struct cli_view *view, const struct cli_hook *hooks,
		  size_t count)
{
	int err;

	*ret = (struct cli_acts){};
	err = cli_view_acts(view, &ret->act[0][0]);
	err = err ?: modes_read(ret, view, hooks, count);
	cli_view_cache(view, &ret->hits, &ret->misses);
	return err;
}

void cli_acts_free(struct cli_acts *acts)
{
	free(acts->mode);
	acts->mode = NULL;
}

void cli_acts_print(const struct cli_acts *acts)
{
	bool head = false;

	for (int hook = 0; hook < XSPD_HOOK_MAX_; hook++)
		for (int act = 1; act < XSPD_A_MAX_; act++) {
			const struct xspd_stat *stat = &acts->act[hook][act];

			if (!stat->packets)
				continue;
			if (!head)
				printf("%-9s %-15s %13s %16s\n", "hook", "act", "packets", "bytes");
			head = true;
			printf("%-9s %-15s %13" PRIu64 " %16" PRIu64 "\n", xspd_hook_name(hook),
			       xspd_act_name(act), (uint64_t)stat->packets, (uint64_t)stat->bytes);
		}
}

static const char *kept_from(uint32_t bit)
{
	switch (bit) {
	case XSPD_ENV_NETFILTER_PRE:
		return "no enforce";
	case XSPD_ENV_NETFILTER_IN:
		return "no enforce of local traffic";
	case XSPD_ENV_NETFILTER_ANY:
		return "no bypass";
	default:
		return "no enforce, no bypass";
	}
}

void cli_acts_print_env(uint32_t env)
{
	const char *comma = " ";

	printf("env      ");
	for (uint32_t bit = 1; bit; bit <<= 1)
		if (env & bit) {
			printf("%s%s (%s)", comma, xspd_env_name(bit), kept_from(bit));
			comma = ", ";
		}
	printf("%s\n", env ? "" : " nothing keeps modes from acting");
}

static double hit_rate(const struct cli_acts *acts)
{
	uint64_t all = acts->hits + acts->misses;

	return all ? (double)acts->hits / (double)all : 0;
}

void cli_acts_print_cache(const struct cli_acts *acts, uint32_t entries)
{
	if (entries)
		printf("cache     %u entries a CPU, %" PRIu64 " hits, %" PRIu64
		       " misses, %.1f %%\n",
		       entries, acts->hits, acts->misses, 100 * hit_rate(acts));
	else
		printf("cache     off\n");
}

struct json_object *cli_acts_json(const struct cli_acts *acts)
{
	struct json_object *all = json_object_new_object();

	for (int hook = 0; hook < XSPD_HOOK_MAX_; hook++) {
		struct json_object *of = json_object_new_object();

		for (int act = 1; act < XSPD_A_MAX_; act++) {
			struct json_object *o = json_object_new_object();

			cli_json_number(o, "packets", acts->act[hook][act].packets);
			cli_json_number(o, "bytes", acts->act[hook][act].bytes);
			json_object_object_add(of, xspd_act_name(act), o);
		}
		json_object_object_add(all, xspd_hook_name(hook), of);
	}
	return all;
}

struct json_object *cli_acts_env_json(uint32_t env)
{
	struct json_object *o = json_object_new_array();

	for (uint32_t bit = 1; bit; bit <<= 1)
		if (env & bit)
			json_object_array_add(o, json_object_new_string(xspd_env_name(bit)));
	return o;
}

struct json_object *cli_acts_cache_json(const struct cli_acts *acts, uint32_t entries)
{
	struct json_object *o = json_object_new_object();

	cli_json_number(o, "entries", entries);
	cli_json_number(o, "hits", acts->hits);
	cli_json_number(o, "misses", acts->misses);
	json_object_object_add(o, "hit_rate", json_object_new_double(hit_rate(acts)));
	return o;
}
