// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>

#include "plane/grace.h"
#include "util.h"

struct xspd_grace {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	uint64_t wanted;  /* highest ticket handed out */
	uint64_t started; /* the period being waited for, or the last one */
	uint64_t done;
	bool stop;
};

static void *grace_main(void *arg)
{
	struct xspd_grace *grace = arg;

	pthread_mutex_lock(&grace->lock);
	while (!grace->stop) {
		if (grace->wanted <= grace->started) {
			pthread_cond_wait(&grace->cond, &grace->lock);
			continue;
		}
		grace->started++;
		pthread_mutex_unlock(&grace->lock);
		syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
		pthread_mutex_lock(&grace->lock);
		__atomic_store_n(&grace->done, grace->started, __ATOMIC_RELEASE);
		pthread_cond_broadcast(&grace->cond);
	}
	pthread_mutex_unlock(&grace->lock);
	return NULL;
}

int xspd_grace_new(struct xspd_grace **ret)
{
	long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
	xspd_autofree struct xspd_grace *grace = NULL;
	sigset_t all, old;
	int err;

	if (commands < 0 || !(commands & MEMBARRIER_CMD_GLOBAL))
		return -EOPNOTSUPP;
	grace = calloc(1, sizeof(*grace));
	if (!grace)
		return -ENOMEM;
	pthread_mutex_init(&grace->lock, NULL);
	pthread_cond_init(&grace->cond, NULL);
	/* signals belong to the thread that has the event loop */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&grace->thread, NULL, grace_main, grace);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		return -err;
	*ret = xspd_take(grace);
	return 0;
}

void xspd_grace_free(struct xspd_grace *grace)
{
	if (!grace)
		return;
	pthread_mutex_lock(&grace->lock);
	grace->stop = true;
	pthread_cond_broadcast(&grace->cond);
	pthread_mutex_unlock(&grace->lock);
	pthread_join(grace->thread, NULL);
	pthread_mutex_destroy(&grace->lock);
	pthread_cond_destroy(&grace->cond);
	free(grace);
}

uint64_t xspd_grace_ticket(struct xspd_grace *grace)
{
	uint64_t ticket;

	pthread_mutex_lock(&grace->lock);
	if (grace->wanted <= grace->started) {
		grace->wanted = grace->started + 1;
		pthread_cond_broadcast(&grace->cond);
	}
	ticket = grace->wanted;
	pthread_mutex_unlock(&grace->lock);
	return ticket;
}

bool xspd_grace_over(struct xspd_grace *grace, uint64_t ticket)
{
	return __atomic_load_n(&grace->done, __ATOMIC_ACQUIRE) >= ticket;
}

void xspd_grace_wait(struct xspd_grace *grace, uint64_t ticket)
{
	pthread_mutex_lock(&grace->lock);
	while (grace->done < ticket)
		pthread_cond_wait(&grace->cond, &grace->lock);
	pthread_mutex_unlock(&grace->lock);
}
