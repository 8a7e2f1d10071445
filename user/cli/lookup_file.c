// SPDX-License-Identifier: GPL-2.0-only
/* Many flows: read a batch, ask about it, print it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/flow.h"
#include "cli/lookup_file.h"
#include "reason.h"
#include "util.h"

#define BATCH	  4096
#define WORDS_MAX 32
#define LINE_MAX_ 512 /* of the words that are repeated with the answer */

struct batch {
	struct cli_asker *asker;
	FILE *in;
	const char *path;
	size_t line;
	bool json, any; /* any: something was printed */
	struct xspd_flow flow[BATCH];
	struct xspd_answer answer[BATCH];
	char text[BATCH][LINE_MAX_];
	size_t count;
};

/* Splits @line in place; more words than there is room for are one too many for any flow. */
static int split(char *line, char **words)
{
	char *save = NULL;
	int count = 0;

	line[strcspn(line, "#\n")] = '\0';
	for (char *word = strtok_r(line, " \t\r", &save); word && count < WORDS_MAX;
	     word = strtok_r(NULL, " \t\r", &save))
		words[count++] = word;
	return count;
}

/* The words again, one blank between two. */
static bool join(char **words, int count, char *buf)
{
	size_t used = 0;

	for (int i = 0; i < count; i++) {
		size_t len = strlen(words[i]);

		if (used + len + 2 > LINE_MAX_)
			return false;
		if (i)
			buf[used++] = ' ';
		memcpy(buf + used, words[i], len);
		used += len;
	}
	buf[used] = '\0';
	return true;
}

static int take_line(struct batch *batch, char *line)
{
	struct cli_flow_form form = {.file = batch->path, .line = ++batch->line};
	char *words[WORDS_MAX];
	int rc, count = split(line, words);

	if (!count)
		return XSPD_DONE;
	if (!join(words, count, batch->text[batch->count]))
		return cli_usage("lookup: %s:%zu: line too long", form.file, form.line);
	rc = cli_flow_parse(&form, count, words, &batch->flow[batch->count], NULL);
	if (!rc)
		batch->count++;
	return rc;
}

static void print_text(const char *text, const struct xspd_answer *answer)
{
	fputs(text, stdout);
	printf(" -> %s %s", xspd_verdict_name(answer->verdict), xspd_reason_name(answer->reason));
	if (answer->index)
		printf(" %u", answer->index);
	if (answer->index2)
		printf(" %u", answer->index2);
	putchar('\n');
}

/* Everything in @text was understood as a word of a flow: no word of those needs escaping. */
static void print_json(const char *text, const struct xspd_answer *answer, bool first)
{
	printf("%s{\"flow\": \"%s\", \"verdict\": \"%s\", \"reason\": \"%s\", \"index\": %u, "
	       "\"index2\": %u}",
	       first ? "[\n" : ",\n", text, xspd_verdict_name(answer->verdict),
	       xspd_reason_name(answer->reason), answer->index, answer->index2);
}

static int flush_batch(struct batch *batch)
{
	int rc = cli_ask_many(batch->asker, batch->flow, batch->count, batch->answer);

	if (rc)
		return rc;
	for (size_t i = 0; i < batch->count; i++) {
		if (batch->json)
			print_json(batch->text[i], &batch->answer[i], !batch->any);
		else
			print_text(batch->text[i], &batch->answer[i]);
		batch->any = true;
	}
	batch->count = 0;
	/* to a terminal or a pipe, answers are worth something before the last one */
	if (ferror(stdout) || fflush(stdout))
		return XSPD_FAILED; /* main() tells */
	return XSPD_DONE;
}

static int read_all(struct batch *batch)
{
	xspd_autofree char *line = NULL;
	size_t room = 0;
	int rc = XSPD_DONE, rc2;

	while (!rc && getline(&line, &room, batch->in) >= 0) {
		rc = take_line(batch, line);
		if (!rc && batch->count == BATCH)
			rc = flush_batch(batch);
	}
	if (!rc && ferror(batch->in))
		rc = cli_fail("lookup: --file %s: %s", batch->path, strerror(errno));
	rc2 = batch->count ? flush_batch(batch) : XSPD_DONE;
	return rc ? rc : rc2;
}

int cli_lookup_file(struct cli_asker *asker, const char *path, bool json)
{
	bool stdin_too = !strcmp(path, "-");
	xspd_autofclose FILE *file = stdin_too ? NULL : fopen(path, "re");
	xspd_autofree struct batch *batch = malloc(sizeof(*batch));
	int rc;

	if (!stdin_too && !file)
		return cli_fail("lookup: --file %s: %s", path, strerror(errno));
	if (!batch)
		return cli_fail("lookup: %s", strerror(ENOMEM));
	batch->asker = asker;
	batch->in = stdin_too ? stdin : file;
	batch->path = stdin_too ? "stdin" : path;
	batch->line = batch->count = 0;
	batch->json = json;
	batch->any = false;
	rc = read_all(batch);
	if (json)
		fputs(batch->any ? "\n]\n" : "[]\n", stdout);
	return rc;
}
