// SPDX-License-Identifier: GPL-2.0-only
/* xspd attach | detach: put the classifier on a device, take it off. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <bpf/bpf.h>

#include "cli/cli.h"
#include "cli/hook.h"
#include "cli/mode.h"
#include "cli/view.h"
#include "plane/steer.h"
#include "reason.h"
#include "util.h"

#define LINGER_MOST  3600 /* seconds */
#define STEER_WAIT_S 15u

struct request {
	struct cli_common common;
	const char *dev;
	bool hook[XSPD_HOOK_MAX_];
	bool clsact;
	const char *mode_text; /* NULL: not given */
	bool dry_run, ignore_netfilter, drop;
	uint32_t linger; /* seconds */
	uint32_t mode;	 /* enum xspd_mode_flag */
};

static int parse(struct request *req, bool attaching, int argc, char **argv)
{
	const char *command = argv[0];
	const struct cli_option options[] = {
		{"xdp", CLI_FLAG, &req->hook[XSPD_HOOK_XDP]},
		{"ingress", CLI_FLAG, &req->hook[XSPD_HOOK_INGRESS]},
		{"egress", CLI_FLAG, &req->hook[XSPD_HOOK_EGRESS]},
		{attaching ? "clsact" : NULL, CLI_FLAG, &req->clsact},
		{"mode", CLI_STRING, &req->mode_text},
		{"dry-run", CLI_FLAG, &req->dry_run},
		{"ignore-netfilter", CLI_FLAG, &req->ignore_netfilter},
		{"drop", CLI_FLAG, &req->drop},
		{"linger", CLI_NUMBER, &req->linger, 1, LINGER_MOST},
		{},
	};
	int rc = cli_parse(&req->common, options, &argc, &argv);

	if (rc || req->common.help)
		return rc;
	if (argc < 1)
		return cli_usage("%s: name a device", command);
	if (argc > 1)
		return cli_usage("%s: one device at a time, not '%s' too", command, argv[1]);
	req->dev = argv[0];
	/* the kernel's own rule for device names; what cannot be one needs no look */
	if (!*req->dev || strlen(req->dev) >= IF_NAMESIZE || strpbrk(req->dev, "/: \t\n"))
		return cli_usage("%s: '%s' cannot be the name of a device", command, req->dev);
	if (!attaching || req->hook[XSPD_HOOK_XDP] || req->hook[XSPD_HOOK_INGRESS] ||
	    req->hook[XSPD_HOOK_EGRESS])
		return XSPD_DONE;
	return cli_usage("attach %s: say where: --xdp, --ingress or --egress", req->dev);
}

static int parse_mode(struct request *req)
{
	int rc = req->mode_text ? cli_mode_parse(req->mode_text, &req->mode) : XSPD_DONE;

	for (int hook = 0; hook < XSPD_HOOK_MAX_ && !rc; hook++)
		if (req->hook[hook])
			rc = cli_mode_fits(req->dev, hook, req->mode);
	if (!rc && req->dry_run && !req->mode)
		return cli_usage("attach %s: --dry-run: of what? give --mode", req->dev);
	if (!rc && req->ignore_netfilter &&
	    !(req->mode & (XSPD_MODE_ENFORCE | XSPD_MODE_BYPASS | XSPD_MODE_GUARD)))
		return cli_usage("attach %s: --ignore-netfilter is for --mode enforce, bypass and "
				 "guard",
				 req->dev);
	if (!rc && (req->drop || req->linger) && !(req->mode & XSPD_MODE_GUARD))
		return cli_usage("attach %s: --%s is for --mode guard", req->dev,
				 req->drop ? "drop" : "linger");
	req->mode |= (req->dry_run ? XSPD_MODE_DRY_RUN : 0u) |
		     (req->ignore_netfilter ? XSPD_MODE_NETFILTER : 0u) |
		     (req->drop ? XSPD_MODE_DROP : 0u);
	return rc;
}

