// SPDX-License-Identifier: GPL-2.0-only
/* What the modes depend on beside the policies: netfilter, sysctls, and that their devices exist.
 */
#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <bpf/bpf.h>

#include "daemon/daemon.h"
#include "daemon/env.h"
#include "daemon/log.h"
#include "nl/netfilter.h"
#include "nl/route.h"
#include "plane/steer.h"
#include "util.h"

#define LINGER_READ 10000000ull /* ns */

static void log_change(const struct xspd_env_found *found, uint32_t was, int err)
{
	if (err)
		xspd_log("surroundings: %s: taken to be in the way", strerror(-err));
	if (found->bits == was)
		return;
	if (!found->bits)
		xspd_log("surroundings: nothing keeps enforce and bypass from acting any more");
	else
		xspd_log("surroundings: enforce or bypass are kept from acting by: %s%s%s",
			 found->names, *found->names && *found->sysctl ? ", " : "", found->sysctl);
}

/* The number may come again with another device, which nobody has set a mode for. */
static void modes_prune(int map)
{
	struct xspd_mode_key key, next;
	bool more = bpf_map_get_next_key(map, NULL, &next) == 0;
	char name[IF_NAMESIZE];

	while (more) {
		key = next;
		more = bpf_map_get_next_key(map, &key, &next) == 0;
		if (!if_indextoname(key.ifindex, name) && errno == ENXIO)
			bpf_map_delete_elem(map, &key);
	}
}

/* The longest that any guard asks for: of all of them the policies are the same. */
static uint32_t linger_longest(int map)
{
	struct xspd_mode_key key, next;
	uint32_t longest = 0;
	bool more = bpf_map_get_next_key(map, NULL, &next) == 0;

	while (more) {
		struct xspd_mode mode;

		key = next;
		more = bpf_map_get_next_key(map, &key, &next) == 0;
		if (!bpf_map_lookup_elem(map, &key, &mode) && mode.flags & XSPD_MODE_GUARD &&
		    mode.linger > longest)
			longest = mode.linger;
	}
	return longest;
}

void xspd_daemon_linger(struct xspd_daemon *d)
{
	uint64_t now = xspd_mono();

	/* not for each of many deletions */
	if (now - d->linger_read < LINGER_READ)
		return;
	d->linger_read = now;
	d->linger = linger_longest(xspd_plane_map_fd(d->plane, "xspd_mode"));
	xspd_plane_linger(d->plane, d->linger);
}

/* Read as a whole only when a route that matters came or went: there may be very many. */
void xspd_daemon_routes(struct xspd_daemon *d)
{
	/* not known: nothing is short enough */
	struct xspd_routes routes = {.mtu = 1, .many = true, .rules = XSPD_RULES_TUNNEL};
	int err;

	if (d->routes < 0)
		d->routes = xspd_route_watch();
	else if (xspd_route_watched(d->routes))
		d->routes_known = false;
	if (d->routes_known)
		return;
	err = xspd_routes_scan(&routes);
	if (err)
		xspd_log("routes: %s: nothing is bypassed", strerror(-err));
	xspd_plane_routes(d->plane, routes.mtu, routes.many, routes.rules);
	d->routes_known = !err && d->routes >= 0;
}

static bool modes_steer(int map)
{
	struct xspd_mode_key key, next;
	struct xspd_mode mode;
	bool more = bpf_map_get_next_key(map, NULL, &next) == 0;

	while (more) {
		key = next;
		if (!bpf_map_lookup_elem(map, &key, &mode) && mode.flags & XSPD_MODE_STEER)
			return true;
		more = bpf_map_get_next_key(map, &key, &next) == 0;
	}
	return false;
}

/* The policies over all if_ids cost memory, and the program its module: only while they are used.
 */
static void steer_keep(struct xspd_daemon *d)
{
	bool wanted = modes_steer(xspd_plane_map_fd(d->plane, "xspd_mode"));
	int err = 0;

	if (wanted != d->steer)
		err = xspd_plane_steer(d->plane, d->spd, wanted);
	d->steer = wanted;
	if (err)
		xspd_daemon_rebuild_later(d, err);
	/* the set in service goes on until there is one to replace it */
	else if (d->ready && !d->rebuild && xspd_plane_steer_due(d->plane) &&
		 xspd_plane_prepare(d->plane, d->spd))
		xspd_daemon_rebuild(d);
	else if (!wanted && d->ready && !xspd_plane_steer_due(d->plane))
		/* nobody steers; who is about to waits for our program before storing this one */
		xspd_if_id_drop(xspd_plane_map_fd(d->plane, "xspd_jump_tc"));
	if (!wanted || !d->ready || d->steer_told || xspd_plane_steer_due(d->plane))
		return;
	err = xspd_plane_steers(d->plane);
	if (err)
		xspd_log("steer: the program cannot be loaded: %s", strerror(-err));
	d->steer_told = err != 0;
}

int xspd_daemon_look(struct xspd_daemon *d)
{
	struct xspd_env_found found;
	int err;

	/* watch before looking: a change is seen by one of them; without nf_tables, perhaps later
	 */
	if (d->netfilter < 0)
		d->netfilter = xspd_nf_watch();
	else
		xspd_nf_watched(d->netfilter);
	err = xspd_env_scan(&found, UINT32_MAX);
	if (err == -ENOMEM && !d->ready)
		return err; /* the start fails, and says why */
	xspd_plane_env(d->plane, found.bits);
	log_change(&found, d->env, err);
	xspd_daemon_routes(d);
	d->env = found.bits;
	modes_prune(xspd_plane_map_fd(d->plane, "xspd_mode"));
	steer_keep(d);
	xspd_daemon_linger(d);
	/* now, and not when they are deleted: nothing is answered while a set is built */
	if (d->ready && !d->rebuild && xspd_plane_cramped(d->plane, d->spd) &&
	    xspd_plane_prepare(d->plane, d->spd))
		xspd_daemon_rebuild(d);
	d->env_at = xspd_mono() + d->beat_every;
	return 0;
}
