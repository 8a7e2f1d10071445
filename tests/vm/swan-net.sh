# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Sourced by swan.sh: client - gateway - gateway - server, two charons, their configuration.
#
# Child I of connection "site" is 10.64+I/250.I%250.0/24 - 10.128+I/250.I%250.0/24 and has an
# if_id of its own, another at each gateway: its traffic goes through the one xfrm interface ipsec0.
# Children of "plain" have none. The client and the server have all addresses of their side.
near() { echo "10.$((64 + $1 / 250)).$(($1 % 250))"; }
far() { echo "10.$((128 + $1 / 250)).$(($1 % 250))"; }

link() { # NS DEV NS DEV
	ip -n "$1" link add name "$2" type veth peer name "$4" netns "$3"
	ip -n "$1" link set "$2" up
	ip -n "$3" link set "$4" up
}

build_net() {
	local ns
	new_ns client
	new_ns gw1
	new_ns gw2
	new_ns server
	link "$client" eth0 "$gw1" lan
	link "$gw1" wan "$gw2" wan
	link "$gw2" lan "$server" eth0
	ip -n "$client" addr add 10.1.0.2/24 dev eth0
	ip -n "$gw1" addr add 10.1.0.1/24 dev lan
	ip -n "$gw1" addr add 192.0.2.1/24 dev wan
	ip -n "$gw2" addr add 192.0.2.2/24 dev wan
	ip -n "$gw2" addr add 10.2.0.1/24 dev lan
	ip -n "$server" addr add 10.2.0.2/24 dev eth0
	ip -n "$client" route add default via 10.1.0.1
	ip -n "$server" route add default via 10.2.0.1
	ip -n "$client" route add local 10.64.0.0/10 dev lo
	ip -n "$server" route add local 10.128.0.0/9 dev lo
	ip -n "$gw1" route add 10.64.0.0/10 via 10.1.0.2
	ip -n "$gw2" route add 10.128.0.0/9 via 10.2.0.2
	for ns in "$gw1" "$gw2"; do
		in_ns "$ns" sysctl -qw net.ipv4.ip_forward=1
		ip -n "$ns" link add ipsec0 type xfrm external
		ip -n "$ns" link set ipsec0 up
	done
	ip -n "$gw1" route add 10.128.0.0/10 dev ipsec0
	ip -n "$gw2" route add 10.64.0.0/10 dev ipsec0
	ip -n "$gw1" route add 10.200.0.0/16 via 192.0.2.2
	ip -n "$gw2" route add 10.100.0.0/16 via 192.0.2.1
	ip -n "$gw1" route add 10.100.0.0/16 via 10.1.0.2
	ip -n "$gw2" route add 10.200.0.0/16 via 10.2.0.2
	ip -n "$client" route add local 10.100.0.0/16 dev lo
	ip -n "$server" route add local 10.200.0.0/16 dev lo
}