/* The device must live in the namespace whose policies are mirrored. */
static int check_netns(const struct cli_view *view, const char *dev)
{
	const char *name;

	if (cli_netns_ino() == view->conf->netns_ino)
		return XSPD_DONE;
	name = cli_netns_name(view->conf->netns_ino);
	if (name)
		return cli_fail("%s: wrong network namespace: instance %s mirrors '%s'; add "
				"--netns %s --instance %s",
				dev, view->instance, name, name, view->instance);
	return cli_fail("%s: wrong network namespace: instance %s mirrors the one with inode "
			"%" PRIu64 "; name it with --netns, or enter it with nsenter --net",
			dev, view->instance, (uint64_t)view->conf->netns_ino);
}

/* What to go back to when a later hook is refused. */
struct before {
	bool attached, changed;
	uint32_t ifindex;
	struct xspd_mode mode;
};

/* What of the mode needs the hook to be in native XDP is set when it is known to be. */
static int attach_one(const struct request *req, int map, enum xspd_hook which,
		      struct before *before)
{
	const char *instance = req->common.instance;
	uint32_t how = (req->clsact ? CLI_HOOK_NO_TCX : 0u) |
		       (req->mode & XSPD_MODE_BYPASS ? CLI_HOOK_NATIVE_ONLY : 0u);
	struct cli_hook hook;
	struct xspd_mode mode;
	int rc = cli_mode_check(req->dev, which, req->mode, &mode), err;

	if (rc)
		return rc;
	mode.linger = (uint16_t)req->linger;
	before->attached = cli_hook_find(instance, req->dev, which, &hook);
	before->ifindex = if_nametoindex(req->dev);
	err = cli_mode_get(map, before->ifindex, which, &before->mode);
	if (!err && !before->attached) {
		struct xspd_mode first = mode;

		first.flags &= ~XSPD_MODE_BYPASS;
		err = cli_mode_set(map, before->ifindex, which, &first);
	}
	if (err)
		return cli_fail("%s: %s: mode: %s", req->dev, xspd_hook_name(which),
				strerror(-err));
	before->changed = true;
	if (!before->attached || !req->mode_text) {
		rc = cli_hook_attach(instance, req->dev, which, how);
		if (rc || !cli_hook_find(instance, req->dev, which, &hook))
			return rc ?: XSPD_FAILED;
	}
	if (hook.kind == CLI_HOOK_XDP_NATIVE)
		mode.flags &= ~XSPD_MODE_SECPATH;
	else if (req->mode & XSPD_MODE_BYPASS)
		return cli_fail("%s: bypass: only in native XDP, and it is attached in generic; "
				"'xspd detach %s --xdp' first",
				req->dev, req->dev);
	err = cli_mode_set(map, before->ifindex, which, &mode);
	return err ? cli_fail("%s: %s: mode: %s", req->dev, xspd_hook_name(which), strerror(-err))
		   : XSPD_DONE;
}

static void undo(const struct request *req, int map, enum xspd_hook which,
		 const struct before *before)
{
	struct cli_hook hook;

	if (!before->changed)
		return;
	if (!before->attached && cli_hook_find(req->common.instance, req->dev, which, &hook))
		cli_hook_detach(req->common.instance, &hook);
	cli_mode_set(map, before->ifindex, which, &before->mode);
}

/* Not what was asked for, but as good. */
static void tell_clsact(const struct request *req, enum xspd_hook which,
			const struct before *before)
{
	struct cli_hook hook;

	if (req->clsact || before->attached ||
	    !cli_hook_find(req->common.instance, req->dev, which, &hook) ||
	    hook.kind != CLI_HOOK_CLSACT)
		return;
	cli_notice("%s: %s: this kernel has no TCX, using clsact", req->dev, xspd_hook_name(which));
}

