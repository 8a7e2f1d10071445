#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Acting early: what enforce, bypass and mark do, that it is what the kernel does without them, and
# all that keeps them from it.
. tests/lib/tap.sh
. tests/lib/wire.sh

pol() { ip -n "$gw" xfrm policy add "$@"; }
esp=(tmpl src 192.0.2.1 dst 192.0.2.2 proto esp reqid 7 mode tunnel)
pol src 10.1.0.0/24 dst 10.2.0.0/24 proto udp dport 2000 dir fwd priority 10 index 10 action block
pol src 10.1.0.0/24 dst 10.2.0.0/24 proto udp dport 2500 dir out priority 10 index 9 action block
pol src 10.1.0.0/24 dst 10.2.0.0/24 proto udp dport 3000 dir fwd priority 10 index 18 "${esp[@]}"
pol src 10.1.0.66 dst 0.0.0.0/0 dir fwd priority 5 index 26 action block
pol src 10.1.0.67 dst 10.2.0.0/24 dir out priority 10 index 17 action block
pol src 10.1.0.66 dst 0.0.0.0/0 dir in priority 5 index 8 action block
pol src 10.1.0.0/24 dst 10.1.0.1 proto udp dport 5001 dir in priority 10 index 16 "${esp[@]}"
pol src 10.1.0.0/24 dst 10.1.0.1 proto udp dport 5002 dir in priority 10 index 32 \
	tmpl src 192.0.2.1 dst 192.0.2.2 proto esp reqid 9 mode tunnel level use
pol src 10.1.0.0/24 dst 10.2.0.0/24 proto tcp dport 80 dir out priority 10 index 25
pol src fd01::/64 dst fd02::/64 proto udp dport 2000 dir fwd priority 10 index 34 action block
pol src fd01::/64 dst fd02::/64 proto udp dport 3000 dir fwd priority 10 index 42 "${esp[@]}"
pol src fd01::66 dst ::/0 dir fwd priority 5 index 50 action block
pol src fd01::66 dst ::/0 dir in priority 5 index 24 action block

# replay FILE [NAME...]: what comes of these frames, or of all, wherever it arrives
replay() {
	local file=$1
	shift
	watchers=() watched=()
	watch "$server" frames eth0
	watch "$client" errors eth0
	watch "$gw" sockets 500 4500 4789 5000 5001 5002
	send "$@"
	sleep 0.8
	kill "${watchers[@]}"
	wait "${watchers[@]}" 2>/dev/null
	grep -hv ready "${watched[@]}" | sort >"$file"
}
# same TEXT FILE: as the kernel alone
same() {
	if diff "$T/kernel" "$2" >"$T/diff"; then
		ok "$1"
	else
		not_ok "$1"
		sed 's/^/  # /' "$T/diff"
	fi
}
xfrm_stat() { in_ns "$gw" cat /proc/net/xfrm_stat | awk -v k="$1" '$1 == k { print $2 }'; }
forwarded() { in_ns "$gw" cat /proc/net/snmp | awk '/^Ip:/ && $4 ~ /[0-9]/ { print $7 }'; }
modes() { status | field '" ".join(a["dev"]+":"+a["hook"]+":"+",".join(a["mode"]) for a in d["attached"])'; }
entries() { bpftool map dump pinned "$PINS/$gw/v1/xspd_mode" -j | field 'len(d)'; }
env_is() { [ "$(status | field '",".join(d["env"])')" = "$1" ]; }

# --- the kernel alone ---
replay "$T/kernel"
equal "the kernel alone delivers, refuses and drops" "$(cut -d' ' -f1 "$T/kernel" | sort | uniq -c | xargs)" "3 error 9 frame 3 socket"

start "$gw" --lease 1000
rm -f "$T/status.before"
acts ingress >/dev/null

