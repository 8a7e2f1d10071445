// SPDX-License-Identifier: GPL-2.0-only
/* xspd: the table of subcommands. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <bpf/libbpf.h>

#include "cli/cli.h"
#include "util.h"

struct command {
	const char *name;
	int (*main)(int argc, char **argv);
	const char *args;
	const char *help;
};

static int help_main(int argc, char **argv);
static int version_main(int argc, char **argv);

static const struct command commands[] = {
	{"run", run_main,
	 "[--lease MS] [--capacity N] [--cache off|N] [--rcvbuf BYTES] [--samples N] "
	 "[--metrics [ADDR:]PORT|unix:PATH] [--top N]",
	 "mirror the kernel's policies until SIGTERM"},
	{"status", status_main, "", "is it running, is it in doubt, what did the hooks see"},
	{"policy", policy_main, "list | show INDEX", "the mirrored policies and their counters"},
	{"lookup", lookup_main,
	 "dir D src A dst A [proto P] [sport N dport N | type N code N | key K] [mark M] "
	 "[if_id N] [dev DEV] [frag first|later] [--explain] [--reverse [iif DEV]] | "
	 "--forward ... [--snat A[:N]] [--dnat A[:N]] | --steer ... | --file FLOWS; "
	 "[--with CHANGES]",
	 "which policy governs a flow"},
	{"attach", attach_main,
	 "DEV --xdp|--ingress|--egress... [--mode observe|mark|enforce|bypass|steer|guard[,...]] "
	 "[--dry-run] [--ignore-netfilter] [--linger S] [--drop] [--clsact]",
	 "classify the packets of a device, and act early on them"},
	{"detach", detach_main, "DEV [--xdp|--ingress|--egress...]", "stop that"},
	{"exempt", exempt_main, "add|del PROTO PORT | list", "local ports that are never dropped"},
	{"mark", mark_main,
	 "set index|reqid N [mark V[/M]] [priority P] [classid C] | del index|reqid N | list",
	 "what mode mark writes into packets"},
	{"verify", verify_main, "[--seconds N]",
	 "for some seconds: does the kernel do what xspd answers"},
	{"lint", lint_main, "[--file SNAPSHOT] [--fail-on LEVEL] [--ignore ID,...] [--all]",
	 "what is wrong with the policies, or will surprise somebody"},
	{"tune", tune_main,
	 "[--file SNAPSHOT] [--hthresh4 L/R] [--hthresh6 L/R] [--calibrate] [--apply "
	 "[--max-stall MS] [--keep] [--accept-ties]]",
	 "what a lookup costs the kernel, why, and which thresholds make it cheaper"},
	{"events", events_main, "[--follow] [--changes | --samples] [--last N]",
	 "what happened to the policies, and packets worth telling of"},
	{"top", top_main,
	 "[--interval S] [--count N] [--sort rate|packets|bytes|index] [--filter TEXT] "
	 "[--follow INDEX] [--plain]",
	 "the busiest policies and reasons, live"},
	{"snapshot", snapshot_main, "save|load FILE [--states] [--with-keys]",
	 "policies and SAs into a file, and back"},
	{"diff", diff_main, "A B",
	 "which flows two snapshots, or one and 'live', answer differently"},
	{"bench", bench_main,
	 "lookup [--shape S]... [--policies N] [--no-kernel] | start | sync [--full] | path | "
	 "cache | "
	 "tunnel [--tunnels N,...] [--setups S,...] | tune | shapes",
	 "build policies in a namespace of its own, and measure lookups over them"},
	{"help", help_main, "[COMMAND]", "this text"},
	{"version", version_main, "", "the version"},
};

static const struct command *find(const char *name)
{
	for (size_t i = 0; i < XSPD_ARRAY_SIZE(commands); i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

void cli_help(const char *name)
{
	const struct command *command = find(name);

	printf("usage: xspd %s%s%s\n%s; see xspd-%s(8)\n", name, *command->args ? " " : "",
	       command->args, command->help, name);
}

static int help_main(int argc, char **argv)
{
	if (argc > 2)
		return cli_usage("help: one command at a time, not '%s'", argv[2]);
	if (argc == 2) {
		if (!find(argv[1]))
			return cli_usage("unknown command '%s'; see 'xspd help'", argv[1]);
		cli_help(argv[1]);
		return XSPD_DONE;
	}
	printf("usage: xspd COMMAND [--netns NAME] [--instance NAME] [--json] ...\n\n");
	for (size_t i = 0; i < XSPD_ARRAY_SIZE(commands); i++)
		printf("  %-9s %s\n", commands[i].name, commands[i].help);
	printf("\n'xspd help COMMAND' for its words, xspd(8) for the whole.\n");
	return XSPD_DONE;
}

static int version_main(int argc, char **argv)
{
	if (argc > 1)
		return cli_usage("version: takes no words, not '%s'", argv[1]);
	printf("xspd %s\n", XSPD_VERSION);
	return XSPD_DONE;
}

/* An answer that did not reach its reader is a failure. */
static int finish(int rc)
{
	if (fflush(stdout) == 0 && !ferror(stdout) && fclose(stdout) == 0)
		return rc;
	cli_fail("stdout: %s", strerror(errno ? errno : EIO));
	return XSPD_FAILED;
}

int main(int argc, char **argv)
{
	const struct command *command;

	signal(SIGPIPE, SIG_IGN);
	libbpf_set_print(NULL); /* errors are ours to tell, in one line */
	if (argc < 2)
		return cli_usage("no command; see 'xspd help'");
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "--version"))
		argv[1] += 2;
	command = find(argv[1]);
	if (!command)
		return cli_usage("unknown command '%s'; see 'xspd help'", argv[1]);
	return finish(command->main(argc - 1, argv + 1));
}
