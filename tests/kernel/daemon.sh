#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# xspd run mirrors a live SPD: what it finds, each kind of change, and its own end and return.
. tests/lib/tap.sh
new_ns gw
pol() { ip -n "$gw" xfrm policy "$@"; }
# settles NS WORDS WANT: the lookup comes to answer WANT
settles() {
	local text=$1 want=$2
	shift 2
	wait_for 5 test_lookup "$want" "$@"
	equal "$text" "$(lookup "$gw" "$@")" "$want"
}
test_lookup() {
	local want=$1
	shift
	[ "$(lookup "$gw" "$@")" = "$want" ]
}
to53="dir out src 10.1.0.1 dst 10.2.0.1 proto udp sport 1000 dport 53"
to80="dir out src 10.1.0.1 dst 10.2.0.1 proto tcp sport 1000 dport 80"
tmpl="tmpl src 1.1.1.1 dst 2.2.2.2 proto esp reqid 7 mode tunnel"
net="src 10.1.0.0/16 dst 10.2.0.0/16"

# --- the dump ---
pol add $net dir out priority 20 index 9 $tmpl
pol add $net proto udp dport 53 dir out priority 10 index 17 action block
start "$gw" --capacity 16
equal "a policy of before the start governs" "$(lookup "$gw" $to80)" "protect 9"
equal "a better one wins" "$(lookup "$gw" $to53)" "block 17"
equal "nothing governs another flow" "$(lookup "$gw" dir in src 10.1.0.1 dst 10.2.0.1)" "plain 0"

# --- events ---
pol update $net proto udp dport 53 dir out priority 30 index 17 action block
settles "an update changes the priority" "protect 9" $to53
pol update $net dir out priority 20 action block
settles "an update changes the action" "block 9" $to80
pol delete $net proto udp dport 53 dir out
wait_for 5 bash -c "! '$X' policy show 17 --netns '$gw'"
fails "a policy deleted by selector is gone" 1 "no such index" "$X" policy show 17 --netns "$gw"
pol delete dir out index 9
settles "a policy deleted by index is gone" "plain 0" $to80
pol add $net dir out priority 5 mark 0x10 mask 0xf0 if_id 0x7 index 25
settles "mark and if_id are asked" "plain 25" $to80 mark 0x1f if_id 7
equal "... and must fit" "$(lookup "$gw" $to80 mark 0x2f if_id 7)" "plain 0"
pol add $net dir fwd priority 5 ptype sub action block
pol add src 2001:db8::/32 dst ::/0 proto ipv6-icmp type 135 dir in priority 1 index 8
settles "ICMP by its words" "plain 8" dir in src 2001:db8::1 dst ::1 proto ipv6-icmp type 135 code 0
pol flush ptype main
wait_for 5 bash -c "[ \$('$X' status --netns '$gw' --json | grep -c '\"policies\": 1,') = 1 ]"
equal "a flush takes the main policies" "$(policies "$gw")" 1
pol flush ptype sub
wait_for 5 bash -c "'$X' status --netns '$gw' --json | grep -q '\"policies\": 0,'"
equal "... and one of the sub policies these" "$(policies "$gw")" 0
pol setdefault out block 2>/dev/null &&
	settles "the default is mirrored" "block 0" $to80
pol setdefault out accept 2>/dev/null &&
	settles "... back and forth" "plain 0" $to80
ip -n "$gw" xfrm policy add $net dir out priority 5 index 33 limit time-hard 4
settles "a policy with a timer governs" "plain 33" $to80
wait_for 10 test_lookup "plain 0" $to80
equal "a policy whose time is over is gone" "$(lookup "$gw" $to80)" "plain 0"

# --- growth: 16 slots were asked for ---
for i in $(seq 1 5000); do
	echo "xfrm policy add src 10.1.0.0/16 dst 10.$((8 + i / 250)).$((i % 250)).0/24 dir out priority 100"
done >"$T/batch"
ip -n "$gw" -batch "$T/batch"
wait_for 20 bash -c "'$X' status --netns '$gw' --json | grep -q '\"policies\": 5000,'"
equal "the maps grow with the SPD" "$(policies "$gw")" 5000
equal "... and all are listed" "$("$X" policy list --netns "$gw" --json | field 'len(set(p["index"] for p in d))')" 5000
wait_for 5 bash -c "'$X' status --netns '$gw' | grep -q 'doubt *none'"
equal "... and the last of them governs" "$(lookup "$gw" dir out src 10.1.0.1 dst 10.28.0.1 | cut -d' ' -f1)" plain
equal "no doubt remains, nothing was lost or put right" \
	"$("$X" status --netns "$gw" --json | field 'd["doubt"], d["lost"], d["dumps"], d["ties"]')" "([], 0, 1, 0)"

# --- idle ---
ticks() { awk '{ print $14 + $15 }' "/proc/$daemon/stat"; }
before=$(ticks)
sleep 3
equal "three seconds of nothing cost no time" "$(($(ticks) - before <= 1))" 1

# --- end and return ---
fails "a second daemon of the instance is refused" 1 "another 'xspd run' holds" "$X" run --netns "$gw"
kill -KILL "$daemon"
wait "$daemon" 2>/dev/null
"$X" status --netns "$gw" >"$T/out" 2>"$T/err"
equal "status of a killed daemon fails" "$? $(grep -c 'NOT RUNNING' "$T/out") $(wc -l <"$T/err")" "1 1 1"
sleep 3.2
equal "its lease runs out: the kernel decides" \
	"$("$X" lookup --netns "$gw" --json $to80 | field 'd["verdict"], d["reason"]')" "('defer', 'lease')"
pol add $net dir out priority 1 index 400001 action block
start "$gw"
equal "a daemon that returns has what changed meanwhile" "$(lookup "$gw" $to80)" "block 400001"
stop
equal "SIGTERM is an orderly end" "$?" 0
equal "a stopped daemon leaves doubt" \
	"$("$X" lookup --netns "$gw" --json $to80 | field 'd["verdict"], d["reason"]')" "('defer', 'doubt')"
start "$gw"
equal "and it returns once more" "$(lookup "$gw" $to80)" "block 400001"
done_testing
