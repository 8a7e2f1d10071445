#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Packets through client - gateway - server: each policy counts what was sent, no more, no less.
. tests/lib/tap.sh
new_gateway

pol() { ip -n "$gw" xfrm policy add "$@"; }
pol src 10.1.0.0/24 dst 10.2.0.0/24 proto udp dport 1000 dir fwd priority 10 index 10
pol src 10.1.0.0/24 dst 10.2.0.0/24 dir out priority 10 index 9
pol src 10.1.0.0/24 dst 10.2.0.0/24 proto udp dport 2000 dir fwd priority 10 index 18 action block
pol src 0.0.0.0/0 dst 0.0.0.0/0 proto udp dport 3000 dir in priority 10 index 8
pol src 10.2.0.1 dst 10.2.0.2 dir out priority 10 index 17
pol src fd01::/64 dst fd02::/64 proto udp dport 1000 dir fwd priority 10 index 26
pol src fd01::/64 dst fd02::/64 dir out priority 10 index 25
pol src ::/0 dst ::/0 proto udp dport 3000 dir in priority 10 index 16
pol src 10.1.0.0/24 dst 10.2.0.0/24 proto icmp type 8 dir fwd priority 10 index 34
pol src 10.1.0.0/24 dst 10.2.0.0/16 proto udp dport 1000 dir fwd priority 20 index 42 # never wins
start "$gw"

# send NS ADDRESS PORT COUNT: datagrams of 100 bytes
send() {
	in_ns "$1" python3 - "$2" "$3" "$4" <<-'END'
		import socket, sys
		host, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
		s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
		for i in range(count):
		    try: s.sendto(bytes(100), (host, port))
		    except ConnectionRefusedError: s.sendto(bytes(100), (host, port))
	END
}
# listen ADDRESS PORT SECONDS: count what arrives at the server until it is quiet; the first may take
# that long
listen() {
	rm -f "$T/got"
	in_ns "$server" python3 - "$@" >"$T/got" <<-'END' &
		import socket, sys
		host, port = sys.argv[1], int(sys.argv[2])
		s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
		s.bind((host, port)); s.settimeout(float(sys.argv[3])); n = 0
		try:
		    while True: s.recv(2000); n += 1; s.settimeout(1)
		except TimeoutError: print(n)
	END
	tap_pids+=($!)
	wait_for 5 bash -c "nsenter --net=/run/netns/$server ss -Hlun sport = $2 | grep -q ."
}
heard() {
	wait_for 20 test -s "$T/got"
	cat "$T/got"
}
# counts INDEX...: "packets/bytes" of each
counts() {
	"$X" policy list --netns "$gw" --json |
		python3 -c '
import json, sys
by = {p["index"]: p for p in json.load(sys.stdin)}
print(" ".join("%d/%d" % (by[int(i)]["packets"], by[int(i)]["bytes"]) for i in sys.argv[1:]))' "$@"
}

# resolve neighbours first: nobody counts yet
in_ns "$client" ping -c 1 -W 2 10.2.0.2 >/dev/null
in_ns "$client" ping -c 1 -W 2 fd02::2 >/dev/null
check "attach where the client's packets arrive" "$X" attach c0 --ingress --netns "$gw"
listen 10.2.0.2 1000 10
send "$client" 10.2.0.2 1000 20
equal "the server gets them" "$(heard)" 20
equal "forwarded: fwd and out count each, 128 bytes; another of worse priority none" \
	"$(counts 10 9 42)" "20/2560 20/2560 0/0"
listen 10.2.0.2 2000 2
send "$client" 10.2.0.2 2000 5
equal "a block policy: the kernel drops them" "$(heard)" 0
equal "... and it counts them" "$(counts 18)" "5/640"
listen fd02::2 1000 10
send "$client" fd02::2 1000 11
equal "IPv6: the server gets them" "$(heard)" 11
equal "IPv6 forwarded" "$(counts 26 25)" "11/1628 11/1628"
send "$client" 10.1.0.1 3000 7
send "$client" 10.2.0.1 3000 2
send "$client" fd01::1 3000 3
equal "local, by either of our addresses: in" "$(counts 8 16)" "9/1152 3/444"
in_ns "$client" ping -c 4 -i 0.1 -s 56 10.2.0.2 >/dev/null
equal "ICMP type" "$(counts 34)" "4/336"
equal "status agrees: a block is not asked for its way out" \
	"$("$X" status --netns "$gw" --json | field "d['hooks']['ingress']['bypass']['packets'], d['hooks']['ingress']['block']['packets']")" \
	"($((20 * 2 + 11 * 2 + 12 + 4 * 2)), 5)"
equal "an idle hook counts nothing" "$(counts 17)" "0/0"

check "attach where they leave" "$X" attach s0 --egress --netns "$gw"
send "$gw" 10.2.0.2 4000 6
equal "egress: out" "$(counts 17)" "6/768"
check "take ingress off" "$X" detach c0 --netns "$gw"
before=$(counts 10 9)
send "$client" 10.2.0.2 1000 3
equal "without ingress, egress alone counts what is forwarded" "$before $(counts 10 9)" \
	"20/2560 $((20 + 4))/$((2560 + 336)) 20/2560 $((24 + 3))/$((2896 + 384))"
check "xdp counts like ingress" "$X" attach c0 --xdp --netns "$gw"
send "$client" 10.2.0.2 1000 5
equal "... fwd by xdp" "$(counts 10)" "25/3200"
"$X" detach c0 --netns "$gw" && "$X" detach s0 --netns "$gw"

# --- the counters live on ---
before=$(counts 10 9 18 26 25 8 16 34 17)
stop
start "$gw"
equal "a restart of the daemon keeps the counters" "$(counts 10 9 18 26 25 8 16 34 17)" "$before"
ip -n "$gw" xfrm policy update src 10.1.0.0/24 dst 10.2.0.0/24 proto udp dport 1000 dir fwd priority 11
wait_for 5 bash -c "'$X' policy show 10 --netns '$gw' | grep -q 'priority 11'"
equal "an update in place keeps them" "$(counts 10)" "25/3200"
for i in $(seq 1 6000); do echo "xfrm policy add src 10.9.0.0/16 dst 10.$((i / 250 + 10)).$((i % 250)).0/24 dir out priority 99"; done >"$T/batch"
ip -n "$gw" -batch "$T/batch"
wait_for 10 bash -c "[ \$('$X' status --netns '$gw' --json | grep -c '\"policies\": 6010') = 1 ]"
equal "and growth" "$(counts 10 9 18 26 25 8 16 34 17)" "$before"
ip -n "$gw" xfrm policy delete src 10.2.0.1 dst 10.2.0.2 dir out
pol src 10.2.0.1 dst 10.2.0.2 dir out priority 10 index 400001
wait_for 5 "$X" policy show 400001 --netns "$gw"
equal "a new policy starts at nothing" "$(counts 400001)" "0/0"
done_testing
