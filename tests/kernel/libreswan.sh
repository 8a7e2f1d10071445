#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# xspd beside libreswan: the policies that its pluto installs, as it numbers them, with xspd
# started before it, while it is at work, and after it.
. tests/lib/tap.sh
conns=300 # tunnels, each of which starts as a trap

# number BASE SRCLEN DSTLEN [PROTO [PORTS]]: 1 static, 2 opportunistic; PORTS given, of the two
number() {
	local proto=${4:-0} ports=${5:-0}
	echo $(($1 << 20 | (2 - ports) << 18 | (proto ? 0 : 1) << 17 | (128 - $2) << 9 | (128 - $3) << 1 | 1))
}
trap_tmpl="tmpl src 0.0.0.0 dst 0.0.0.0 proto esp reqid 0 mode transport"

# at start: neighbour discovery passes, IKE is let be, and %trap, %pass, %drop of the connections
pluto_start() {
	local dir type
	for type in 135 136; do
		for dir in out fwd in; do
			echo "xfrm policy update src ::/0 dst ::/0 proto ipv6-icmp type $type dir $dir priority 1"
		done
	done
	for dir in out fwd in; do # leftsubnet=rightsubnet, type=passthrough
		echo "xfrm policy update src 10.1.0.0/16 dst 10.1.0.0/16 dir $dir priority $(number 1 16 16)"
		echo "xfrm policy update src 10.1.0.0/16 dst 10.250.0.0/16 dir $dir priority $(number 1 16 16) action block"
	done
	# opportunistic: private-or-clear for a net, clear for a host
	echo "xfrm policy update src 192.0.2.1/32 dst 10.240.0.0/16 dir out priority $(number 2 32 16) $trap_tmpl"
	for dir in out fwd in; do
		echo "xfrm policy update src 192.0.2.1/32 dst 10.240.0.9/32 dir $dir priority $(number 2 32 32)"
	done
	# transport, one port of one host
	echo "xfrm policy update src 192.0.2.1/32 dst 192.0.2.9/32 proto tcp dport 22 dir out" \
		"priority $(number 1 32 32 6 1) $trap_tmpl"
	# ipsec-interface=1: an if_id; vti: a mark
	echo "xfrm policy update src 0.0.0.0/0 dst 0.0.0.0/0 dir out priority $(number 1 0 0) $trap_tmpl if_id 0x1"
	echo "xfrm policy update src 0.0.0.0/0 dst 0.0.0.0/0 dir out priority $(number 1 0 0) mark 5 mask 0xffffffff" \
		"tmpl src 192.0.2.1 dst 192.0.2.5 proto esp reqid 16421 mode tunnel"
}
routed() { # I: as a trap
	echo "xfrm policy update src 10.1.0.0/24 dst 10.$((2 + $1 / 250)).$(($1 % 250)).0/24 dir out" \
		"priority $(number 1 24 24) $trap_tmpl"
}
established() { # I: in and fwd, and the trap becomes the tunnel
	local l=10.1.0.0/24 r=10.$((2 + $1 / 250)).$(($1 % 250)).0/24 ends
	local reqid=$((16385 + 4 * $1))
	ends="src 192.0.2.2 dst 192.0.2.1 proto esp reqid $reqid mode tunnel"
	echo "xfrm policy update src $r dst $l dir fwd priority $(number 1 24 24) tmpl $ends"
	echo "xfrm policy update src $r dst $l dir in priority $(number 1 24 24) tmpl $ends"
	echo "xfrm policy update src $l dst $r dir out priority $(number 1 24 24)" \
		"tmpl src 192.0.2.1 dst 192.0.2.2 proto esp reqid $reqid mode tunnel"
}
pluto() {
	local i
	pluto_start
	for ((i = 0; i < conns; i++)); do routed $i; done
	for ((i = 0; i < conns; i++)); do
		[ $((i % 3)) = 2 ] || established $i # each third stays a trap
	done
	for ((i = 0; i < conns; i += 6)); do established $i; done # rekeyed
	echo "xfrm policy delete src 10.1.0.0/24 dst 10.2.1.0/24 dir out" # unrouted
	echo "xfrm policy delete src 10.2.1.0/24 dst 10.1.0.0/24 dir fwd"
	echo "xfrm policy delete src 10.2.1.0/24 dst 10.1.0.0/24 dir in"
}
pluto >"$T/pluto"
policies=$((conns + 2 * (conns - conns / 3) - 3 + 6 + 6 + 1 + 3 + 1 + 2))

same() { python3 tests/lib/spd_equal.py "$X" "$1" >"$T/equal" && [ "$(policies "$1")" = $policies ]; }
# asked NS FLOW...: verdict and the policy's reqid
asked() {
	local ns=$1
	shift
	"$X" lookup --netns "$ns" "$@" --json | field 'd["verdict"], (d.get("policy") or {}).get("reqid", 0)' | tr -d "(',)"
}
right() { # NS TEXT
	wait_for 20 same "$1"
	equal "$2: mirror and kernel are the same" "$(tail -n 1 "$T/equal")" "$policies policies, 0 differ"
	while read -r want flow; do
		equal "$2: $flow" "$(asked "$1" $flow | tr ' ' ,)" "$want"
	done <<-END
		protect,16385 dir out src 10.1.0.1 dst 10.2.0.1
		protect,16385 dir fwd src 10.2.0.1 dst 10.1.0.1
		protect,16385 dir in src 10.2.0.1 dst 10.1.0.1
		protect,0 dir out src 10.1.0.1 dst 10.2.2.1
		plain,0 dir fwd src 10.2.2.1 dst 10.1.0.1
		plain,0 dir out src 10.1.0.1 dst 10.2.1.1
		protect,17577 dir out src 10.1.0.1 dst 10.3.48.1
		plain,0 dir out src 10.1.0.1 dst 10.1.9.1
		block,0 dir out src 10.1.0.1 dst 10.250.9.1
		protect,0 dir out src 192.0.2.1 dst 10.240.0.8
		plain,0 dir out src 192.0.2.1 dst 10.240.0.9
		protect,0 dir out src 192.0.2.1 dst 192.0.2.9 proto tcp sport 1000 dport 22
		plain,0 dir out src 192.0.2.1 dst 192.0.2.9 proto tcp sport 1000 dport 80
		protect,0 dir out src 203.0.113.1 dst 203.0.113.2 if_id 1
		protect,16421 dir out src 203.0.113.1 dst 203.0.113.2 mark 5
		plain,0 dir in src fe80::2 dst fe80::1 proto ipv6-icmp type 136 code 0
	END
	equal "$2: nothing was put right" "$("$X" status --netns "$1" --json |
		field 'd["repaired_added"] + d["repaired_removed"] + d["repaired_changed"], d["doubt"]')" "(0, [])"
}

for order in before during after; do
	new_ns "$order"
	ns=${!order}
	rm -f "$T/daemon.log"
	case $order in
	before)
		start "$ns" --capacity 16
		ip -n "$ns" -batch "$T/pluto"
		;;
	during)
		head -n $((conns / 2)) "$T/pluto" | ip -n "$ns" -batch -
		tail -n +$((conns / 2 + 1)) "$T/pluto" | ip -n "$ns" -batch - &
		pluto=$!
		start "$ns" --capacity 16
		wait $pluto
		;;
	after)
		ip -n "$ns" -batch "$T/pluto"
		start "$ns" --capacity 16
		;;
	esac
	right "$ns" "started $order"
	stop
done
done_testing
