#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# xspd lookup --forward, --reverse and NAT: what it says of a packet is what the kernel does with it,
# by the counter of /proc/net/xfrm_stat that moves.
. tests/lib/tap.sh
new_gateway
TMPL="tmpl src 10.2.0.1 dst 10.2.0.2 proto esp reqid 7 mode tunnel"
pol() { ip -n "$gw" xfrm policy "$@"; }
nft() { in_ns "$gw" /usr/sbin/nft "$@"; }
start "$gw"

# Whatever the policies: SAs that were asked for by the last packet are gone, too.
begin() {
	pol flush
	pol flush ptype sub
	ip -n "$gw" xfrm state flush
	for dir in in out fwd; do pol setdefault $dir accept; done
}
# settled: the mirror has as many policies as the kernel, and its defaults
settled() {
	wait_for 5 bash -c "'$X' lookup --netns '$gw' dir out src 10.99.0.1 dst 10.99.0.1 --explain |
		grep -q ' of $(pol list | grep -c '^src') policies match'"
	sleep 0.05
}
moved() { # what the counters say that COMMAND... did, as "NAME=1 ..."
	local before
	before=$(in_ns "$gw" cat /proc/net/xfrm_stat)
	"$@"
	sleep 0.02
	{
		echo "$before"
		in_ns "$gw" cat /proc/net/xfrm_stat
	} | awk '$1 in seen && $2 > seen[$1] { out = out (out ? " " : "") $1 "=" $2 - seen[$1] }
		{ seen[$1] = $2 } END { print out }'
}
# send NS ADDRESS PORT: one datagram from port 5000
send() {
	in_ns "$1" python3 -c '
import socket, sys
host, port = sys.argv[1], int(sys.argv[2])
s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 5000))
try: s.sendto(b"x", (host, port))
except PermissionError: pass' "$2" "$3"
}
# foretold WORDS...: the first counter on the way of a packet that comes unprotected, without any SA
foretold() {
	"$X" lookup --netns "$gw" --json "$@" | python3 -c '
import json, sys
d = json.load(sys.stdin)
steps = d["there"]["steps"] if "there" in d else [d]
names = [s["counter"]["name"] + "=1" for s in steps if s["counter"]]
assert all(s["verdict"] != "defer" for s in steps), steps
print(names[0] if names else "")'
}
# same TEXT NS ADDRESS WANT WORDS...: a packet to port 53 moves what was foretold, and that is WANT
same() {
	local text=$1 ns=$2 to=$3 want=$4
	shift 4
	settled
	equal "$text: ${want:-nothing}" "$(foretold "$@") $(moved send "$ns" "$to" 53)" "$want $want"
}

# neighbours
in_ns "$client" ping -c 1 -W 2 10.2.0.2 >/dev/null
in_ns "$client" ping -c 1 -W 2 fd02::2 >/dev/null
through="--forward src 10.1.0.2 dst 10.2.0.2 proto udp sport 5000 dport 53 dev s0"
through6="--forward src fd01::2 dst fd02::2 proto udp sport 5000 dport 53 dev s0"

begin
same "no policies" "$client" 10.2.0.2 "" $through
pol add src 10.1.0.0/24 dst 10.2.0.0/24 dir fwd $TMPL
same "fwd must be protected" "$client" 10.2.0.2 XfrmInTmplMismatch=1 $through
begin
pol add src 10.1.0.0/24 dst 10.2.0.0/24 dir fwd action block
pol add src 10.1.0.0/24 dst 10.2.0.0/24 dir out action block
same "fwd blocks before out does" "$client" 10.2.0.2 XfrmInPolBlock=1 $through
begin
pol setdefault fwd block
same "fwd by default" "$client" 10.2.0.2 XfrmInNoPols=1 $through
begin
pol add src 10.1.0.0/24 dst 10.2.0.0/24 dir out action block
same "out blocks what is forwarded" "$client" 10.2.0.2 XfrmOutPolBlock=1 $through
begin
pol setdefault out block
same "out by default: not counted" "$client" 10.2.0.2 "" $through
equal "... but dropped" "$("$X" lookup --netns "$gw" $through | grep '^fate')" \
	"fate there: dropped by out, not counted"
