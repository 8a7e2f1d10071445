// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "daemon/notify.h"
#include "reason.h"
#include "util.h"

#define STATUS_EVERY 1000000000ull
#define NS_PER_MS    1000000

/* A path, or with '@' an abstract name. */
static int reach(const char *name)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	xspd_autoclose int fd = -1;
	size_t len = strlen(name);

	if ((name[0] != '/' && name[0] != '@') || len < 2)
		return -EAFNOSUPPORT;
	if (len >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(addr.sun_path, name, len);
	if (name[0] == '@')
		addr.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	len += offsetof(struct sockaddr_un, sun_path) + (name[0] == '/');
	if (connect(fd, (const struct sockaddr *)&addr, (socklen_t)len) < 0)
		return -errno;
	return xspd_take_fd(&fd);
}

/* Twice in the time allowed, if it is us who are watched. */
static uint64_t watchdog_interval(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");

	if (!usec || (pid && strtol(pid, NULL, 10) != getpid()))
		return 0;
	return strtoull(usec, NULL, 10) * 1000 / 2;
}

int xspd_notify_open(struct xspd_notify *ret)
{
	const char *name = getenv("NOTIFY_SOCKET");
	int err = 0;

	*ret = (struct xspd_notify){.fd = -1};
	if (name && *name) {
		ret->fd = reach(name);
		err = ret->fd < 0 ? ret->fd : 0;
		ret->watchdog = watchdog_interval();
	}
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	return err;
}

/* A manager that does not listen is not worth waiting for; false: say it again. */
static bool say(const struct xspd_notify *notify, const char *text)
{
	return send(notify->fd, text, strlen(text), MSG_NOSIGNAL) >= 0 || errno != EAGAIN;
}

void xspd_notify_close(struct xspd_notify *notify)
{
	if (notify->fd < 0)
		return;
	say(notify, "STOPPING=1");
	xspd_closep(&notify->fd);
}

static void describe(char *buf, size_t size, struct xspd_daemon *d)
{
	const struct xspd_conf *conf = xspd_plane_conf(d->plane);
	int len = snprintf(buf, size, "STATUS=%s %u policies", d->ready ? "Mirroring" : "Reading",
			   conf->policies);

	for (uint32_t bit = 1, any = 0; bit <= XSPD_DOUBT_STOPPED; bit <<= 1)
		if (conf->doubt & bit && len < (int)size)
			len += snprintf(
				buf + len, size - (size_t)len, "%s%s",
				any++ ? ", " : "; the kernel decides: ", xspd_doubt_name(bit));
}

static void tell_status(struct xspd_notify *notify, struct xspd_daemon *d, uint64_t now)
{
	char text[sizeof(notify->status) + 16], status[sizeof(notify->status)];
	bool ready = d->ready && !notify->ready;

	if (!ready && now < notify->status_at)
		return;
	notify->status_at = now + STATUS_EVERY;
	describe(status, sizeof(status), d);
	if (!ready && !strcmp(status, notify->status))
		return;
	snprintf(text, sizeof(text), "%s%s", ready ? "READY=1\n" : "", status);
	if (!say(notify, text))
		return;
	notify->ready |= ready;
	memcpy(notify->status, status, sizeof(status));
}

void xspd_notify_tell(struct xspd_notify *notify, struct xspd_daemon *d)
{
	uint64_t now;

	if (notify->fd < 0)
		return;
	now = xspd_mono();
	tell_status(notify, d, now);
	if (notify->watchdog && now >= notify->watchdog_at && say(notify, "WATCHDOG=1"))
		notify->watchdog_at = now + notify->watchdog;
}

int xspd_notify_wait(const struct xspd_notify *notify)
{
	uint64_t ms = notify->watchdog / NS_PER_MS;

	if (notify->fd < 0 || !notify->watchdog)
		return -1;
	return ms < 1 ? 1 : ms > 60000 ? 60000 : (int)ms;
}
