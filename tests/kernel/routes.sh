#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Routes with an MTU of their own: the daemon tells the programs the smallest, since the FIB lookup
# does not.  Routes with several next hops: none is remembered then.
. tests/lib/tap.sh
new_ns gw
ip -n "$gw" link add name c0 type veth peer name p0
ip -n "$gw" link set c0 up
ip -n "$gw" addr add 192.0.2.1/24 dev c0
ip -n "$gw" addr add fd01::1/64 dev c0 nodad
ip -n "$gw" route add 10.1.0.0/16 via 192.0.2.2 mtu 1400
start "$gw"
is() {
	bpftool map lookup pinned "$PINS/$gw/v1/maps/xspd_conf" key 0 0 0 0 | grep -q "\"route_mtu\": $1,"
}
check "one that was there" is 1400
ip -n "$gw" route add 10.2.0.0/16 via 192.0.2.2
check "one without changes nothing" wait_for 3 is 1400
ip -n "$gw" route add 2001:db8::/32 via fd01::2 mtu 1300
check "a smaller one, IPv6" wait_for 5 is 1300
ip -n "$gw" route add 10.3.0.0/16 via 192.0.2.2 table 77 mtu lock 600
check "in another table, locked" wait_for 5 is 600
ip -n "$gw" route del 10.3.0.0/16 table 77
check "gone again" wait_for 5 is 1300
ip -n "$gw" xfrm policy add src 10.1.0.0/16 dst 10.2.0.0/16 dir fwd
stop
start "$gw"
check "after a restart" is 1300
ip -n "$gw" link set c0 down
ip -n "$gw" link set c0 up
ip -n "$gw" route del 2001:db8::/32 2>/dev/null
ip -n "$gw" route del 10.1.0.0/16 2>/dev/null
# IPv4 routes that go with their device are not told
ip -n "$gw" route add 10.9.0.0/16 via 192.0.2.2 mtu 1000 && ip -n "$gw" route del 10.9.0.0/16
check "none" wait_for 5 is 0
many() {
	bpftool map lookup pinned "$PINS/$gw/v1/maps/xspd_conf" key 0 0 0 0 | grep -q "\"route_many\": $1,"
}
check "one next hop each" many 0
ip -n "$gw" route add 10.10.0.0/16 nexthop via 192.0.2.2 nexthop via 192.0.2.3
check "two next hops" wait_for 5 many 1
ip -n "$gw" route del 10.10.0.0/16
check "one again" wait_for 5 many 0
ip -n "$gw" link set p0 up # a next hop object needs a carrier
ip -n "$gw" nexthop add id 7 via 192.0.2.2 dev c0
ip -n "$gw" route add 10.11.0.0/16 nhid 7
check "a next hop object" wait_for 5 many 1
done_testing
