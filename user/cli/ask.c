// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <string.h>

#include "cli/ask.h"
#include "cli/dry.h"
#include "cli/mirror.h"
#include "plane/ask.h"
#include "util.h"

#define ATTEMPTS 20

int cli_asker_open(struct cli_asker *ret, const char *instance, const char *with)
{
	struct cli_asker asker = {};
	int rc = cli_view_open(&asker.view, instance);

	if (rc)
		return rc;
	if (with)
		rc = cli_dry_new(&asker.dry, &asker.view, with);
	if (rc)
		cli_asker_close(&asker);
	else
		*ret = asker;
	return rc;
}

void cli_asker_close(struct cli_asker *asker)
{
	xspd_spd_free(asker->spd);
	asker->spd = NULL;
	cli_dry_free(asker->dry);
	asker->dry = NULL;
	cli_view_close(&asker->view);
}

static void read_infos(const struct cli_view *view, struct cli_answer *ret)
{
	uint32_t slot[2] = {ret->answer.slot, ret->answer.slot2};

	for (int i = 0; i < 2; i++)
		if (!slot[i] || slot[i] >= view->slots ||
		    !cli_view_info(view, slot[i], &ret->info[i]))
			ret->info[i].index = 0;
}

static int ask_all(struct cli_asker *asker, struct cli_answer *answers, size_t count)
{
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		err = xspd_ask(asker->view.query_fd, &answers[i].flow, 1, &answers[i].answer);
		if (!err)
			read_infos(&asker->view, &answers[i]);
	}
	return err;
}

static int explain_all(struct cli_asker *asker, struct cli_answer *answers, size_t count)
{
	int err = cli_mirror_read(&asker->spd, &asker->view);

	for (size_t i = 0; i < count && !err; i++) {
		err = cli_explain_new(&answers[i].explain, asker->spd, &answers[i].flow);
		answers[i].explained = !err;
	}
	return err;
}

void cli_answers_free(struct cli_answer *answers, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (answers[i].explained)
			cli_explain_free(&answers[i].explain);
		answers[i].explained = false;
	}
}

static void forget(struct cli_asker *asker, struct cli_answer *answers, size_t count)
{
	cli_answers_free(answers, count);
	xspd_spd_free(asker->spd);
	asker->spd = NULL;
}

/* Answers, records and explanations of one state of the SPD, or -EAGAIN. */
static int attempt(struct cli_asker *asker, struct cli_answer *answers, size_t count, bool explain)
{
	uint64_t generation = cli_view_generation(&asker->view);
	int err = ask_all(asker, answers, count);

	if (!err && explain)
		err = explain_all(asker, answers, count);
	if (err || (asker->view.conf->generation == generation && !cli_view_stale(&asker->view)))
		return err;
	forget(asker, answers, count);
	return -EAGAIN;
}

static int failed(const struct cli_asker *asker, int err)
{
	if (err == -EAGAIN)
		return cli_fail("lookup: the policies changed during each of %d attempts; "
				"try again",
				ATTEMPTS);
	return cli_fail("lookup: %s/%s/xspd_query: %s%s", asker->view.dir, asker->view.set,
			strerror(-err), cli_root_hint(err));
}

static int run(struct cli_asker *asker, struct cli_answer *answers, size_t count, bool explain)
{
	int err = -EAGAIN;

	for (int i = 0; i < ATTEMPTS && err == -EAGAIN; i++) {
		if (cli_view_follow(&asker->view))
			return XSPD_FAILED;
		err = attempt(asker, answers, count, explain);
	}
	return err ? failed(asker, err) : XSPD_DONE;
}

bool cli_answer_disagrees(const struct cli_answer *answer)
{
	return answer->explained && !cli_explain_agrees(&answer->explain, &answer->answer);
}

static bool any_disagrees(const struct cli_answer *answers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (cli_answer_disagrees(&answers[i]))
			return true;
	return false;
}

/* A change told only after it was made can hide between two generations: look again. */
int cli_ask(struct cli_asker *asker, struct cli_answer *answers, size_t count, bool explain)
{
	struct timespec pause = {.tv_nsec = 20000000};
	int rc;

	if (asker->dry)
		return cli_dry_ask(asker->dry, answers, count, explain);
	forget(asker, answers, count);
	rc = run(asker, answers, count, explain);
	for (int i = 0; i < 3 && !rc && any_disagrees(answers, count); i++) {
		nanosleep(&pause, NULL);
		forget(asker, answers, count);
		rc = run(asker, answers, count, explain);
	}
	return rc;
}

int cli_ask_many(struct cli_asker *asker, const struct xspd_flow *flows, size_t count,
		 struct xspd_answer *ret)
{
	int err = -EAGAIN;

	if (asker->dry)
		return cli_dry_ask_many(asker->dry, flows, count, ret);
	for (int i = 0; i < ATTEMPTS && err == -EAGAIN; i++) {
		if (cli_view_follow(&asker->view))
			return XSPD_FAILED;
		err = xspd_ask(asker->view.query_fd, flows, count, ret);
		/* a set that is history answers as it did */
		if (!err && cli_view_stale(&asker->view))
			err = -EAGAIN;
	}
	return err ? failed(asker, err) : XSPD_DONE;
}
