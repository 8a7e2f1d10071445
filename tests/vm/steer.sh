#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# shellcheck disable=SC2154
# client - gateway - gateway - server, tunnels with if_ids over one collect-metadata xfrm interface:
# each packet goes by its own tunnel, and those without a certain one by none.
. tests/lib/tap.sh
modprobe xfrm_interface 2>/dev/null
new_ns gw1
if ! ip -n "$gw1" link add ipsec0 type xfrm external 2>/dev/null; then
	echo "ok - steering # SKIP this kernel has no collect-metadata xfrm interfaces"
	exit 0
fi
TUNNELS=3
new_ns client
new_ns gw2
new_ns server
link() { # NS DEV NS DEV
	ip -n "$1" link add name "$2" type veth peer name "$4" netns "$3"
	ip -n "$1" link set "$2" up
	ip -n "$3" link set "$4" up
}
link "$client" eth0 "$gw1" lan
link "$gw1" wan "$gw2" wan
link "$gw2" lan "$server" eth0
ip -n "$gw2" link add ipsec0 type xfrm external
cat <<-END | while read -r ns dev v4 v6; do
	$client eth0 10.1.0.2/24 fd01::2/64
	$gw1 lan 10.1.0.1/24 fd01::1/64
	$gw1 wan 192.0.2.1/24 2001:db8::1/64
	$gw2 wan 192.0.2.2/24 2001:db8::2/64
	$gw2 lan 10.3.0.1/24 fd03::1/64
	$server eth0 10.3.0.2/24 fd03::2/64
END
	ip -n "$ns" addr add "$v4" dev "$dev"
	ip -n "$ns" addr add "$v6" dev "$dev" nodad
done
ip -n "$client" route add default via 10.1.0.1
ip -n "$client" route add default via fd01::1
ip -n "$server" route add default via 10.3.0.1
ip -n "$server" route add default via fd03::1
# net N of the server, behind tunnel N
for n in $(seq $TUNNELS) 50 99; do
	ip -n "$server" addr add "10.2.$n.2/32" dev lo
	ip -n "$server" addr add "fd02:$n::2/128" dev lo nodad
done
for ns in "$gw1" "$gw2"; do
	in_ns "$ns" sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
	ip -n "$ns" link set ipsec0 up
done
ip -n "$gw1" route add 10.2.0.0/16 dev ipsec0
ip -n "$gw1" route add fd02::/16 dev ipsec0
ip -n "$gw2" route add 10.1.0.0/24 dev ipsec0
ip -n "$gw2" route add fd01::/64 dev ipsec0
ip -n "$gw2" route add 10.2.0.0/16 via 10.3.0.2
ip -n "$gw2" route add fd02::/16 via fd03::2

# both SAs of tunnel IF_ID
sa_lines() {
	local id=$1 way
	for way in "1 dst 192.0.2.2 proto esp spi $((1000 + id))" "2 dst 192.0.2.1 proto esp spi $((2000 + id))"; do
		echo "xfrm state add src 192.0.2.$way reqid $id mode tunnel flag af-unspec if_id $id" \
			"enc ecb(cipher_null) \"\" auth-trunc hmac(sha256) 0x$(printf %064d 7) 128"
	done
}
sas() {
	local ns
	for ns in "$gw1" "$gw2"; do sa_lines "$1" | ip -n "$ns" -batch -; done
}
# policy_lines GATEWAY VERB IF_ID NET PRIORITY: out and fwd, both families
policy_lines() {
	local verb=$2 id=$3 net=$4 prio=$5 l r i a b
	for i in 1 2; do
		[ $i = 1 ] && l=10.1.0.0/24 r=10.2.$net.0/24 || l=fd01::/64 r=fd02:$net::/64
		[ "$1" = 1 ] && a=1 b=2 || a=2 b=1
		[ "$1" = 1 ] || { local swap=$l && l=$r && r=$swap; }
		if [ "$verb" = delete ]; then
			echo "xfrm policy delete dir out src $l dst $r if_id $id"
			echo "xfrm policy delete dir fwd src $r dst $l if_id $id"
			continue
		fi
		echo "xfrm policy $verb dir out src $l dst $r priority $prio if_id $id" \
			"tmpl src 192.0.2.$a dst 192.0.2.$b proto esp reqid $id mode tunnel"
		echo "xfrm policy $verb dir fwd src $r dst $l priority $prio if_id $id" \
			"tmpl src 192.0.2.$b dst 192.0.2.$a proto esp reqid $id mode tunnel"
	done
}
policies() { # VERB IF_ID NET [PRIORITY]
	policy_lines 1 "$@" | ip -n "$gw1" -batch -
	policy_lines 2 "$@" | ip -n "$gw2" -batch -
}
for n in $(seq $TUNNELS); do
	sas "$n"
	policies add "$n" "$n" 10
