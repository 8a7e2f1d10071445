#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Putting hooks on devices and taking them off, by xspd and by hand.
. tests/lib/tap.sh
new_ns gw
new_ns other
ip -n "$gw" link add name eth0 type veth peer name p0
ip -n "$gw" link add name eth0.5 type veth peer name p5
for d in eth0 p0 eth0.5 p5; do ip -n "$gw" link set "$d" up; done

fails "attach without a daemon" 1 "no pins in .*start 'xspd run'" "$X" attach eth0 --ingress --netns "$gw"
start "$gw"
pin=$PINS/$gw/v1

entry() { bpftool prog show pinned "$pin/$1" -j | field 'd["id"]'; }
in_id=$(entry xspd_tc_in) out_id=$(entry xspd_tc_out) xdp_id=$(entry xspd_xdp)
# attached DEV: what is there of ours, "in out xdp" or part of it
attached() {
	{
		bpftool link show -j
		echo
		in_ns "$gw" ip -j link show dev "$1" 2>/dev/null || echo "[]"
		for side in ingress egress; do
			tc -n "$gw" -j filter show dev "$1" $side 2>/dev/null | grep . || echo "[]"
		done
	} | python3 -c '
import json, sys
ids = dict(zip(map(int, sys.argv[1:4]), ("in", "out", "xdp")))
links, dev, ingress, egress = (json.loads(line) for line in sys.stdin if line.strip())
ifindex = dev[0]["ifindex"] if dev else -1
found = {l["prog_id"] for l in links if l.get("ifindex", ifindex) == ifindex and l.get("type") != "xdp"}
found |= {f["options"]["prog"]["id"] for f in ingress + egress if "prog" in f.get("options", {})}
found |= {dev[0]["xdp"]["prog"]["id"]} if dev and dev[0].get("xdp") else set()
print(" ".join(ids[i] for i in sorted(found) if i in ids))' "$in_id" "$out_id" "$xdp_id"
}
links() { ls "$pin/links" 2>/dev/null | tr '\n' ' '; }
qdiscs() { tc -n "$gw" qdisc show dev "$1" clsact 2>/dev/null | grep -c clsact; }
hooks() { "$X" status --netns "$gw" --json | field '" ".join(a["dev"]+":"+a["hook"]+":"+a["kind"] for a in d["attached"])'; }
tcx=tcx
grep -qw bpf_tcx_link /proc/kallsyms 2>/dev/null || grep -q tcx_link_attach /proc/kallsyms || tcx=clsact

# --- xspd attach ---
check "attach ingress and egress" "$X" attach eth0 --ingress --egress --netns "$gw"
equal "status lists them" "$(hooks)" "eth0:egress:$tcx eth0:ingress:$tcx"
equal "the kernel has them" "$(attached eth0)" "in out"
fails "attaching twice is refused" 1 "eth0: ingress: attached already; 'xspd detach" "$X" attach eth0 --ingress --netns "$gw"
"$X" attach eth0 --xdp --netns "$gw" 2>"$T/err"
equal "attach xdp" "$?" 0
equal "it is the program of the pin" "$(attached eth0)" "in out xdp"
check "detach one" "$X" detach eth0 --ingress --netns "$gw"
equal "the others stay" "$(links)" "eth0-egress eth0-xdp "
equal "... in the kernel too" "$(attached eth0)" "out xdp"
fails "all or nothing: when egress is refused, ingress comes off again" 1 "egress: attached already" \
	"$X" attach eth0 --ingress --egress --netns "$gw"
equal "only what was there stays" "$(links)$(attached eth0)" "eth0-egress eth0-xdp out xdp"
fails "it is off already" 1 "eth0: nothing attached there" "$X" detach eth0 --ingress --netns "$gw"
check "detach all" "$X" detach eth0 --netns "$gw"
equal "nothing is left" "$(links)$(attached eth0)$(qdiscs eth0)" "0"
"$X" attach lo --xdp --netns "$gw" 2>"$T/err"
equal "no native XDP: generic, and said so" "$? $(grep -c 'lo: no native XDP .*using generic' "$T/err")" "0 1"
equal "status tells native from generic" "$(hooks)" "lo:xdp:generic"
check "detach generic" "$X" detach lo --netns "$gw"
check "a name with a dot" "$X" attach eth0.5 --egress --netns "$gw"
equal "status has it as it is" "$(hooks)" "eth0.5:egress:$tcx"
check "detach it" "$X" detach eth0.5 --egress --netns "$gw"

# --- clsact ---
check "attach by clsact" "$X" attach eth0 --ingress --egress --clsact --netns "$gw"
equal "status says clsact" "$(hooks)" "eth0:egress:clsact eth0:ingress:clsact"
equal "tc shows the filters" "$(attached eth0)" "in out"
check "detach clsact ingress" "$X" detach eth0 --ingress --netns "$gw"
equal "the egress filter stays" "$(attached eth0) $(qdiscs eth0)" "out 1"
fails "from another namespace it is out of reach" 1 "another network namespace" \
	"$X" detach eth0 --netns "$other" --instance "$gw"