begin
pol add src 10.1.0.0/24 dst 10.2.0.0/24 dir out $TMPL
same "out protects, without an SA" "$client" 10.2.0.2 XfrmOutNoStates=1 $through
begin
pol add src 10.1.0.0/24 dst 10.2.0.0/24 dev s0 dir fwd action block
same "fwd is asked with the device it leaves by" "$client" 10.2.0.2 XfrmInPolBlock=1 $through
equal "a device that was not said is not guessed" \
	"$("$X" lookup --netns "$gw" ${through% dev s0} | grep -c 'reason unknown-oif')" 1
begin
pol add src fd01::/64 dst fd02::/64 dir fwd $TMPL
same "IPv6 fwd" "$client" fd02::2 XfrmInTmplMismatch=1 $through6
begin
pol add src fd01::/64 dst fd02::/64 dir out action block
same "IPv6 out" "$client" fd02::2 XfrmOutPolBlock=1 $through6
begin
pol add src 10.1.0.0/24 dst 10.2.0.0/24 dir fwd ptype sub
pol add src 10.1.0.0/24 dst 10.2.0.0/24 dir in action block
same "fwd after a sub policy: main, in direction in" "$client" 10.2.0.2 XfrmInPolBlock=1 $through
begin
pol add src 10.1.0.0/24 dst 10.2.0.0/24 dir out ptype sub
pol add src 10.1.0.0/24 dst 10.2.0.0/24 dir out action block
same "out after a sub policy: main" "$client" 10.2.0.2 XfrmOutPolBlock=1 $through

# --- to and from the gateway itself ---
local="src 10.1.0.2 dst 10.1.0.1 proto udp sport 5000 dport 53"
begin
pol add src 10.1.0.0/24 dst 10.1.0.0/24 dir in action block
same "in blocks" "$client" 10.1.0.1 XfrmInPolBlock=1 dir in $local
begin
# the answers of neighbours who are asked whether they are still there would be blocked, too
for ns in "$client" "$gw" "$server"; do ip -n "$ns" -6 neigh flush all; done
pol setdefault in block
same "in by default" "$client" 10.1.0.1 XfrmInNoPols=1 dir in $local
begin
pol add src 10.1.0.0/24 dst 10.1.0.0/24 dir in $TMPL
same "in must be protected" "$client" 10.1.0.1 XfrmInTmplMismatch=1 dir in $local
out="dir out src 10.2.0.1 dst 10.2.0.2 proto udp sport 5000 dport 53 dev s0"
begin
pol add src 10.2.0.0/24 dst 10.2.0.0/24 dir out action block
same "out blocks" "$gw" 10.2.0.2 XfrmOutPolBlock=1 $out
begin
pol add src 10.2.0.0/24 dst 10.2.0.0/24 dir out $TMPL
same "out protects" "$gw" 10.2.0.2 XfrmOutNoStates=1 $out

# --- NAT ---
if nft 'add table ip n; add chain ip n post { type nat hook postrouting priority 100; };
	add chain ip n pre { type nat hook prerouting priority -100; };
	add rule ip n post oif s0 udp dport { 53, 54 } snat to 10.2.0.1:6000;
	add rule ip n pre iif c0 ip daddr 10.9.9.9 udp dport 53 dnat to 10.2.0.2:54' 2>/dev/null; then
	nat="--snat 10.2.0.1:6000"
	to="--forward src 10.1.0.2 dst 10.9.9.9 proto udp sport 5000 dport 53 dev s0 --dnat 10.2.0.2:54 $nat"
	udp="proto udp sport 5000 dport"
	begin
	pol add src 10.1.0.0/24 dst 10.2.0.0/24 $udp 53 dir out action block
	same "out is asked before source NAT" "$client" 10.2.0.2 XfrmOutPolBlock=1 $through $nat
	begin
	pol add src 10.2.0.1 dst 10.2.0.2 proto udp sport 6000 dport 53 dir out action block
	same "... and after it" "$client" 10.2.0.2 XfrmOutPolBlock=1 $through $nat
	begin
	pol add src 10.1.0.0/24 dst 10.9.9.9 $udp 53 dir fwd action block
	same "fwd is asked for the address before destination NAT" "$client" 10.9.9.9 XfrmInPolBlock=1 $to
	begin
	pol add src 10.1.0.0/24 dst 10.2.0.2 dir fwd action block
	same "... not for the one after it" "$client" 10.9.9.9 "" $to
	begin
	pol add src 10.1.0.0/24 dst 10.2.0.2 $udp 54 dir out action block
	same "out is asked after destination NAT" "$client" 10.9.9.9 XfrmOutPolBlock=1 $to
	begin
	pol add src 10.1.0.0/24 dst 10.9.9.9 dir out action block
	same "... not before it" "$client" 10.9.9.9 "" $to
	# replies: what left as 10.2.0.1:6000 to 10.2.0.2:54 comes back
	back() {
		settled
		equal "$1: $2" "$("$X" lookup --netns "$gw" --json $to --reverse iif c0 |
			field '"".join(s["counter"]["name"] + "=1" for s in d["back"]["steps"] if s["counter"])') \