# --- configuration -----------------------------------------------------------
# charon_conf NS
charon_conf() {
	mkdir -p "/run/$1"
	cat >"/run/$1/strongswan.conf" <<-END
		charon-systemd {
			load = random nonce aes sha1 sha2 hmac kdf curve25519 kernel-netlink socket-default vici
			make_before_break = yes
			threads = 16
			plugins {
				vici { socket = unix:///run/$1/vici }
			}
			journal { default = -1 }
			filelog {
				log { path = /run/$1/log
					default = 0
					ike = 1
				}
			}
		}
		swanctl { load = random }
	END
}

# child NAME LOCAL REMOTE ACTION [LINE...]
child() {
	printf '%s {\nlocal_ts = %s\nremote_ts = %s\nesp_proposals = null-sha256\n' "$1" "$2" "$3"
	[ "$4" = none ] || printf 'start_action = %s\n' "$4"
	[ $# -lt 5 ] || printf '%s\n' "${@:5}"
	printf '}\n'
}

# connection NAME LOCAL-ID REMOTE-ID REMOTE: opens one, up to its children
connection() {
	printf '%s {\nversion = 2\nremote_addrs = %s\nproposals = aes128-sha256-curve25519\n' "$1" "$4"
	printf 'local { auth = psk\nid = %s\n}\nremote { auth = psk\nid = %s\n}\nchildren {\n' "$2" "$3"
}

# swan_conf NS ME PEER PEER-ADDRESS: $children of site, the last $traps of them as traps; gw1 starts
swan_conf() {
	local i a b action ids=("if_id_in = %unique" "if_id_out = %unique")
	{
		echo "connections {"
		connection site "$2" "$3" "$4"
		for ((i = 0; i < children; i++)); do
			a=10.$((64 + i / 250)).$((i % 250)).0/24 b=10.$((128 + i / 250)).$((i % 250)).0/24 action=start
			[ $i -lt $((children - traps)) ] || action=trap
			[ "$2" = gw1 ] || { set -- "$1" "$2" "$3" "$4" "$a"; a=$b b=$5 action=none; }
			child "net$i" "$a" "$b" $action "${ids[@]}"
		done
		printf '}\n}\n'
		connection plain "$2-plain" "$3-plain" "$4"
		for ((i = 0; i < plain; i++)); do
			if [ "$2" = gw1 ]; then
				child "plain$i" "10.100.$i.0/24" "10.200.$i.0/24" start
			else
				child "plain$i" "10.200.$i.0/24" "10.100.$i.0/24" none
			fi
		done
		printf '}\n}\n'
		connection shunts "$2-shunts" "$3-shunts" "$4"
		child pass 0.0.0.0/0 10.210.0.0/16 trap "mode = pass"
		child drop 0.0.0.0/0 10.211.0.0/16 trap "mode = drop"
		printf '}\n}\n}\nsecrets {\nike { secret = "of these two gateways" }\n}\n'
	} >"/run/$1/swanctl.conf"
}

# vici NS WORDS...: swanctl there
vici() {
	local ns=$1
	shift
	STRONGSWAN_CONF=/run/$ns/strongswan.conf swanctl "$@" --uri "unix:///run/$ns/vici"
}
load() { vici "$1" --load-all --noprompt --file "/run/$1/swanctl.conf"; }
sas() { ip -n "$1" xfrm state count | awk '{ print $NF }'; }
sas_are() { [ "$(sas "$1")" = "$2" ]; }

# --- traffic -------------------------------------------------------------------
# The server answers each datagram from the address it went to.
serve() {
	nsenter --net="/run/netns/$server" python3 - <<-'END' &
		import socket
		s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		s.setsockopt(0, 8, 1)  # IP_PKTINFO
		s.bind(("", 7))
		while True:
		    data, control, _, peer = s.recvmsg(2000, 100)
		    info = control[0][2]
		    s.sendmsg([data], [(0, 8, bytes(4) + info[8:12] + bytes(4))], 0, peer)
	END
	tap_pids+=($!)
	wait_for 20 bash -c "nsenter --net=/run/netns/$server ss -Hlun sport = 7 | grep -q ."
}

# talk SECONDS|0 FROM-TO...: a datagram each 5 ms, by turns; with 0 one each. "sent answered"
talk() {
	nsenter --net="/run/netns/$client" python3 - "$@" <<-'END'
		import select, socket, sys, time
		pairs = [p.split("-") for p in sys.argv[2:]]
		end, sent, got = time.time() + float(sys.argv[1]), 0, 0
		socks = []
		for near, far in pairs:
		    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		    s.bind((near, 0))
		    s.connect((far, 7))
		    socks.append(s)
		while sent < len(socks) or time.time() < end:
		    s = socks[sent % len(socks)]
		    s.send(bytes(100))
		    sent += 1
		    ready = select.select(socks, [], [], 0.005)[0]
		    for s in ready: got += len(s.recv(2000)) == 100
		end = time.time() + 5
		while got < sent and time.time() < end:
		    for s in select.select(socks, [], [], 1)[0]: got += len(s.recv(2000)) == 100
		print(sent, got)
	END
}
