# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Sourced by tests/kernel/*.sh: TAP lines, network namespaces, a daemon. Everything made is
# taken away at exit.
PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH # the system's tools, not a user's wrappers of them
X=$(realpath "${O:-build}/xspd")
T=$(mktemp -d)
PINS=/sys/fs/bpf/xspd
tap_ns=() tap_pids=() tap_instances=() tap_failed=0

tap_cleanup() {
	for pid in "${tap_pids[@]}"; do
		kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
	done
	for ns in "${tap_ns[@]}"; do ip netns del "$ns" 2>/dev/null; done
	for i in "${tap_instances[@]}"; do rm -rf "${PINS:?}/$i"; done
	rmdir "$PINS" 2>/dev/null
	rm -rf "$T"
}
trap tap_cleanup EXIT
trap 'exit 1' INT TERM

if [ "$(id -u)" != 0 ]; then
	echo "ok - ${0##*/} # SKIP needs root"
	exit 0
fi

ok() { echo "ok - $*"; }
not_ok() {
	echo "not ok - $*"
	tap_failed=1
}
done_testing() { exit $tap_failed; }

# check TEXT COMMAND...: the command succeeds.
check() {
	local text=$1 out
	shift
	if out=$("$@" 2>&1); then
		ok "$text"
	else
		not_ok "$text"
		sed 's/^/  # /' <<<"$ $* -> $out"
	fi
}

# equal TEXT GOT WANT
equal() {
	if [ "$2" = "$3" ]; then
		ok "$1"
	else
		not_ok "$1"
		sed 's/^/  # /' <<<"got '$2', want '$3'"
	fi
}

# fails TEXT RC PATTERN COMMAND...: this exit code, nothing on stdout, and one line on stderr
# that matches.
fails() {
	local text=$1 rc=$2 pattern=$3 got
	shift 3
	"$@" >"$T/out" 2>"$T/err"
	got=$?
	if [ $got = "$rc" ] && [ ! -s "$T/out" ] && [ "$(wc -l <"$T/err")" = 1 ] &&
		grep -Eq "^xspd: .*$pattern" "$T/err"; then
		ok "$text"
	else
		not_ok "$text"
		sed 's/^/  # /' <<<"$ $* -> exit $got (want $rc, /$pattern/)"
		cat "$T/out" "$T/err" | sed 's/^/  # /'
	fi
}

# A namespace of our own; its name is $1 made unique, put into the variable $1.
new_ns() {
	local name="xt$$$1"
	ip netns add "$name" && tap_ns+=("$name")
	tap_instances+=("$name")
	ip -n "$name" link set lo up
	printf -v "$1" %s "$name"
}

# ip netns exec would hide /sys/fs/bpf
in_ns() {
	local ns=$1
	shift
	nsenter --net="/run/netns/$ns" "$@"
}

# address NS DEV V4 V6
address() {
	ip -n "$1" link set "$2" up
	ip -n "$1" addr add "$3" dev "$2"
	ip -n "$1" addr add "$4" dev "$2" nodad
}

# The namespaces $client (eth0: 10.1.0.2, fd01::2), $gw (c0, s0: .1 of both networks; forwards) and
# $server (eth0: 10.2.0.2, fd02::2).
new_gateway() {
	local ns
	new_ns client
	new_ns gw
	new_ns server
	# nothing arrives that was not sent
	for ns in "$client" "$server"; do in_ns "$ns" sysctl -qw net.ipv6.conf.default.router_solicitations=0; done
	ip -n "$gw" link add name c0 type veth peer name eth0 netns "$client"
	ip -n "$gw" link add name s0 type veth peer name eth0 netns "$server"
	address "$client" eth0 10.1.0.2/24 fd01::2/64
	address "$gw" c0 10.1.0.1/24 fd01::1/64
	address "$gw" s0 10.2.0.1/24 fd02::1/64
	address "$server" eth0 10.2.0.2/24 fd02::2/64
	ip -n "$client" route add default via 10.1.0.1
	ip -n "$client" route add default via fd01::1
	ip -n "$server" route add default via 10.2.0.1
	ip -n "$server" route add default via fd02::1
	in_ns "$gw" sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
}

# wait_for SECONDS COMMAND...; XSPD_PATIENCE times as long where everything is slow
wait_for() {
	local end=$((SECONDS + $1 * ${XSPD_PATIENCE:-1}))
	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.05
	done
}

# start NS [OPTION...]: xspd run, until it mirrors; its pid in $daemon.
start() {
	local ns=$1
	shift
	: >"$T/daemon.log" # or the wait below may be content with the last one's
	"$X" run --netns "$ns" "$@" 2>"$T/daemon.log" &
	daemon=$!
	tap_pids+=("$daemon")
	wait_for 20 grep -q "mirroring" "$T/daemon.log" && return
	not_ok "xspd run started"
	sed 's/^/  # /' "$T/daemon.log"
	exit 1
}

# stop [SIGNAL]: end the daemon; its exit code.
stop() {
	kill "-${1:-TERM}" "$daemon"
	wait "$daemon"
}

# field EXPRESSION: of the JSON object d on stdin, as Python sees it.
field() { python3 -c 'import json,sys; d=json.load(sys.stdin); print(eval(sys.argv[1]))' "$1"; }

# lookup NS WORDS...: "verdict index"
lookup() {
	local ns=$1
	shift
	"$X" lookup --netns "$ns" "$@" |
		awk '/^verdict/ { v = $2 } /^policy/ { print v, ($2 == "none" ? 0 : $2) }'
}

# policies NS: how many are mirrored
policies() { "$X" status --netns "$1" --json | field 'd["policies"]'; }