# --- words ---
fails "no such mode" 2 "attach: --mode drop: give observe, mark" "$X" attach c0 --ingress --mode drop
fails "mark is not for XDP" 2 "attach c0: --mode mark is not for --xdp" "$X" attach c0 --xdp --mode enforce,mark
fails "enforce is not for egress" 2 "attach c0: --mode enforce is not for --egress" "$X" attach c0 --egress --mode enforce
fails "bypass is for XDP only" 2 "attach c0: --mode bypass is not for --ingress" "$X" attach c0 --ingress --mode bypass
fails "a dry run of nothing" 2 "attach c0: --dry-run: of what" "$X" attach c0 --ingress --dry-run
fails "ignoring netfilter for nothing" 2 "attach c0: --ignore-netfilter is for" "$X" attach c0 --ingress --mode mark --ignore-netfilter
fails "loopback is refused" 1 "lo: enforce: a loopback device" attach lo --ingress --mode enforce
fails "... and for bypass" 1 "lo: bypass: a loopback device" attach lo --xdp --mode bypass
fails "steer is for egress only" 2 "attach c0: --mode steer is not for --ingress" "$X" attach c0 --ingress --mode steer
fails "... not for XDP" 2 "attach c0: --mode steer is not for --xdp" "$X" attach c0 --xdp --mode steer
fails "steer and mark" 2 "attach c0: --mode steer goes alone" "$X" attach c0 --egress --mode mark,steer
fails "steer needs an xfrm interface" 1 "c0: steer: not a collect-metadata xfrm interface; 'ip link add" attach c0 --egress --mode steer
fails "nobody steers" 1 "lookup: --steer: no device of instance $gw is in mode steer" \
	"$X" lookup --netns "$gw" --steer dir out src 10.1.0.2 dst 10.2.0.2 proto udp sport 1 dport 2
fails "steering is for what goes out" 2 "lookup: --steer asks in direction out" \
	"$X" lookup --netns "$gw" --steer dir in src 10.1.0.2 dst 10.2.0.2 proto udp sport 1 dport 2
equal "nothing is left of the refused ones" "$(modes)$(entries)" "0"

# --- enforce, at ingress and in XDP ---
forward="blocked out-blocked unprotected blocked6 unprotected6"
for hook in ingress xdp; do
	check "$hook: attach in mode enforce" attach c0 --$hook --mode enforce
	equal "$hook: status has it" "$(modes)" "c0:$hook:enforce"
	before=$(xfrm_stat XfrmInPolBlock)
	replay "$T/$hook"
	same "$hook: all that arrives, and what not, as without xspd" "$T/$hook"
	equal "$hook: what was dropped, and what was left to the kernel" "$(acts $hook)" \
		"drop-block:7 drop-plaintext:3 kept-exempt:2 kept-protocol:1 kept-fragment:4 kept-icmp-error:2 kept-options:1 kept-ttl:1"
	equal "$hook: the kernel had to drop only those" "$(($(xfrm_stat XfrmInPolBlock) - before))" 11
	before="$(xfrm_stat XfrmInPolBlock) $(xfrm_stat XfrmInTmplMismatch)"
	# shellcheck disable=SC2086
	send $forward
	equal "$hook: none of these reaches the kernel's check" \
		"$(xfrm_stat XfrmInPolBlock) $(xfrm_stat XfrmInTmplMismatch)" "$before"
	acts $hook >/dev/null

	ip -n "$gw" xfrm policy setdefault fwd block
	wait_for 5 bash -c "[ \$('$X' status --netns '$gw' --json | grep -c '\"fwd\": \"block\"') = 1 ]"
	replay "$T/default-$hook" plain plain6 blocked
	equal "$hook: default block" "$(cat "$T/default-$hook")$(acts $hook)" "drop-block:1 drop-default:2"
	ip -n "$gw" xfrm policy setdefault fwd accept
	wait_for 5 bash -c "[ \$('$X' status --netns '$gw' --json | grep -c '\"fwd\": \"accept\"') = 1 ]"

	check "$hook: exempt a port" "$X" exempt add udp 5000 --netns "$gw"
	send local-blocked local6-blocked blocked
	equal "$hook: it is left to the kernel" "$(acts $hook)" "drop-block:1 kept-exempt:2"
	check "$hook: and no more" "$X" exempt del udp 5000 --netns "$gw"
	send local-blocked
	equal "$hook: it is dropped again" "$(acts $hook)" "drop-block:1"

	ip -n "$gw" route del default
	send local-blocked blocked
	equal "$hook: perhaps not for us, if there is no route to ask for" "$(acts $hook)" "drop-block:1 kept-route:1"
	ip -n "$gw" route add default via 10.2.0.2

	check "$hook: a dry run, by attaching again" attach c0 --$hook --mode enforce --dry-run
	before=$(xfrm_stat XfrmInPolBlock)
	send blocked "unprotected*2"
	equal "$hook: dry run counts" "$(acts $hook)" "drop-block:1 drop-plaintext:2"
	equal "$hook: dry run drops nothing" "$(($(xfrm_stat XfrmInPolBlock) - before))" 1
	check "$hook: observe, by attaching again" attach c0 --$hook --mode observe
	send blocked
	equal "$hook: observe does nothing" "$(acts $hook) $(entries)" " 0"
	check "$hook: enforce again" attach c0 --$hook --mode enforce

	in_ns "$gw" nft -f - <<<'table ip t { chain c { type filter hook prerouting priority 0; }; }'
	check "$hook: a chain is seen" wait_for 5 env_is NETFILTER_PRE,NETFILTER_ANY
	send blocked local-blocked
	equal "$hook: netfilter could change packets before the check" "$(acts $hook)" "kept-netfilter:2"
	check "$hook: the operator vouches for it" attach c0 --$hook --mode enforce --ignore-netfilter
	send blocked
	equal "$hook: and it is dropped" "$(acts $hook)" "drop-block:1"
	check "$hook: and not any more" attach c0 --$hook --mode enforce
	in_ns "$gw" nft flush ruleset
	in_ns "$gw" nft -f - <<<'table inet t { chain c { type filter hook input priority 0; }; }'
	check "$hook: a chain at input" wait_for 5 env_is NETFILTER_IN
	send blocked local-blocked
	equal "$hook: only local traffic is left to the kernel" "$(acts $hook)" "drop-block:1 kept-netfilter:1"
	in_ns "$gw" nft flush ruleset
	check "$hook: no chain" wait_for 5 env_is ""

	in_ns "$gw" sysctl -qw net.ipv4.conf.c0.disable_policy=1
	check "$hook: disable_policy is seen" wait_for 5 env_is SYSCTL
	replay "$T/sysctl-$hook" blocked blocked6
	equal "$hook: nothing is dropped then" "$(acts $hook)" "kept-sysctl:2"
	equal "$hook: as the kernel has it" "$(cut -d' ' -f1,2 "$T/sysctl-$hook")" "frame blocked"
	in_ns "$gw" sysctl -qw net.ipv4.conf.c0.disable_policy=0
	check "$hook: and it goes" wait_for 5 env_is ""
	check "$hook: detach" "$X" detach c0 --netns "$gw"
	equal "$hook: nothing is left" "$(modes)$(entries)" 0
	send blocked
	equal "$hook: nor done" "$(acts $hook)" ""
