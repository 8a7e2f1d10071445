// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <linux/xfrm.h>
#include <netinet/in.h>
#include <string.h>

#include "lib/case_words.h"
#include "lib/casefile.h"
#include "lib/netns.h"
#include "nl/nl.h"
#include "util.h"

static const char *const dirs[] = {"in", "out", "fwd"};
static const char *const actions[] = {"allow", "block"};
static const char *const types[] = {"main", "sub"};

/* The template that names the policy is there in any case; "tmpl" makes it a required one. */
static int read_tmpl(struct case_reader *r, struct xspd_pol *pol)
{
	char *word = strtok_r(NULL, " ", &r->save);
	uint32_t ignored;

	if (!word || strcmp(word, "reqid"))
		return refuse(r, "tmpl without reqid");
	pol->tmpl.required = 1;
	return read_number(r, strtok_r(NULL, " ", &r->save), &ignored);
}

static int read_action(struct case_reader *r, const char *word, struct xspd_pol *pol)
{
	int action = read_choice(r, word, actions, 2);

	if (action < 0)
		return action;
	pol->action = (uint8_t)action;
	if (action == XSPD_BLOCK)
		pol->tmpl.required = 0;
	return 0;
}

/* One key of a policy line, its value taken from the line. */
static int read_policy_key(struct case_reader *r, const char *key, struct xspd_pol *pol)
{
	struct xfrm_selector *sel = &pol->sel;
	char *word;
	int choice;

	if (strcmp(key, "tmpl") == 0)
		return read_tmpl(r, pol);
	word = strtok_r(NULL, " ", &r->save);
	if (strcmp(key, "src") == 0)
		return read_address(r, word, &sel->saddr, &sel->prefixlen_s, &sel->family);
	if (strcmp(key, "dst") == 0)
		return read_address(r, word, &sel->daddr, &sel->prefixlen_d, &sel->family);
	if (strcmp(key, "proto") == 0)
		return read_proto(r, word, &sel->proto);
	if (strcmp(key, "sport") == 0)
		return read_port(r, word, &sel->sport, &sel->sport_mask);
	if (strcmp(key, "dport") == 0)
		return read_port(r, word, &sel->dport, &sel->dport_mask);
	if (strcmp(key, "mark") == 0)
		return read_masked(r, word, 0xffffffff, &pol->mark, &pol->mark_mask);
	if (strcmp(key, "if_id") == 0)
		return read_number(r, word, &pol->if_id);
	if (strcmp(key, "priority") == 0)
		return read_number(r, word, &pol->priority);
	if (strcmp(key, "action") == 0)
		return read_action(r, word, pol);
	if (strcmp(key, "dev") == 0) {
		sel->ifindex = word ? (int)netns_device(word) : 0;
		return sel->ifindex ? 0 : refuse(r, "no device: %s", word ? word : "(nothing)");
	}
	if (strcmp(key, "dir") == 0) {
		choice = read_choice(r, word, dirs, 3);
		pol->dir = (uint8_t)choice;
		return choice < 0 ? choice : 0;
	}
	if (strcmp(key, "ptype") == 0) {
		choice = read_choice(r, word, types, 2);
		pol->type = (uint8_t)choice;
		return choice < 0 ? choice : 0;
	}
	return refuse(r, "unknown key: %s", key);
}

static int read_policy_keys(struct case_reader *r, struct xspd_pol *pol)
{
	const char *key;
	int err;

	while ((key = strtok_r(NULL, " ", &r->save))) {
		err = read_policy_key(r, key, pol);
		if (err)
			return err;
	}
	return 0;
}

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
	const char *name = strtok_r(NULL, " ", &r->save);
	struct case_policy *policy;
	struct xspd_pol pol;
	int err;

	if (!name || strlen(name) >= CASE_NAME_MAX)
		return refuse(r, "no name, or too long a one");
	policy = policy_find(r->cf, name);
	if (policy && r->step->kind == CASE_POLICY)
		return refuse(r, "%s is there already", name);
	if (!policy && r->step->kind == CASE_DELETE)
		return refuse(r, "%s is not there", name);
	if (!policy)
		policy = policy_add(r->cf, name);
	if (!policy)
		return -ENOMEM;
	pol = policy->pol;
	err = read_policy_keys(r, &pol);
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
	int dir = read_choice(r, strtok_r(NULL, " ", &r->save), dirs, 3);
	int action = read_choice(r, strtok_r(NULL, " ", &r->save), actions, 2);

	if (dir < 0 || action < 0)
		return -EINVAL;
	r->step->pol.dir = (uint8_t)dir;
	r->step->pol.action = (uint8_t)action;
	return 0;
}

