// SPDX-License-Identifier: GPL-2.0-only
/* Attaching the pinned entry programs, and finding again what was attached. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <linux/if_link.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "cli/cli.h"
#include "cli/hook.h"
#include "cli/mode.h"
#include "cli/view.h"
#include "reason.h"
#include "util.h"

/* Of kernels later than the headers of the build. */
#define TCX_INGRESS   ((enum bpf_attach_type)46)
#define TCX_EGRESS    ((enum bpf_attach_type)47)
#define LINK_TYPE_TCX 11

static const char *const programs[] = {
	[XSPD_HOOK_XDP] = "xspd_xdp",
	[XSPD_HOOK_INGRESS] = "xspd_tc_in",
	[XSPD_HOOK_EGRESS] = "xspd_tc_out",
};

const char *cli_hook_kind_name(enum cli_hook_kind kind)
{
	static const char *const names[] = {"tcx", "clsact", "xdp", "native", "generic"};

	return kind < XSPD_ARRAY_SIZE(names) ? names[kind] : "?";
}

/* bpffs refuses dots in names, and devices have them (eth0.100). */
static void escape(const char *dev, char *buf, size_t size)
{
	size_t n = 0;

	for (; *dev && n + 4 < size; dev++)
		if (*dev == '.' || *dev == '%')
			n += (size_t)snprintf(buf + n, size - n, "%%%02x", (unsigned char)*dev);
		else
			buf[n++] = *dev;
	buf[n] = '\0';
}

static void unescape(const char *text, size_t len, char *buf, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < len && n + 1 < size; i++) {
		unsigned int c;

		if (text[i] == '%' && i + 2 < len && sscanf(text + i + 1, "%2x", &c) == 1) {
			buf[n++] = (char)c;
			i += 2;
		} else {
			buf[n++] = text[i];
		}
	}
	buf[n] = '\0';
}

static void entry_path(const char *instance, const char *dev, enum xspd_hook hook, char *buf,
		       size_t size)
{
	char name[IF_NAMESIZE * 3 + 24] = "links/";

	escape(dev, name + 6, sizeof(name) - 16);
	strcat(name, "-");
	strcat(name, xspd_hook_name(hook));
	cli_pin_path(buf, size, instance, name);
}

/* DEV-HOOK; device names have dashes too, so the last one counts. */
static bool parse_name(const char *name, struct cli_hook *ret)
{
	const char *dash = strrchr(name, '-');

	if (!dash)
		return false;
	for (int hook = 0; hook < XSPD_HOOK_MAX_; hook++)
		if (!strcmp(dash + 1, xspd_hook_name(hook))) {
			unescape(name, (size_t)(dash - name), ret->dev, sizeof(ret->dev));
			ret->hook = hook;
			return true;
		}
	return false;
}

static void xdp_kind(struct cli_hook *hook, uint32_t prog_id)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, opts);

	hook->kind = CLI_HOOK_XDP;
	/* in another namespace the number would be another device's */
	if (!hook->ifindex || if_nametoindex(hook->dev) != hook->ifindex ||
	    bpf_xdp_query((int)hook->ifindex, 0, &opts) < 0)
		return;
	if (opts.attach_mode == XDP_ATTACHED_DRV && opts.drv_prog_id == prog_id)
		hook->kind = CLI_HOOK_XDP_NATIVE;
	if (opts.attach_mode == XDP_ATTACHED_SKB && opts.skb_prog_id == prog_id)
		hook->kind = CLI_HOOK_XDP_GENERIC;
}

static int read_link_pin(const char *path, struct cli_hook *hook)
{
	struct bpf_link_info info = {};
	uint32_t len = sizeof(info);
	xspd_autoclose int fd = bpf_obj_get(path);

	if (fd < 0)
		return -errno;
	if (bpf_obj_get_info_by_fd(fd, &info, &len) < 0)
		return -errno;
	hook->ifindex = info.xdp.ifindex; /* a TCX link has it in the same place */
	hook->kind = CLI_HOOK_TCX;
	if (info.type == BPF_LINK_TYPE_XDP)
		xdp_kind(hook, info.prog_id);
	return 0;
}

static int read_record(const char *path, struct cli_hook *hook)
{
	char text[64];
	unsigned long ino;
	unsigned int made;
	ssize_t len = readlink(path, text, sizeof(text) - 1);

	if (len < 0)
		return -errno;
	text[len] = '\0';
	if (sscanf(text, "clsact:%lu:%u:%u", &ino, &hook->ifindex, &made) != 3)
		return -EINVAL;
	hook->made_qdisc = made;
	hook->kind = CLI_HOOK_CLSACT;
	if (ino != cli_netns_ino())
		hook->elsewhere = ino;
	else if (if_nametoindex(hook->dev) != hook->ifindex)
		hook->ifindex = 0;
	return 0;
}