done

equal "per policy: acted on" "$(($("$X" policy show 10 --netns "$gw" --json | field 'd["acted"]') > 10))" 1

# --- where a mode is refused, or cannot do all ---
ip -n "$gw" link add name br0 type bridge
ip -n "$gw" link add name x0 type veth peer name x1
ip -n "$gw" link set x0 master br0
fails "a port of a bridge" 1 "x0: enforce: it belongs to br0" attach x0 --ingress --mode enforce
fails "... and for bypass" 1 "x0: bypass: it belongs to br0" attach x0 --xdp --mode bypass
ip -n "$gw" link set x0 nomaster
ip -n "$gw" link add name mv0 link c0 type macvlan mode bridge
ip -n "$gw" link set mv0 up
in_ns "$gw" sysctl -qw net.ipv4.conf.mv0.rp_filter=0
fails "a device that takes no redirected packets" 1 "mv0: bypass: its driver does not take" attach mv0 --xdp --mode bypass
fails "a veth that takes none" 1 "s0: bypass: a veth takes redirected packets .*ethtool -K PEER gro on" attach s0 --xdp --mode bypass
"$X" attach mv0 --xdp --mode enforce --netns "$gw" 2>/dev/null
acts xdp >/dev/null
mv_mac=$(mac "$gw" mv0)
before=$(xfrm_stat XfrmInTmplMismatch)
in_ns "$client" python3 tests/lib/wire.py send eth0 "$mv_mac" unprotected blocked
equal "generic XDP: what may have come out of IPsec is left to the kernel" \
	"$(acts xdp) $(($(xfrm_stat XfrmInTmplMismatch) - before))" "drop-block:1 kept-generic:1 1"
