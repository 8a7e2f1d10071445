// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "cli/dry.h"
#include "cli/mirror.h"
#include "plane/plane.h"
#include "plane/pure/info.h"
#include "util.h"
#include "words/change.h"

#define PLANE_WORTH 2000000 /* comparisons of flows with policies from which tables are faster */

/* A policy whose number only the kernel knows. */
struct fresh {
	uint32_t index;
	size_t line;
};

struct cli_dry {
	struct xspd_spd *spd;
	enum xspd_reason doubt; /* NONE: none */
	struct fresh *fresh;
	size_t fresh_count, fresh_room;
	struct xspd_plane *plane;
	const struct xspd_pol **by_slot;
	uint32_t slots;
};

static int fresh_note(struct cli_dry *dry, uint32_t index, size_t line)
{
	size_t room = dry->fresh_room ? 2 * dry->fresh_room : 64;
	struct fresh *fresh;

	if (!index)
		return 0;
	if (dry->fresh_count == dry->fresh_room) {
		fresh = realloc(dry->fresh, room * sizeof(*fresh));
		if (!fresh)
			return -ENOMEM;
		dry->fresh = fresh;
		dry->fresh_room = room;
	}
	dry->fresh[dry->fresh_count++] = (struct fresh){index, line};
	return 0;
}

static size_t fresh_line(const struct cli_dry *dry, uint32_t index)
{
	/* the last that got the number: one before it may have been deleted */
	for (size_t i = dry->fresh_count; index && i > 0; i--)
		if (dry->fresh[i - 1].index == index)
			return dry->fresh[i - 1].line;
	return 0;
}

static const char *refusal(int err)
{
	switch (-err) {
	case EEXIST:
		return "the kernel would refuse it: there is such a policy; 'update' replaces it";
	case ENOENT:
		return "the kernel would refuse it: there is no such policy; selector, dir, mark, "
		       "if_id and ptype must be as 'xspd policy list' shows them";
	case EINVAL:
		return "the kernel would refuse it: template, index and dir do not go together";
	default:
		return strerror(-err);
	}
}

static uint32_t device_index(const char *name)
{
	return if_nametoindex(name);
}

static int apply_line(struct cli_dry *dry, const char *path, size_t nr, char *text)
{
	struct xspd_line line;
	char error[200];
	uint32_t index;
	int err = xspd_line_read(text, device_index, &line, error, sizeof(error));

	if (err)
		return cli_fail("lookup: %s:%zu: %s", path, nr, error);
	err = xspd_line_apply(dry->spd, &line, &index);
	if (!err)
		err = fresh_note(dry, index, nr);
	return err ? cli_fail("lookup: %s:%zu: %s", path, nr, refusal(err)) : XSPD_DONE;
}

static int apply(struct cli_dry *dry, const char *path)
{
	bool stdin_too = !strcmp(path, "-");
	xspd_autofclose FILE *file = stdin_too ? NULL : fopen(path, "re");
	FILE *in = stdin_too ? stdin : file;
	xspd_autofree char *text = NULL;
	size_t room = 0, nr = 0;
	int rc = XSPD_DONE;

	if (!in)
		return cli_fail("lookup: --with %s: %s", path, strerror(errno));
	while (!rc && getline(&text, &room, in) >= 0)
		rc = apply_line(dry, stdin_too ? "stdin" : path, ++nr, text);
	if (!rc && ferror(in))
		rc = cli_fail("lookup: --with %s: %s", path, strerror(errno));
	return rc;
}

int cli_dry_new(struct cli_dry **ret, struct cli_view *view, const char *path)
{
	struct cli_dry *dry = calloc(1, sizeof(*dry));
	int rc;

	if (!dry)
		return cli_fail("lookup: --with: %s", strerror(ENOMEM));
	rc = cli_mirror_read_settled(&dry->spd, view, "lookup: --with", &dry->doubt);
	if (!rc)
		rc = apply(dry, path);
	if (rc)
		cli_dry_free(dry);
	else
		*ret = dry;
	return rc;
}

void cli_dry_free(struct cli_dry *dry)
{
	if (!dry)
		return;
	if (dry->plane)
		xspd_plane_free(dry->plane);
	free(dry->by_slot);
	free(dry->fresh);
	xspd_spd_free(dry->spd);
	free(dry);
}

