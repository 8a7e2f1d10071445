#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A daemon that is stopped, killed, or replaced: hooks stay, counters stay, and no answer
# outlives the lease.
. tests/lib/tap.sh
new_ns gw
new_ns peer
ip -n "$gw" link add name e0 type veth peer name e0 netns "$peer"
ip -n "$gw" link add name x0 type veth peer name x0 netns "$peer"
for ns in "$gw" "$peer"; do
	for d in e0 x0; do ip -n "$ns" link set $d up; done
done
ip -n "$gw" addr add 10.1.0.1/24 dev e0
ip -n "$peer" addr add 10.1.0.2/24 dev e0
ip -n "$gw" addr add 10.3.0.1/24 dev x0
ip -n "$peer" addr add 10.3.0.2/24 dev x0
in_ns "$gw" sysctl -qw net.ipv4.ip_forward=1 # the FIB helper tells nothing without
ip -n "$gw" xfrm policy add src 10.0.0.0/8 dst 10.0.0.0/8 dir in priority 10 index 8
ip -n "$gw" xfrm policy add src 10.0.0.0/8 dst 10.0.0.0/8 dir out priority 10 index 9
flow="dir out src 10.1.0.1 dst 10.1.0.2 proto udp"

send() { # NS ADDRESS COUNT
	in_ns "$1" python3 - "$2" "$3" <<-'END'
		import socket, sys
		s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		for i in range(int(sys.argv[2])):
		    while True:
		        try: s.sendto(bytes(100), (sys.argv[1], 9)); break
		        except ConnectionRefusedError: pass
	END
}
traffic() { # COUNT through each of the three hooks
	send "$peer" 10.1.0.1 "$1"
	send "$gw" 10.1.0.2 "$1"
	send "$peer" 10.3.0.1 "$1"
}
state() { "$X" status --netns "$gw" --json 2>/dev/null | field "$1"; }
# What each hook has counted as bypass, lease and doubt, in this order: xdp, ingress, egress.
reasons() {
	state '" ".join(str(d["hooks"][h]["'"$1"'"]["packets"]) for h in ("xdp", "ingress", "egress"))'
}
counts() {
	"$X" policy list --netns "$gw" --json |
		field '" ".join(str(p["packets"]) for p in sorted(d, key=lambda p: p["index"]))'
}
links() {
	find "$PINS/$gw/v1/links" | sort
	in_ns "$gw" bpftool net show 2>/dev/null | grep -E "e0|x0"
	bpftool link show | grep -A 1 -E "tcx|xdp" | grep -B 1 "ifindex" | sort
}
says() { "$X" lookup --netns "$gw" --json $flow | field 'd["verdict"] + " " + d["reason"]'; }
is_now() { [ "$(says)" = "$1" ]; }

start "$gw"
# no unsolicited packets from here on
sleep 2
check "attach ingress and egress" "$X" attach e0 --ingress --egress --netns "$gw"
check "attach XDP" "$X" attach x0 --xdp --netns "$gw"
send "$peer" 10.1.0.1 1 && send "$peer" 10.3.0.1 1 # neighbours know each other now
before=$(links)

# --- stopped ---
kill -STOP "$daemon"
sleep 4
equal "stopped: lookup defers, for the lease, after lease and a second" "$(says)" "defer lease"
was=$(reasons lease)
traffic 5
now=$(reasons lease)
for hook in 1 2 3; do
	name=$(cut -d' ' -f$hook <<<"xdp ingress egress")
	got=$(($(cut -d' ' -f$hook <<<"$now") - $(cut -d' ' -f$hook <<<"$was")))
	equal "stopped: $name defers, for the lease" "$((got >= 5))" 1
done
equal "stopped: the daemon is there, its lease is not" \
	"$(state 'd["daemon"]["alive"], d["daemon"]["lease_left_ms"] <= 0')" "(True, True)"
ip -n "$gw" xfrm policy add src 10.1.0.0/16 dst 10.1.0.0/16 dir out priority 5 index 17 action block
kill -CONT "$daemon"
wait_for 10 bash -c "! '$X' lookup --netns '$gw' --json $flow | grep -q defer"
equal "continued: it goes on by itself, and knows what has changed" "$(says)" "block block"
ip -n "$gw" xfrm policy delete dir out index 17
wait_for 10 is_now "plain bypass"

