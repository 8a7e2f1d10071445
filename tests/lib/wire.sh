# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Sourced after tap.sh: client - gateway - server with frames made by tests/lib/wire.py, and what
# came of them.
new_ns client
new_ns gw
new_ns server
ip -n "$gw" link add name c0 type veth peer name eth0 netns "$client"
ip -n "$gw" link add name s0 type veth peer name eth0 netns "$server"
for ns in "$client" "$server" "$gw"; do in_ns "$ns" sysctl -qw net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0; done
for d in c0 s0; do ip -n "$gw" link set $d up; done
for ns in "$client" "$server"; do ip -n "$ns" link set eth0 up; done
ip -n "$gw" addr add 10.1.0.1/24 dev c0
ip -n "$gw" addr add fd01::1/64 dev c0 nodad
ip -n "$gw" addr add 10.2.0.1/24 dev s0
ip -n "$gw" addr add fd02::1/64 dev s0 nodad
in_ns "$gw" sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv4.icmp_ratelimit=0 \
	net.ipv6.icmp.ratelimit=0 net.ipv4.conf.c0.rp_filter=0
mac() { ip -n "$1" -j link show dev "$2" | field 'd[0]["address"]'; }
gw_mac=$(mac "$gw" c0) client_mac=$(mac "$client" eth0) server_mac=$(mac "$server" eth0)
# nobody at the far ends has these addresses: nothing is answered
for a in 10.1.0.2 10.1.0.66 10.1.0.67 fd01::2 fd01::66; do ip -n "$gw" neigh add $a lladdr "$client_mac" dev c0 nud permanent; done
for a in 10.2.0.2 fd02::2; do ip -n "$gw" neigh add $a lladdr "$server_mac" dev s0 nud permanent; done
ip -n "$gw" route add default via 10.2.0.2
ip -n "$gw" route add default via fd02::2


send() { in_ns "$client" python3 tests/lib/wire.py send eth0 "$gw_mac" "$@"; }
# watch NS COMMAND...: into a file of its own
watch() {
	local ns=$1 out
	out=$(mktemp "$T/watch.XXXX")
	shift
	# not in_ns: it is the process itself that is to be killed
	nsenter --net="/run/netns/$ns" python3 tests/lib/wire.py "$@" >"$out" &
	watchers+=($!) watched+=("$out")
	wait_for 10 grep -q ready "$out"
}
status() { "$X" status --netns "$gw" --json; }
# acts HOOK: those counted since the last call, by name
acts() {
	status >"$T/status"
	python3 - "$T/status" "$T/status.before" "$1" <<-'END'
		import json, os, sys
		now = json.load(open(sys.argv[1]))["acts"][sys.argv[3]]
		was = json.load(open(sys.argv[2]))["acts"][sys.argv[3]] if os.path.exists(sys.argv[2]) else {}
		count = {k: v["packets"] - was.get(k, {"packets": 0})["packets"] for k, v in now.items()}
		print(" ".join("%s:%d" % (k, n) for k, n in count.items() if n))
	END
	mv "$T/status" "$T/status.before"
}
attach() { "$X" attach "$@" --netns "$gw"; }
