// SPDX-License-Identifier: GPL-2.0-only
/* Options, namespaces and complaints: what all subcommands do alike. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "util.h"

#define CLI_OPTIONS_MAX 16
#define NETNS_DIR	"/run/netns"

static void complain(const char *fmt, va_list ap)
{
	char line[512];

	vsnprintf(line, sizeof(line), fmt, ap);
	for (char *c = line; *c; c++) /* what was typed must not make a second line */
		if ((unsigned char)*c < ' ')
			*c = '?';
	fprintf(stderr, "xspd: %s\n", line);
}

int cli_fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	complain(fmt, ap);
	va_end(ap);
	return XSPD_FAILED;
}

int cli_usage(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	complain(fmt, ap);
	va_end(ap);
	return XSPD_USAGE;
}

void cli_notice(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	complain(fmt, ap);
	va_end(ap);
}

const char *cli_root_hint(int err)
{
	return err == -EPERM || err == -EACCES ? "; run as root" : "";
}

bool cli_number(const char *text, uint32_t max, uint32_t *ret)
{
	unsigned long long value;
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	/* not base 0: a leading zero must not mean octal */
	value = strtoull(text, &end, strncmp(text, "0x", 2) ? 10 : 16);
	if (*end || errno || value > max)
		return false;
	*ret = (uint32_t)value;
	return true;
}

static int store(const char *command, const struct cli_option *option, const char *arg)
{
	switch (option->kind) {
	case CLI_FLAG:
		*(bool *)option->dest = true;
		return XSPD_DONE;
	case CLI_STRING:
		*(const char **)option->dest = arg;
		return XSPD_DONE;
	case CLI_NUMBER:
		if (cli_number(arg, option->max, option->dest) &&
		    *(uint32_t *)option->dest >= option->min)
			return XSPD_DONE;
		return cli_usage("%s: --%s %s: give a number from %u to %u", command, option->name,
				 arg, option->min, option->max);
	}
	return XSPD_USAGE;
}

/* getopt_long() takes abbreviations; we do not, so that an option can be added later. */
static const char *unknown_option(int argc, char **argv, const struct cli_option *options)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++) {
		size_t len = strcspn(argv[i], "=");
		bool known = false;

		if (argv[i][0] != '-' || !argv[i][1])
			continue;
		for (const struct cli_option *o = options; o->name; o++) {
			if (strncmp(argv[i], "--", 2) || strlen(o->name) != len - 2 ||
			    strncmp(argv[i] + 2, o->name, len - 2))
				continue;
			known = true;
			if (o->kind != CLI_FLAG && !argv[i][len])
				i++; /* its argument */
			break;
		}
		if (!known)
			return argv[i];
	}
	return NULL;
}

/* Also a directory name in bpffs, which refuses dots. */
static int check_instance(const char *command, const struct cli_common *common)
{
	const char *name = common->instance;
	size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				  "0123456789_-");

	if (len && !name[len] && len <= 64)
		return XSPD_DONE;
	return cli_usage("%s: instance '%s': give --instance a name of at most 64 letters, "
			 "digits, '-' and '_'",
			 command, name);
}

int cli_parse(struct cli_common *common, const struct cli_option *options, int *argc, char ***argv)
{
	struct cli_option all[CLI_OPTIONS_MAX + 1] = {
		{"netns", CLI_STRING, &common->netns},
		{"instance", CLI_STRING, &common->instance},
		{"help", CLI_FLAG, &common->help},
		{common->reads ? "json" : NULL, CLI_FLAG, &common->json},
	};
	struct option longopts[CLI_OPTIONS_MAX + 1] = {};
	const char *command = (*argv)[0], *unknown;
	int n = common->reads ? 4 : 3, c, which, err;

	for (; options && options->name && n < CLI_OPTIONS_MAX; options++)
		all[n++] = *options;
	for (int i = 0; i < n; i++)
		longopts[i] =
			(struct option){.name = all[i].name, .has_arg = all[i].kind != CLI_FLAG};

	unknown = unknown_option(*argc, *argv, all);
	if (unknown)
		return cli_usage("%s: unknown option '%s'; see 'xspd help %s'", command, unknown,
				 command);
	opterr = 0;
	optind = 0;
	while ((c = getopt_long(*argc, *argv, "", longopts, &which)) != -1) {
		if (c)
			return cli_usage("%s: '%s' lacks its argument, or takes none; see 'xspd "
					 "help %s'",
					 command, (*argv)[optind - 1], command);
		err = store(command, &all[which], optarg);
		if (err)
			return err;
	}
	*argc -= optind;
	*argv += optind;
	if (common->help)
		cli_help(command);
	if (!common->instance)
		common->instance = common->netns ? common->netns : "default";
	return check_instance(command, common);
}

int cli_enter_netns(const char *name)
{
	xspd_autoclose int fd = -1;
	char path[300];

	if (!name)
		return XSPD_DONE;
	if (!*name || strchr(name, '/') || strlen(name) > 255)
		return cli_usage("--netns '%s': give a name as 'ip netns' lists it", name);
	snprintf(path, sizeof(path), NETNS_DIR "/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return cli_fail("--netns %s: no such namespace; 'ip netns' lists them", name);
	/* only the network: the mount namespace, and with it /sys/fs/bpf, stays */
	if (fd < 0 || setns(fd, CLONE_NEWNET) < 0)
		return cli_fail("--netns %s: %s%s", name, strerror(errno), cli_root_hint(-errno));
	return XSPD_DONE;
}

uint64_t cli_netns_ino(void)
{
	struct stat st;

	return stat("/proc/thread-self/ns/net", &st) < 0 ? 0 : st.st_ino;
}

const char *cli_netns_name(uint64_t ino)
{
	static char name[256];
	const char *found = NULL;
	struct dirent *entry;
	struct stat st;
	DIR *dir = opendir(NETNS_DIR);

	while (dir && !found && (entry = readdir(dir))) {
		if (fstatat(dirfd(dir), entry->d_name, &st, 0) < 0 || st.st_ino != ino)
			continue;
		snprintf(name, sizeof(name), "%s", entry->d_name);
		found = name;
	}
	if (dir)
		closedir(dir);
	return found;
}