static int read_entry(const char *path, struct cli_hook *hook)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return -errno;
	return S_ISLNK(st.st_mode) ? read_record(path, hook) : read_link_pin(path, hook);
}

static int write_record(const char *path, const struct cli_hook *hook)
{
	char text[64];

	snprintf(text, sizeof(text), "clsact:%lu:%u:%u", (unsigned long)cli_netns_ino(),
		 hook->ifindex, hook->made_qdisc);
	return symlink(text, path) < 0 ? -errno : 0;
}

int cli_hook_list(const char *instance, struct cli_hook **ret, size_t *ret_count)
{
	struct dirent **names = NULL;
	struct cli_hook *hooks;
	char dir[200], path[500];
	size_t count = 0;
	int n;

	cli_pin_path(dir, sizeof(dir), instance, "links");
	n = scandir(dir, &names, NULL, alphasort);
	if (n < 0 && errno != ENOENT)
		return -errno;
	hooks = calloc(n > 0 ? (size_t)n : 1, sizeof(*hooks));
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]->d_name);
		if (hooks && parse_name(names[i]->d_name, &hooks[count]) &&
		    !read_entry(path, &hooks[count]))
			count++;
		free(names[i]);
	}
	free(names);
	if (!hooks)
		return -ENOMEM;
	*ret = hooks;
	*ret_count = count;
	return 0;
}

static int attach_tcx(const struct cli_hook *hook, int prog_fd, const char *path)
{
	xspd_autoclose int fd =
		bpf_link_create(prog_fd, (int)hook->ifindex,
				hook->hook == XSPD_HOOK_INGRESS ? TCX_INGRESS : TCX_EGRESS, NULL);

	if (fd < 0)
		return -errno;
	return bpf_obj_pin(fd, path) < 0 ? -errno : 0;
}

/* An egress filter beside our ingress one inherits the qdisc. */
static bool beside_ours(const char *instance, const struct cli_hook *hook)
{
	enum xspd_hook other =
		hook->hook == XSPD_HOOK_INGRESS ? XSPD_HOOK_EGRESS : XSPD_HOOK_INGRESS;
	struct cli_hook found = {};
	char path[256];

	memcpy(found.dev, hook->dev, sizeof(found.dev));
	entry_path(instance, hook->dev, other, path, sizeof(path));
	return read_entry(path, &found) == 0 && found.kind == CLI_HOOK_CLSACT &&
	       found.ifindex == hook->ifindex && found.made_qdisc;
}

static int attach_clsact(const char *instance, struct cli_hook *hook, int prog_fd, const char *path)
{
	LIBBPF_OPTS(bpf_tc_hook, tc, .ifindex = (int)hook->ifindex, .attach_point = BPF_TC_INGRESS);
	int err = bpf_tc_hook_create(&tc);

	if (err && err != -EEXIST)
		return err;
	hook->made_qdisc = !err || beside_ours(instance, hook);
	/* the record first: dying in between must not leave a filter that nobody knows of */
	err = write_record(path, hook);
	if (!err) {
		err = cli_clsact_attach(hook, prog_fd);
		if (err)
			unlink(path);
	}
	if (err)
		cli_clsact_tidy(hook);
	return err;
}

static int attach_xdp(const struct cli_hook *hook, int prog_fd, bool native, const char *path)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .flags = XDP_FLAGS_DRV_MODE);
	xspd_autoclose int fd = bpf_link_create(prog_fd, (int)hook->ifindex, BPF_XDP, &opts);

	if (fd < 0 && !native && errno != EBUSY && errno != EEXIST && errno != EPERM) {
		const char *why = strerror(errno);

		opts.flags = XDP_FLAGS_SKB_MODE;
		fd = bpf_link_create(prog_fd, (int)hook->ifindex, BPF_XDP, &opts);
		if (fd >= 0)
			cli_notice("%s: no native XDP (%s), using generic", hook->dev, why);
	}
	if (fd < 0)
		return -errno;
	return bpf_obj_pin(fd, path) < 0 ? -errno : 0;
}

static int attach(const char *instance, struct cli_hook *hook, int prog_fd, uint32_t how,
		  const char *path)
{
	int err;

	if (hook->hook == XSPD_HOOK_XDP)
		return attach_xdp(hook, prog_fd, how & CLI_HOOK_NATIVE_ONLY, path);
	if (!(how & CLI_HOOK_NO_TCX)) {
		err = attach_tcx(hook, prog_fd, path);
		if (err != -EINVAL) /* a kernel without TCX */
			return err;
	}
	return attach_clsact(instance, hook, prog_fd, path);
}