done

# pings HOST COUNT: how many of them were answered
pings() {
	in_ns "$client" ping -q -c "$2" -i 0.02 -W 3 "$1" | awk '/received/ { print $4 }'
}
# carried NS SPI: packets of that SA
carried() {
	ip -n "$1" -s xfrm state | awk -v spi="$(printf 0x%08x "$2")" '$1 == "proto" { its = $4 ~ "^" spi }
		its && /lifetime current/ { getline; sub(/.*, /, ""); print $1 + 0 }' | head -n 1
}
# all_carried NS: packets of every SA there, "if_id:packets" where there are any
all_carried() {
	ip -n "$1" -s xfrm state | awk '$1 == "proto" { id = $6 + 0 } /lifetime current/ { getline; sub(/.*, /, ""); n[id] += $1 }
		END { for (id in n) if (n[id]) print id ":" n[id] }' | sort -n | paste -sd' '
}
count() { "$X" status --netns "$1" --json | field "d['$2']['egress'].get('$3', {}).get('packets', 0)"; }
acts() { count "$1" acts "$2"; }
reason() { count "$1" hooks "$2"; }
steered() { "$X" lookup --netns "$gw1" --steer dir out src 10.1.0.2 dst "$1" proto icmp type 8 code 0 --json | field 'd["if_id"]'; }

equal "without steering nothing gets through" "$(pings 10.2.1.2 2)" 0
for ns in "$gw1" "$gw2"; do
	rm -f "$T/daemon.log"
	start "$ns"
	daemons+=("$daemon")
done
fails "not on ingress" 2 "ipsec0: --mode steer is not for --ingress" "$X" attach ipsec0 --ingress --mode steer --netns "$gw1"
fails "not on another device" 1 "wan: steer: not a collect-metadata xfrm interface" "$X" attach wan --egress --mode steer --netns "$gw1"
ip -n "$gw1" link add ipsec9 type xfrm dev wan if_id 9
fails "not on an xfrm interface with an if_id of its own" 1 "ipsec9: steer: not a collect-metadata" \
	"$X" attach ipsec9 --egress --mode steer --netns "$gw1"
ip -n "$gw1" link del ipsec9
if [ "$(printf '%s\n' 6.2 "$(uname -r)" | sort -V | head -n 1)" != 6.2 ]; then
	fails "before Linux 6.2 it is refused" 1 "ipsec0: steer: this kernel does not let programs set if_ids \(bpf_skb_set_xfrm_info, Linux 6.2" \
		"$X" attach ipsec0 --egress --mode steer --netns "$gw1"
	equal "... and nothing is left of it" "$("$X" status --netns "$gw1" --json | field 'len(d["attached"])')" 0
	done_testing
fi
ip -n "$gw1" link set ipsec0 txqueuelen 100
in_ns "$gw1" tc qdisc replace dev ipsec0 root pfifo
fails "not where packets are queued" 1 "ipsec0: steer: packets would change tunnels in its queue \(qdisc pfifo\)" \
	"$X" attach ipsec0 --egress --mode steer --netns "$gw1"
in_ns "$gw1" tc qdisc replace dev ipsec0 root noqueue
fails "lookup --steer needs a steering device" 1 "lookup: --steer: no device" \
	"$X" lookup --netns "$gw1" --steer dir out src 10.1.0.2 dst 10.2.1.2 proto icmp type 8 code 0
for ns in "$gw1" "$gw2"; do
	check "attach" "$X" attach ipsec0 --egress --mode steer --netns "$ns"
done
"$X" status --netns "$gw1"

for n in $(seq $TUNNELS); do
	equal "tunnel $n carries IPv4" "$(pings "10.2.$n.2" $((n + 1)))" $((n + 1))
	equal "... and IPv6" "$(pings "fd02:$n::2" 2)" 2
	equal "... by its own SA, both ways" "$(carried "$gw1" $((1000 + n))) $(carried "$gw2" $((2000 + n)))" "$((n + 3)) $((n + 3))"
done
total=$((TUNNELS * (TUNNELS + 1) / 2 + TUNNELS * 3))
for ns in "$gw1" "$gw2"; do
	equal "as many steered as sent" "$(acts "$ns" steered) $(reason "$ns" protect)" "$total $total"
	equal "each policy counts its own" "$("$X" policy list --netns "$ns" --json | field \
		'sum(p["packets"] for p in d if p["dir"] == "out")')" $total
	equal "the kernel has dropped nothing" "$(in_ns "$ns" awk '{ n += $2 } END { print n + 0 }' /proc/net/xfrm_stat)" 0
