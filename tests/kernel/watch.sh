#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# xspd events and xspd top: what they tell of changes and packets, at once, later, and after a restart.
. tests/lib/tap.sh
. tests/lib/wire.sh
net="src 10.1.0.0/24 dst 10.2.0.0/24"
esp=(tmpl src 192.0.2.1 dst 192.0.2.2 proto esp reqid 7 mode tunnel)
pol() { ip -n "$gw" xfrm policy "$@"; }
events() { "$X" events --netns "$gw" "$@"; }
# lines PATTERN [OPTION...]: how many events match
lines() {
	local pattern=$1
	shift
	events "$@" | grep -Ec "$pattern"
}
timeless() { sed 's/^[0-9-]* [0-9:.]* //'; }
come() { [ "$(lines "$1")" -ge "${2:-1}" ]; }

# --- words ---
fails "no instance" 1 "instance $gw: no /sys/fs/bpf" "$X" events --netns "$gw"
fails "no words" 2 "events: takes no words" "$X" events now
fails "one or the other" 2 "events: --changes and --samples" "$X" events --changes --samples
fails "no such order" 2 "top: --sort size: give rate, packets, bytes or index" "$X" top --sort size
fails "no instance to look at" 1 "instance $gw: no pins" "$X" top --netns "$gw" --plain

pol add $net dir out priority 375423 index 9 "${esp[@]}"
start "$gw" --samples 20 --lease 1000

# --- changes ---
equal "the start" "$(events | timeless)" "start   1 policies read"
pol add $net proto udp dport 2000 dir fwd priority 10 index 10 action block
pol update $net dir out priority 375423 "${esp[@]/7/8}"
pol delete $net proto udp dport 2000 dir fwd
pol setdefault fwd block
pol setdefault fwd accept
check "they are told of" wait_for 5 come " default " 2
equal "add, delete and update, in the words of ip xfrm" "$(events --last 5 | timeless | head -6)" "\
add     index 10
	src 10.1.0.0/24 dst 10.2.0.0/24 proto udp dport 2000 dir fwd action block index 10 priority 10 pos 2
update  index 9 reqid 8, strongswan's by its priority
	- src 10.1.0.0/24 dst 10.2.0.0/24 dir out index 9 priority 375423 pos 1 tmpl src 192.0.2.1 dst 192.0.2.2 proto esp reqid 7 mode tunnel
	+ src 10.1.0.0/24 dst 10.2.0.0/24 dir out index 9 priority 375423 pos 3 (order not certain) tmpl src 192.0.2.1 dst 192.0.2.2 proto esp reqid 8 mode tunnel
delete  index 10"
equal "defaults, before and after" "$(lines 'default from in accept, out accept, fwd accept to in accept, out accept, fwd block$')" 1
equal "JSON, a line each" "$(events --json | python3 -c 'import json,sys
l = [json.loads(x) for x in sys.stdin]; u = [x for x in l if x["event"] == "update"][0]
print(len(l), u["owner"], u["before"]["reqid"], u["after"]["reqid"], u["reread"], l[-1]["after"])')" \
	"6 strongswan 7 8 False in accept, out accept, fwd accept"
nsenter --net="/run/netns/$gw" python3 -c 'import os, socket, struct, time
s = socket.socket(16, socket.SOCK_RAW, 6)
s.send(struct.pack("=IHHII", 16, 0x1d, 5, 1, os.getpid()))
time.sleep(2)' &
pid=$!
tap_pids+=("$pid")
check "a flush is told of" wait_for 5 come " flush "
equal "... with its count, and who asked" "$(events --last 1 | timeless)" "flush   1 main policies, by pid $pid python3"

# --- the alarm ---
for i in $(seq 1 40); do echo "xfrm policy add $net proto udp dport $((3000 + i)) dir out priority 5"; done >"$T/add"
sed 's/ add / delete /; s/ priority 5//' "$T/add" >"$T/del"
ip -n "$gw" -batch "$T/add"
wait_for 5 bash -c "'$X' status --netns '$gw' --json | grep -q '\"policies\": 40,'"
head -8 "$T/del" >"$T/few"
sleep 1.1 # since the flush
ip -n "$gw" -batch "$T/few"
check "deletions are told of" wait_for 5 come " delete " 9
equal "a few are no alarm" "$(lines ' alarm ')" 0
sleep 1.1
tail -n +9 "$T/del" >"$T/many"
ip -n "$gw" -batch "$T/many"
check "many at once are one" wait_for 5 come " alarm "
equal "... one alone" "$(lines ' alarm +10 of 32 policies deleted within a second')$(lines ' alarm ')" 11
equal "... which is logged" "$(grep -c 'ALARM: 10 of 32 policies' "$T/daemon.log")" 1

