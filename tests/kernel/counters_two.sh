#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Counters under two CPUs of traffic: packets and bytes of each policy are what was sent, exactly, while
# policies come and go, the maps grow, and the daemon is killed and started again.
. tests/lib/tap.sh
new_gateway
UDP="src 10.1.0.0/24 dst 10.2.0.0/24 proto udp"
for i in 0 1; do
	ip -n "$gw" xfrm policy add $UDP dport $((1000 + i)) dir fwd priority 10 index $((10 + 8 * i))
	ip -n "$gw" xfrm policy add src fd01::/64 dst fd02::/64 proto udp dport $((1000 + i)) dir fwd priority 10 index $((26 + 8 * i))
done
ip -n "$gw" xfrm policy add src 10.1.0.0/24 dst 10.2.0.0/24 dir out priority 10 index 9
ip -n "$gw" xfrm policy add src fd01::/64 dst fd02::/64 dir out priority 10 index 17
start "$gw" --capacity 1000
# neighbours that are not asked for again: nothing else passes
fix() { # NS DEV ADDRESS OF-NS OF-DEV
	ip -n "$1" neigh replace "$3" dev "$2" lladdr "$(ip -n "$4" -j link show "$5" | field 'd[0]["address"]')" nud permanent
}
for a in 10.1.0.1 fd01::1; do fix "$client" eth0 $a "$gw" c0; done
for a in 10.1.0.2 fd01::2; do fix "$gw" c0 $a "$client" eth0; done
for a in 10.2.0.2 fd02::2; do fix "$gw" s0 $a "$server" eth0; done
"$X" attach c0 --ingress --netns "$gw"
wait_for 5 bash -c "[ \$('$X' policy list --netns '$gw' --json | grep -c '\"index\"') = 6 ]"