# --- killed, and restarted ---
traffic 20
stop KILL 2>/dev/null
one=$(counts)
send "$peer" 10.1.0.1 3 # the lease of the dead lasts a while: counted or not, but not lost
sleep 4
equal "killed: lookup defers after lease and a second" "$(says)" "defer lease"
equal "killed: what is attached stays attached" "$(links)" "$before"
two=$(counts)
equal "killed: counters stay" "$(($(cut -d' ' -f1 <<<"$two") >= $(cut -d' ' -f1 <<<"$one")))" 1
traffic 4
equal "deferred packets count for no policy" "$(counts)" "$two"
start "$gw"
equal "restarted: the same counters, to the packet" "$(counts)" "$two"
equal "restarted: the same attachments" "$(links)" "$before"
equal "restarted: answers" "$(says)" "plain bypass"
before_in=$(cut -d' ' -f1 <<<"$two")
send "$peer" 10.1.0.1 7
equal "restarted: ingress counts on" "$(counts | cut -d' ' -f1)" $((before_in + 7))
send "$peer" 10.3.0.1 7
equal "restarted: XDP counts on" "$(counts | cut -d' ' -f1)" $((before_in + 14))
for i in 1 2 3; do
	stop KILL 2>/dev/null
	start "$gw"
done
equal "killed and restarted at once, three times: the same counters" "$(counts | cut -d' ' -f1)" \
	$((before_in + 14))
equal "one set of pins is left" "$(find "$PINS/$gw/v1" -name 'set-*' | wc -l)" 1
stop
equal "stopped in good order: attachments stay" "$(links)" "$before"
start "$gw"
equal "... and counters" "$(counts | cut -d' ' -f1)" $((before_in + 14))

# --- killed while it starts ---
stop KILL 2>/dev/null
for delay in 0.05 0.15 0.3 0.5; do
	"$X" run --netns "$gw" 2>/dev/null &
	pid=$!
	sleep $delay
	kill -KILL $pid
	wait $pid 2>/dev/null
done
start "$gw"
equal "killed while it started, four times: the same counters" "$(counts | cut -d' ' -f1)" \
	$((before_in + 14))
equal "... the same attachments" "$(links)" "$before"

# --- pins of other versions ---
stop
mkdir "$PINS/$gw/v2"
bpftool map create "$PINS/$gw/v2/xspd_strange" type array key 4 value 8 entries 1 name xspd_strange
start "$gw"
check "pins that are not understood: said so" wait_for 5 grep -q \
	"pins of another version beside $PINS/$gw/v1 .*left alone" "$T/daemon.log"
equal "... and left alone" "$(ls "$PINS/$gw/v2")" xspd_strange
stop
rm -r "$PINS/$gw/v2"
# an old version, with hooks attached; its daemon has ended
mv "$PINS/$gw/v1" "$PINS/$gw/v0"
flock -o "$PINS/$gw/v0" sleep 60 &
holder=$!
tap_pids+=($holder)
sleep 0.3
start "$gw"
check "pins with a living daemon: said so" wait_for 5 grep -q "left alone" "$T/daemon.log"
check "... and left alone" test -e "$PINS/$gw/v0/xspd_tc_in" -a -d "$PINS/$gw/v0/links"
stop
kill $holder && wait $holder 2>/dev/null
rm -r "$PINS/$gw/v1"
wait_for 5 flock -n "$PINS/$gw/v0" true
start "$gw"
equal "pins whose daemon has ended are replaced" "$(ls "$PINS/$gw")" v1
now=$(counts | cut -d' ' -f1)
send "$peer" 10.1.0.1 6
send "$peer" 10.3.0.1 6
equal "... and what was attached through them counts here" "$(counts | cut -d' ' -f1)" $((now + 12))
check "... and can be detached here" "$X" detach e0 --netns "$gw"
check "... all of it" "$X" detach x0 --netns "$gw"
equal "nothing is attached any more" "$(in_ns "$gw" bpftool net show | grep -c xspd_)" 0
done_testing
