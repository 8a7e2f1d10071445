// SPDX-License-Identifier: GPL-2.0-only
/* xspd snapshot: a namespace's policies and SAs into a file, and back. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/selector.h"
#include "nl/nl.h"
#include "reason.h"
#include "snapshot/collect.h"
#include "snapshot/load.h"
#include "snapshot/save.h"
#include "snapshot/state.h"
#include "util.h"

#define PROGRESS_EVERY 100000000ull /* ns */

static volatile sig_atomic_t stop;

static void on_signal(int signal)
{
	(void)signal;
	stop = 1;
}

/* A signal stops us between two entries, so that what was done can be told. */
static void catch_signals(void)
{
	const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = on_signal};

	for (size_t i = 0; i < XSPD_ARRAY_SIZE(signals); i++)
		sigaction(signals[i], &action, NULL);
}

struct words {
	const char *path;
	bool states, keys;
	struct cli_common common;
};

/* --- save -------------------------------------------------------------------- */
static int collect(const struct words *words, struct xspd_vault *states,
		   struct xspd_vault *policies)
{
	int err = xspd_collect_policies(policies);

	if (err == -EBUSY)
		return cli_fail("snapshot: policies change too fast to be read whole; try again");
	if (err)
		return cli_fail("snapshot: read policies: %s%s", strerror(-err),
				cli_root_hint(err));
	err = words->states ? xspd_collect_states(states, words->keys) : 0;
	if (err == -ENOKEY)
		return cli_fail("snapshot: this kernel hides the keys of SAs (lockdown); save "
				"without --with-keys");
	if (err)
		return cli_fail("snapshot: read SAs: %s%s", strerror(-err), cli_root_hint(err));
	return XSPD_DONE;
}

static int explain_save(const char *path, int err)
{
	switch (err) {
	case -EINTR:
		return cli_fail("snapshot: interrupted; %s is what it was", path);
	case -EEXIST:
		return cli_fail("snapshot: %s: not a file; give the name of one", path);
	case -EMSGSIZE:
		return cli_fail("snapshot: an entry is too long to be loaded again; nothing is "
				"saved");
	default:
		return cli_fail("snapshot: %s: %s", path, strerror(-err));
	}
}

static void print_saved(const struct words *words, const struct xspd_snap_header *header)
{
	struct json_object *o;

	if (!words->common.json) {
		printf("%s: %u policies", words->path, header->policies);
		if (words->states)
			printf(" and %u SAs %s their keys", header->states,
			       words->keys ? "with" : "without");
		printf(", %" PRIu64 " bytes\n", header->body_size + sizeof(*header));
		return;
	}
	o = json_object_new_object();
	cli_json_text(o, "file", words->path);
	cli_json_number(o, "policies", header->policies);
	cli_json_number(o, "states", header->states);
	cli_json_bool(o, "keys", words->keys);
	cli_json_number(o, "bytes", header->body_size + sizeof(*header));
	cli_json_print(o);
}

static int save(const struct words *words)
{
	uint32_t flags =
		(words->states ? XSPD_SNAP_STATES : 0) | (words->keys ? XSPD_SNAP_KEYS : 0);
	struct xspd_vault states = {}, policies = {};
	struct xspd_snap_header header;
	int rc = collect(words, &states, &policies), err;

	if (!rc) {
		err = xspd_snap_save(words->path, flags, &states, &policies, &stop, &header);
		rc = err ? explain_save(words->path, err) : XSPD_DONE;
	}
	xspd_vault_empty(&states);
	xspd_vault_empty(&policies);
	if (!rc)
		print_saved(words, &header);
	return rc;
}

/* --- load -------------------------------------------------------------------- */
struct telling {
	bool terminal, shown;
	uint64_t next;
	struct json_object *refused; /* NULL: told on stderr */
};

static void clear_line(struct telling *telling)
{
	if (telling->shown)
		fputs("\r\033[K", stderr);
	telling->shown = false;
}