/* The daemon looks at the modes once a second, and then builds what steering needs. */
static int await_steer(const struct request *req, int jump)
{
	const struct timespec pause = {.tv_nsec = 20000000};
	uint32_t at = XSPD_JUMP_STEER_AT, prog;
	int rc = XSPD_DONE;

	for (int i = 0; !rc && bpf_map_lookup_elem(jump, &at, &prog) < 0; i++) {
		if (i == STEER_WAIT_S * 50)
			rc = cli_fail("%s: steer: the daemon has not loaded the program in %u s; "
				      "its log says why",
				      req->dev, STEER_WAIT_S);
		nanosleep(&pause, NULL);
	}
	return rc;
}

static int attach_steer(const struct request *req)
{
	xspd_autoclose int jump = cli_lasting_open(req->common.instance, "xspd_jump_tc");
	xspd_autoclose int act = cli_lasting_open(req->common.instance, "xspd_act");
	int err;

	if (jump < 0 || act < 0 || await_steer(req, jump))
		return XSPD_FAILED;
	/* now that the daemon has seen the mode, it leaves it there */
	err = xspd_if_id_store(jump, act);
	if (err == -EPERM)
		return cli_fail("%s: steer: needs CAP_SYS_ADMIN; run it as root", req->dev);
	if (err)
		return cli_fail("%s: steer: the program that sets if_ids cannot be loaded: %s",
				req->dev, strerror(-err));
	return XSPD_DONE;
}

/* All of them or none. */
static int attach_all(const struct request *req)
{
	struct before before[XSPD_HOOK_MAX_] = {};
	xspd_autoclose int map = cli_lasting_open(req->common.instance, "xspd_mode");
	int rc = map < 0 ? XSPD_FAILED : XSPD_DONE;

	for (int hook = 0; hook < XSPD_HOOK_MAX_ && !rc; hook++)
		if (req->hook[hook])
			rc = attach_one(req, map, hook, &before[hook]);
	if (!rc && req->mode & XSPD_MODE_STEER)
		rc = attach_steer(req);
	for (int hook = 0; hook < XSPD_HOOK_MAX_ && rc && map >= 0; hook++)
		undo(req, map, hook, &before[hook]);
	for (int hook = 0; hook < XSPD_HOOK_MAX_ && !rc; hook++)
		if (req->hook[hook])
			tell_clsact(req, hook, &before[hook]);
	return rc;
}

int attach_main(int argc, char **argv)
{
	struct request req = {};
	struct cli_view view;
	int rc = parse(&req, true, argc, argv);

	if (!rc && !req.common.help)
		rc = parse_mode(&req);
	if (rc || req.common.help)
		return rc;
	rc = cli_enter_netns(req.common.netns);
	if (!rc)
		rc = cli_view_open(&view, req.common.instance);
	if (rc)
		return rc;
	rc = check_netns(&view, req.dev);
	cli_view_close(&view);
	return rc ? rc : attach_all(&req);
}

static int detach_all(const struct request *req)
{
	bool any = req->hook[XSPD_HOOK_XDP] || req->hook[XSPD_HOOK_INGRESS] ||
		   req->hook[XSPD_HOOK_EGRESS];
	const char *instance = req->common.instance;
	struct cli_hook *hooks;
	size_t count, done = 0;
	int rc = XSPD_DONE;
	int err = cli_hook_list(instance, &hooks, &count);

	if (err)
		return cli_fail("instance %s: links: %s%s", instance, strerror(-err),
				cli_root_hint(err));
	for (size_t i = 0; i < count; i++) {
		if (strcmp(hooks[i].dev, req->dev) || (any && !req->hook[hooks[i].hook]))
			continue;
		done++;
		if (cli_hook_detach(instance, &hooks[i]))
			rc = XSPD_FAILED;
	}
	free(hooks);
	if (done)
		return rc;
	return cli_fail("%s: nothing attached there by instance %s; 'xspd status' lists what is",
			req->dev, instance);
}

/* Works without maps and without the device; only the entries are needed. */
int detach_main(int argc, char **argv)
{
	struct request req = {};
	int rc = parse(&req, false, argc, argv);

	if (rc || req.common.help)
		return rc;
	rc = cli_enter_netns(req.common.netns);
	return rc ? rc : detach_all(&req);
}
