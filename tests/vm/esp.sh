#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# shellcheck disable=SC2016,SC2059,SC2154
# client - gateway - gateway - server with real ESP between the gateways: tunnel mode, and GRE in
# transport mode; null encryption, and AES-GCM; IPv4 and IPv6 through it. What the hooks count is
# what the SAs carried and the kernel dropped, enforce drops what is forged and nothing else, and
# xspd verify agrees.
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
gateways="$gw1 $gw2"
me=1 peer=2
for ns in $gateways; do
	in_ns "$ns" sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
	ip -n "$ns" route add default via "192.0.2.$peer"
	ip -n "$ns" link add gre1 type gre local "192.0.2.$me" remote "192.0.2.$peer" ttl 64
	ip -n "$ns" link set gre1 up
	me=2 peer=1
done
wan_mac=$(ip -n "$gw1" -j link show dev wan | field 'd[0]["address"]')

# --- what changes from case to case ---
sa() { # NS SRC DST SPI MODE CIPHER
	local crypt=(enc 'ecb(cipher_null)' '' auth-trunc 'hmac(sha256)' "0x$(printf %064d 7)" 128)
	[ "$6" = null ] || crypt=(aead 'rfc4106(gcm(aes))' "0x$(printf %040d 7)" 128)
	ip -n "$1" xfrm state add src "192.0.2.$2" dst "192.0.2.$3" proto esp spi "$4" reqid 1 mode "$5" \
		flag af-unspec "${crypt[@]}"
}
policy() { # NS DIR INDEX SRC DST MODE TMPL...
	local ns=$1 dir=$2 index=$3 src=$4 dst=$5
	shift 5
	ip -n "$ns" xfrm policy add dir "$dir" index "$index" src "$src" dst "$dst" priority 10 tmpl "$@"
}
tunnel() { # NS ME PEER: out and fwd policies of both families
	local index=8 net tmpl="proto esp reqid 1 mode tunnel"
	for net in 10.%d.0.0/24 fd0%d::/64; do
		# shellcheck disable=SC2086
		{
			policy "$1" out $((index + 1)) "$(printf $net "$2")" "$(printf $net "$3")" \
				src "192.0.2.$2" dst "192.0.2.$3" $tmpl
			policy "$1" fwd $((index + 2)) "$(printf $net "$3")" "$(printf $net "$2")" \
				src "192.0.2.$3" dst "192.0.2.$2" $tmpl
		}
		index=$((index + 8))
	done
}
transport() { # NS ME PEER
	policy "$1" out 9 "192.0.2.$2" "192.0.2.$3" proto esp reqid 1 mode transport
	policy "$1" in 8 "192.0.2.$3" "192.0.2.$2" proto esp reqid 1 mode transport
}
protect() { # MODE CIPHER
	local ns me=1 peer=2 dev=wan
	[ "$1" = tunnel ] || dev=gre1
	for ns in $gateways; do
		ip -n "$ns" xfrm state flush
		ip -n "$ns" xfrm policy flush
		sa "$ns" 1 2 0x1001 "$1" "$2"
		sa "$ns" 2 1 0x1002 "$1" "$2"
		ip -n "$ns" link set gre1 $([ $dev = gre1 ] && echo up || echo down)
		# what goes into a tunnel needs a route before that
		ip -n "$ns" route replace "10.$peer.0.0/24" dev $dev $([ $dev = gre1 ] || echo "via 192.0.2.$peer")
		ip -n "$ns" -6 route replace "fd0$peer::/64" dev $dev
		"$1" "$ns" $me $peer
		me=2 peer=1
	done
}

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
# echoes V4 V6: how many of so many datagrams come back to the client, sent one by one
echoes() {
	in_ns "$client" python3 - "$@" <<-'END'
		import socket, sys
		for host, count in zip(("10.2.0.2", "fd02::2"), map(int, sys.argv[1:])):
		    got, s = 0, socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
		    s.settimeout(5)
		    for i in range(count):
		        s.sendto(bytes(100), (host, 7))
		        try: got += len(s.recv(2000)) == 100
		        except TimeoutError: break
		    print(got, end=" ")
	END
}
# forge MODE: 30 datagrams that should have come out of IPsec reach the first gateway in the clear
forge() { in_ns "$gw2" python3 tests/vm/esp.py forge "$1" wan "$wan_mac"; }
# sample FILE: all that counts, of both gateways
sample() { python3 tests/vm/esp.py sample "$X" "$gw1" "$gw2" >"$1"; }
# more NAME...: by how much these have grown between the samples, on both gateways
more() {
	awk -v names="$*" '{ n[(NR == FNR), $1, $2] = $3 }
		END {
			count = split(names, name, " ")
			for (i = 1; i <= count; i++)
				for (gw = 1; gw <= 2; gw++)
					printf "%s%d", (i + gw > 2 ? " " : ""), n[0, gw, name[i]] - n[1, gw, name[i]]
		}' "$T/before" "$T/after"
}
# verified SECONDS COMMAND...: while xspd verify looks at both gateways
verified() {
	local seconds=$1 ns pids=() out=0
	shift
	for ns in $gateways; do
		"$X" verify --netns "$ns" --seconds "$seconds" >"$T/verify.$ns" 2>&1 &
		pids+=($!)
	done
	sleep 1
	"$@"
	for pid in "${pids[@]}"; do wait "$pid" || out=1; done
	# each lookup of the kernel's has to have been compared
	for ns in $gateways; do
		[ "$(awk '$2 == "lookups" { print $1, ($3 >= 62), $6 }' "$T/verify.$ns")" = "agree 1 0" ] || out=1
	done
	[ $out = 0 ] || cat "$T"/verify.*
	return $out
}