static struct xspd_answer answer_of(const struct cli_dry *dry, const struct xspd_ref *ref)
{
	struct xspd_answer answer = {.reason = dry->doubt};

	if (dry->doubt)
		return answer;
	answer.verdict = ref->verdict;
	answer.reason = ref->reason;
	answer.index = ref->pol ? ref->pol->index : 0;
	answer.index2 = ref->pol2 ? ref->pol2->index : 0;
	return answer;
}

static void tell(const struct cli_dry *dry, const struct xspd_ref *ref, struct cli_answer *ret)
{
	const struct xspd_pol *pols[] = {ref->pol, ref->pol2};

	ret->dry = true;
	ret->answer = answer_of(dry, ref);
	for (int i = 0; i < 2; i++) {
		ret->info[i].index = 0;
		if (!pols[i] || dry->doubt)
			continue;
		xspd_info_fill(&ret->info[i], pols[i]);
		ret->line[i] = fresh_line(dry, pols[i]->index);
	}
}

int cli_dry_ask(struct cli_dry *dry, struct cli_answer *answers, size_t count, bool explain)
{
	struct xspd_ref ref;
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		xspd_spd_lookup(dry->spd, &answers[i].flow, &ref);
		tell(dry, &ref, &answers[i]);
		if (!explain)
			continue;
		err = cli_explain_new(&answers[i].explain, dry->spd, &answers[i].flow);
		answers[i].explained = !err;
	}
	return err ? cli_fail("lookup: %s", strerror(-err)) : XSPD_DONE;
}

/* Tables of our own, which nothing else sees. */
static int build(struct cli_dry *dry)
{
	struct xspd_plane_opts opts = {.bench = true};
	struct xspd_plane_usage usage;
	const struct xspd_pol *pol;
	int err = xspd_plane_new(&dry->plane, &opts);

	if (!err)
		err = xspd_plane_build(dry->plane, dry->spd);
	if (err)
		return err;
	xspd_plane_doubt(dry->plane, 0, ~0u);
	xspd_plane_usage(dry->plane, &usage);
	dry->slots = usage.slots;
	dry->by_slot = calloc(dry->slots, sizeof(*dry->by_slot));
	if (!dry->by_slot)
		return -ENOMEM;
	for (pol = dry->spd->by_index; pol; pol = pol->hh.next)
		dry->by_slot[pol->slot] = pol;
	return 0;
}

static uint32_t slot_index(const struct cli_dry *dry, uint32_t slot)
{
	return slot && slot < dry->slots && dry->by_slot[slot] ? dry->by_slot[slot]->index : 0;
}

static int ask_plane(struct cli_dry *dry, const struct xspd_flow *flows, size_t count,
		     struct xspd_answer *ret)
{
	int err = dry->by_slot ? 0 : build(dry);

	for (size_t i = 0, n; i < count && !err; i += n) {
		n = count - i < XSPD_ASK_MAX ? count - i : XSPD_ASK_MAX;
		xspd_plane_beat(dry->plane);
		err = xspd_plane_ask(dry->plane, flows + i, (uint32_t)n, ret + i, NULL);
	}
	for (size_t i = 0; i < count && !err; i++) {
		ret[i].index = slot_index(dry, ret[i].slot);
		ret[i].index2 = slot_index(dry, ret[i].slot2);
	}
	return err;
}

int cli_dry_ask_many(struct cli_dry *dry, const struct xspd_flow *flows, size_t count,
		     struct xspd_answer *ret)
{
	uint64_t work = (uint64_t)count * HASH_COUNT(dry->spd->by_index);
	struct xspd_ref ref;
	int err = 0;

	if (!dry->doubt && (dry->by_slot || work > PLANE_WORTH)) {
		err = ask_plane(dry, flows, count, ret);
		return err ? cli_fail("lookup: tables for the changes: %s", strerror(-err))
			   : XSPD_DONE;
	}
	for (size_t i = 0; i < count; i++) {
		xspd_spd_lookup(dry->spd, &flows[i], &ref);
		ret[i] = answer_of(dry, &ref);
	}
	return XSPD_DONE;
}
