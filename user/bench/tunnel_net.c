// SPDX-License-Identifier: GPL-2.0-only
/* The four namespaces of the tunnel benchmark. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

#include "bench/path.h"
#include "bench/tunnel.h"
#include "util.h"

extern char **environ;

#define READY_S 120 /* emulated machines take their time */

static const char *const names[XSPD_TUNNEL_WAYS] = {
	[XSPD_TUNNEL_PLAIN] = "plain", [XSPD_TUNNEL_POLICY] = "policy",
	[XSPD_TUNNEL_MARKS] = "marks", [XSPD_TUNNEL_INTERFACES] = "interfaces",
	[XSPD_TUNNEL_STEER] = "steer",
};

const char *xspd_tunnel_name(enum xspd_tunnel_way way)
{
	return names[way];
}

int xspd_tunnel_enter(const struct xspd_tunnel *tunnel, enum xspd_tunnel_node node)
{
	return setns(tunnel->netns[node], CLONE_NEWNET) < 0 ? -errno : 0;
}

static int run(char *const argv[])
{
	return xspd_path_run(argv, "");
}

static int batch(const char *text)
{
	return xspd_path_run((char *[]){"ip", "-batch", "-", NULL}, text);
}

static int forward(void)
{
	xspd_autoclose int fd = open("/proc/sys/net/ipv4/ip_forward", O_WRONLY | O_CLOEXEC);

	return fd < 0 || write(fd, "1", 1) < 0 ? -errno : 0;
}

/* @n of @nodes: its device @dev, whose other end @peer is in the next namespace. */
static int make_link(const struct xspd_tunnel *tunnel, enum xspd_tunnel_node node, const char *dev,
		     const char *peer)
{
	char text[256];
	int err = xspd_tunnel_enter(tunnel, node);

	snprintf(text, sizeof(text), "link add %s up type veth peer name %s netns /proc/%d/fd/%d\n",
		 dev, peer, (int)getpid(), tunnel->netns[node + 1]);
	return err ?: batch(text);
}

static int make_links(struct xspd_tunnel *tunnel)
{
	for (int i = 0; i < XSPD_TUNNEL_NODES; i++) {
		if (unshare(CLONE_NEWNET) < 0)
			return -errno;
		tunnel->netns[i] = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
		if (tunnel->netns[i] < 0)
			return -errno;
	}
	return make_link(tunnel, XSPD_TUNNEL_CLIENT, "eth0", "lan") ?:
	       make_link(tunnel, XSPD_TUNNEL_GW1, "wan", "wan") ?:
	       make_link(tunnel, XSPD_TUNNEL_GW2, "lan", "eth0");
}

static int make_addresses(const struct xspd_tunnel *tunnel)
{
	char text[512], host[INET_ADDRSTRLEN];
	int err;

	inet_ntop(AF_INET, &tunnel->host, host, sizeof(host));
	err = xspd_tunnel_enter(tunnel, XSPD_TUNNEL_CLIENT);
	err = err
		      ?: batch("address add 10.1.0.2/24 dev eth0\nlink set lo up\n"
			       "route add default via 10.1.0.1\n");
	err = err ?: xspd_tunnel_enter(tunnel, XSPD_TUNNEL_GW1);
	err = err
		      ?: batch("link set lan up\nlink set lo up\naddress add 10.1.0.1/24 dev lan\n"
			       "address add 192.0.2.1/24 dev wan\n");
	err = err ?: forward();
	err = err ?: xspd_tunnel_enter(tunnel, XSPD_TUNNEL_GW2);
	err = err
		      ?: batch("link set wan up\nlink set lo up\naddress add 192.0.2.2/24 dev wan\n"
			       "address add 10.3.0.1/24 dev lan\nroute add 10.128.0.0/9 via "
			       "10.3.0.2\n");
	err = err ?: forward();
	err = err ?: xspd_tunnel_enter(tunnel, XSPD_TUNNEL_SERVER);
	snprintf(text, sizeof(text),
		 "address add 10.3.0.2/24 dev eth0\nlink set eth0 up\nlink set lo up\n"
		 "route add default via 10.3.0.1\naddress add %s/32 dev lo\n",
		 host);
	return err ?: batch(text);
}

static int make_interfaces(uint32_t tunnels)
{
	xspd_autofree char *text = malloc((size_t)tunnels * 80 + 1);
	size_t n = 0;

	if (!text)
		return -ENOMEM;
	for (uint32_t i = 1; i <= tunnels; i++)
		n += (size_t)sprintf(text + n, "link add x%u up type xfrm dev wan if_id %u\n", i,
				     i);
	return batch(text);
}