server
for ns in $gateways; do
	rm -f "$T/daemon.log"
	start "$ns"
	check "attach to both devices of a gateway" "$X" attach wan --ingress --egress --netns "$ns"
	check "... the inner one" "$X" attach lan --ingress --netns "$ns"
done
tcx=clsact
[ "$(printf '%s\n' 6.6 "$(uname -r)" | sort -V | head -n 1)" = 6.6 ] && tcx=tcx
equal "by the means of this kernel" \
	"$("$X" status --netns "$gw1" --json | field '" ".join(sorted({a["kind"] for a in d["attached"]}))')" $tcx

# traffic MODE: 20 datagrams of IPv4 and 11 of IPv6, there and back; then the forged ones
traffic() {
	echoes 20 11 >"$T/echoes"
	forge "$1"
}
# observed MODE TEXT: what the last traffic was, on both gateways
observed() {
	equal "$2: all datagrams come back" "$(cat "$T/echoes")" "20 11 "
	equal "$2: the SAs carried them, both ways, at both ends" "$(more sa-out sa-in)" "31 31 31 31"
	equal "$2: received as ESP, sent as ESP, as many" "$(more ingress-esp egress-esp)" "31 31 31 31"
	if [ "$1" = tunnel ]; then
		# the second gateway's hook sees the forged ones leave
		equal "$2: out policies count what goes in" "$(more policy-9 policy-17)" "20 40 11 21"
		equal "$2: fwd policies count what comes out, and what is forged" "$(more policy-10 policy-18)" \
			"40 20 21 11"
	else
		# the encapsulated packets are this host's own: no hook sees them outside of ESP
		equal "$2: policies count what is forged, where it leaves and where it arrives" \
			"$(more policy-8 policy-9)" "30 0 0 30"
	fi
	equal "$2: nothing is a tie" "$(more ingress-tie egress-tie)" "0 0 0 0"
}
for mode in tunnel transport; do
	for cipher in null gcm; do
		text="$mode, $cipher"
		protect $mode $cipher
		equal "$text: it carries IPv4 and IPv6" "$(echoes 2 2)" "2 2 "
		for ns in $gateways; do
			wait_for 20 bash -c "'$X' policy list --netns $ns | grep -q 'mode $mode'"
		done

		sample "$T/before"
		check "$text: verify agrees" verified 12 traffic $mode
		sample "$T/after"
		observed $mode "$text"
		equal "$text: the kernel drops what is forged" "$(more XfrmInTmplMismatch errors)" "30 0 30 0"

		for ns in $gateways; do
			for dev in wan lan; do
				check "$text: enforce" "$X" attach $dev --ingress --mode enforce --netns "$ns"
			done
		done
		sample "$T/before"
		check "$text, enforced: verify agrees" verified 12 traffic $mode
		sample "$T/after"
		observed $mode "$text, enforced"
		left=5 # GRE's own code checks, or another's: only the kernel knows
		[ $mode = transport ] || left=0
		equal "$text, enforced: forged packets are dropped before the kernel does" \
			"$(more drop-plaintext XfrmInTmplMismatch errors)" "$((30 - left)) 0 $left 0 $left 0"
		[ $mode = transport ] || equal "$text, enforced: what came out of ESP is left alone" \
			"$(more kept-secpath)" "31 31"
		for ns in $gateways; do
			for dev in wan lan; do "$X" attach $dev --ingress --mode observe --netns "$ns"; done
		done
	done
done

# what comes in the clear is not from the tunnel: the same policy governs it, the kernel drops it
protect tunnel null
for net in 10.%d.0.0/24 fd0%d::/64; do
	ip -n "$gw2" xfrm policy delete src "$(printf "$net" 2)" dst "$(printf "$net" 1)" dir out
done
wait_for 20 bash -c "'$X' policy list --netns $gw1 | grep -q 'mode tunnel'"
sample "$T/before"
equal "plain text instead" "$(in_ns "$client" ping -c 1 -W 1 10.2.0.2 | grep -c 'bytes from')" 0
sample "$T/after"
equal "... the kernel drops the answer, and the fwd policy counts it" \
	"$(more XfrmInTmplMismatch policy-10)" "1 0 1 1"
done_testing