static int read_flow_key(struct case_reader *r, const char *key, struct xspd_flow *flow)
{
	static const char *const frags[] = {"none", "first", "later"};
	char *word = strtok_r(NULL, " ", &r->save);
	uint16_t family = flow->family;
	uint32_t value;
	__be16 mask;
	int err;

	if (strcmp(key, "src") == 0)
		err = read_address(r, word, flow->saddr, NULL, &family);
	else if (strcmp(key, "dst") == 0)
		err = read_address(r, word, flow->daddr, NULL, &family);
	else if (strcmp(key, "proto") == 0)
		err = read_proto(r, word, &flow->proto);
	else if (strcmp(key, "sport") == 0)
		err = read_port(r, word, &flow->sport, &mask);
	else if (strcmp(key, "dport") == 0)
		err = read_port(r, word, &flow->dport, &mask);
	else if (strcmp(key, "mark") == 0)
		err = read_number(r, word, &flow->mark);
	else if (strcmp(key, "if_id") == 0)
		err = read_number(r, word, &flow->if_id);
	else if (strcmp(key, "dir") == 0)
		flow->dir = (uint8_t)(err = read_choice(r, word, dirs, 3));
	else if (strcmp(key, "frag") == 0)
		flow->frag = (uint8_t)(err = read_choice(r, word, frags, 3));
	else if (strcmp(key, "dev") == 0) {
		value = word ? netns_device(word) : 0;
		flow->oif = value;
		err = value ? 0 : refuse(r, "no device: %s", word ? word : "(nothing)");
	} else
		err = refuse(r, "unknown key: %s", key);
	flow->family = (uint8_t)family;
	return err < 0 ? err : 0;
}

static int read_verdict(struct case_reader *r, const char *word)
{
	static const char *const names[] = {"defer", "plain", "protect", "block"};

	r->step->verdict = read_choice(r, word, names, 4);
	return r->step->verdict < 0 ? -EINVAL : 0;
}

/* What is right of the arrow; of the comment, "6.18: NAME" and "verdict: WORD" count. */
static int read_answer(struct case_reader *r)
{
	struct case_step *step = r->step;
	char *name = strtok_r(NULL, " ", &r->save), *colon;
	const struct case_policy *policy;

	if (!name)
		return refuse(r, "no answer");
	if (r->comment && strncmp(r->comment, "verdict: ", 9) == 0 &&
	    read_verdict(r, strtok_r(r->comment + 9, " ", &r->save)))
		return -EINVAL;
	step->expect = CASE_NAMED;
	if (strcmp(name, "none") == 0) {
		step->expect = CASE_NONE;
		return 0;
	}
	if (strcmp(name, "ambiguous") == 0) {
		step->expect = CASE_AMBIGUOUS;
		colon = r->comment ? strchr(r->comment, ':') : NULL;
		name = colon ? strtok_r(colon + 1, " ", &r->save) : NULL;
	}
	policy = name ? policy_find(r->cf, name) : NULL;
	if (!policy)
		return refuse(r, "no such policy: %s", name ? name : "(nothing)");
	step->winner = policy->pol.tmpl.reqid;
	return 0;
}

/* Up to the arrow or the end of the line. */
static int read_flow_keys(struct case_reader *r, struct xspd_flow *flow)
{
	const char *key;
	int err;

	while ((key = strtok_r(NULL, " ", &r->save)) && strcmp(key, "->")) {
		err = read_flow_key(r, key, flow);
		if (err)
			return err;
	}
	/* received packets are looked up with the loopback device, whatever they came in by */
	if (flow->dir == XSPD_IN)
		flow->oif = 1;
	return 0;
}

static int read_flow(struct case_reader *r)
{
	struct case_step *step = r->step;

	step->verdict = -1;
	if (read_flow_keys(r, &step->packet))
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
	int kind = read_choice(r, strtok_r(line, " ", &r->save), kinds, 6);

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

/* strtok_r() wants to have begun somewhere. */
static char *words_begin(struct case_reader *r, const char *words)
{
	char *copy = malloc(strlen(words) + 3);

	if (copy) {
		sprintf(copy, ". %s", words);
		strtok_r(copy, " ", &r->save);
	}
	return copy;
}

struct xspd_pol case_pol(const char *words)
{
	char error[128] = "";
	struct case_reader reader = {.error = error, .error_len = sizeof(error)};
	xspd_autofree char *copy = words_begin(&reader, words);
	struct xspd_pol pol = {};

	if (!copy || read_policy_keys(&reader, &pol)) {
		fprintf(stderr, "%s: %s\n", words, error);
		abort();
	}
	if (pol.tmpl.required) {
		pol.tmpl.count = 1;
		pol.tmpl.proto = IPPROTO_ESP;
	}
	return pol;
}

struct xspd_flow case_flow(const char *words)
{
	char error[128] = "";
	struct case_reader reader = {.error = error, .error_len = sizeof(error)};
	xspd_autofree char *copy = words_begin(&reader, words);
	struct xspd_flow flow = {};

	if (!copy || read_flow_keys(&reader, &flow)) {
		fprintf(stderr, "%s: %s\n", words, error);
		abort();
	}
	return flow;
}

int casefile_read(const char *path, struct casefile **ret, char *error, size_t len)
{
	struct casefile *cf = calloc(1, sizeof(*cf));
	struct case_reader reader = {.cf = cf, .error = error, .error_len = len};
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
