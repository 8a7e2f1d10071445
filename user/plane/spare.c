// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "plane/plane_priv.h"
#include "util.h"

#define XSPD_SPARE_NS 30000000000ull /* unused for so long, it only takes up memory */

struct xspd_spare {
	pthread_t thread;
	bool done; /* the thread has nothing more to do */
	struct xspd_sizes sizes;
	int lasting[XSPD_LASTING]; /* the plane's; it outlives us */
	struct xspd_set *set;	   /* NULL after a failure */
	uint64_t since;
};

static void *spare_main(void *arg)
{
	struct xspd_spare *spare = arg;
	struct xspd_set *set;

	if (!xspd_set_new(&set, &spare->sizes, spare->lasting, false))
		spare->set = set;
	__atomic_store_n(&spare->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Signals belong to the thread that has the event loop. */
static int spare_start(struct xspd_spare *spare)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&spare->thread, NULL, spare_main, spare);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -err;
}

static bool spare_done(const struct xspd_spare *spare)
{
	return __atomic_load_n(&spare->done, __ATOMIC_ACQUIRE);
}

void xspd_spare_drop(struct xspd_plane *plane)
{
	if (!plane->spare)
		return;
	pthread_join(plane->spare->thread, NULL);
	xspd_set_free(plane->spare->set);
	free(xspd_take(plane->spare));
}

int xspd_spare_ready(struct xspd_plane *plane, uint32_t capacity)
{
	const struct xspd_spare *spare = plane->spare;

	if (!spare)
		return -ENOENT;
	if (!spare_done(spare))
		return -EAGAIN;
	if (!spare->set) /* told once, then forgotten */
		xspd_spare_drop(plane);
	if (!plane->spare)
		return -ENOMEM;
	return spare->sizes.slots > capacity && spare->sizes.steer == plane->opts.steer ? 0
											: -ENOENT;
}

int xspd_spare_want(struct xspd_plane *plane, uint32_t capacity, uint32_t ifids)
{
	struct xspd_spare *spare;
	int err = xspd_spare_ready(plane, capacity);

	if (err != -ENOENT)
		return err;
	xspd_spare_drop(plane); /* too small */
	spare = calloc(1, sizeof(*spare));
	if (!spare)
		return -ENOMEM;
	spare->sizes = xspd_plane_sizes(plane, capacity, ifids, 0);
	memcpy(spare->lasting, plane->lasting, sizeof(spare->lasting));
	spare->since = xspd_mono();
	err = spare_start(spare);
	if (err) {
		free(spare);
		return err;
	}
	plane->spare = spare;
	return -EAGAIN;
}

struct xspd_set *xspd_spare_take(struct xspd_plane *plane, uint32_t capacity)
{
	struct xspd_set *set;

	if (xspd_spare_ready(plane, capacity))
		return NULL;
	set = xspd_take(plane->spare->set);
	xspd_spare_drop(plane);
	xspd_plane_brief(plane, set);
	return set;
}

void xspd_spare_expire(struct xspd_plane *plane)
{
	struct xspd_spare *spare = plane->spare;

	if (!spare || !spare_done(spare) || xspd_mono() - spare->since < XSPD_SPARE_NS)
		return;
	xspd_spare_drop(plane);
	plane->set->filled =
		plane->set->fresh_slot; /* wanted again when half of the rest is used */
}