# --- following, and a restart ---
"$X" events --netns "$gw" --follow --last 1 >"$T/follow" &
follower=$!
tap_pids+=("$follower")
pol add $net proto tcp dport 22 dir out priority 7 index 17
check "a follower gets it" wait_for 5 grep -q "dport 22" "$T/follow"
kill -KILL "$daemon"
wait "$daemon" 2>/dev/null
before=$(lines .)
pol add $net proto tcp dport 23 dir out priority 7 index 25
start "$gw" --samples 20 --rcvbuf 4096
check "the follower goes on" wait_for 5 grep -q "start   2 policies read" "$T/follow"
kill "$follower"
wait "$follower"
equal "... until it is told to end" "$?" 0
equal "a restart keeps the past" "$(($(lines .) - before)) $(lines ' start ')" "1 2"
for i in $(seq 1 3000); do echo "xfrm policy add src 10.1.0.0/24 dst 10.$((i / 250)).$((i % 250)).0/24 dir out priority 5"; done >"$T/big"
ip -n "$gw" -batch "$T/big"
check "lost events are told of" wait_for 10 come " lost +events"
check "... and what was found instead" wait_for 10 come "found by reading all again"
pol flush
wait_for 5 bash -c "'$X' status --netns '$gw' --json | grep -q '\"policies\": 0,'"
stop
start "$gw" --samples 20

# --- packets ---
pol add $net proto udp dport 2000 dir fwd priority 10 index 10 action block
pol add $net dir out priority 20 index 9
wait_for 5 bash -c "'$X' status --netns '$gw' --json | grep -q '\"policies\": 2,'"
attach c0 --ingress
cpus=$(nproc)
for cpu in $(seq 0 $((cpus - 1))); do
	in_ns "$client" taskset -c "$cpu" python3 tests/lib/wire.py send eth0 "$gw_mac" plain
done
check "the first packet of a policy" wait_for 5 come " first "
equal "... whatever the CPU, is one" "$(events --samples | timeless)" \
	"first   src 10.1.0.2 dst 10.2.0.2 proto udp sport 999 dport 1000 dir out dev c0 hook ingress policy 9 reason bypass"
send blocked
check "what the kernel drops" wait_for 5 come " denied "
attach c0 --ingress --mode enforce --dry-run
send blocked
check "what would be dropped" wait_for 5 come " would-drop "
attach c0 --ingress --mode enforce
send blocked
check "what is dropped" wait_for 5 come " drop "
equal "... and why" "$(events --samples --last 1 | timeless)" \
	"drop    src 10.1.0.2 dst 10.2.0.2 proto udp sport 999 dport 2000 dir fwd dev c0 hook ingress policy 10 reason block act drop-block"
equal "... as JSON" "$(events --samples --last 1 --json | field 'd["event"], d["packet"]["index"], d["packet"]["act"], d["packet"]["dev"]')" \
	"('drop', 10, 'drop-block', 'c0')"
before=$(lines ' drop ')
sleep 1.1 # a second of their own
send "blocked*2000"
sleep 1.1
for cpu in $(seq 0 $((cpus - 1))); do # each tells how many it kept to itself
	in_ns "$client" taskset -c "$cpu" python3 tests/lib/wire.py send eth0 "$gw_mac" blocked
done
wait_for 5 come 'and [0-9]+ before it'
told=$(($(lines ' drop ') - before))
equal "not all of very many" "$((told >= 20 && told < 1000)) $(($(status | field 'd["samples_missed"]') + told >= 1800))" "1 1"

# --- top ---
(while :; do send "plain*200"; done) 2>/dev/null &
sender=$!
tap_pids+=("$sender")
"$X" top --netns "$gw" --count 2 >"$T/top" 2>&1
equal "no terminal: lines" "$? $(grep -c '^xspd\|^'"$gw"': in step; 2 policies, [0-9.]* packets/s$' "$T/top")" "0 2"
equal "... of policies" "$(grep -Ec '^policy +[1-9][0-9.]*/s +[0-9]+ packets +[0-9]+ bytes +9 out src 10.1.0.0/24 dst 10.2.0.0/24$' "$T/top")" 2
equal "... the busiest first" "$(grep '^policy' "$T/top" | head -1 | grep -c ' 9 out ')" 1
equal "... of reasons" "$(grep -Ec '^reason +[1-9][0-9.]*/s +[0-9]+ packets  ingress out  bypass$' "$T/top")" 2
equal "filtered" "$("$X" top --netns "$gw" --count 1 --filter 'dport 2000' | grep -c ^policy)" 1
equal "one alone" "$("$X" top --netns "$gw" --count 1 --follow 9 | grep '^policy' | grep -c ' 9 out ')" 1
equal "JSON" "$("$X" top --netns "$gw" --count 1 --sort index --json | field '[p["index"] for p in d["policies"]], d["policies"][0]["packets_per_s"] > 0, d["alive"]')" \
	"([9, 10], True, True)"
# a terminal of 80x24: sort, filter, follow one, back, quit
screen() {
	(for key in "$@"; do
		sleep 0.7
		# shellcheck disable=SC2059
		printf "$key"
	done) | TERM=xterm timeout 60 script -qec "stty cols 80 rows 24; '$X' top --netns '$gw'" "$T/screen" >/dev/null
}
screen '' s s /dport '\n' '\n' '' '\033' '' 6 q
equal "a terminal, until q" "$?" 0
for text in "xspd top: $gw, in step" "packet/s.*policy" "asked reason" "s sort" "filter: " "acted on" "told of" "Esc back"; do
	check "... shows '$text'" grep -aq "$text" "$T/screen"
done
equal "an unknown terminal" "$(TERM=none-such script -qec "'$X' top --netns '$gw'" /dev/null </dev/null |
	grep -c "xspd: top: terminal 'none-such' is not known; set TERM, or give --plain")" 1
kill "$sender"
wait "$sender" 2>/dev/null
done_testing
