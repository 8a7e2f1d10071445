// SPDX-License-Identifier: GPL-2.0-only
/* xspd attach | detach: put the classifier on a device, take it off. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/hook.h"
#include "cli/view.h"
#include "reason.h"
#include "util.h"

struct request {
	struct cli_common common;
	const char *dev;
	bool hook[XSPD_HOOK_MAX_];
	bool clsact;
};

static int parse(struct request *req, bool attaching, int argc, char **argv)
{
	const char *command = argv[0];
	const struct cli_option options[] = {
		{"xdp", CLI_FLAG, &req->hook[XSPD_HOOK_XDP]},
		{"ingress", CLI_FLAG, &req->hook[XSPD_HOOK_INGRESS]},
		{"egress", CLI_FLAG, &req->hook[XSPD_HOOK_EGRESS]},
		{attaching ? "clsact" : NULL, CLI_FLAG, &req->clsact},
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

/* All of them or none. */
static int attach_all(const struct request *req)
{
	const char *instance = req->common.instance;
	int rc = XSPD_DONE, hook;

	for (hook = 0; hook < XSPD_HOOK_MAX_ && !rc; hook++)
		if (req->hook[hook])
			rc = cli_hook_attach(instance, req->dev, hook, req->clsact);
	if (!rc)
		return rc;
	for (hook -= 2; hook >= 0; hook--) {
		struct cli_hook *hooks;
		size_t count;

		if (!req->hook[hook] || cli_hook_list(instance, &hooks, &count))
			continue;
		for (size_t i = 0; i < count; i++)
			if (!strcmp(hooks[i].dev, req->dev) && (int)hooks[i].hook == hook)
				cli_hook_detach(instance, &hooks[i]);
		free(hooks);
	}
	return rc;
}

int attach_main(int argc, char **argv)
{
	struct request req = {};
	struct cli_view view;
	int rc = parse(&req, true, argc, argv);

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
				err == -EPERM || err == -EACCES ? "; run as root" : "");
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