send unprotected blocked
equal "frames for others are left to the kernel" "$(acts xdp)" ""
check "detach mv0" "$X" detach mv0 --netns "$gw"
ip -n "$gw" link del mv0

# --- mark ---
fails "nothing to write" 2 "mark set: nothing to write" "$X" mark set index 25 --netns "$gw"
fails "a value outside of its mask" 2 "mark set: mark '0x10/0xf'" "$X" mark set index 25 mark 0x10/0xf --netns "$gw"
fails "no such entry" 1 "mark del index 25: nothing is set there" "$X" mark del index 25 --netns "$gw"
check "by index" "$X" mark set index 25 mark 0x10/0xff priority 1:7 --netns "$gw"
check "by reqid" "$X" mark set reqid 9 mark 0x20 --netns "$gw"
equal "list" "$("$X" mark list --netns "$gw" | sort | xargs)" "index 25 mark 0x10/0xff priority 1:7 reqid 9 mark 0x20/0xffffffff"
equal "list --json" "$("$X" mark list --netns "$gw" --json | field 'sorted((m["kind"], m["value"], m["mark"], m["mask"], m["priority"], m["classid"]) for m in d)')" \
	"[('index', 25, 16, 255, 65543, None), ('reqid', 9, 32, 4294967295, None, None)]"
in_ns "$gw" nft -f - <<-'END'
	table inet t {
		chain f { type filter hook forward priority 0; meta mark 0x10 counter; }
		chain i { type filter hook input priority 0; meta mark 0x20 counter; }
	}
END
tc -n "$gw" qdisc add dev s0 root handle 1: htb
tc -n "$gw" class add dev s0 parent 1: classid 1:7 htb rate 1gbit quantum 1500
check "attach in mode mark" attach c0 --ingress --mode mark
check "... and where they leave" attach s0 --egress --mode mark
acts egress >/dev/null
send "plain-tcp*3" plain "local-optional*2" local
equal "the marks are written" "$(in_ns "$gw" nft list ruleset | grep -o 'packets [0-9]*' | xargs)" "packets 3 packets 2"
equal "... and the priority" "$(tc -n "$gw" -s class show dev s0 | awk '/Sent/ { print $4 }')" 3
equal "egress counts what it marked" "$(acts egress)" "marked:3"
equal "status has both" "$(modes)" "c0:ingress:mark s0:egress:mark"
check "a dry run" attach c0 --ingress --mode mark --dry-run
send plain-tcp
sleep 0.1
equal "... marks nothing" "$(in_ns "$gw" nft list chain inet t f | grep -o 'packets [0-9]*')" "packets 3"
check "del" "$X" mark del index 25 --netns "$gw"
acts egress >/dev/null
send plain-tcp
equal "marks no more" "$(acts egress)" ""
"$X" mark del reqid 9 --netns "$gw"
check "detach both" bash -c "'$X' detach c0 --netns '$gw' && '$X' detach s0 --netns '$gw'"
tc -n "$gw" qdisc del dev s0 root

# --- bypass ---
for ns in "$client" "$server"; do in_ns "$ns" ethtool -K eth0 gro on; done
fails "netfilter is in the way, by name" 1 "c0: bypass: .* miss netfilter: nft inet t f; --ignore-netfilter" \
	attach c0 --xdp --mode bypass
in_ns "$gw" nft -f - <<<'table ip n { chain post { type nat hook postrouting priority 100; }; }'
fails "NAT too" 1 "c0: bypass: .* nft inet t f, nft ip n post; --ignore" attach c0 --xdp --mode bypass
equal "nothing is left of the refused ones" "$(modes)$(entries)" "0"
# a table of iptables comes with the first look at it
in_ns "$gw" python3 -c '
import ctypes, socket
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, 255)
buf = ctypes.create_string_buffer(b"mangle", 84)
size = ctypes.c_uint32(84)
ctypes.CDLL(None).getsockopt(s.fileno(), 0, 64, buf, ctypes.byref(size))'
if grep -q mangle <(in_ns "$gw" cat /proc/net/ip_tables_names); then
	in_ns "$gw" nft flush ruleset
	fails "iptables too" 1 "c0: bypass: .* iptables mangle; --ignore" attach c0 --xdp --mode bypass
	ignore=--ignore-netfilter
	check "status names it" wait_for 5 env_is NETFILTER_PRE,NETFILTER_IN,NETFILTER_ANY