static int explain(const struct cli_hook *hook, uint32_t how, int err)
{
	const char *what = xspd_hook_name(hook->hook);

	if (err == -EBUSY)
		return cli_fail("%s: %s: another program is attached; 'ip link set %s xdp off' "
				"removes it",
				hook->dev, what, hook->dev);
	if (err == -EEXIST)
		return cli_fail("%s: %s: attached already, or another's filter has our place; "
				"see 'bpftool net' and 'tc filter show dev %s %s'",
				hook->dev, what, hook->dev, what);
	if (how & CLI_HOOK_NATIVE_ONLY && err != -EPERM)
		return cli_fail("%s: bypass: only in native XDP, which this device refuses: %s",
				hook->dev, strerror(-err));
	return cli_fail("%s: %s: %s%s", hook->dev, what, strerror(-err), cli_root_hint(err));
}

/* An entry of a device that is gone, or came anew under its name, is no obstacle. */
static bool in_the_way(const char *instance, const struct cli_hook *hook, const char *path)
{
	struct cli_hook found = {};

	memcpy(found.dev, hook->dev, sizeof(found.dev));
	if (read_entry(path, &found) == -ENOENT)
		return false;
	if (found.ifindex == hook->ifindex)
		return true;
	found.hook = hook->hook;
	return cli_hook_detach(instance, &found) != XSPD_DONE;
}

int cli_hook_attach(const char *instance, const char *dev, enum xspd_hook which, uint32_t how)
{
	struct cli_hook hook = {.hook = which, .ifindex = if_nametoindex(dev)};
	char path[256], dir[200], entry[256];
	xspd_autoclose int fd = -1;
	int err;

	if (!hook.ifindex)
		return cli_fail("%s: no such device in this network namespace; 'ip link' lists "
				"them, --netns names another",
				dev);
	snprintf(hook.dev, sizeof(hook.dev), "%s", dev);
	cli_pin_path(dir, sizeof(dir), instance, "links");
	cli_pin_path(entry, sizeof(entry), instance, programs[which]);
	entry_path(instance, dev, which, path, sizeof(path));
	fd = bpf_obj_get(entry);
	if (fd < 0)
		return cli_fail("%s: %s; start 'xspd run'", entry, strerror(errno));
	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return cli_fail("%s: %s", dir, strerror(errno));
	if (in_the_way(instance, &hook, path))
		return cli_fail("%s: %s: attached already; 'xspd detach %s --%s' takes it off", dev,
				xspd_hook_name(which), dev, xspd_hook_name(which));
	err = attach(instance, &hook, fd, how, path);
	return err ? explain(&hook, how, err) : XSPD_DONE;
}

bool cli_hook_find(const char *instance, const char *dev, enum xspd_hook which,
		   struct cli_hook *ret)
{
	struct cli_hook hook = {.hook = which};
	char path[256];

	snprintf(hook.dev, sizeof(hook.dev), "%s", dev);
	entry_path(instance, dev, which, path, sizeof(path));
	if (read_entry(path, &hook) || !hook.ifindex || hook.elsewhere ||
	    hook.ifindex != if_nametoindex(dev))
		return false;
	*ret = hook;
	return true;
}

static uint32_t program_id(const char *instance, enum xspd_hook hook)
{
	struct bpf_prog_info info = {};
	uint32_t len = sizeof(info);
	char path[256];
	xspd_autoclose int fd = -1;

	cli_pin_path(path, sizeof(path), instance, programs[hook]);
	fd = bpf_obj_get(path);
	return fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &len) == 0 ? info.id : 0;
}

/* Now, not when the kernel gets round to freeing the pin. */
static int detach_link(const char *path)
{
	xspd_autoclose int fd = bpf_obj_get(path);

	if (fd < 0)
		return -errno;
	if (bpf_link_detach(fd) < 0 && errno != ENOLINK && errno != EOPNOTSUPP)
		return -errno;
	return 0;
}

int cli_hook_detach(const char *instance, const struct cli_hook *hook)
{
	char path[256];
	int err = 0;

	entry_path(instance, hook->dev, hook->hook, path, sizeof(path));
	if (hook->elsewhere)
		return cli_fail("%s: %s: a filter in another network namespace (inode %lu); name "
				"it with --netns; if it is gone, rm %s",
				hook->dev, xspd_hook_name(hook->hook),
				(unsigned long)hook->elsewhere, path);
	if (hook->kind != CLI_HOOK_CLSACT)
		err = detach_link(path);
	else if (hook->ifindex)
		err = cli_clsact_detach(hook, program_id(instance, hook->hook));
	if (!err && unlink(path) < 0)
		err = -errno;
	if (err)
		return cli_fail("%s: %s: detach: %s%s", hook->dev, xspd_hook_name(hook->hook),
				strerror(-err), cli_root_hint(err));
	if (hook->kind == CLI_HOOK_CLSACT && hook->ifindex)
		cli_clsact_tidy(hook);
	/* after the hook: a mode without one does nothing, and without an ifindex the daemon tidies
	 */
	if (hook->ifindex)
		cli_mode_drop(instance, hook->ifindex, hook->hook);
	return XSPD_DONE;
}
