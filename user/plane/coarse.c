// SPDX-License-Identifier: GPL-2.0-only
/* Which partitions have many mask classes, and what to store their policies under. */
#include <errno.h>
#include <string.h>

#include "plane/set.h"
#include "plane/steer.h"
#include "util.h"

/* What is learnt of a partition on the way to its plan. */
struct survey {
	struct xspd_partition *part; /* key */
	uint32_t policies, classes;
	struct xspd_class *seen; /* up to coarsen_at + 1 */
	struct xspd_plan_pol *sample;
	uint32_t sampled, passed;
	UT_hash_handle hh;
};

static void surveys_free(struct survey *head)
{
	struct survey *survey, *tmp;

	HASH_ITER (hh, head, survey, tmp) {
		HASH_DEL(head, survey);
		free(survey->seen);
		free(survey->sample);
		free(survey);
	}
}

static struct survey *survey_get(struct xspd_set *set, struct survey **head,
				 struct xspd_partition *part)
{
	struct survey *survey;

	HASH_FIND_PTR(*head, &part, survey);
	if (survey)
		return survey;
	survey = calloc(1, sizeof(*survey));
	if (!survey)
		return NULL;
	survey->seen = calloc(set->coarsen_at + 1, sizeof(*survey->seen));
	if (!survey->seen) {
		free(survey);
		return NULL;
	}
	survey->part = part;
	HASH_ADD_PTR(*head, part, survey);
	return survey;
}

static void class_note(struct xspd_set *set, struct survey *survey, const struct xspd_pol *pol)
{
	struct xspd_class cls;

	survey->policies++;
	if (survey->classes > set->coarsen_at)
		return;
	xspd_class_of(pol, &cls);
	/* most often it is the class of the one before */
	for (uint32_t i = survey->classes; i > 0; i--)
		if (xspd_class_equal(&survey->seen[i - 1], &cls))
			return;
	survey->seen[survey->classes++] = cls;
}

static int survey_class(struct xspd_set *set, struct survey **head, struct survey **last,
			const struct xspd_pol *pol)
{
	struct xspd_partition *part;
	int err;

	part = xspd_partition_get(set, pol, true, &err);
	if (!part)
		return err;
	if (!*last || (*last)->part != part)
		*last = survey_get(set, head, part);
	if (!*last)
		return -ENOMEM;
	class_note(set, *last, pol);
	return 0;
}

static int survey_classes(struct xspd_set *set, struct xspd_spd *spd, struct survey **head)
{
	struct survey *last = NULL, *last_steer = NULL;
	struct xspd_pol *pol, view;
	int err = 0;

	for (pol = spd->by_index; pol && !err; pol = pol->hh.next) {
		err = survey_class(set, head, &last, pol);
		if (err || !xspd_steer_wants(set, pol))
			continue;
		xspd_steer_view(pol, &view);
		err = survey_class(set, head, &last_steer, &view);
	}
	return err;
}

/* Every n-th policy of a partition with too many classes. */
static int survey_sample(struct xspd_set *set, struct survey *head, const struct xspd_pol *pol)
{
	struct xspd_partition *part;
	struct survey *survey;
	uint64_t due;
	int err;

	part = xspd_partition_get(set, pol, false, &err);
	HASH_FIND_PTR(head, &part, survey);
	if (!survey || survey->classes <= set->coarsen_at)
		return 0;
	if (!survey->sample)
		survey->sample = malloc(XSPD_PLAN_SAMPLE * sizeof(*survey->sample));
	if (!survey->sample)
		return -ENOMEM;
	due = (uint64_t)survey->passed++ * XSPD_PLAN_SAMPLE / survey->policies;
	if (survey->policies > XSPD_PLAN_SAMPLE && due < survey->sampled)
		return 0;
	xspd_class_of(pol, &survey->sample[survey->sampled].cls);
	xspd_class_key(pol, &survey->sample[survey->sampled].key);
	survey->sample[survey->sampled].order = (uint64_t)pol->priority << 32 | pol->pos;
	survey->sampled++;
	return 0;
}

static int survey_samples(struct xspd_set *set, struct xspd_spd *spd, struct survey *head)
{
	struct xspd_pol *pol, view;
	int err = 0;

	for (pol = spd->by_index; pol && !err; pol = pol->hh.next) {
		err = survey_sample(set, head, pol);
		if (err || !xspd_steer_wants(set, pol))
			continue;
		xspd_steer_view(pol, &view);
		err = survey_sample(set, head, &view);
	}
	return err;
}

static int plan_order(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct xspd_class));
}

static int survey_plan(struct survey *survey)
{
	struct xspd_plan_class *plan = calloc(survey->sampled, sizeof(*plan));
	double scale = (double)survey->policies / survey->sampled;
	int found;

	if (!plan)
		return -ENOMEM;
	found = xspd_plan(survey->sample, survey->sampled, scale, plan, XSPD_TUPLES / 4);
	if (found < 0) {
		free(plan);
		return found;
	}
	qsort(plan, (size_t)found, sizeof(*plan), plan_order);
	survey->part->plan = plan;
	survey->part->planned = (uint32_t)found;
	return 0;
}

int xspd_set_plan(struct xspd_set *set, struct xspd_spd *spd)
{
	struct survey *head = NULL, *survey, *tmp;
	bool any = false;
	int err;

	err = survey_classes(set, spd, &head);
	HASH_ITER (hh, head, survey, tmp)
		any |= survey->classes > set->coarsen_at;
	if (!err && any)
		err = survey_samples(set, spd, head);
	HASH_ITER (hh, head, survey, tmp)
		if (!err && survey->classes > set->coarsen_at)
			err = survey_plan(survey);
	surveys_free(head);
	return err;
}