# sender CPU PORT FILE: datagrams of many sizes from that CPU until FILE is there; tells what it sent
sender() {
	in_ns "$client" taskset -c "$1" python3 - "$2" "$3" <<-'END'
		import os, random, socket, sys
		port, stop = int(sys.argv[1]), sys.argv[2]
		rnd = random.Random(port)
		socks = [(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), "10.2.0.2", 28),
		         (socket.socket(socket.AF_INET6, socket.SOCK_DGRAM), "fd02::2", 48)]
		sent = {4: [0, 0], 6: [0, 0]}
		n = 0
		while n < 1500 or n % 64 or not os.path.exists(stop):
		    n += 1
		    s, host, head = socks[n % 2]
		    size = rnd.randrange(1200)
		    while True: # an ICMP error from before is told by the next call, which then sends nothing
		        try:
		            s.sendto(bytes(size), (host, port))
		            break
		        except ConnectionRefusedError:
		            pass
		    entry = sent[4 if n % 2 == 0 else 6]
		    entry[0] += 1
		    entry[1] += size + head
		print(*sent[4], *sent[6])
	END
}
cpus=($(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0)))'))
# traffic NAME: both senders, until stop_traffic
traffic() {
	sender "${cpus[0]}" 1000 "$T/$1.stop" >"$T/$1.0" &
	one=$!
	sender "${cpus[1]:-${cpus[0]}}" 1001 "$T/$1.stop" >"$T/$1.1" &
	two=$!
	tap_pids+=($one $two)
	phase=$1
	wait_for 10 bash -c "[ \$('$X' policy list --netns '$gw' --json | field 'sum(p[\"packets\"] > $2 for p in d)') -ge 6 ]"
}
stop_traffic() {
	touch "$T/$phase.stop"
	wait $one
	wait $two
	sleep 0.3
}
# answered: "packets bytes" of each policy, by index
answered() {
	"$X" policy list --netns "$gw" --json |
		field '" ".join("%d %d" % (p["packets"], p["bytes"]) for p in sorted(d, key=lambda p: p["index"]) if p["index"] < 1000)'
}
# deferred: "packets bytes" of questions that the program left to the kernel
deferred() {
	"$X" status --netns "$gw" --json |
		field '" ".join(str(sum(r[w] for n, r in d["hooks"]["ingress"].items() if n in ("doubt", "lease", "busy"))) for w in ("packets", "bytes"))'
}
reckon() { python3 -c 'import sys
before, after, d0, d1, s0, s1 = ([int(n) for n in open(f).read().split()] for f in sys.argv[2:])
got = [b - a for a, b in zip(before, after)]
fwd4, fwd6 = (s0[:2], s1[:2]), (s0[2:], s1[2:])
total = [sum(s[i] + s[i + 2] for s in (s0, s1)) for i in (0, 1)]
if sys.argv[1] == "each": # index 9, 10, 17, 18, 26, 34
    out4, out6 = [[a + b for a, b in zip(*f)] for f in (fwd4, fwd6)]
    want = out4 + fwd4[0] + out6 + fwd4[1] + fwd6[0] + fwd6[1]
else: # fwd and out are asked about each packet: the sum, and what was left to the kernel
    want = [2 * n for n in total]
    got = [sum(got[i::2]) + d1[i] - d0[i] for i in (0, 1)]
print("exact" if got == want else "got %s want %s" % (got, want), total[0] > 2000)' "$@"; }

# --- nothing but policies that come and go: each counts what was sent, to the byte ---
answered >"$T/a0"
deferred >"$T/d0"
traffic calm 0
for i in $(seq 40); do
	ip -n "$gw" xfrm policy add src 10.8.$i.0/24 dst 10.2.0.0/24 dir fwd priority 5
	ip -n "$gw" xfrm policy delete src 10.8.$i.0/24 dst 10.2.0.0/24 dir fwd
done
stop_traffic
answered >"$T/a1"
deferred >"$T/d1"
equal "two CPUs of traffic: packets and bytes of each policy are what was sent" \
	"$(reckon each "$T/a0" "$T/a1" "$T/d0" "$T/d1" "$T/calm.0" "$T/calm.1") $(cat "$T/d1")" "exact True $(cat "$T/d0")"

# --- growth, updates in place, the daemon killed and stopped, started again: nothing is lost or twice ---
swaps() { "$X" status --netns "$gw" --json | field 'd["swaps"]'; }
batch() { # add|delete
	seq 1 6000 | awk -v verb="$1" '{ printf "xfrm policy %s src 10.9.0.0/16 dst 10.%d.%d.0/24 dir out%s\n", verb, $1 / 250 + 10, $1 % 250,
		verb == "add" ? " priority 99" : "" }' | ip -n "$gw" -batch -
}
mirrored() { wait_for 20 bash -c "[ \$('$X' status --netns '$gw' --json | grep -c '\"policies\": $1,') = 1 ]"; }
traffic storm 100
batch add
mirrored 6006
equal "the maps grew under way" "$(($(swaps) > 1))" 1
ip -n "$gw" xfrm policy update $UDP dport 1000 dir fwd priority 11
sleep 0.5 # what was under way at an update is added up once that is over, by the daemon that made it
stop KILL 2>/dev/null
sleep 0.3
start "$gw" --capacity 1000
batch delete
ip -n "$gw" xfrm policy update $UDP dport 1001 dir fwd priority 12
mirrored 6
stop
start "$gw" --capacity 1000
sleep 0.5
stop_traffic
answered >"$T/a2"
deferred >"$T/d2"
equal "growth, kill -9, restarts: each question counted once, by its policy or as left to the kernel" \
	"$(reckon all "$T/a1" "$T/a2" "$T/d1" "$T/d2" "$T/storm.0" "$T/storm.1")" "exact True"

# --- and calm again ---
traffic after 1000
stop_traffic
answered >"$T/a3"
deferred >"$T/d3"
equal "the same afterwards, to the byte" \
	"$(reckon each "$T/a2" "$T/a3" "$T/d2" "$T/d3" "$T/after.0" "$T/after.1")" "exact True"
done_testing
