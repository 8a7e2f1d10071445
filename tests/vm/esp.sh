#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# shellcheck disable=SC2016,SC2059,SC2154
# client - gateway - gateway - server, an ESP tunnel (null encryption) between the gateways, IPv4
# and IPv6 through it: what the hooks of a gateway count is what its SAs have carried.
. tests/lib/tap.sh
if ! ip xfrm state add src 127.0.0.1 dst 127.0.0.2 proto esp spi 1 enc 'ecb(cipher_null)' '' 2>/dev/null; then
	echo "ok - ESP end to end # SKIP this kernel has no ESP"
	exit 0
fi
ip xfrm state flush

new_ns client
new_ns gw1
new_ns gw2
new_ns server
link() { # NS DEV NS DEV
	ip -n "$1" link add name "$2" type veth peer name "$4" netns "$3"
	ip -n "$1" link set "$2" up
	ip -n "$3" link set "$4" up
}
address() { # NS DEV V4 [V6]
	ip -n "$1" addr add "$3" dev "$2"
	[ $# = 3 ] || ip -n "$1" addr add "$4" dev "$2" nodad
}
link "$client" eth0 "$gw1" lan
link "$gw1" wan "$gw2" wan
link "$gw2" lan "$server" eth0
address "$client" eth0 10.1.0.2/24 fd01::2/64
address "$gw1" lan 10.1.0.1/24 fd01::1/64
address "$gw1" wan 192.0.2.1/24
address "$gw2" wan 192.0.2.2/24
address "$gw2" lan 10.2.0.1/24 fd02::1/64
address "$server" eth0 10.2.0.2/24 fd02::2/64
for ns in "$client" "$server"; do
	[ "$ns" = "$client" ] && n=1 || n=2
	ip -n "$ns" route add default via "10.$n.0.1"
	ip -n "$ns" route add default via "fd0$n::1"
done
for ns in "$gw1" "$gw2"; do in_ns "$ns" sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1; done
ip -n "$gw1" route add default via 192.0.2.2
ip -n "$gw2" route add default via 192.0.2.1
# what IPv6 goes to is decided before it is put into the tunnel
ip -n "$gw1" route add fd02::/64 dev wan
ip -n "$gw2" route add fd01::/64 dev wan

sa() { # NS SRC DST SPI
	ip -n "$1" xfrm state add src "$2" dst "$3" proto esp spi "$4" reqid 1 mode tunnel flag af-unspec \
		enc 'ecb(cipher_null)' '' auth-trunc 'hmac(sha256)' "0x$(printf %064d 7)" 128
}
for ns in "$gw1" "$gw2"; do
	sa "$ns" 192.0.2.1 192.0.2.2 0x1001
	sa "$ns" 192.0.2.2 192.0.2.1 0x1002
done
policy() { # NS DIR INDEX SRC DST TUNNEL-SRC TUNNEL-DST
	ip -n "$1" xfrm policy add dir "$2" index "$3" src "$4" dst "$5" priority 10 \
		tmpl src "192.0.2.$6" dst "192.0.2.$7" proto esp reqid 1 mode tunnel
}
# protect NS MINE-LAST-DIGIT PEER-LAST-DIGIT: out and fwd policies of both families
protect() {
	local ns=$1 me=$2 peer=$3 index=8 net
	for net in 10.%d.0.0/24 fd0%d::/64; do
		policy "$ns" out $((index + 1)) "$(printf "$net" "$me")" "$(printf "$net" "$peer")" "$me" "$peer"
		policy "$ns" fwd $((index + 2)) "$(printf "$net" "$peer")" "$(printf "$net" "$me")" "$peer" "$me"
		index=$((index + 8))
	done
}
protect "$gw1" 1 2
protect "$gw2" 2 1

server() {
	nsenter --net="/run/netns/$server" python3 - <<-'END' &
		import socket
		s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
		s.bind(("::", 7))
		while True: s.sendto(*s.recvfrom(2000))
	END
	tap_pids+=($!)
	wait_for 20 bash -c "nsenter --net=/run/netns/$server ss -Hlun sport = 7 | grep -q ."
}
# echoes ADDRESS COUNT: how many of these datagrams come back to the client, sent one by one
echoes() {
	in_ns "$client" python3 - "$1" "$2" <<-'END'
		import socket, sys
		host, count, got = sys.argv[1], int(sys.argv[2]), 0
		s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
		s.settimeout(5)
		for i in range(count):
		    s.sendto(bytes(100), (host, 7))
		    try: got += len(s.recv(2000)) == 100
		    except TimeoutError: break
		print(got)
	END
}
# counts NS INDEX...: the packets of each policy
counts() {
	local ns=$1
	shift
	"$X" policy list --netns "$ns" --json | python3 -c '
import json, sys
by = {p["index"]: p["packets"] for p in json.load(sys.stdin)}
print(*(by[int(i)] for i in sys.argv[1:]))' "$@"
}
reason() { "$X" status --netns "$1" --json | field "d['hooks']['$2'].get('$3', {}).get('packets', 0)"; }
# carried NS SPI: packets of that SA
carried() {
	ip -n "$1" -s xfrm state | awk -v spi="$2" '$1 == "proto" { its = $4 ~ "^" spi }
		its && /lifetime current/ { getline; sub(/.*, /, ""); print $1 + 0 }' | head -n 1
}
errors() { in_ns "$1" awk '{ n += $2 } END { print n + 0 }' /proc/net/xfrm_stat; }

server
equal "the tunnel carries IPv4" "$(echoes 10.2.0.2 2)" 2
equal "... and IPv6" "$(echoes fd02::2 2)" 2
for ns in "$gw1" "$gw2"; do
	rm -f "$T/daemon.log"
	start "$ns"
	check "attach to both devices of a gateway" "$X" attach wan --ingress --egress --netns "$ns"
	check "... the inner one" "$X" attach lan --ingress --netns "$ns"
done
tcx=clsact
[ "$(printf '%s\n' 6.6 "$(uname -r)" | sort -V | head -n 1)" = 6.6 ] && tcx=tcx
equal "by the means of this kernel" \
	"$("$X" status --netns "$gw1" --json | field '" ".join(sorted({a["kind"] for a in d["attached"]}))')" $tcx

for ns in "$gw1" "$gw2"; do before+=("$(carried "$ns" 0x00001001)" "$(carried "$ns" 0x00001002)"); done
equal "IPv4 with the hooks on" "$(echoes 10.2.0.2 20)" 20
equal "IPv6 with the hooks on" "$(echoes fd02::2 11)" 11
for ns in "$gw1" "$gw2"; do after+=("$(carried "$ns" 0x00001001)" "$(carried "$ns" 0x00001002)"); done
equal "the SAs carried them, both ways, at both ends" \
	"$(for i in 0 1 2 3; do echo $((after[i] - before[i])); done | tr '\n' ' ')" "31 31 31 31 "
for ns in "$gw1" "$gw2"; do
	equal "out policies count what goes into the tunnel" "$(counts "$ns" 9 17)" "20 11"
	equal "fwd policies count the inner packets that come out" "$(counts "$ns" 10 18)" "20 11"
	equal "the outer ones are ESP, received" "$(reason "$ns" ingress esp)" 31
	equal "... and sent" "$(reason "$ns" egress esp)" 31
	equal "protected, into the tunnel and out of it" "$(reason "$ns" ingress protect)" 62
	equal "nothing is a tie" "$(reason "$ns" ingress tie)" 0
	# the fwd policies demand the tunnel: without a secpath these packets were not forwarded
	equal "the kernel has dropped nothing" "$(errors "$ns")" 0
done

# what comes in the clear is not from the tunnel: the same policy governs it, the kernel drops it
for net in 10.%d.0.0/24 fd0%d::/64; do
	ip -n "$gw2" xfrm policy delete src "$(printf "$net" 2)" dst "$(printf "$net" 1)" dir out
done
equal "plain text instead" "$(echoes 10.2.0.2 1)" 0
equal "... the kernel drops the answer" "$(errors "$gw1") $(in_ns "$gw1" awk '/InTmplMismatch/ { print $2 }' /proc/net/xfrm_stat)" "1 1"
equal "... and the fwd policy counts it" "$(counts "$gw1" 10)" 21
done_testing
