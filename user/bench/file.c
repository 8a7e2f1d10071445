/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rule files: one policy a line,
 *     family src/len dst/len proto sport/mask dport/mask priority
 * and traces beside them (.int, .rnd instead of .pol), one flow a line,
 *     family src dst proto sport dport line-of-the-winner
 * plain or compressed with xz.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

#include "bench/shape.h"
#include "util.h"

struct reader {
	FILE *file;
	pid_t xz; /* 0: the file is read as it is */
};

static bool ends_in(const char *path, const char *suffix)
{
	size_t len = strlen(path), tail = strlen(suffix);

	return len >= tail && !strcmp(path + len - tail, suffix);
}

static int reader_spawn(struct reader *ret, const char *path)
{
	char *argv[] = {"xz", "-dc", "--", (char *)path, NULL};
	posix_spawn_file_actions_t actions;
	int pipefd[2], err;

	if (pipe2(pipefd, O_CLOEXEC) < 0)
		return -errno;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, pipefd[1], STDOUT_FILENO);
	err = -posix_spawnp(&ret->xz, "xz", &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(pipefd[1]);
	if (err < 0) {
		close(pipefd[0]);
		return err;
	}
	ret->file = fdopen(pipefd[0], "r");
	return ret->file ? 0 : -errno;
}

static int reader_open(struct reader *ret, const char *path)
{
	*ret = (struct reader){};
	if (access(path, R_OK) < 0)
		return -errno;
	if (ends_in(path, ".xz"))
		return reader_spawn(ret, path);
	ret->file = fopen(path, "re");
	return ret->file ? 0 : -errno;
}

/* -EIO if the decompressor was not content. */
static int reader_close(struct reader *reader)
{
	int status = 0;

	if (reader->file)
		fclose(reader->file);
	if (reader->xz > 0 && waitpid(reader->xz, &status, 0) < 0)
		return -errno;
	return status ? -EIO : 0;
}

/* Room for one more of @size bytes each; the array doubles. */
static int grow(void *array, uint32_t count, size_t size)
{
	void **p = array, *bigger;

	if (count & (count - 1) || (count && count < 1024))
		return 0;
	bigger = realloc(*p, (count ? count * 2 : 1024) * size);
	if (!bigger)
		return -ENOMEM;
	*p = bigger;
	return 0;
}

static int parse_family(const char *word)
{
	return !strcmp(word, "4") ? AF_INET : !strcmp(word, "6") ? AF_INET6 : AF_UNSPEC;
}

static int parse_rule(const char *line, struct xspd_pol *ret)
{
	char family[4], src[64], dst[64];
	unsigned int slen, dlen, proto, sport, smask, dport, dmask;
	struct xspd_pol pol = {.dir = XSPD_OUT, .action = XSPD_ALLOW};
	unsigned int most;

	if (sscanf(line, "%3s %63[^/]/%u %63[^/]/%u %u %u/%x %u/%x %" SCNu32, family, src, &slen,
		   dst, &dlen, &proto, &sport, &smask, &dport, &dmask, &pol.priority) != 11)
		return -EBADMSG;
	pol.sel.family = (uint16_t)parse_family(family);
	most = pol.sel.family == AF_INET ? 32 : 128;
	if (inet_pton(pol.sel.family, src, &pol.sel.saddr) != 1 ||
	    inet_pton(pol.sel.family, dst, &pol.sel.daddr) != 1 || slen > most || dlen > most ||
	    proto > 0xff || (sport | smask | dport | dmask) > 0xffff)
		return -EBADMSG;
	pol.sel.prefixlen_s = (uint8_t)slen;
	pol.sel.prefixlen_d = (uint8_t)dlen;
	pol.sel.proto = (uint8_t)proto;
	pol.sel.sport = htons((uint16_t)sport);
	pol.sel.sport_mask = htons((uint16_t)smask);
	pol.sel.dport = htons((uint16_t)dport);
	pol.sel.dport_mask = htons((uint16_t)dmask);
	*ret = pol;
	return 0;
}