check "detach clsact egress" "$X" detach eth0 --netns "$gw"
equal "filters and qdisc are gone" "$(links)$(attached eth0)$(qdiscs eth0)" "0"
tc -n "$gw" qdisc add dev eth0 clsact
check "attach to a qdisc of somebody else's" "$X" attach eth0 --ingress --clsact --netns "$gw"
check "detach from it" "$X" detach eth0 --netns "$gw"
equal "that qdisc stays" "$(qdiscs eth0)" 1
tc -n "$gw" qdisc del dev eth0 clsact

# --- by hand ---
check "tc qdisc" in_ns "$gw" tc qdisc add dev eth0 clsact
check "tc filter add ... object-pinned" in_ns "$gw" \
	tc filter add dev eth0 ingress bpf da object-pinned "$pin/xspd_tc_in"
check "... egress" in_ns "$gw" tc filter add dev eth0 egress bpf da object-pinned "$pin/xspd_tc_out"
check "ip link set xdpgeneric pinned" in_ns "$gw" ip link set dev eth0 xdpgeneric pinned "$pin/xspd_xdp"
equal "all three are there" "$(attached eth0)" "in out xdp"
fails "xspd attach --xdp over it is refused" 1 "eth0: xdp: (another program|attached already)" \
	"$X" attach eth0 --xdp --netns "$gw"
seen() { "$X" status --netns "$gw" --json | field "sum(r['packets'] for r in d['hooks']['$1'].values())"; }
before="$(seen ingress) $(seen egress) $(seen xdp)"
ip -n "$gw" addr add 192.0.2.1/24 dev eth0
in_ns "$gw" ping -c 3 -i 0.05 -W 1 192.0.2.2 >/dev/null 2>&1
equal "packets that leave are seen" "$(($(seen egress) > $(cut -d' ' -f2 <<<"$before")))" 1
in_ns "$gw" python3 -c '
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("p0", 0))
for i in range(10): s.send(bytes.fromhex("ffffffffffff 020000000001 0800") + bytes(46))'
equal "packets that arrive are seen by both" \
	"$(($(seen ingress) - $(cut -d' ' -f1 <<<"$before") >= 10)) $(($(seen xdp) - $(cut -d' ' -f3 <<<"$before") >= 10))" "1 1"
stop
start "$gw"
equal "a restart of the daemon keeps them" "$(attached eth0)" "in out xdp"
in_ns "$gw" python3 -c '
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("p0", 0))
for i in range(10): s.send(bytes.fromhex("ffffffffffff 020000000001 0800") + bytes(46))'
equal "and they go on counting from where they were" \
	"$(($(seen ingress) - $(cut -d' ' -f1 <<<"$before") >= 20))" 1
in_ns "$gw" tc qdisc del dev eth0 clsact
in_ns "$gw" ip link set dev eth0 xdpgeneric off
equal "and go as they came" "$(attached eth0)" ""

# --- bpftool reads the maps ---
ip -n "$gw" xfrm policy add src 10.1.0.0/16 dst 10.2.0.0/16 proto udp dport 53 dir fwd priority 77 action block
wait_for 5 bash -c "'$X' policy list --netns '$gw' | grep -q 'priority 77'"
slot=$("$X" policy list --netns "$gw" --json | field 'd[0]["slot"]')
bpftool map lookup pinned "$pin/maps/xspd_info" key $(printf '%d 0 0 0' "$slot") >"$T/dump"
check "bpftool names the fields and the values" \
	python3 -c '
import re, sys
text = open(sys.argv[1]).read()
for want in ("\"priority\": 77", "\"dir\": \"XSPD_FWD\"", "\"action\": \"XSPD_BLOCK\"", "\"family\": \"XSPD_INET\"", "\"dlen\": 16", "\"proto\": 17"):
    assert want in text, (want, text)' "$T/dump"
for map in xspd_conf xspd_policy xspd_info xspd_bucket xspd_list xspd_part xspd_ifid xspd_dst xspd_src xspd_count xspd_stat; do
	check "$map has BTF" bash -c "bpftool map show pinned $pin/maps/$map | grep -q btf_id"
done

# --- bad input, and devices that go ---
fails "a missing device" 1 "nodev0: no such device" "$X" attach nodev0 --xdp --netns "$gw"
fails "the wrong namespace" 1 "eth0: wrong network namespace: instance $gw mirrors '$gw'; add --netns $gw" \
	"$X" attach eth0 --xdp --netns "$other" --instance "$gw"
equal "nothing is left of the refused ones" "$(links)" ""
check "attach to a device that goes" "$X" attach eth0 --ingress --netns "$gw"
ip -n "$gw" link del eth0
equal "status says that it is gone" "$("$X" status --netns "$gw" | grep -c 'device is gone')" 1
ip -n "$gw" link add name eth0 type veth peer name p0
check "attach to a new one of that name" "$X" attach eth0 --ingress --netns "$gw"
ip -n "$gw" link del eth0
check "detach of a device that is gone" "$X" detach eth0 --netns "$gw"
equal "the entry is gone too" "$(links)" ""
done_testing
