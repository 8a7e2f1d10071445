// SPDX-License-Identifier: GPL-2.0-only
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "cli/cli.h"
#include "cli/history.h"
#include "cli/mode.h"
#include "cli/selector.h"
#include "cli/view.h"
#include "reason.h"
#include "util.h"

#define CHANGES_SIZE (XSPD_CHANGES * sizeof(struct xspd_changed))
#define SAMPLES_SIZE (XSPD_SAMPLES * sizeof(struct xspd_sample))

static int map(const char *instance, const char *name, size_t size, const void **ret)
{
	xspd_autoclose int fd = cli_lasting_open(instance, name);
	void *at;

	if (fd < 0)
		return XSPD_FAILED;
	at = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return cli_fail("instance %s: %s: %s", instance, name, strerror(errno));
	*ret = at;
	return XSPD_DONE;
}

int cli_history_open(struct cli_history *ret, const char *instance)
{
	struct cli_history history = {};
	int rc = map(instance, "xspd_change", CHANGES_SIZE, (const void **)&history.change);

	rc = rc ?: map(instance, "xspd_sample", SAMPLES_SIZE, (const void **)&history.sample);
	if (rc)
		cli_history_close(&history);
	else
		*ret = history;
	return rc;
}

void cli_history_close(struct cli_history *history)
{
	if (history->change)
		munmap((void *)history->change, CHANGES_SIZE);
	if (history->sample)
		munmap((void *)history->sample, SAMPLES_SIZE);
	*history = (struct cli_history){};
}

uint64_t cli_history_changes(const struct cli_history *history)
{
	uint64_t last = 0;

	for (uint32_t i = 0; i < XSPD_CHANGES; i++) {
		uint64_t seq = __atomic_load_n(&history->change[i].seq, __ATOMIC_ACQUIRE);

		last = seq > last ? seq : last;
	}
	return last;
}

uint64_t cli_history_samples(const struct cli_history *history)
{
	uint64_t last = 0;

	for (uint32_t i = 0; i < XSPD_SAMPLES; i++) {
		uint64_t seq = __atomic_load_n(&history->sample[i].seq, __ATOMIC_ACQUIRE);

		last = seq > last ? seq : last;
	}
	return last;
}

/* The number is stored last, and taken away before the record is written anew. */
static bool settled(const uint64_t *seq, uint64_t want)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(seq, __ATOMIC_ACQUIRE) == want;
}

bool cli_history_change(const struct cli_history *history, uint64_t seq, struct xspd_changed *ret)
{
	const struct xspd_changed *from = &history->change[seq % XSPD_CHANGES];
	const uint64_t *at = (const uint64_t *)&from->seq;

	if (!settled(at, seq))
		return false;
	memcpy(ret, from, sizeof(*ret));
	return settled(at, seq);
}

bool cli_history_sample(const struct cli_history *history, uint64_t seq, struct xspd_sample *ret)
{
	const struct xspd_sample *from = &history->sample[seq % XSPD_SAMPLES];
	const uint64_t *at = (const uint64_t *)&from->seq;

	if (!settled(at, seq))
		return false;
	memcpy(ret, from, sizeof(*ret));
	return settled(at, seq);
}

static const char *address(const struct xspd_sample *sample, const __be32 *addr, char *buf)
{
	return inet_ntop(sample->family == XSPD_INET6 ? AF_INET6 : AF_INET, addr, buf,
			 INET6_ADDRSTRLEN);
}

static const char *device(const struct xspd_sample *sample, char *buf)
{
	if (!if_indextoname(sample->ifindex, buf))
		snprintf(buf, IF_NAMESIZE, "if%u", sample->ifindex);
	return buf;
}

void cli_sample_flow(const struct xspd_sample *sample, char *buf, size_t size)
{
	char src[INET6_ADDRSTRLEN], dst[INET6_ADDRSTRLEN];
	unsigned int sport = ntohs(sample->sport), dport = ntohs(sample->dport);
	size_t n = (size_t)snprintf(
		buf, size, "src %s dst %s proto %s", address(sample, sample->saddr, src),
		address(sample, sample->daddr, dst), cli_proto_name(sample->proto));

	if (n >= size)
		return;
	if (sample->frag)
		snprintf(buf + n, size - n, " frag %s",
			 sample->frag == XSPD_FRAG_FIRST ? "first" : "later");
	else if (cli_proto_is_icmp(sample->proto))
		snprintf(buf + n, size - n, " type %u code %u", sport, dport);
	else if (cli_proto_has_ports(sample->proto))
		snprintf(buf + n, size - n, " sport %u dport %u", sport, dport);
	else if (sample->proto == IPPROTO_GRE)
		snprintf(buf + n, size - n, " key %u", sport << 16 | dport);
}

void cli_sample_rest(const struct xspd_sample *sample, char *buf, size_t size)
{
	char dev[IF_NAMESIZE], index[32] = "none", mark[24] = "", act[64] = "";

	if (sample->mark)
		snprintf(mark, sizeof(mark), "mark 0x%x ", sample->mark);
	if (sample->index)
		snprintf(index, sizeof(index), "%u", sample->index);
	if (sample->act)
		snprintf(act, sizeof(act), " act %s", xspd_act_name(sample->act));
	snprintf(buf, size, "dir %s %sdev %s hook %s policy %s reason %s%s",
		 xspd_dir_name(sample->dir), mark, device(sample, dev),
		 xspd_hook_name(sample->hook), index, xspd_reason_name(sample->reason), act);
}

struct json_object *cli_sample_json(const struct xspd_sample *sample)
{
	struct json_object *o = json_object_new_object();
	char text[INET6_ADDRSTRLEN];

	cli_json_text(o, "dir", xspd_dir_name(sample->dir));
	cli_json_text(o, "src", address(sample, sample->saddr, text));
	cli_json_text(o, "dst", address(sample, sample->daddr, text));
	cli_json_number(o, "proto", sample->proto);
	cli_json_number(o, "sport", ntohs(sample->sport));
	cli_json_number(o, "dport", ntohs(sample->dport));
	cli_json_text(o, "frag",
		      sample->frag ? sample->frag == XSPD_FRAG_FIRST ? "first" : "later" : NULL);
	cli_json_number(o, "mark", sample->mark);
	cli_json_text(o, "dev", device(sample, text));
	cli_json_number(o, "ifindex", sample->ifindex);
	cli_json_text(o, "hook", xspd_hook_name(sample->hook));
	if (sample->index)
		cli_json_number(o, "index", sample->index);
	else
		cli_json_text(o, "index", NULL);
	cli_json_text(o, "reason", xspd_reason_name(sample->reason));
	cli_json_text(o, "act", sample->act ? xspd_act_name(sample->act) : NULL);
	cli_json_number(o, "bytes", sample->bytes);
	cli_json_number(o, "missed", sample->missed);
	return o;
}