static int parse_flow(const char *line, struct xspd_flow *ret, uint32_t *ret_winner)
{
	char family[4], src[64], dst[64];
	unsigned int proto, sport, dport;
	struct xspd_flow flow = {.dir = XSPD_OUT};
	int af;

	if (sscanf(line, "%3s %63s %63s %u %u %u %" SCNu32, family, src, dst, &proto, &sport,
		   &dport, ret_winner) != 7)
		return -EBADMSG;
	af = parse_family(family);
	if (inet_pton(af, src, flow.saddr) != 1 || inet_pton(af, dst, flow.daddr) != 1 ||
	    proto > 0xff || (sport | dport) > 0xffff)
		return -EBADMSG;
	flow.family = af == AF_INET ? XSPD_INET : XSPD_INET6;
	flow.proto = (uint8_t)proto;
	flow.sport = htons((uint16_t)sport);
	flow.dport = htons((uint16_t)dport);
	*ret = flow;
	return 0;
}

static bool is_any(const struct xspd_pol *pol)
{
	const struct xfrm_selector *sel = &pol->sel;

	return !sel->prefixlen_d && !sel->prefixlen_s && !sel->proto && !sel->dport_mask &&
	       !sel->sport_mask;
}

static int read_rules(struct xspd_bench_set *set, FILE *file)
{
	char line[256];
	int err;

	while (fgets(line, sizeof(line), file)) {
		err = grow(&set->pols, set->count, sizeof(*set->pols));
		if (!err)
			err = parse_rule(line, &set->pols[set->count]);
		if (err < 0)
			return err;
		set->count++;
	}
	if (!set->count)
		return -ENODATA;
	if (is_any(&set->pols[set->count - 1]))
		set->catch_all = set->count;
	return 0;
}

static int read_flows(struct xspd_bench_set *set, int which, FILE *file)
{
	uint32_t *count = &set->traced[which];
	char line[256];
	int err;

	while (fgets(line, sizeof(line), file)) {
		err = grow(&set->trace[which], *count, sizeof(struct xspd_flow));
		if (!err)
			err = grow(&set->winner[which], *count, sizeof(uint32_t));
		if (!err)
			err = parse_flow(line, &set->trace[which][*count],
					 &set->winner[which][*count]);
		if (err < 0)
			return err;
		(*count)++;
	}
	return 0;
}

/* @path with @kind in place of ".pol"; NULL if it has no ".pol". */
static char *trace_path(const char *path, const char *kind)
{
	const char *tail = ends_in(path, ".xz") ? ".xz" : "";
	size_t stem = strlen(path) - strlen(tail);
	char *ret = NULL;

	if (stem < 4 || strncmp(path + stem - 4, ".pol", 4))
		return NULL;
	if (asprintf(&ret, "%.*s%s%s", (int)stem - 4, path, kind, tail) < 0)
		return NULL;
	return ret;
}

static int read_trace(struct xspd_bench_set *set, int which, const char *path, uint32_t *ret_line)
{
	xspd_autofree char *name = trace_path(path, which ? ".rnd" : ".int");
	struct reader reader;
	int err, closed;

	if (!name || access(name, R_OK) < 0)
		return 0;
	err = reader_open(&reader, name);
	if (!err)
		err = read_flows(set, which, reader.file);
	*ret_line = set->traced[which] + 1;
	closed = reader_close(&reader);
	return err ? err : closed;
}

int xspd_bench_file_read(struct xspd_bench_set *set, const char *path, uint32_t *ret_line)
{
	struct reader reader;
	int err, closed;

	err = reader_open(&reader, path);
	if (!err)
		err = read_rules(set, reader.file);
	*ret_line = set->count + 1;
	closed = reader_close(&reader);
	if (!err)
		err = closed;
	for (int i = 0; i < 2 && !err; i++)
		err = read_trace(set, i, path, ret_line);
	return err;
}