done
equal "the policy list has each policy once" "$("$X" policy list --netns "$gw1" --json | field 'len(d)')" $((TUNNELS * 4))
equal "lookup names the tunnel" "$(steered 10.2.3.2)" 3

before=$(all_carried "$gw1")
equal "no policy" "$(pings 10.2.99.2 3)" 0
equal "... is counted, by reason" "$(acts "$gw1" unsteered) $(reason "$gw1" no-policy)" "3 3"
for n in 50 51; do
	sas $n
	policies add $n 50 10
done
equal "two tunnels for one net" "$(pings 10.2.50.2 3)" 0
equal "... are a tie" "$(acts "$gw1" unsteered) $(reason "$gw1" tie) $(steered 10.2.50.2)" "6 3 0"
equal "no tunnel has carried any of it" "$(all_carried "$gw1")" "$before"
policies update 51 50 9
equal "one of them is better" "$(pings 10.2.50.2 3) $(carried "$gw1" 1051) $(carried "$gw1" 1050)" "3 3 0"
policies update 51 50 11
equal "... and is not any more" "$(pings 10.2.50.2 3) $(carried "$gw1" 1051) $(carried "$gw1" 1050)" "3 3 3"

# while policies come, go and change, each packet goes by tunnel 50 or 51 or by none, and all
# others by their own
other=$(carried "$gw1" 1002)
{
	policy_lines 1 update 51 50 9
	policy_lines 1 delete 51 50
	policy_lines 1 update 51 50 12
} >"$T/churn"
while ip -n "$gw1" -batch "$T/churn"; do :; done &
churn=$!
tap_pids+=($churn)
equal "beside the churn nothing is lost" "$(pings 10.2.2.2 100)" 100
pings 10.2.50.2 100 >/dev/null
kill $churn
wait $churn 2>/dev/null
equal "... nor sent by another tunnel" "$(($(carried "$gw1" 1002) - other))" 100
sent=$(($(carried "$gw1" 1050) + $(carried "$gw1" 1051)))
check "... nor sent twice ($sent)" test $sent -le 106
policies update 51 50 12

# a queue put there later
in_ns "$gw1" tc qdisc replace dev ipsec0 root pfifo
equal "behind a queue nothing is steered" "$(pings 10.2.1.2 2)" 0
equal "... and that is counted" "$(acts "$gw1" kept-queue)" 2
in_ns "$gw1" tc qdisc replace dev ipsec0 root noqueue
equal "without it, again" "$(pings 10.2.1.2 2)" 2

# large packets: TCP through the tunnels
in_ns "$server" iperf3 -s -1 -D -B 10.2.3.2 >/dev/null
sleep 1
check "TCP" in_ns "$client" timeout 60 iperf3 -c 10.2.3.2 -n 4M --connect-timeout 20000
equal "... is all steered" "$(in_ns "$gw1" awk '/XfrmOut/ { n += $2 } END { print n + 0 }' /proc/net/xfrm_stat)" 0

check "a dry run" "$X" attach ipsec0 --egress --mode steer --dry-run --netns "$gw1"
was=$(acts "$gw1" steered)
equal "... sends nothing" "$(pings 10.2.1.2 2)" 0
equal "... and counts" $(($(acts "$gw1" steered) - was)) 2
check "in earnest again" "$X" attach ipsec0 --egress --mode steer --netns "$gw1"

# the daemon is killed: after the lease nothing is certain
before=$(all_carried "$gw1")
kill -KILL "${daemons[0]}"
wait "${daemons[0]}" 2>/dev/null
sleep 4
equal "no daemon, no tunnel" "$(pings 10.2.1.2 2) $(reason "$gw1" lease)" "0 2"
equal "... none has carried any" "$(all_carried "$gw1")" "$before"
rm -f "$T/daemon.log"
start "$gw1"
equal "the next one goes on at once" "$(pings 10.2.1.2 2)" 2

check "detach" "$X" detach ipsec0 --netns "$gw1"
equal "nothing gets through any more" "$(pings 10.2.1.2 2)" 0
wait_for 10 bash -c "[ \$('$X' status --netns $gw1 --json | python3 -c 'import json,sys; print(json.load(sys.stdin)[\"steer\"])') = None ]"
equal "and nothing is kept for it" "$("$X" status --netns "$gw1" --json | field 'd["steer"]')" None
check "detach the other" "$X" detach ipsec0 --netns "$gw2"
for ns in "$gw1" "$gw2"; do ip -n "$ns" link del ipsec0; done
check "the module is free to go" wait_for 10 modprobe -r xfrm_interface
done_testing