static void on_progress(void *ctx, uint64_t done, uint64_t total)
{
	struct telling *telling = ctx;
	uint64_t now = xspd_mono();

	if (!telling->terminal || now < telling->next)
		return;
	fprintf(stderr, "\rxspd: snapshot: %" PRIu64 " of %" PRIu64, done, total);
	telling->shown = true;
	telling->next = now + PROGRESS_EVERY;
}

static void state_text(const struct nlmsghdr *nlh, char *buf, size_t size)
{
	char src[INET6_ADDRSTRLEN] = "?", dst[INET6_ADDRSTRLEN] = "?";
	struct xspd_snap_state state;

	*buf = '\0';
	if (xspd_snap_state_read(nlh, &state))
		return;
	inet_ntop(state.info.family, &state.info.saddr, src, sizeof(src));
	inet_ntop(state.info.family, &state.info.id.daddr, dst, sizeof(dst));
	snprintf(buf, size, "src %s dst %s proto %s spi 0x%08x reqid %u", src, dst,
		 cli_proto_name(state.info.id.proto), ntohl(state.info.id.spi), state.info.reqid);
}

static void policy_text(const struct nlmsghdr *nlh, char *buf, size_t size)
{
	struct xspd_event event;
	struct xspd_pol *pol = &event.pol;
	struct xspd_info info = {};
	size_t len;

	*buf = '\0';
	if (xspd_nl_decode(nlh, &event) || event.kind != XSPD_EVENT_POLICY)
		return;
	info.family = (enum xspd_family)pol->sel.family;
	memcpy(info.daddr, &pol->sel.daddr, sizeof(info.daddr));
	memcpy(info.saddr, &pol->sel.saddr, sizeof(info.saddr));
	info.dlen = pol->sel.prefixlen_d;
	info.slen = pol->sel.prefixlen_s;
	info.proto = pol->sel.proto;
	info.dport = pol->sel.dport;
	info.dport_mask = pol->sel.dport_mask;
	info.sport = pol->sel.sport;
	info.sport_mask = pol->sel.sport_mask;
	info.ifindex = (uint32_t)pol->sel.ifindex;
	cli_selector_text(&info, buf, size);
	len = strlen(buf);
	snprintf(buf + len, size - len, " dir %s priority %u index %u", xspd_dir_name(pol->dir),
		 pol->priority, pol->index);
	len = strlen(buf);
	if (pol->mark | pol->mark_mask)
		snprintf(buf + len, size - len, " mark 0x%x/0x%x", pol->mark, pol->mark_mask);
	len = strlen(buf);
	if (pol->if_id)
		snprintf(buf + len, size - len, " if_id 0x%x", pol->if_id);
}

static void on_refused(void *ctx, const struct nlmsghdr *nlh, int error, const char *text)
{
	bool state = nlh->nlmsg_type == XFRM_MSG_NEWSA;
	struct telling *telling = ctx;
	struct json_object *o;
	char what[400];

	state ? state_text(nlh, what, sizeof(what)) : policy_text(nlh, what, sizeof(what));
	if (!telling->refused) {
		clear_line(telling);
		cli_notice("snapshot: %s %s: %s%s%s", state ? "SA" : "policy", what,
			   strerror(-error), text ? ": " : "", text ? text : "");
		return;
	}
	o = json_object_new_object();
	cli_json_text(o, "kind", state ? "state" : "policy");
	cli_json_text(o, "what", what);
	cli_json_text(o, "error", strerror(-error));
	cli_json_text(o, "reason", text);
	json_object_array_add(telling->refused, o);
}

static void print_loaded(const struct words *words, const struct xspd_load_result *result,
			 struct telling *telling)
{
	struct json_object *o;

