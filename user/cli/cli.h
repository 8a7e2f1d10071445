/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The command line: one *_main() per subcommand, and what they share.  Exit
 * codes: 0 done, 1 failed, 2 usage.  stdout is the answer, stderr the rest.
 */
#ifndef XSPD_CLI_CLI_H
#define XSPD_CLI_CLI_H

#include <stdbool.h>
#include <stdint.h>

enum xspd_exit {
	XSPD_DONE = 0,
	XSPD_FAILED = 1,
	XSPD_USAGE = 2,
};

/* argv[0] is the subcommand's name. */
int run_main(int argc, char **argv);
int status_main(int argc, char **argv);
int policy_main(int argc, char **argv);
int lookup_main(int argc, char **argv);
int attach_main(int argc, char **argv);
int detach_main(int argc, char **argv);
int exempt_main(int argc, char **argv);
int mark_main(int argc, char **argv);
int events_main(int argc, char **argv);
int top_main(int argc, char **argv);
int snapshot_main(int argc, char **argv);
int diff_main(int argc, char **argv);
int verify_main(int argc, char **argv);
int tune_main(int argc, char **argv);
int lint_main(int argc, char **argv);
int bench_main(int argc, char **argv);
int bench_sync_main(int argc, char **argv); /* "bench sync" */
int bench_dump_main(int argc, char **argv);
int bench_path_main(int argc, char **argv);
int bench_cache_main(int argc, char **argv);
int bench_tune_main(int argc, char **argv);
int bench_tunnel_main(int argc, char **argv);

/* One line on stderr, "xspd: ..."; returns XSPD_FAILED, or XSPD_USAGE. */
int cli_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int cli_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void cli_notice(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* What to put behind strerror(-@err): the remedy for a lack of privileges, or nothing. */
const char *cli_root_hint(int err);

enum cli_kind {
	CLI_FLAG,   /* bool */
	CLI_STRING, /* const char * */
	CLI_NUMBER, /* uint32_t, from min to max */
};

struct cli_option {
	const char *name;
	enum cli_kind kind;
	void *dest;
	uint32_t min, max;
};

/* What every subcommand takes. */
struct cli_common {
	const char *netns;
	const char *instance; /* set by cli_parse(): the name of --netns, or "default" */
	bool reads;	      /* of the caller: takes --json */
	bool json;
	bool help; /* handled: leave with XSPD_DONE */
};

/**
 * cli_parse() - Take the options out of the command line.
 * @options: of this subcommand besides the common ones, ended by a NULL name; may be NULL.
 * @argc, @argv: on return the words that are not options, without the subcommand's name.
 *
 * Names are exact. Complains itself.
 * Return: XSPD_DONE or XSPD_USAGE.
 */
int cli_parse(struct cli_common *common, const struct cli_option *options, int *argc, char ***argv);

/* The synopsis of one subcommand on stdout (main.c has the table). */
void cli_help(const char *command);

/* A decimal or 0x number of at most @max; false if it is not one. */
bool cli_number(const char *text, uint32_t max, uint32_t *ret);

/* Join the network namespace --netns names, if any. Complains itself: XSPD_DONE or XSPD_FAILED. */
int cli_enter_netns(const char *name);

/* Inode of the current network namespace, 0 if it cannot be told. */
uint64_t cli_netns_ino(void);
/* Its name in /run/netns, or NULL; lives until the next call. */
const char *cli_netns_name(uint64_t ino);

#endif
