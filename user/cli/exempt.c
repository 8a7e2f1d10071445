// SPDX-License-Identifier: GPL-2.0-only
/* xspd exempt add | del | list: local ports that enforce never drops. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <netinet/in.h>
#include <bpf/bpf.h>

#include "cli/cli.h"
#include "cli/mode.h"
#include "cli/selector.h"
#include "util.h"

/* IKE, whose sockets have policies of their own: built into the program. */
static const struct xspd_exempt builtin[] = {
	{.proto = IPPROTO_UDP, .dport = 500},
	{.proto = IPPROTO_UDP, .dport = 4500},
};

static void list_one(struct json_object *array, const struct xspd_exempt *key, uint16_t port,
		     bool built_in)
{
	struct json_object *o;

	if (!array) {
		printf("%s %u%s\n", cli_proto_name(key->proto), port, built_in ? " built-in" : "");
		return;
	}
	o = json_object_new_object();
	cli_json_text(o, "proto", cli_proto_name(key->proto));
	cli_json_number(o, "port", port);
	cli_json_bool(o, "built_in", built_in);
	json_object_array_add(array, o);
}

static int list(int map, bool json)
{
	struct json_object *array = json ? json_object_new_array() : NULL;
	struct xspd_exempt key;
	const void *last = NULL;

	for (size_t i = 0; i < XSPD_ARRAY_SIZE(builtin); i++)
		list_one(array, &builtin[i], builtin[i].dport, true);
	while (bpf_map_get_next_key(map, last, &key) == 0) {
		list_one(array, &key, ntohs(key.dport), false);
		last = &key;
	}
	if (json)
		cli_json_print(array);
	return XSPD_DONE;
}

static int change(int map, bool add, const struct xspd_exempt *key)
{
	const uint32_t one = 1;
	int err =
		add ? bpf_map_update_elem(map, key, &one, BPF_ANY) : bpf_map_delete_elem(map, key);

	if (err >= 0)
		return XSPD_DONE;
	if (errno == E2BIG)
		return cli_fail("exempt add: the list is full; take some off");
	if (errno == ENOENT)
		return cli_fail("exempt del %s %u: not in the list; 'xspd exempt list' shows it",
				cli_proto_name(key->proto), ntohs(key->dport));
	return cli_fail("exempt: %s", strerror(errno));
}

/* "udp 4789"; only what TCP and UDP check themselves is ever dropped. */
static int parse_port(const char *command, char **argv, struct xspd_exempt *ret)
{
	uint32_t port;
	uint8_t proto;

	if (!cli_proto_number(argv[0], &proto) || (proto != IPPROTO_TCP && proto != IPPROTO_UDP))
		return cli_usage(
			"exempt %s: '%s': give tcp or udp; of others nothing for this host "
			"is dropped that has a port",
			command, argv[0]);
	if (!cli_number(argv[1], UINT16_MAX, &port) || !port)
		return cli_usage("exempt %s %s: '%s': give a port from 1 to 65535", command,
				 argv[0], argv[1]);
	*ret = (struct xspd_exempt){.proto = proto, .dport = htons((uint16_t)port)};
	return XSPD_DONE;
}

int exempt_main(int argc, char **argv)
{
	struct cli_common common = {.reads = true};
	struct xspd_exempt key = {};
	xspd_autoclose int map = -1;
	bool adds, lists;
	int rc = cli_parse(&common, NULL, &argc, &argv);

	if (rc || common.help)
		return rc;
	adds = argc && !strcmp(argv[0], "add");
	lists = argc && !strcmp(argv[0], "list");
	if (!argc || (!adds && !lists && strcmp(argv[0], "del")))
		return cli_usage("exempt: say 'add PROTO PORT', 'del PROTO PORT' or 'list'");
	if (argc != (lists ? 1 : 3))
		return cli_usage("exempt %s: %s", argv[0],
				 lists ? "takes no words" : "give a protocol and a port");
	if (!lists)
		rc = parse_port(argv[0], argv + 1, &key);
	rc = rc ?: cli_enter_netns(common.netns);
	if (rc)
		return rc;
	map = cli_lasting_open(common.instance, "xspd_exempt");
	if (map < 0)
		return XSPD_FAILED;
	return lists ? list(map, common.json) : change(map, adds, &key);
}
