#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The guard: plaintext that leaves although an out policy wants it protected, or wanted so a moment
# ago, is counted or dropped; everything else, and whatever is not certain, is not.
. tests/lib/tap.sh
. tests/lib/wire.sh
net="src 10.1.0.0/24 dst 10.2.0.0/24"
esp=(tmpl src 192.0.2.1 dst 192.0.2.2 proto esp reqid 7 mode tunnel)
pol() { ip -n "$gw" xfrm policy "$@"; }
# past the kernel's lookup: a packet socket on the gateway
leak() { in_ns "$gw" python3 tests/lib/wire.py send s0 "$server_mac" "$@"; }
# which of these arrive at the server
arrive() {
	watchers=() watched=()
	watch "$server" frames eth0
	"$@"
	sleep 0.25
	kill "${watchers[@]}"
	wait "${watchers[@]}" 2>/dev/null
	grep -hv ready "${watched[@]}" | cut -d' ' -f2 | sort | xargs
}
gone() { ! "$X" policy show "$1" --netns "$gw"; }
there() { "$X" policy show "$1" --netns "$gw"; }
lingering() { [ "$(status | field 'd["lingering"]')" = "$1" ]; }
doubtless() { [ "$(status | field 'len(d["doubt"])')" = 0 ]; }
protect() { pol add $net dir out priority 100 index 9 "${esp[@]}" && wait_for 5 there 9; }

pol add $net dir out priority 100 index 9 "${esp[@]}"
pol add $net proto udp dport 53 dir out priority 10 index 17
pol add $net proto udp dport 6000 dir out priority 10 index 25 \
	tmpl proto esp reqid 8 mode transport level use
pol add src fd01::/64 dst fd02::/64 dir out priority 100 index 33 "${esp[@]}"
pol add src 0.0.0.0/0 dst 0.0.0.0/0 dir out priority 1000 index 41
start "$gw" --capacity 64 --lease 1000

# --- words ---
fails "guard is for egress" 2 "attach s0: --mode guard is not for --ingress" "$X" attach s0 --ingress --mode guard
fails "--drop is the guard's" 2 "attach s0: --drop is for --mode guard" "$X" attach s0 --egress --mode mark --drop
fails "--linger is the guard's" 2 "attach s0: --linger is for --mode guard" "$X" attach s0 --egress --linger 3
fails "no such time" 2 "attach: --linger 0: give a number from 1 to 3600" "$X" attach s0 --egress --mode guard --linger 0
fails "loopback is refused" 1 "lo: guard: a loopback device" attach lo --egress --mode guard

# --- a policy that is there ---
check "attach" attach s0 --egress --mode guard
acts egress >/dev/null
equal "what the kernel forwards it protects: no leak" "$(arrive send plain) $(acts egress)" " "
equal "plaintext past the lookup is counted, and goes on" "$(arrive leak plain echo) $(acts egress)" "echo plain leak:2"
equal "... per policy" "$("$X" policy show 9 --netns "$gw" --json | field 'd["acted"]')" 2
leak plain6
equal "IPv6" "$(acts egress)" "leak:1"
equal "a dry run of dropping" "$(attach s0 --egress --mode guard --drop --dry-run) $(arrive leak plain) $(acts egress)" \
	" plain drop-leak:1"
check "attach, dropping" attach s0 --egress --mode guard --drop
equal "status has it" "$(status | field '[(a["mode"], a["drop"], a["linger_s"]) for a in d["attached"]]')" "[(['guard'], True, 0)]"
equal "it is dropped" "$(arrive leak plain plain6 echo) $(acts egress)" " drop-leak:3"
equal "never ESP, AH, IKE, nor what no policy wants protected" \
	"$(arrive leak esp ah ike natt dns) $(acts egress)" "ah dns esp ike natt kept-exempt:2"
equal "never what cannot be told" "$(arrive leak ike-later first6 error optional dhcp ns6) $(acts egress)" \
	"dhcp first6 ike-later ns6 optional quoted kept-fragment:1 kept-icmp-error:1 kept-optional:1 kept-link:1"
leak exempt
"$X" exempt add udp 1999 --netns "$gw"
leak exempt
equal "never an exempt port" "$(acts egress)" "kept-exempt:1 drop-leak:1"
in_ns "$gw" sysctl -qw net.ipv4.conf.s0.disable_xfrm=1
wait_for 5 bash -c "'$X' status --netns '$gw' | grep -q SYSCTL"
equal "never with disable_xfrm" "$(arrive leak plain) $(acts egress)" "plain kept-sysctl:1"
in_ns "$gw" sysctl -qw net.ipv4.conf.s0.disable_xfrm=0
wait_for 5 bash -c "'$X' status --netns '$gw' | grep -q 'env *nothing'"

