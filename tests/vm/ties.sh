#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# shellcheck disable=SC2154
# Policies of one priority: which one this kernel prefers, and that xspd names that one or defers.
# Linux 6.12 gave all of them an age; before, exact ones (host to host) had none, and inexact ones
# had a place in one list, which an update in place kept. Which are exact hangs on thresholds that
# change unnoticed: before 6.12, xspd names the winner only where that does not matter.
. tests/lib/tap.sh
old=no
[ "$(printf '%s\n' 6.12 "$(uname -r)" | sort -V | head -n 1)" = 6.12 ] || old=yes

new_ns host
ip -n "$host" link add name d0 type veth peer name p0
ip -n "$host" link set p0 up
ip -n "$host" link set d0 up
ip -n "$host" addr add 10.1.0.1/24 dev d0
ip -n "$host" route add 10.2.0.0/16 dev d0

pol() { ip -n "$host" xfrm policy "$1" dir out priority 10 "${@:2}"; }
# winner: "allow" or "block", by what becomes of a datagram
winner() {
	in_ns "$host" bash -c 'echo >/dev/udp/10.2.0.2/1000' 2>/dev/null && echo allow || echo block
}
# tie TEXT WANT-BEFORE-6.12 WANT-SINCE [sure]: xspd has to name the winner then
tie() {
	local got said want=$3 sure=${4:-}
	[ $old = no ] || want=$2
	got=$(winner)
	equal "$1: the kernel prefers" "$got" "$want"
	"$X" run --netns "$host" 2>"$T/daemon.log" &
	daemon=$!
	tap_pids+=("$daemon")
	wait_for 20 grep -q mirroring "$T/daemon.log"
	said=$(lookup "$host" src 10.1.0.1 dst 10.2.0.2 proto udp dport 1000 dir out dev d0)
	case "$said $got" in
	"plain "*" allow" | "block "*" block") ok "$1: xspd says ${said% *}" ;;
	"defer "*) equal "$1: xspd may defer" "$sure" "" ;;
	*) not_ok "$1: xspd says $said" ;;
	esac
	stop
	ip -n "$host" xfrm policy flush
}
exact="src 10.1.0.1 dst 10.2.0.2"
wide="src 0.0.0.0/0 dst 10.2.0.0/16"
# shellcheck disable=SC2086
{
	pol add $wide action allow
	pol add $wide proto udp action block
	tie "one list, the older" allow allow sure

	pol add $exact proto udp dport 1000 action block
	pol add $exact proto udp action allow
	tie "one exact list, the older" block block sure

	pol add $wide action allow
	pol add $wide proto udp action block
	pol update $wide action allow
	tie "one list, the older updated in place" allow allow

	pol add $wide action allow
	pol add src 10.1.0.0/16 dst 0.0.0.0/0 action block
	tie "two lists, the older" allow allow

	# inexact both, then one of them exact, without a word
	pol add src 10.1.0.0/16 dst 10.2.0.0/16 action block
	pol add $wide action allow
	ip -n "$host" xfrm policy set hthresh4 16 16
	sleep 1
	tie "two lists, the older, after other thresholds" allow block
	ip -n "$host" xfrm policy set hthresh4 32 32
	sleep 1

	pol add $wide action allow
	pol add src 10.1.0.0/16 dst 0.0.0.0/0 action block
	pol update $wide action allow
	tie "two lists, the older updated in place" allow block

	pol add src 10.9.0.0/16 dst 10.9.0.0/16
	pol add $wide action allow
	pol add $exact action block
	tie "an exact one and an older inexact one" block allow

	pol add src 10.9.0.0/16 dst 10.9.0.0/16
	pol add $exact action block
	pol add $wide action allow
	tie "an exact one and a newer inexact one" block block

	pol add $wide action allow
	pol add $exact action block
	tie "an exact one and the first inexact one, older" allow allow

	pol add $exact action block
	pol add $wide action allow
	tie "an exact one and the first inexact one, newer" allow block
}

# A mark with bits beyond its mask: cut when it is stored (6.16 and some stable kernels before), or
# kept, and then it never matches.
send_marked() { # MARK: "allow" or "block"
	in_ns "$host" python3 -c '
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, 36, int(sys.argv[1], 0))
try: s.sendto(b"x", ("10.2.0.2", 1000)); print("allow")
except PermissionError: print("block")' "$1"
}
for mark in 0x1f/0xf 0x5/0; do
	ip -n "$host" xfrm policy add dir out src 10.1.0.0/24 dst 10.2.0.0/16 mark ${mark%/*} mask ${mark#*/} action block
	wanted=block
	! ip -n "$host" xfrm policy | grep -q "mark $mark" || wanted=allow
	start "$host"
	for sent in 0xf 0x1f 0x5; do
		got=$(send_marked $sent)
		said=$(lookup "$host" src 10.1.0.1 dst 10.2.0.2 proto udp dport 1000 dir out dev d0 mark $sent)
		case "${said% *} $got" in
		"plain allow" | "block block") ok "policy mark $mark, packet mark $sent: both say $got" ;;
		*) not_ok "policy mark $mark, packet mark $sent: the kernel says $got, xspd $said" ;;
		esac
	done
	[ $mark != 0x5/0 ] || equal "... as this kernel keeps it" "$got" $wanted
	stop
	ip -n "$host" xfrm policy flush
done
done_testing