	if (!words->common.json) {
		printf("%s: %u policies", words->path, result->policies);
		if (words->states)
			printf(" and %u SAs", result->states);
		printf(" loaded");
		if (result->policies_unchanged)
			printf(", %u policies were there already", result->policies_unchanged);
		if (result->policies_refused | result->states_refused)
			printf(", %u policies and %u SAs refused", result->policies_refused,
			       result->states_refused);
		printf("\n");
		return;
	}
	o = json_object_new_object();
	cli_json_text(o, "file", words->path);
	cli_json_number(o, "policies", result->policies);
	cli_json_number(o, "policies_unchanged", result->policies_unchanged);
	cli_json_number(o, "states", result->states);
	cli_json_number(o, "left", result->left);
	json_object_object_add(o, "refused", json_object_get(telling->refused));
	cli_json_print(o);
}

static int load_read(const struct words *words, const struct xspd_snap *snap)
{
	struct telling telling = {.terminal = isatty(STDERR_FILENO)};
	struct xspd_load load = {.states = words->states,
				 .stop = &stop,
				 .refused = on_refused,
				 .progress = on_progress,
				 .ctx = &telling};
	struct xspd_load_result result;
	int err;

	if (words->common.json)
		telling.refused = json_object_new_array();
	err = xspd_snap_load(snap, &load, &result);
	clear_line(&telling);
	if (!err || err == -EINTR)
		print_loaded(words, &result, &telling);
	json_object_put(telling.refused);
	if (err == -EINTR)
		return cli_fail("snapshot: interrupted with %" PRIu64 " entries left; load %s "
				"again for the rest",
				result.left, words->path);
	if (err)
		return cli_fail("snapshot: after %u SAs and %u policies: %s%s", result.states,
				result.policies, strerror(-err), cli_root_hint(err));
	return result.policies_refused | result.states_refused ? XSPD_FAILED : XSPD_DONE;
}

static int load(const struct words *words)
{
	enum xspd_snap_fault fault;
	struct xspd_snap snap;
	int err = xspd_snap_read(words->path, &snap, &fault), rc;

	if (err == -EBADMSG && fault == XSPD_SNAP_OTHER_VERSION)
		return cli_fail("snapshot: %s: format version %u, this xspd reads %u; nothing is "
				"loaded",
				words->path, snap.header.version, XSPD_SNAP_VERSION);
	if (err == -EBADMSG)
		return cli_fail("snapshot: %s: %s; nothing is loaded", words->path,
				xspd_snap_fault_text(fault));
	if (err)
		return cli_fail("snapshot: %s: %s", words->path, strerror(-err));
	if (words->states && !(snap.header.flags & XSPD_SNAP_STATES)) {
		rc = cli_fail("snapshot: %s: saved without --states, there are no SAs to load",
			      words->path);
	} else {
		if (!words->states && snap.header.states)
			cli_notice("snapshot: %s: its %u SAs stay out without --states",
				   words->path, snap.header.states);
		rc = load_read(words, &snap);
	}
	xspd_snap_drop(&snap);
	return rc;
}

int snapshot_main(int argc, char **argv)
{
	struct words words = {.common = {.reads = true}};
	const struct cli_option options[] = {
		{"states", CLI_FLAG, &words.states},
		{"with-keys", CLI_FLAG, &words.keys},
		{},
	};
	int rc = cli_parse(&words.common, options, &argc, &argv);
	bool saving;

	if (rc || words.common.help)
		return rc;
	if (argc != 2 || (strcmp(argv[0], "save") && strcmp(argv[0], "load")))
		return cli_usage("snapshot: say 'save FILE' or 'load FILE'; see 'xspd help "
				 "snapshot'");
	saving = !strcmp(argv[0], "save");
	words.path = argv[1];
	if (!saving && words.keys)
		return cli_usage("snapshot: --with-keys is for save; a load takes the keys that "
				 "are in the file");
	if (words.keys && !words.states)
		return cli_usage("snapshot: --with-keys lacks --states: policies have no keys");
	rc = cli_enter_netns(words.common.netns);
	if (rc)
		return rc;
	catch_signals();
	return saving ? save(&words) : load(&words);
}