# --- marks that netfilter may have changed since ---
pol add $net proto udp dport 7000 dir out priority 5 mark 0x10 mask 0xff index 49
wait_for 5 there 49
equal "the mark decides" "$(arrive leak marked) $(acts egress)" " drop-leak:1"
in_ns "$gw" nft -f - <<<'table ip t { chain c { type filter hook postrouting priority 0; }; }'
wait_for 5 bash -c "'$X' status --netns '$gw' | grep -q NETFILTER_ANY"
equal "it may have been another at the lookup" "$(arrive leak marked plain6) $(acts egress)" "marked drop-leak:1"
check "the operator vouches for netfilter" attach s0 --egress --mode guard --drop --ignore-netfilter
equal "... and the mark decides" "$(arrive leak marked) $(acts egress)" " drop-leak:1"
in_ns "$gw" nft flush ruleset
pol delete dir out index 49 mark 0x10 mask 0xff

# --- a policy that was there a moment ago ---
check "attach, lingering" attach s0 --egress --mode guard --linger 5
check "it is prepared for" wait_for 5 bash -c "'$X' status --netns '$gw' | grep -q 'lingering 0 deleted policies, each for 5 s'"
pol delete dir out index 9
wait_for 5 gone 9
equal "deleted: what the kernel now forwards in the clear is counted" "$(arrive send plain dns) $(acts egress)" \
	"dns plain leak-gone:1"
equal "it is listed no more" "$("$X" policy list --netns "$gw" --json | field '[p["index"] for p in d if p["priority"] == 100]')" "[33]"
check "until its time is over" wait_for 8 lingering 0
equal "... and then not" "$(arrive send plain) $(acts egress)" "plain "
protect
check "attach, lingering and dropping" attach s0 --egress --mode guard --linger 60 --drop
pol delete dir out index 9
wait_for 5 gone 9
equal "deleted: it is dropped" "$(arrive send plain ike) $(acts egress)" "ike kept-exempt:1 drop-leak-gone:1"
pol add $net proto udp dport 1000 dir out priority 99 index 57
wait_for 5 there 57
equal "a better policy that lets it go decides" "$(arrive send plain) $(acts egress)" "plain "
pol delete dir out index 57
wait_for 5 gone 57
protect
equal "it is there again: the kernel protects" "$(arrive send plain) $(acts egress)" " "
equal "... while the old one lingers" "$(status | field 'd["lingering"]')" 1
pol update $net dir out priority 100
wait_for 5 bash -c "'$X' policy show 9 --netns '$gw' --json | grep -q '\"tmpl\": null'"
equal "an update that takes the protection away" "$(arrive send plain) $(acts egress)" " drop-leak-gone:1"
check "... lingers" lingering 2
pol update $net dir out priority 100 "${esp[@]}"
pol update $net dir out priority 2000 "${esp[@]}"
wait_for 5 bash -c "'$X' policy show 9 --netns '$gw' --json | grep -q '\"priority\": 2000'"
equal "... or puts it behind another" "$(arrive send plain) $(acts egress)" " drop-leak-gone:1"
check "... lingers" lingering 3

# --- many at once, and another set of maps meanwhile ---
for i in $(seq 1 500); do
	echo "xfrm policy add src 10.1.0.0/24 dst 10.2.$((i % 250)).$((i / 250))/32 dir out priority 50 tmpl proto esp reqid 9 mode transport"
done >"$T/batch"
pol update $net dir out priority 100 "${esp[@]}"
ip -n "$gw" -batch "$T/batch"
wait_for 10 bash -c "[ \"\$('$X' status --netns '$gw' --json | grep -c '\"policies\": 504,')\" = 1 ]"
wait_for 5 doubtless
pol flush
wait_for 5 bash -c "'$X' status --netns '$gw' --json | grep -q '\"policies\": 0,'"
check "a flush: all that protected linger" lingering 505
equal "... and are gone by" "$(arrive send plain plain6) $(acts egress)" " drop-leak-gone:2"
sed 's/10\.2\./10.9./; s/ tmpl.*//' "$T/batch" >"$T/batch2"
sed 's/10\.2\./10.10./; s/ tmpl.*//' "$T/batch" >>"$T/batch2"
sed 's/10\.2\./10.11./; s/ tmpl.*//' "$T/batch" >>"$T/batch2"
swaps=$(status | field 'd["swaps"]')
ip -n "$gw" -batch "$T/batch2"
wait_for 10 bash -c "'$X' status --netns '$gw' --json | grep -q '\"policies\": 1500,'"
wait_for 5 doubtless
equal "the maps have grown" "$(($(status | field 'd["swaps"]') > swaps))" 1
equal "and they still are" "$(arrive send plain plain6 dns) $(acts egress)" " drop-leak-gone:3"

# --- when in doubt, the kernel decides ---
kill -KILL "$daemon"
wait "$daemon" 2>/dev/null
sleep 1.3
equal "without a daemon nothing is dropped" "$(arrive send plain) $(acts egress 2>/dev/null)" "plain "
check "detach" "$X" detach s0 --netns "$gw"
done_testing
