/* SPDX-License-Identifier: GPL-2.0-only */
/* Questions to the BPF program behind the pins, or to the mirror with changes, and the answers. */
#ifndef XSPD_CLI_ASK_H
#define XSPD_CLI_ASK_H

#include "cli/explain.h"
#include "cli/view.h"

/* One question, and what there is to tell about it. */
struct cli_answer {
	struct xspd_flow flow;
	struct xspd_answer answer;
	struct xspd_info info[2]; /* of answer.index, .index2; index 0: none */
	size_t line[2];		  /* of the changes: it is from there; 0: not */
	bool dry;
	struct cli_explain explain;
	bool explained;
};

struct cli_asker {
	struct cli_view view;
	struct xspd_spd *spd; /* of the explanations */
	struct cli_dry *dry;  /* NULL: the program is asked */
};

/**
 * cli_asker_open() - @instance as it is, or with the changes in the file @with (NULL: none).
 * Complains itself: XSPD_DONE or XSPD_FAILED. Leave with cli_asker_close().
 */
int cli_asker_open(struct cli_asker *ret, const char *instance, const char *with);
void cli_asker_close(struct cli_asker *asker);

/**
 * cli_ask() - Answer the flows of @answers, all of them in one state of the SPD.
 * @explain: ask the reference, too.
 *
 * Explanations hang on @asker, and end with the next call.
 * Complains itself: XSPD_DONE or XSPD_FAILED. Leave with cli_answers_free().
 */
int cli_ask(struct cli_asker *asker, struct cli_answer *answers, size_t count, bool explain);

void cli_answers_free(struct cli_answer *answers, size_t count);

/* Does the reference say otherwise? */
bool cli_answer_disagrees(const struct cli_answer *answer);

/* Tell it. */
void cli_answer_print(const struct cli_answer *answer);
struct json_object *cli_answer_json(const struct cli_answer *answer);

/* As cli_ask(), but each flow on its own, and no more than the answer: for large numbers. */
int cli_ask_many(struct cli_asker *asker, const struct xspd_flow *flows, size_t count,
		 struct xspd_answer *ret);

#endif
