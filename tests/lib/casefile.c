// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <linux/xfrm.h>
#include <netinet/in.h>
#include <string.h>

#include "lib/case_keys.h"
#include "lib/casefile.h"
#include "lib/netns.h"
#include "nl/nl.h"
#include "util.h"

static struct case_policy *policy_find(struct casefile *cf, const char *name)
{
	for (size_t i = 0; i < cf->policies; i++)
		if (strcmp(cf->policy[i].name, name) == 0)
			return &cf->policy[i];
	return NULL;
}

static struct case_policy *policy_add(struct casefile *cf, const char *name)
{
	struct case_policy *grown, *added;

	grown = realloc(cf->policy, (cf->policies + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	cf->policy = grown;
	added = &grown[cf->policies++];
	memset(added, 0, sizeof(*added));
	snprintf(added->name, sizeof(added->name), "%s", name);
	added->pol.tmpl = (struct xspd_tmpl){.reqid = (uint32_t)cf->policies,
					     .proto = IPPROTO_ESP,
					     .mode = XFRM_MODE_TRANSPORT,
					     .count = 1};
	return added;
}

/* policy, update, delete: a name, then keys.  Only a delete leaves no trace for later lines. */
static int read_policy(struct case_reader *r)
{
	const char *name = xspd_words_next(&r->w);
	struct case_policy *policy;
	struct xspd_pol pol;
	int err;

	if (!name || strlen(name) >= CASE_NAME_MAX)
		return xspd_words_refuse(&r->w, "no name, or too long a one");
	policy = policy_find(r->cf, name);
	if (policy && r->step->kind == CASE_POLICY)
		return xspd_words_refuse(&r->w, "%s is there already", name);
	if (!policy && r->step->kind == CASE_DELETE)
		return xspd_words_refuse(&r->w, "%s is not there", name);
	if (!policy)
		policy = policy_add(r->cf, name);
	if (!policy)
		return -ENOMEM;
	pol = policy->pol;
	err = case_read_policy_keys(r, &pol);
	if (err)
		return err;
	r->step->pol = pol;
	r->step->refused = r->comment && strncmp(r->comment, "refused:", 8) == 0;
	if (r->step->kind != CASE_DELETE)
		policy->pol = pol;
	return 0;
}

static int read_default(struct case_reader *r)
{
	int dir = xspd_words_choice(&r->w, xspd_words_next(&r->w), xspd_words_dirs, 3);
	int action = xspd_words_choice(&r->w, xspd_words_next(&r->w), xspd_words_actions, 2);

	if (dir < 0 || action < 0)
		return -EINVAL;
	r->step->pol.dir = (uint8_t)dir;
	r->step->pol.action = (uint8_t)action;
	return 0;
}

static int read_verdict(struct case_reader *r, const char *word)
{
	static const char *const names[] = {"defer", "plain", "protect", "block"};

	r->step->verdict = xspd_words_choice(&r->w, word, names, 4);
	return r->step->verdict < 0 ? -EINVAL : 0;
}

/* What is right of the arrow; of the comment, "6.18: NAME" and "verdict: WORD" count. */
static int read_answer(struct case_reader *r)
{
	struct case_step *step = r->step;
	char *name = xspd_words_next(&r->w), *colon;
	const struct case_policy *policy;

	if (!name)
		return xspd_words_refuse(&r->w, "no answer");
	if (r->comment && strncmp(r->comment, "verdict: ", 9) == 0 &&
	    read_verdict(r, xspd_words_begin(&r->w, r->comment + 9)))
		return -EINVAL;
	step->expect = CASE_NAMED;
	if (strcmp(name, "none") == 0) {
		step->expect = CASE_NONE;
		return 0;
	}
	if (strcmp(name, "ambiguous") == 0) {
		step->expect = CASE_AMBIGUOUS;
		colon = r->comment ? strchr(r->comment, ':') : NULL;
		name = colon ? xspd_words_begin(&r->w, colon + 1) : NULL;
	}
	policy = name ? policy_find(r->cf, name) : NULL;
	if (!policy)
		return xspd_words_refuse(&r->w, "no such policy: %s", name ? name : "(nothing)");
	step->winner = policy->pol.tmpl.reqid;
	return 0;
}

static int read_flow(struct case_reader *r)
{
	struct case_step *step = r->step;

	step->verdict = -1;
	if (case_read_flow_keys(r, &step->packet))
		return -EINVAL;
	step->flow = step->packet;
	if (step->flow.frag)
		step->flow.sport = step->flow.dport = 0;
	return read_answer(r);
}

static int read_step(struct case_reader *r, char *line)
{
	static const char *const kinds[] = {"policy", "update",	 "delete",
					    "flush",  "default", "flow"};
	int kind = xspd_words_choice(&r->w, xspd_words_begin(&r->w, line), kinds, 6);

	if (kind < 0)
		return kind;
	r->step->kind = (enum case_kind)kind;
	switch (r->step->kind) {
	case CASE_FLOW:
		return read_flow(r);
	case CASE_DEFAULT:
		return read_default(r);
	case CASE_FLUSH:
		return 0;
	default:
		return read_policy(r);
	}
}

static void read_header(struct case_reader *r)
{
	unsigned int major, minor;

	if (r->comment && sscanf(r->comment, "kernel: %u.%u+", &major, &minor) == 2)
		r->cf->kernel = major << 8 | minor;
}

static int read_line(struct case_reader *r, char *line, unsigned int number)
{
	struct casefile *cf = r->cf;
	struct case_step *grown;

	line[strcspn(line, "\n")] = '\0';
	r->comment = strchr(line, '#');
	if (r->comment) {
		*r->comment++ = '\0';
		r->comment += strspn(r->comment, " ");
	}
	if (line[strspn(line, " ")] == '\0') {
		read_header(r);
		return 0;
	}
	grown = realloc(cf->step, (cf->steps + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	cf->step = grown;
	r->step = &grown[cf->steps++];
	memset(r->step, 0, sizeof(*r->step));
	r->step->line = number;
	return read_step(r, line);
}

int casefile_read(const char *path, struct casefile **ret, char *error, size_t len)
{
	struct casefile *cf = calloc(1, sizeof(*cf));
	struct case_reader reader = {.cf = cf, .w = {.error = error, .error_len = len}};
	xspd_autofclose FILE *file = fopen(path, "re");
	xspd_autofree char *line = NULL;
	unsigned int number = 0;
	size_t room = 0;
	int err = 0;

	snprintf(error, len, "%s: cannot read", path);
	if (cf)
		cf->path = strdup(path);
	if (!file || !cf || !cf->path)
		err = errno ? -errno : -ENOMEM;
	while (!err && getline(&line, &room, file) >= 0)
		err = read_line(&reader, line, ++number);
	if (err)
		casefile_free(cf);
	else
		*ret = cf;
	return err;
}

void casefile_free(struct casefile *cf)
{
	if (!cf)
		return;
	free(cf->path);
	free(cf->step);
	free(cf->policy);
	free(cf);
}

const char *casefile_name(const struct casefile *cf, uint32_t reqid)
{
	if (reqid == 0)
		return "none";
	return reqid <= cf->policies ? cf->policy[reqid - 1].name : "?";
}

int case_apply(struct oracle *oracle, const struct case_step *step)
{
	char buf[2048] = {};

	switch (step->kind) {
	case CASE_POLICY:
		return oracle_request(
			oracle,
			xspd_nl_put_policy(buf, &step->pol, XFRM_MSG_NEWPOLICY, NLM_F_REQUEST, 0));
	case CASE_UPDATE:
		return oracle_request(
			oracle,
			xspd_nl_put_policy(buf, &step->pol, XFRM_MSG_UPDPOLICY, NLM_F_REQUEST, 0));
	case CASE_DELETE:
		return oracle_request(oracle,
				      xspd_nl_put_delete(buf, &step->pol, false, NLM_F_REQUEST, 0));
	case CASE_FLUSH:
		return oracle_request(oracle, xspd_nl_put_flush(buf, XSPD_MAIN, NLM_F_REQUEST, 0));
	case CASE_DEFAULT:
		return oracle_set_default(oracle, step->pol.dir, step->pol.action);
	default:
		return -EINVAL;
	}
}