$(moved reply)" "$2 $2"
	}
	reply() { in_ns "$server" python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("10.2.0.2", 54)); s.sendto(b"x", ("10.2.0.1", 6000))'; }
	begin
	send "$client" 10.9.9.9 53 # the conntrack entry
	pol add src 10.2.0.2 dst 10.2.0.1 proto udp sport 54 dport 6000 dir fwd action block
	back "the way back: fwd sees it as it comes" XfrmInPolBlock=1
	begin
	pol add src 10.2.0.2 dst 10.1.0.2 proto udp sport 54 dport 5000 dir out action block
	back "... out, with its destination restored" XfrmOutPolBlock=1
	begin
	pol add src 10.9.9.9 dst 10.1.0.2 proto udp sport 53 dport 5000 dir out action block
	back "... and again with its source restored" XfrmOutPolBlock=1
	nft delete table ip n
else
	echo "ok - NAT # SKIP no nftables NAT in this kernel"
fi

# --- warnings ---
warns() { # TEXT PATTERN WORDS...
	local text=$1 pattern=$2
	shift 2
	settled
	"$X" lookup --netns "$gw" "$@" >"$T/out"
	equal "$text" "$(grep -c '^warning' "$T/out") $(grep -cE "^warning: $pattern" "$T/out")" \
		"$([ -n "$pattern" ] && echo 1 1 || echo 0 0)"
}
both="$through --reverse iif c0"
begin
pol add src 10.1.0.0/24 dst 10.2.0.0/24 dir out $TMPL
warns "protected there, plain back" "asymmetric: the way there leaves protected, but the way back is acc" $both
warns "no warning for one way" "" $through
pol add src 10.2.0.0/24 dst 10.1.0.0/24 dir fwd $TMPL
warns "protected both ways" "" $both
pol delete src 10.1.0.0/24 dst 10.2.0.0/24 dir out
warns "plain there, protected back" "asymmetric: the way there leaves in the clear, but the way back must" $both
begin
pol add src 10.2.0.0/24 dst 10.1.0.0/24 dir fwd action block
warns "dropped one way" "asymmetric: the way back is dropped, the way there is not" $both
pol add src 10.1.0.0/24 dst 10.2.0.0/24 dir fwd action block
warns "dropped both ways" "" $both
begin
pol add src 10.1.0.0/24 dst 10.2.0.0/24 dir out $TMPL
warns "source NAT takes the protection away" "source NAT on the way there takes .* from policy [0-9]+" \
	$through --snat 10.2.0.1
begin
pol add src 10.1.0.1 dst 10.1.0.2 dir out $TMPL
warns "to the gateway itself: plain there, protected back" "asymmetric: the way back leaves protected, but the way there is acc" \
	dir in $local --reverse
equal "the way back of a local flow" "$("$X" lookup --netns "$gw" dir out src 10.2.0.1 dst 10.2.0.2 proto icmp type 8 --reverse |
	grep '^back: dir')" "back: dir in src 10.2.0.2 dst 10.2.0.1 proto icmp type 0 code 0"
"$X" lookup --netns "$gw" $both --snat 10.2.0.1 --explain --json >"$T/json"
equal "JSON: every step, each with its reference" "$(field 'len(d["there"]["steps"]), len(d["back"]["steps"]), all(s["agrees"] for w in (d["there"], d["back"]) for s in w["steps"])' <"$T/json")" "(3, 2, True)" || true
done_testing
