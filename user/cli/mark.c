// SPDX-License-Identifier: GPL-2.0-only
/* xspd mark set | del | list: what mode mark writes into packets. */
#include <errno.h>
#include <string.h>
#include <bpf/bpf.h>

#include "cli/cli.h"
#include "cli/mode.h"
#include "cli/selector.h"
#include "util.h"

static const char *const kinds[] = {[XSPD_MARK_INDEX] = "index", [XSPD_MARK_REQID] = "reqid"};

/* "V" or "V/M" */
static int parse_mark(const char *text, struct xspd_mark *ret)
{
	char value[16] = "";
	size_t len = strcspn(text, "/");

	ret->mark_mask = UINT32_MAX;
	if (len < sizeof(value))
		memcpy(value, text, len);
	if (!cli_number(value, UINT32_MAX, &ret->mark) ||
	    (text[len] && !cli_number(text + len + 1, UINT32_MAX, &ret->mark_mask)) ||
	    ret->mark & ~ret->mark_mask)
		return cli_usage("mark set: mark '%s': give a value, or value/mask with no bit of "
				 "the value outside",
				 text);
	ret->set |= XSPD_MARK_MARK;
	return XSPD_DONE;
}

/* A number, or major:minor in hexadecimal as tc writes them. */
static bool parse_handle(const char *text, uint32_t *ret)
{
	unsigned int major, minor;
	char extra;

	if (cli_number(text, UINT32_MAX, ret))
		return true;
	if (strspn(text, "0123456789abcdefABCDEF:") != strlen(text) || text[0] == ':' ||
	    sscanf(text, "%4x:%4x%c", &major, &minor, &extra) != 2)
		return false;
	*ret = major << 16 | minor;
	return true;
}

static int parse_values(int argc, char **argv, struct xspd_mark *ret)
{
	int rc = XSPD_DONE;

	for (int i = 0; i < argc && !rc; i += 2) {
		const char *word = argv[i], *value = argv[i + 1];

		if (i + 1 == argc)
			return cli_usage("mark set: '%s' lacks its value", word);
		if (!strcmp(word, "mark")) {
			rc = parse_mark(value, ret);
		} else if (!strcmp(word, "priority") && parse_handle(value, &ret->priority)) {
			ret->set |= XSPD_MARK_PRIORITY;
		} else if (!strcmp(word, "classid") && parse_handle(value, &ret->classid)) {
			ret->set |= XSPD_MARK_CLASSID;
		} else {
			return cli_usage("mark set: '%s %s': give mark V[/M], priority P or "
					 "classid C, each a number, the latter also MAJOR:MINOR",
					 word, value);
		}
	}
	if (!rc && !ret->set)
		return cli_usage("mark set: nothing to write: give mark, priority or classid");
	return rc;
}

static int parse_key(const char *command, char **argv, struct xspd_mark_key *ret)
{
	for (uint32_t kind = 0; kind < XSPD_ARRAY_SIZE(kinds); kind++) {
		if (strcmp(argv[0], kinds[kind]))
			continue;
		ret->kind = kind;
		if (cli_number(argv[1], UINT32_MAX, &ret->value) && ret->value)
			return XSPD_DONE;
		return cli_usage("mark %s %s '%s': give a number above 0", command, argv[0],
				 argv[1]);
	}
	return cli_usage("mark %s '%s': say 'index N' or 'reqid N'", command, argv[0]);
}

static void print_one(const struct xspd_mark_key *key, const struct xspd_mark *mark)
{
	printf("%s %u", kinds[key->kind & 1], key->value);
	if (mark->set & XSPD_MARK_MARK)
		printf(" mark 0x%x/0x%x", mark->mark, mark->mark_mask);
	if (mark->set & XSPD_MARK_PRIORITY)
		printf(" priority %x:%x", mark->priority >> 16, mark->priority & 0xffff);
	if (mark->set & XSPD_MARK_CLASSID)
		printf(" classid %x:%x", mark->classid >> 16, mark->classid & 0xffff);
	printf("\n");
}

static void json_value(struct json_object *o, const char *key, bool set, uint64_t value)
{
	if (set)
		cli_json_number(o, key, value);
	else
		cli_json_text(o, key, NULL);
}

static struct json_object *one_json(const struct xspd_mark_key *key, const struct xspd_mark *mark)
{
	struct json_object *o = json_object_new_object();

	cli_json_text(o, "kind", kinds[key->kind & 1]);
	cli_json_number(o, "value", key->value);
	json_value(o, "mark", mark->set & XSPD_MARK_MARK, mark->mark);
	json_value(o, "mask", mark->set & XSPD_MARK_MARK, mark->mark_mask);
	json_value(o, "priority", mark->set & XSPD_MARK_PRIORITY, mark->priority);
	json_value(o, "classid", mark->set & XSPD_MARK_CLASSID, mark->classid);
	return o;
}

static int list(int map, bool json)
{
	struct json_object *array = json ? json_object_new_array() : NULL;
	struct xspd_mark_key key;
	struct xspd_mark mark;
	const void *last = NULL;

	while (bpf_map_get_next_key(map, last, &key) == 0) {
		last = &key;
		if (bpf_map_lookup_elem(map, &key, &mark) < 0)
			continue; /* taken away meanwhile */
		if (json)
			json_object_array_add(array, one_json(&key, &mark));
		else
			print_one(&key, &mark);
	}
	if (json)
		cli_json_print(array);
	return XSPD_DONE;
}

static int change(int map, bool sets, const struct xspd_mark_key *key, const struct xspd_mark *mark)
{
	int err =
		sets ? bpf_map_update_elem(map, key, mark, BPF_ANY) : bpf_map_delete_elem(map, key);

	if (err >= 0)
		return XSPD_DONE;
	if (errno == ENOENT)
		return cli_fail("mark del %s %u: nothing is set there; 'xspd mark list' shows all",
				kinds[key->kind], key->value);
	return cli_fail("mark: %s", errno == E2BIG ? "the table is full" : strerror(errno));
}

int mark_main(int argc, char **argv)
{
	struct cli_common common = {.reads = true};
	struct xspd_mark_key key = {};
	struct xspd_mark mark = {};
	xspd_autoclose int map = -1;
	bool sets, lists;
	int rc = cli_parse(&common, NULL, &argc, &argv);

	if (rc || common.help)
		return rc;
	sets = argc && !strcmp(argv[0], "set");
	lists = argc && !strcmp(argv[0], "list");
	if (!argc || (!sets && !lists && strcmp(argv[0], "del")))
		return cli_usage(
			"mark: say 'set index|reqid N ...', 'del index|reqid N' or 'list'");
	if (lists ? argc != 1 : sets ? argc < 3 : argc != 3)
		return cli_usage("mark %s: %s", argv[0],
				 lists ? "takes no words" : "say which: index N or reqid N");
	if (!lists)
		rc = parse_key(argv[0], argv + 1, &key);
	if (!rc && sets)
		rc = parse_values(argc - 3, argv + 3, &mark);
	rc = rc ?: cli_enter_netns(common.netns);
	if (rc)
		return rc;
	map = cli_lasting_open(common.instance, "xspd_mark");
	if (map < 0)
		return XSPD_FAILED;
	return lists ? list(map, common.json) : change(map, sets, &key, &mark);
}