else
	in_ns "$gw" nft flush ruleset
	ignore=
	ok "iptables too # SKIP this kernel has none"
fi
check "attach c0" attach c0 --xdp --mode enforce,bypass $ignore
acts xdp >/dev/null
replay "$T/alone" plain
equal "alone it is no bypass: the other side is none" "$(acts xdp)" "up-port:1"
check "attach s0" attach s0 --xdp --mode bypass $ignore
equal "status has both" "$(modes)" "c0:xdp:enforce,bypass s0:xdp:bypass"
before=$(forwarded)
replay "$T/bypass"
same "what arrives is the same to the byte" "$T/bypass"
equal "what went past the stack, and what up" "$(acts xdp)" \
	"drop-block:7 drop-plaintext:3 forwarded:5 kept-exempt:2 kept-protocol:1 kept-fragment:4 kept-icmp-error:2 kept-options:2 kept-ttl:3 up-fib:2 up-verdict:18"
equal "the kernel forwarded only the rest" "$(($(forwarded) - before))" 3
replay "$T/bypass2" "plain*50" "plain6*50" "blocked*50"
equal "and it goes on" "$(cut -d' ' -f1,2 "$T/bypass2" | sort | uniq -c | xargs) $(acts xdp)" \
	"50 frame plain 50 frame plain6 drop-block:50 forwarded:100"
pol src 10.1.0.2 dst 10.2.0.2 dir fwd priority 1 index 58 "${esp[@]}"
wait_for 5 "$X" policy show 58 --netns "$gw"
replay "$T/protect" plain
equal "a policy that protects it: no plaintext" "$(cat "$T/protect") $(acts xdp)" " drop-plaintext:1"
ip -n "$gw" xfrm policy delete src 10.1.0.2 dst 10.2.0.2 dir fwd
wait_for 5 bash -c "! '$X' policy show 58 --netns '$gw'"
check "a dry run" attach c0 --xdp --mode bypass --dry-run $ignore
before=$(forwarded)
was=$("$X" policy show 25 --netns "$gw" --json | field 'd["acted"]')
send "plain*3" plain-tcp bad-sum
sleep 0.1
equal "counts, and leaves it to the kernel" "$(acts xdp) $(($(forwarded) - before))" "forwarded:4 up-fib:1 4"
equal "... of the policy too" "$(($("$X" policy show 25 --netns "$gw" --json | field 'd["acted"]') - was))" 1
check "attach again" attach c0 --xdp --mode enforce,bypass $ignore

# --- a daemon that is stopped, or dead ---
for how in STOP KILL; do
	kill -$how "$daemon"
	sleep 1.3
	acts xdp >/dev/null 2>&1
	replay "$T/$how"
	same "SIG$how: once the lease is over, all is the kernel's" "$T/$how"
	equal "SIG$how: nothing is dropped or forwarded early" "$(acts xdp 2>&1 | grep -Eo 'drop-[a-z]*|forwarded')" ""
	[ $how = STOP ] || break
	kill -CONT "$daemon"
	sleep 1
	replay "$T/cont" plain blocked
	equal "and when it goes on, so does xspd" "$(acts xdp)" "drop-block:1 forwarded:1"
done
wait "$daemon" 2>/dev/null
check "detach without a daemon" bash -c "'$X' detach c0 --netns '$gw' && '$X' detach s0 --netns '$gw'"
equal "nothing is left" "$(entries)$(ls "$PINS/$gw/v1/links")$(ip -n "$gw" -j link show c0 | field '"xdp" in d[0]')" "0False"
start "$gw"
check "attach to a device that goes" attach x0 --ingress --mode enforce
equal "it has a mode" "$(entries)" 1
ip -n "$gw" link del x0
check "the mode goes with it" wait_for 5 bash -c "[ \$(bpftool map dump pinned '$PINS/$gw/v1/xspd_mode' -j | grep -c ifindex) = 0 ]"
check "detach it" "$X" detach x0 --netns "$gw"
check "an instance's cache" test "$(status | field 'd["cache"]["entries"]')" -gt 0
stop
fails "a cache of an odd size" 2 "run: --cache 1000: give 'off', or a power of two" "$X" run --netns "$gw" --cache 1000
start "$gw" --cache off
equal "no cache" "$(status | field 'd["cache"]["entries"]')" 0
done_testing
