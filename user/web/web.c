// SPDX-License-Identifier: GPL-2.0-only
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "util.h"
#include "web/mhd.h"
#include "web/web.h"

#define CONNECTIONS 16
#define TIMEOUT_S   3 /* of silence: others wait for the place, Prometheus 10 s */
#define BACKLOG	    16
#define NICE	    10 /* the mirror comes first */

static const struct xspd_mhd *mhd; /* by who listens */

struct xspd_web {
	struct MHD_Daemon *mhd;
	char *instance;
	char *path; /* of a unix socket */
	uint32_t top;
};

static int listen_unix(const char *path, int *ret_fd)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	xspd_autoclose int fd = -1;
	struct stat st;

	if (!*path || strlen(path) >= sizeof(addr.sun_path))
		return -EINVAL;
	strcpy(addr.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/* of a former run; a living one still answers */
	if (!lstat(path, &st) && S_ISSOCK(st.st_mode)) {
		if (!connect(fd, (struct sockaddr *)&addr, sizeof(addr)) || errno != ECONNREFUSED)
			return -EADDRINUSE;
		unlink(path);
	}
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	*ret_fd = xspd_take_fd(&fd);
	return 0;
}

/* "9100", "10.0.0.1:9100", "[::1]:9100" */
static int split(const char *where, char *host, size_t size, const char **port)
{
	const char *colon = strrchr(where, ':');
	size_t len = colon ? (size_t)(colon - where) : 0;

	*port = colon ? colon + 1 : where;
	if (len > 1 && where[0] == '[' && where[len - 1] == ']') {
		where++;
		len -= 2;
	} else if (colon && memchr(where, ':', len)) {
		return -EINVAL;
	}
	if (len >= size || (colon && !len) || !**port || (*port)[strspn(*port, "0123456789")] ||
	    strlen(*port) > 5 || atoi(*port) > 65535)
		return -EINVAL;
	snprintf(host, size, "%.*s", (int)len, where);
	if (!colon)
		snprintf(host, size, "127.0.0.1");
	return 0;
}

static int listen_inet(const char *where, int *ret_fd)
{
	const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
				       .ai_socktype = SOCK_STREAM};
	xspd_autoclose int fd = -1;
	const char *port;
	struct addrinfo *addr;
	char host[64];
	int one = 1, err = split(where, host, sizeof(host), &port);

	if (err)
		return err;
	if (getaddrinfo(host, port, &hints, &addr))
		return -EINVAL;
	fd = socket(addr->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	    bind(fd, addr->ai_addr, addr->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0)
		err = -errno;
	freeaddrinfo(addr);
	if (!err)
		*ret_fd = xspd_take_fd(&fd);
	return err;
}

int xspd_web_listen(const char *where, int *ret_fd)
{
	mhd = xspd_mhd_load();
	if (!mhd)
		return -ELIBACC;
	if (!strncmp(where, "unix:", 5))
		return listen_unix(where + 5, ret_fd);
	return listen_inet(where, ret_fd);
}

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned int code,
			      const char *type, char *text, size_t size)
{
	struct MHD_Response *response =
		mhd->create_response_from_buffer(size, text, MHD_RESPMEM_MUST_FREE);
	enum MHD_Result rc;

	if (!response) {
		free(text);
		return MHD_NO;
	}
	mhd->add_response_header(response, "Content-Type", type);
	mhd->add_response_header(response, "Cache-Control", "no-store");
	mhd->add_response_header(response, "X-Content-Type-Options", "nosniff");
	mhd->add_response_header(response, "Content-Security-Policy",
				 "default-src 'none'; style-src 'unsafe-inline'");
	if (code == MHD_HTTP_METHOD_NOT_ALLOWED)
		mhd->add_response_header(response, "Allow", "GET, HEAD");
	rc = mhd->queue_response(connection, code, response);
	mhd->destroy_response(response);
	return rc;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned int code, const char *why)
{
	char *text = NULL;
	int len = asprintf(&text, "xspd: %s\n", why);

	return len < 0 ? MHD_NO
		       : answer(connection, code, "text/plain; charset=utf-8", text, (size_t)len);
}

static enum MHD_Result serve(const struct xspd_web *web, struct MHD_Connection *connection,
			     bool metrics)
{
	const char *accept = mhd->lookup_connection_value(connection, MHD_HEADER_KIND, "Accept");
	bool open = accept && strstr(accept, "application/openmetrics-text");
	struct cli_gather gather;
	char *text = NULL;
	size_t size;
	FILE *out;
	int err = cli_gather(&gather, web->instance);

	if (err)
		return refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, strerror(-err));
	out = open_memstream(&text, &size);
	if (out && metrics)
		xspd_web_metrics(out, &gather, web->top, open);
	else if (out)
		xspd_web_page(out, &gather, web->instance, web->top);
	cli_gather_free(&gather);
	if (!out || fclose(out)) {
		free(text);
		return refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory");
	}
	if (!metrics)
		return answer(connection, MHD_HTTP_OK, "text/html; charset=utf-8", text, size);
	return answer(connection, MHD_HTTP_OK,
		      open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
			   : "text/plain; version=0.0.4; charset=utf-8",
		      text, size);
}

static enum MHD_Result handle(void *ctx, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *upload,
			      size_t *upload_size, void **request)
{
	static _Thread_local bool nice;
	static int seen;

	if (!nice) /* this thread alone */
		setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
	nice = true;

	(void)version;
	(void)upload;
	if (!*request) { /* the headers only: the answer waits for the rest, a refusal does not */
		*request = &seen;
		if (strcmp(method, "GET") && strcmp(method, "HEAD"))
			return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "read-only");
		return MHD_YES;
	}
	if (*upload_size) {
		*upload_size = 0;
		return MHD_YES;
	}
	if (!strcmp(url, "/metrics"))
		return serve(ctx, connection, true);
	if (!strcmp(url, "/"))
		return serve(ctx, connection, false);
	return refuse(connection, MHD_HTTP_NOT_FOUND, "there are / and /metrics");
}

static char *socket_path(int fd)
{
	struct sockaddr_un addr = {};
	socklen_t len = sizeof(addr);

	if (getsockname(fd, (struct sockaddr *)&addr, &len) < 0 || addr.sun_family != AF_UNIX)
		return NULL;
	return strndup(addr.sun_path, sizeof(addr.sun_path));
}

int xspd_web_start(struct xspd_web **ret, int fd, const char *instance, uint32_t top)
{
	struct xspd_web *web = calloc(1, sizeof(*web));
	sigset_t all, old;

	if (!web)
		return -ENOMEM;
	web->instance = strdup(instance);
	web->path = socket_path(fd);
	web->top = top;
	/* signals belong to the event loop */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (web->instance)
		web->mhd = mhd->start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL, 0,
					     NULL, NULL, handle, web, MHD_OPTION_LISTEN_SOCKET, fd,
					     MHD_OPTION_CONNECTION_LIMIT, (unsigned int)CONNECTIONS,
					     MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)TIMEOUT_S,
					     MHD_OPTION_END);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!web->mhd) {
		close(fd);
		free(web->path);
		free(web->instance);
		free(web);
		return -ENOMEM;
	}
	*ret = web;
	return 0;
}

void xspd_web_stop(struct xspd_web *web)
{
	if (!web)
		return;
	mhd->stop_daemon(web->mhd);
	if (web->path)
		unlink(web->path);
	free(web->path);
	free(web->instance);
	free(web);
}
