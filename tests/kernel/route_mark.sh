#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Rules that route by mark, or by tunnel id: a packet may be for us although the FIB, asked without
# them, forwards it.  Enforce must not drop by a policy that the kernel never asks.
. tests/lib/tap.sh
new_ns gw
in_ns "$gw" sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0 \
	net.ipv4.conf.default.rp_filter=0 net.ipv4.conf.all.accept_local=1
# a pair within one namespace keeps the mark of what is sent
ip -n "$gw" link add name out0 type veth peer name in0
ip -n "$gw" link add name c0 type veth peer name p0
for d in out0 in0 c0 p0; do ip -n "$gw" link set $d up; done
mac=$(ip -n "$gw" -j link show in0 | field 'd[0]["address"]')
ip -n "$gw" addr add 192.0.2.1/24 dev c0
ip -n "$gw" route add 10.9.0.0/16 via 192.0.2.2
ip -n "$gw" route add 10.8.0.0/16 dev in0
ip -n "$gw" route add local 10.9.0.0/16 dev lo table 100
ip -n "$gw" xfrm policy add src 0.0.0.0/0 dst 10.9.0.0/16 dir fwd priority 10 index 10 action block

# send MARK COUNT: datagrams from 10.8.0.1 to 10.9.0.1, arriving on in0 with that mark; how many are heard
send() {
	in_ns "$gw" python3 - "$1" "$2" "$mac" <<-'END'
		import socket, struct, sys
		ear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		ear.bind(("0.0.0.0", 999)); ear.settimeout(1)
		s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); s.bind(("out0", 0))
		s.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, int(sys.argv[1]))
		ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 32, 0, 0, 64, 17, 0, bytes([10, 8, 0, 1]), bytes([10, 9, 0, 1]))
		total = sum(struct.unpack("!10H", ip)); total = (total & 0xffff) + (total >> 16)
		ip = ip[:10] + struct.pack("!H", ~((total & 0xffff) + (total >> 16)) & 0xffff) + ip[12:]
		frame = bytes.fromhex(sys.argv[3].replace(":", "")) + bytes(6) + b"\x08\x00" + ip + struct.pack("!HHHH", 1000, 999, 12, 0) + b"0000"
		heard = 0
		for i in range(int(sys.argv[2])): s.send(frame)
		try:
		    while True: ear.recv(100); heard += 1
		except TimeoutError: print(heard)
	END
}

equal "no rule: the kernel forwards it, and blocks it" "$(send 1 5)" 0
ip -n "$gw" rule add fwmark 1 lookup 100
equal "a rule: the kernel delivers what bears its mark" "$(send 1 5)" 5
equal "... and blocks what bears another" "$(send 2 5)" 0
start "$gw"
"$X" attach in0 --ingress --mode enforce --netns "$gw"
acts() {
	"$X" status --netns "$gw" --json | field 'd["acts"]["ingress"].get("'"$1"'", {"packets": 0})["packets"]'
}
is() { [ "$(bpftool -j map lookup pinned "$PINS/$gw/v1/maps/xspd_conf" key 0 0 0 0 |
	field 'd["formatted"]["value"]["route_rules"]')" = "$1" ]; }
equal "with enforce it is delivered all the same" "$(send 1 5)" 5
equal "without a mark: dropped" "$(send 0 5) $(acts drop-block)" "0 5"
ip -n "$gw" rule del fwmark 1 lookup 100
check "the rule is gone, and that is known" wait_for 5 is 0
equal "marked, and dropped before the kernel would" "$(send 1 5) $(acts drop-block)" "0 10"
ip -n "$gw" rule add not fwmark 2 lookup 100
check "a rule for all but one mark, and that is known" wait_for 5 is 1
equal "... delivered" "$(send 1 5)" 5
ip -n "$gw" rule del not fwmark 2 lookup 100
ip -n "$gw" -6 rule add fwmark 0x10/0xf0 lookup 100
check "a rule of IPv6, by a masked mark" wait_for 5 is 1
ip -n "$gw" -6 rule del fwmark 0x10/0xf0 lookup 100
check "none any more" wait_for 5 is 0
ip -n "$gw" rule add tun_id 5 lookup 100
check "a rule by tunnel id, which no packet shows" wait_for 5 is 2
before=$(acts drop-block)
equal "... the kernel drops what was dropped early" "$(send 0 5) $(($(acts drop-block) - before))" "0 0"
ip -n "$gw" rule del tun_id 5 lookup 100
check "... is gone" wait_for 5 is 0
equal "... and it is dropped early again" "$(send 0 5) $(($(acts drop-block) - before))" "0 5"
done_testing
