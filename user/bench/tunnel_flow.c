// SPDX-License-Identifier: GPL-2.0-only
/* Traffic through a tunnel: requests and responses of our own, streams of iperf3. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <bpf/bpf.h>
#include <json-c/json.h>

#include "bench/tunnel.h"
#include "util.h"

extern char **environ;

#define PORT	 7
#define PATIENCE 5 /* seconds for an answer */
#define ATTEMPTS 20

/* --- requests and responses ------------------------------------------------------ */

static int udp_open(const struct xspd_tunnel *tunnel, enum xspd_tunnel_node node)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET, .sin_addr = tunnel->host, .sin_port = htons(PORT)};
	struct timeval patience = {.tv_sec = PATIENCE};
	int err = xspd_tunnel_enter(tunnel, node);
	int fd;

	if (err)
		return err;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (node == XSPD_TUNNEL_SERVER)
		err = bind(fd, (struct sockaddr *)&addr, sizeof(addr));
	else
		err = connect(fd, (struct sockaddr *)&addr, sizeof(addr));
	if (err < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

/* Sends back whatever comes, until an empty datagram does. */
static void *echo(void *ctx)
{
	int fd = *(int *)ctx;
	struct sockaddr_in from;
	char byte[16];

	for (;;) {
		socklen_t len = sizeof(from);
		ssize_t got = recvfrom(fd, byte, sizeof(byte), 0, (struct sockaddr *)&from, &len);

		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (got <= 0)
			return NULL;
		sendto(fd, byte, (size_t)got, 0, (struct sockaddr *)&from, len);
	}
}

/* One transaction; the first ones may be lost to neighbours that are not known yet. */
static int transact(int fd)
{
	char byte[16] = "x";

	if (send(fd, byte, 1, 0) < 0)
		return -errno;
	return recv(fd, byte, sizeof(byte), 0) < 0 ? -errno : 0;
}

static int ping(int fd, uint32_t ms, double *ret_per_s)
{
	uint64_t start, end, now;
	uint64_t count = 0;
	int err = -EBADE;

	for (int i = 0; i < ATTEMPTS && err; i++)
		err = transact(fd);
	start = xspd_now(CLOCK_MONOTONIC);
	end = start + (uint64_t)ms * 1000000;
	for (now = start; now < end && !err; now = xspd_now(CLOCK_MONOTONIC), count++)
		err = transact(fd);
	*ret_per_s = (double)count * 1e9 / (double)(now - start);
	return err ? -EBADE : 0;
}

int xspd_tunnel_rr(const struct xspd_tunnel *tunnel, uint32_t ms, double *ret_per_s)
{
	xspd_autoclose int server = udp_open(tunnel, XSPD_TUNNEL_SERVER);
	xspd_autoclose int client = server < 0 ? server : udp_open(tunnel, XSPD_TUNNEL_CLIENT);
	pthread_t thread;
	int err;

	if (client < 0)
		return client;
	err = -pthread_create(&thread, NULL, echo, &server);
	if (err)
		return err;
	err = ping(client, ms, ret_per_s);
	/* from its own namespace, where nothing is in the way */
	xspd_tunnel_enter(tunnel, XSPD_TUNNEL_SERVER);
	shutdown(server, SHUT_RD);
	pthread_join(thread, NULL);
	return err;
}

int xspd_tunnel_steer_ns(const struct xspd_tunnel *tunnel, uint32_t ms, double *ret_ns)
{
	xspd_autoclose int stats = bpf_enable_stats(BPF_STATS_RUN_TIME), prog = -1;
	struct bpf_prog_info before = {}, after = {};
	uint32_t len = sizeof(before);
	char path[128];
	double rate;
	int err;

	snprintf(path, sizeof(path), "/sys/fs/bpf/xspd/%s/v%u/xspd_tc_out",
		 tunnel->child[0].instance, XSPD_ABI_VERSION);
	prog = bpf_obj_get(path);
	if (stats < 0 || prog < 0 || bpf_obj_get_info_by_fd(prog, &before, &len) < 0)
		return -errno;
	err = xspd_tunnel_rr(tunnel, ms, &rate);
	if (err)
		return err;
	len = sizeof(after);
	if (bpf_obj_get_info_by_fd(prog, &after, &len) < 0)
		return -errno;
	if (after.run_cnt == before.run_cnt)
		return -EBADE;
	*ret_ns = (double)(after.run_time_ns - before.run_time_ns) /
		  (double)(after.run_cnt - before.run_cnt);
	return 0;
}

/* --- streams ---------------------------------------------------------------------- */

/* Run a command in the calling thread's namespace; its stdout, to be freed, or NULL with errno. */
static char *capture(char *const argv[])
{
	xspd_autoclose int fd = memfd_create("output", MFD_CLOEXEC);
	posix_spawn_file_actions_t actions;
	int err, status;
	off_t len;
	char *text;
	pid_t pid;

	if (fd < 0)
		return NULL;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fd, STDOUT_FILENO);
	err = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (err) {
		errno = err;
		return NULL;
	}
	if (waitpid(pid, &status, 0) < 0)
		return NULL;
	len = lseek(fd, 0, SEEK_END);
	text = calloc(1, (size_t)len + 1);
	if (text && pread(fd, text, (size_t)len, 0) != len) {
		free(text);
		return NULL;
	}
	return text;
}

/* A number below "end". */
static double number(struct json_object *report, const char *sum, const char *key)
{
	struct json_object *end, *of, *value;

	if (!json_object_object_get_ex(report, "end", &end) ||
	    !json_object_object_get_ex(end, sum, &of) ||
	    !json_object_object_get_ex(of, key, &value))
		return 0;
	return json_object_get_double(value);
}

int xspd_tunnel_stream(const struct xspd_tunnel *tunnel, bool udp, double *ret_per_s)
{
	char host[INET_ADDRSTRLEN];
	char *argv[] = {"iperf3",	   "-c", host, "-J", "-t",   "1",
			udp ? "-u" : NULL, "-b", "0",  "-l", "1000", NULL};
	xspd_autofree char *text = NULL;
	struct json_object *report;
	double got = 0;
	int err;

	inet_ntop(AF_INET, &tunnel->host, host, sizeof(host));
	for (int i = 0; i < ATTEMPTS && got <= 0; i++) {
		err = xspd_tunnel_enter(tunnel, XSPD_TUNNEL_CLIENT);
		if (err)
			return err;
		free(text);
		text = capture(argv);
		if (!text)
			return -errno;
		report = json_tokener_parse(text);
		if (udp)
			got = (number(report, "sum", "packets") -
			       number(report, "sum", "lost_packets")) /
			      (number(report, "sum", "seconds") ?: 1);
		else
			got = number(report, "sum_received", "bits_per_second");
		json_object_put(report);
		/* its server may not listen yet, or not have done with the last one */
		if (got <= 0)
			nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
	}
	*ret_per_s = got;
	return got > 0 ? 0 : -EBADE;
}