/* The mark that VTI would set for this tunnel. */
static int make_mark(uint32_t mark)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", mark);
	return run((char *[]){"tc", "qdisc", "add", "dev", "lan", "clsact", NULL})
		       ?: run((char *[]){"tc", "filter", "add", "dev", "lan", "ingress", "matchall",
					 "action", "skbedit", "mark", text, NULL});
}

/* Of one gateway: how its packets get to the last tunnel. */
static int make_way(const struct xspd_tunnel *tunnel, bool first)
{
	const char *net = first ? "10.128.0.0/9" : "10.1.0.0/24";
	char text[128];
	int err = 0;

	switch (tunnel->way) {
	case XSPD_TUNNEL_INTERFACES:
		err = make_interfaces(tunnel->tunnels);
		snprintf(text, sizeof(text), "route add %s dev x%u\n", net, tunnel->tunnels);
		break;
	case XSPD_TUNNEL_STEER:
		snprintf(text, sizeof(text),
			 "link add ipsec0 up type xfrm external\nroute add %s dev ipsec0\n", net);
		break;
	case XSPD_TUNNEL_MARKS:
		err = make_mark(tunnel->tunnels);
		/* fallthrough */
	default:
		snprintf(text, sizeof(text), "route add %s via 192.0.2.%d\n", net, first ? 2 : 1);
	}
	return err ?: batch(text);
}

static int attach(const struct xspd_child *child)
{
	return run((char *[]){"/proc/self/exe", "attach", "ipsec0", "--egress", "--mode", "steer",
			      "--instance", (char *)child->instance, NULL});
}

static int make_gateway(struct xspd_tunnel *tunnel, bool first, const char **ret_what)
{
	struct xspd_child *child = &tunnel->child[!first];
	double ns;
	int err = xspd_tunnel_enter(tunnel, first ? XSPD_TUNNEL_GW1 : XSPD_TUNNEL_GW2);

	*ret_what = "devices and routes of a gateway";
	err = err ?: make_way(tunnel, first);
	if (err)
		return err;
	*ret_what = "SAs and policies";
	err = xspd_tunnel_fill(tunnel->way, tunnel->tunnels, first);
	if (err || tunnel->way != XSPD_TUNNEL_STEER)
		return err;
	*ret_what = "xspd run";
	err = xspd_child_start(child);
	err = err ?: xspd_child_await(child, 2 * tunnel->tunnels, READY_S, &ns);
	*ret_what = "xspd attach";
	return err ?: attach(child);
}

static int serve(struct xspd_tunnel *tunnel)
{
	char host[INET_ADDRSTRLEN];
	char *argv[] = {"iperf3", "-s", "-B", host, NULL}; /* its answers come from there */
	posix_spawn_file_actions_t actions;
	int err = xspd_tunnel_enter(tunnel, XSPD_TUNNEL_SERVER);

	if (err)
		return err;
	inet_ntop(AF_INET, &tunnel->host, host, sizeof(host));
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	err = posix_spawnp(&tunnel->iperf, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (err)
		tunnel->iperf = 0;
	return -err;
}

int xspd_tunnel_new(struct xspd_tunnel *tunnel, enum xspd_tunnel_way way, uint32_t tunnels,
		    bool streams, const char **ret_what)
{
	uint64_t start = xspd_now(CLOCK_MONOTONIC);
	int err;

	*tunnel = (struct xspd_tunnel){.way = way, .tunnels = tunnels, .netns = {-1, -1, -1, -1}};
	tunnel->host.s_addr = htonl(0x0a800002 + (tunnels << 8));
	*ret_what = "network namespaces";
	err = make_links(tunnel);
	err = err ?: make_addresses(tunnel);
	err = err ?: make_gateway(tunnel, true, ret_what);
	err = err ?: make_gateway(tunnel, false, ret_what);
	if (!err && streams) {
		*ret_what = "iperf3 -s";
		err = serve(tunnel);
	}
	tunnel->setup_s = (double)(xspd_now(CLOCK_MONOTONIC) - start) / 1e9;
	if (err)
		xspd_tunnel_free(tunnel);
	return err;
}

void xspd_tunnel_free(struct xspd_tunnel *tunnel)
{
	for (int i = 0; i < 2; i++)
		if (tunnel->child[i].pid)
			xspd_child_stop(&tunnel->child[i]);
	if (tunnel->iperf) {
		kill(tunnel->iperf, SIGTERM);
		waitpid(tunnel->iperf, NULL, 0);
	}
	for (int i = 0; i < XSPD_TUNNEL_NODES; i++)
		xspd_closep(&tunnel->netns[i]);
	*tunnel = (struct xspd_tunnel){.netns = {-1, -1, -1, -1}};
}
