// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <string.h>
#include <bpf/bpf.h>

#include "cli/cli.h"
#include "cli/mode.h"
#include "cli/view.h"
#include "reason.h"
#include "util.h"

static const uint32_t modes[] = {XSPD_MODE_MARK, XSPD_MODE_ENFORCE, XSPD_MODE_BYPASS,
				 XSPD_MODE_STEER, XSPD_MODE_GUARD};

static const struct {
	uint32_t flags;
	const char *where;
} fits[XSPD_HOOK_MAX_] = {
	[XSPD_HOOK_XDP] = {XSPD_MODE_ENFORCE | XSPD_MODE_BYPASS, "enforce and bypass"},
	[XSPD_HOOK_INGRESS] = {XSPD_MODE_MARK | XSPD_MODE_ENFORCE, "mark and enforce"},
	[XSPD_HOOK_EGRESS] = {XSPD_MODE_MARK | XSPD_MODE_STEER | XSPD_MODE_GUARD,
			      "mark, steer and guard"},
};

static bool parse_one(const char *word, size_t len, uint32_t *flags)
{
	if (len == 7 && !strncmp(word, "observe", len))
		return true;
	for (size_t i = 0; i < XSPD_ARRAY_SIZE(modes); i++) {
		const char *name = xspd_mode_name(modes[i]);

		if (strlen(name) != len || strncmp(word, name, len))
			continue;
		*flags |= modes[i];
		return true;
	}
	return false;
}

int cli_mode_parse(const char *text, uint32_t *ret)
{
	const char *word = text;
	uint32_t flags = 0;

	for (;;) {
		size_t len = strcspn(word, ",");

		if (!parse_one(word, len, &flags))
			return cli_usage("attach: --mode %s: give observe, mark, enforce, "
					 "bypass, steer or guard, or several with commas between",
					 text);
		if (!word[len])
			break;
		word += len + 1;
	}
	*ret = flags;
	return XSPD_DONE;
}

int cli_mode_fits(const char *dev, enum xspd_hook hook, uint32_t flags)
{
	uint32_t extra = flags & CLI_MODES & ~fits[hook].flags;

	/* the mark is part of what the tunnel is found by, and plaintext is what is meant to leave
	 */
	if (!extra && flags & XSPD_MODE_STEER && flags & CLI_MODES & ~(uint32_t)XSPD_MODE_STEER)
		return cli_usage("attach %s: --mode steer goes alone", dev);
	if (!extra)
		return XSPD_DONE;
	return cli_usage("attach %s: --mode %s is not for --%s, which takes %s", dev,
			 xspd_mode_name(extra & -extra), xspd_hook_name(hook), fits[hook].where);
}

int cli_lasting_open(const char *instance, const char *name)
{
	char path[256];
	int fd;

	cli_pin_path(path, sizeof(path), instance, name);
	fd = bpf_obj_get(path);
	if (fd >= 0)
		return fd;
	if (errno == ENOENT)
		cli_fail("instance %s: no %s; start 'xspd run', or name another with --netns or "
			 "--instance",
			 instance, path);
	else
		cli_fail("instance %s: %s: %s%s", instance, path, strerror(errno),
			 cli_root_hint(-errno));
	return -1;
}

int cli_mode_get(int map, uint32_t ifindex, enum xspd_hook hook, struct xspd_mode *ret)
{
	struct xspd_mode_key key = {.ifindex = ifindex, .hook = hook};
	struct xspd_mode mode = {};

	if (bpf_map_lookup_elem(map, &key, &mode) < 0 && errno != ENOENT)
		return -errno;
	*ret = mode;
	return 0;
}

int cli_mode_set(int map, uint32_t ifindex, enum xspd_hook hook, const struct xspd_mode *mode)
{
	struct xspd_mode_key key = {.ifindex = ifindex, .hook = hook};

	if (mode->flags & CLI_MODES)
		return bpf_map_update_elem(map, &key, mode, BPF_ANY) < 0 ? -errno : 0;
	return bpf_map_delete_elem(map, &key) < 0 && errno != ENOENT ? -errno : 0;
}

void cli_mode_drop(const char *instance, uint32_t ifindex, enum xspd_hook hook)
{
	struct xspd_mode none = {};
	char path[256];
	xspd_autoclose int map = -1;

	cli_pin_path(path, sizeof(path), instance, "xspd_mode");
	map = bpf_obj_get(path);
	if (map >= 0)
		cli_mode_set(map, ifindex, hook, &none);
}

void cli_mode_text(const struct xspd_mode *mode, char *buf, size_t size)
{
	uint32_t flags = mode->flags;
	size_t n = 0;

	snprintf(buf, size, "observe");
	for (size_t i = 0; i < XSPD_ARRAY_SIZE(modes); i++)
		if (flags & modes[i] && n < size)
			n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? ", " : "",
					      xspd_mode_name(modes[i]));
	if (flags & XSPD_MODE_DROP && n < size)
		n += (size_t)snprintf(buf + n, size - n, ", dropping");
	if (mode->linger && n < size)
		n += (size_t)snprintf(buf + n, size - n, ", linger %u s", mode->linger);
	if (flags & XSPD_MODE_DRY_RUN && n < size)
		n += (size_t)snprintf(buf + n, size - n, ", dry run");
	if (flags & XSPD_MODE_NETFILTER && n < size)
		snprintf(buf + n, size - n, ", ignoring netfilter");
}

struct json_object *cli_mode_json(uint32_t flags)
{
	struct json_object *o = json_object_new_array();

	for (size_t i = 0; i < XSPD_ARRAY_SIZE(modes); i++)
		if (flags & modes[i])
			json_object_array_add(o, json_object_new_string(xspd_mode_name(modes[i])));
	return o;
}
