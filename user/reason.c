// SPDX-License-Identifier: GPL-2.0-only
/* The names that users see for the enums of abi.h. */
#include <stddef.h>

#include "reason.h"
#include "util.h"

static const char *const reasons[XSPD_R_MAX_] = {
	[XSPD_R_NONE] = "none",
	[XSPD_R_BYPASS] = "bypass",
	[XSPD_R_PROTECT] = "protect",
	[XSPD_R_BLOCK] = "block",
	[XSPD_R_NO_POLICY] = "no-policy",
	[XSPD_R_DEFAULT_BLOCK] = "default-block",
	[XSPD_R_SHORT] = "short-packet",
	[XSPD_R_NOT_IP] = "not-ip",
	[XSPD_R_HEADER] = "bad-header",
	[XSPD_R_UNKNOWN_MARK] = "unknown-mark",
	[XSPD_R_UNKNOWN_OIF] = "unknown-oif",
	[XSPD_R_UNKNOWN_PORTS] = "unknown-ports",
	[XSPD_R_TIE] = "tie",
	[XSPD_R_UNMODELLED] = "unmodelled",
	[XSPD_R_CHAIN] = "long-chain",
	[XSPD_R_BUSY] = "busy",
	[XSPD_R_DOUBT] = "doubt",
	[XSPD_R_LEASE] = "lease",
	[XSPD_R_ESP] = "esp",
	[XSPD_R_NO_ROUTE] = "no-route",
	[XSPD_R_MULTICAST] = "multicast",
	[XSPD_R_ERROR] = "error",
	[XSPD_R_ICMP_ERROR] = "icmp-error",
};

static const char *const acts[XSPD_A_MAX_] = {
	[XSPD_A_NONE] = "none",
	[XSPD_A_MARKED] = "marked",
	[XSPD_A_DROP_BLOCK] = "drop-block",
	[XSPD_A_DROP_DEFAULT] = "drop-default",
	[XSPD_A_DROP_PLAIN] = "drop-plaintext",
	[XSPD_A_FORWARDED] = "forwarded",
	[XSPD_A_KEEP_EXEMPT] = "kept-exempt",
	[XSPD_A_KEEP_PROTO] = "kept-protocol",
	[XSPD_A_KEEP_FRAGMENT] = "kept-fragment",
	[XSPD_A_KEEP_ICMP] = "kept-icmp-error",
	[XSPD_A_KEEP_NETFILTER] = "kept-netfilter",
	[XSPD_A_KEEP_SYSCTL] = "kept-sysctl",
	[XSPD_A_KEEP_SECPATH] = "kept-secpath",
	[XSPD_A_KEEP_OPTIONS] = "kept-options",
	[XSPD_A_KEEP_TTL] = "kept-ttl",
	[XSPD_A_KEEP_LOOPBACK] = "kept-loopback",
	[XSPD_A_KEEP_GENERIC] = "kept-generic",
	[XSPD_A_UP_FIB] = "up-fib",
	[XSPD_A_UP_PORT] = "up-port",
	[XSPD_A_UP_VERDICT] = "up-verdict",
	[XSPD_A_KEEP_ROUTE] = "kept-route",
	[XSPD_A_LEAK] = "leak",
	[XSPD_A_LEAK_GONE] = "leak-gone",
	[XSPD_A_DROP_LEAK] = "drop-leak",
	[XSPD_A_DROP_LEAK_GONE] = "drop-leak-gone",
	[XSPD_A_KEEP_OPTIONAL] = "kept-optional",
	[XSPD_A_KEEP_LINK] = "kept-link",
	[XSPD_A_KEEP_DOUBT] = "kept-doubt",
	[XSPD_A_STEERED] = "steered",
	[XSPD_A_UNSTEERED] = "unsteered",
	[XSPD_A_KEEP_QUEUE] = "kept-queue",
	[XSPD_A_KEEP_METADATA] = "kept-metadata",
};

static const char *const verdicts[XSPD_VERDICT_MAX_] = {"defer", "plain", "protect", "block"};
static const char *const dirs[XSPD_DIR_MAX_] = {"in", "out", "fwd"};
static const char *const hooks[XSPD_HOOK_MAX_] = {"xdp", "ingress", "egress"};
static const char *const doubts[] = {"START",	   "LOST_EVENTS", "DUMPING", "COUNT_MISMATCH",
				     "UNMODELLED", "GROWING",	  "STOPPED"};

static const char *const envs[] = {"NETFILTER_PRE", "NETFILTER_IN", "NETFILTER_ANY", "SYSCTL"};
static const struct {
	uint32_t bit;
	const char *name;
} modes[] = {{XSPD_MODE_MARK, "mark"},
	     {XSPD_MODE_ENFORCE, "enforce"},
	     {XSPD_MODE_BYPASS, "bypass"},
	     {XSPD_MODE_STEER, "steer"},
	     {XSPD_MODE_GUARD, "guard"}};

static const char *const samples[XSPD_S_MAX_] = {"none", "first",      "denied",
						 "drop", "would-drop", "leak"};
static const char *const changes[XSPD_C_MAX_] = {"none",  "add",     "update", "delete", "expire",
						 "flush", "default", "alarm",  "start",	 "lost"};

static const char *bit_name(const char *const *names, size_t count, uint32_t bit)
{
	for (size_t i = 0; i < count; i++)
		if (bit == 1u << i)
			return names[i];
	return "?";
}

const char *xspd_reason_name(enum xspd_reason reason)
{
	return reason < XSPD_R_MAX_ ? reasons[reason] : "?";
}

const char *xspd_act_name(enum xspd_act act)
{
	return act < XSPD_A_MAX_ ? acts[act] : "?";
}

const char *xspd_verdict_name(enum xspd_verdict verdict)
{
	return verdict < XSPD_VERDICT_MAX_ ? verdicts[verdict] : "?";
}

const char *xspd_dir_name(enum xspd_dir dir)
{
	return dir < XSPD_DIR_MAX_ ? dirs[dir] : "?";
}

const char *xspd_hook_name(enum xspd_hook hook)
{
	return hook < XSPD_HOOK_MAX_ ? hooks[hook] : "?";
}

const char *xspd_doubt_name(uint32_t bit)
{
	return bit_name(doubts, XSPD_ARRAY_SIZE(doubts), bit);
}

const char *xspd_env_name(uint32_t bit)
{
	return bit_name(envs, XSPD_ARRAY_SIZE(envs), bit);
}

const char *xspd_mode_name(uint32_t bit)
{
	for (size_t i = 0; i < XSPD_ARRAY_SIZE(modes); i++)
		if (bit == modes[i].bit)
			return modes[i].name;
	return "?";
}

const char *xspd_sample_name(enum xspd_sample_kind kind)
{
	return kind < XSPD_S_MAX_ ? samples[kind] : "?";
}

const char *xspd_change_name(enum xspd_change_what what)
{
	return what < XSPD_C_MAX_ ? changes[what] : "?";
}
