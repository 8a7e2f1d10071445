// SPDX-License-Identifier: GPL-2.0-only
/* xspd run: set the stage for the daemon, and turn until told to stop. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/vfs.h>
#include <linux/magic.h>

#include "cli/cli.h"
#include "cli/view.h"
#include "daemon/daemon.h"
#include "daemon/log.h"
#include "daemon/notify.h"
#include "util.h"
#include "web/web.h"

#define BPFFS	      "/sys/fs/bpf"
#define CAPACITY_MOST (1u << 24)
#define IFIDS	      3000 /* policies with if_ids to be ready for: a thousand tunnels */
#define LEASE_MIN_MS  100
#define LEASE_MOST_MS 60000
#define CACHE_LEAST   64
#define CACHE_MOST    (1u << 20)
#define RCVBUF_LEAST  4096
#define RCVBUF_MOST   (1u << 30)
#define TOP	      20
#define TOP_MOST      10000
#define SAMPLES	      32 /* a second and CPU */
#define SAMPLES_MOST  1000

/* As tc and libbpf do: a machine without systemd may have it not mounted. */
static int mount_bpffs(void)
{
	struct statfs fs;

	if (statfs(BPFFS, &fs) == 0 && (uint32_t)fs.f_type == BPF_FS_MAGIC)
		return XSPD_DONE;
	if (mount("bpf", BPFFS, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700") < 0)
		return cli_fail("%s: mount bpffs: %s%s", BPFFS, strerror(errno),
				errno == EPERM ? "; run as root, or mount it before" : "");
	cli_notice("%s: mounted bpffs there", BPFFS);
	return XSPD_DONE;
}

/* Kernels before 5.11 charge maps to this limit. */
static void raise_memlock(void)
{
	struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};

	setrlimit(RLIMIT_MEMLOCK, &all);
}

static int open_signals(void)
{
	sigset_t mask;
	int fd;

	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	if (sigprocmask(SIG_BLOCK, &mask, NULL) < 0)
		return -errno;
	fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static int explain(const char *instance, const char *pin, int err)
{
	switch (-err) {
	case EBUSY:
		return cli_fail("run: instance %s: another 'xspd run' holds %s; stop it, or give "
				"--instance another name",
				instance, pin);
	case ENOMEM:
	case E2BIG:
	case EAGAIN: /* no thread */
		return cli_fail("run: instance %s: out of memory; give --capacity a lower number, "
				"or the process more",
				instance);
	case EROFS:
		return cli_fail("run: instance %s: %s is read-only; mount bpffs there writable",
				instance, BPFFS);
	case EPERM:
	case EACCES:
		return cli_fail("run: instance %s: not permitted; run as root, or as one with "
				"CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON who owns the pins",
				instance);
	case EPROTONOSUPPORT:
		return cli_fail("run: this kernel has no XFRM (CONFIG_XFRM_USER)");
	case EOPNOTSUPP:
		return cli_fail("run: this kernel cannot load the programs; Linux 5.15 with BTF "
				"or later is needed");
	default:
		return cli_fail("run: instance %s: %s", instance, strerror(-err));
	}
}

static int turn_until_told(struct xspd_daemon *daemon, struct xspd_notify *notify, int signals)
{
	int rc;

	do {
		xspd_notify_tell(notify, daemon);
		rc = xspd_daemon_turn(daemon, xspd_notify_wait(notify), signals);
	} while (!rc);
	return rc < 0 ? cli_fail("run: poll: %s", strerror(-rc)) : XSPD_DONE;
}

/* --metrics and --top */
struct web {
	const char *where; /* NULL: not wanted */
	uint32_t top;
	int fd;
	struct xspd_web *server;
};

static int web_listen(struct web *web)
{
	int err = web->where ? xspd_web_listen(web->where, &web->fd) : 0;

	if (err == -EINVAL)
		return cli_usage("run: --metrics %s: give [ADDR:]PORT, or unix:PATH", web->where);
	if (err)
		return cli_fail("run: --metrics %s: %s%s", web->where, strerror(-err),
				err == -EADDRINUSE ? "; give another port or path"
				: err == -ELIBACC  ? "; install libmicrohttpd"
						   : "");
	return XSPD_DONE;
}

static int web_start(struct web *web, const char *instance)
{
	int err = web->where ? xspd_web_start(&web->server, web->fd, instance, web->top) : 0;

	return err ? cli_fail("run: --metrics %s: %s", web->where, strerror(-err)) : XSPD_DONE;
}

static int run(const char *instance, struct xspd_notify *notify, struct web *web,
	       struct xspd_daemon_opts *opts)
{
	xspd_autoclose int signals = open_signals();
	struct xspd_daemon *daemon;
	char pin[160];
	int err, rc;

	if (signals < 0)
		return cli_fail("run: signals: %s", strerror(-signals));
	cli_pin_path(pin, sizeof(pin), instance, NULL);
	opts->plane.pin = pin;
	err = xspd_daemon_new(&daemon, opts);
	if (err)
		return explain(instance, pin, err);
	if (daemon->ready)
		xspd_log("%s: mirroring %u policies, pins in %s", instance,
			 (unsigned int)HASH_COUNT(daemon->spd->by_index), pin);
	if (xspd_plane_left_alone(daemon->plane))
		xspd_log("%s: pins of another version beside %s are in use or not understood: left "
			 "alone; stop their 'xspd run' and start this one again",
			 instance, pin);
	rc = web_start(web, instance);
	if (!rc)
		rc = turn_until_told(daemon, notify, signals);
	xspd_web_stop(web->server);
	xspd_notify_close(notify);
	xspd_log("%s: stopped; what is attached stays, and leaves every packet to the kernel",
		 instance);
	xspd_daemon_free(daemon);
	return rc;
}

/* "off", or entries a CPU: the place in it is cut out of a hash. */
static int parse_cache(const char *text, uint32_t *ret)
{
	*ret = text ? 0 : XSPD_CACHE_DEFAULT;
	if (!text || !strcmp(text, "off"))
		return XSPD_DONE;
	if (cli_number(text, CACHE_MOST, ret) && *ret >= CACHE_LEAST && !(*ret & (*ret - 1)))
		return XSPD_DONE;
	return cli_usage("run: --cache %s: give 'off', or a power of two from %u to %u", text,
			 CACHE_LEAST, CACHE_MOST);
}

int run_main(int argc, char **argv)
{
	struct cli_common common = {};
	struct xspd_daemon_opts opts = {.plane = {.samples = SAMPLES, .ifids = IFIDS}};
	struct xspd_notify notify;
	struct web web = {.fd = -1, .top = TOP};
	const char *cache = NULL;
	uint32_t rcvbuf = 0;
	const struct cli_option options[] = {
		{"lease", CLI_NUMBER, &opts.plane.lease_ms, LEASE_MIN_MS, LEASE_MOST_MS},
		{"capacity", CLI_NUMBER, &opts.plane.capacity, 1, CAPACITY_MOST},
		{"cache", CLI_STRING, &cache},
		{"rcvbuf", CLI_NUMBER, &rcvbuf, RCVBUF_LEAST, RCVBUF_MOST},
		{"samples", CLI_NUMBER, &opts.plane.samples, 0, SAMPLES_MOST},
		{"metrics", CLI_STRING, &web.where},
		{"top", CLI_NUMBER, &web.top, 1, TOP_MOST},
		{},
	};
	int rc = cli_parse(&common, options, &argc, &argv), err;

	if (rc || common.help)
		return rc;
	if (argc)
		return cli_usage("run: takes no words, not '%s'", argv[0]);
	rc = parse_cache(cache, &opts.plane.cache);
	if (rc)
		return rc;
	err = xspd_notify_open(&notify); /* abstract names are of the namespace we are in now */
	if (err)
		xspd_log("NOTIFY_SOCKET: %s, ignoring", strerror(-err));
	rc = web_listen(&web); /* where we were started, not in the namespace that is mirrored */
	if (!rc)
		rc = cli_enter_netns(common.netns);
	if (!rc)
		rc = mount_bpffs();
	if (rc)
		return rc;
	raise_memlock();
	opts.rcvbuf = (int)rcvbuf;
	return run(common.instance, &notify, &web, &opts);
}
