#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# shellcheck disable=SC2154
# Beside strongSwan: two gateways with many children, xspd on both, all of them services of
# systemd. Whatever charon does, the mirror is the kernel's SPD at each quiet point, and what
# enforce drops is never of a tunnel.
. tests/lib/tap.sh
. tests/vm/swan-net.sh
children=$((10 * ${XSPD_SCALE:-100})) traps=10 plain=20
sampled=(0 1 7 23 $((children / 2)) $((children - traps - 1)))
trap=$((children - 1))
started=$((children - traps + plain))
now() { date +%s%N; }
ms() { echo $((($(now) - $1) / 1000000)); }

# --- the services --------------------------------------------------------------
# service UNIT NS: in that namespace, without the rest of a machine, its log in /run/NS
service() {
	mkdir -p "/run/systemd/system/$1.d"
	cat >"/run/systemd/system/$1.d/test.conf" <<-END
		[Unit]
		DefaultDependencies=no
		[Service]
		NetworkNamespacePath=/run/netns/$2
		TimeoutStartSec=300
		StandardError=append:/run/$2/$1.log
		Environment=STRONGSWAN_CONF=/run/$2/strongswan.conf
		ExecStartPost=
	END
}
# strongswan.service is gateway 1's; gateway 2 has a copy of it
services() {
	check "make install" make -s install O="$O" DESTDIR= PREFIX=/run/xspd \
		UNITDIR=/run/systemd/system
	X=/run/xspd/sbin/xspd
	sed '/^Alias/d' /lib/systemd/system/strongswan.service >/run/systemd/system/strongswan2.service
	sed -i 's/^Before=.*/& strongswan2.service/' /run/systemd/system/xspd@.service
	service strongswan.service "$gw1"
	service strongswan2.service "$gw2"
	for ns in "$gw1" "$gw2"; do service "xspd@$ns.service" "$ns"; done
	cat >/run/systemd/system/together.target <<-END
		[Unit]
		DefaultDependencies=no
		Requires=strongswan.service strongswan2.service xspd@$gw1.service xspd@$gw2.service
		After=strongswan.service strongswan2.service xspd@$gw1.service xspd@$gw2.service
	END
	systemctl daemon-reload
}
property() { systemctl show --value -p "$2" "$1"; }

# bring_up TEXT: all that start by themselves; sets $took
bring_up() {
	local start
	check "$1: connections of gateway 2" load "$gw2"
	start=$(now)
	check "... and of gateway 1" load "$gw1"
	check "... $started children" wait_for 400 sas_are "$gw1" $((2 * started))
	took=$(ms "$start")
	echo "# $1: $started children in $took ms"
	wait_for 20 sas_are "$gw2" $((2 * started))
}

# --- what holds at each quiet point ----------------------------------------------
same_as_kernel() { python3 tests/lib/spd_equal.py "$X" "$1" >"$T/equal"; }
doubts() { "$X" status --netns "$1" --json | field '" ".join(d["doubt"])'; }
drops() { # by enforce, at one gateway
	"$X" status --netns "$1" --json |
		field 'sum(v["packets"] for h in d["acts"].values() for k, v in h.items() if k.startswith("drop-"))'
}
quiet() {
	for ns in "$gw1" "$gw2"; do
		wait_for 60 same_as_kernel "$ns"
		equal "$1: mirror and kernel are the same ($(tail -n 1 "$T/equal"))" \
			"$(grep -c '^index' "$T/equal") $(doubts "$ns")" "0 "
	done
}
none_died() {
	for ns in "$gw1" "$gw2"; do equal "$1: enforce has dropped nothing" "$(drops "$ns")" "$(cat "/run/$ns/drops")"; done
}
remember_drops() { for ns in "$gw1" "$gw2"; do drops "$ns" >"/run/$ns/drops"; done; }
# Packets that the kernel itself refused, at both gateways.
refused() {
	for ns in "$gw1" "$gw2"; do in_ns "$ns" cat /proc/net/xfrm_stat; done | awk '{ n += $2 } END { print n }'
}
# answered TEXT "SENT ANSWERED": not one was lost
answered() { equal "$1: each of ${2% *} datagrams is answered" "${2#* }" "${2% *}"; }

# the pairs that talk: plain tunnels, and children with an if_id
pairs() {
	local i
	for ((i = 0; i < plain; i++)); do echo "10.100.$i.2-10.200.$i.2"; done
	for i in "${sampled[@]}"; do echo "$(near "$i").2-$(far "$i").2"; done
}
# --- without xspd, and then with it from the start ---------------------------------
build_net
serve
for ns in "$gw1" "$gw2"; do charon_conf "$ns"; done
swan_conf "$gw1" gw1 gw2 192.0.2.2
swan_conf "$gw2" gw2 gw1 192.0.2.1,192.0.2.11
services
# the first time everything is slower
for way in "by itself, cold" "without xspd"; do
	check "strongSwan $way" systemctl start strongswan2.service strongswan.service
	bring_up "$way"
	without=$took
	check "strongSwan stops" systemctl stop strongswan.service strongswan2.service
	for ns in "$gw1" "$gw2"; do ip -n "$ns" xfrm state flush && ip -n "$ns" xfrm policy flush; done
done

check "strongSwan and xspd start together" systemctl start together.target
for unit in "xspd@$gw1 strongswan" "xspd@$gw2 strongswan2"; do
	set -- $unit
	equal "$2 waits for xspd to be ready" \
		"$(($(property "$1.service" ActiveEnterTimestampMonotonic) <= $(property "$2.service" ExecMainStartTimestampMonotonic)))" 1
done
equal "xspd has three capabilities" \
	"$(awk '/^CapEff|^NoNew/ { print $2 }' "/proc/$(property "xspd@$gw1.service" MainPID)/status" | xargs)" "000000c000001000 1"
equal "its status is told" "$(property "xspd@$gw1.service" StatusText)" "Mirroring 0 policies"
for ns in "$gw1" "$gw2"; do
	for dev in lan wan ipsec0; do
		check "enforce at $dev" "$X" attach $dev --ingress --mode enforce --netns "$ns"
	done
	check "steer at ipsec0" "$X" attach ipsec0 --egress --mode steer --netns "$ns"
done
bring_up "with xspd"
awk "BEGIN { printf \"# with xspd / without: %.3f\\n\", $took / $without }"
quiet "brought up"

# --- traffic -------------------------------------------------------------------------
mapfile -t pairs < <(pairs)
remember_drops
answered "plain and with if_ids" "$(talk 0 "${pairs[@]}")"
none_died "brought up"
talk 0 "$(near $trap).2-$(far $trap).2" >/dev/null
is_up() { vici "$gw1" --list-sas --child "net$1" | grep -q INSTALLED; }
check "a trap brings its child up" wait_for 60 is_up "$trap"
wait_for 20 same_as_kernel "$gw2"
answered "... and carries" "$(talk 0 "$(near $trap).2-$(far $trap).2")"
shunt() { "$X" lookup --netns "$gw1" dir out src 10.64.0.2 dst "$1" --json | field 'd["verdict"]'; }
equal "a pass shunt lets pass, a drop shunt blocks" "$(shunt 10.210.0.1) $(shunt 10.211.0.1)" "plain block"

# --- rekeying, and authenticating again, under traffic ----------------------------------
before=$(refused)
talk 20 "${pairs[@]}" >"$T/talk" &
talker=$!
for i in "${sampled[@]}"; do vici "$gw1" --rekey --child "net$i"; done >"$T/out" 2>&1
vici "$gw2" --rekey --child "plain0" >>"$T/out" 2>&1
vici "$gw1" --rekey --ike site >>"$T/out" 2>&1
vici "$gw1" --rekey --ike plain --reauth >>"$T/out" 2>&1
wait $talker
equal "all of that was asked for" "$(grep -c 'completed successfully' "$T/out")" $((${#sampled[@]} + 3))
read -r sent got <"$T/talk"
# what charon takes away before the peer has done with it, the kernel counts
lost=$((sent - got)) counted=$(($(refused) - before))
echo "# rekeyed and authenticated again: $lost of $sent datagrams lost, $counted refused by the kernel"
check "whatever is lost, the kernel has refused" [ $lost -le $counted ]
wait_for 60 sas_are "$gw1" $((2 * started + 2))
quiet "rekeyed and authenticated again"
none_died "rekeyed and authenticated again"

# --- another address -----------------------------------------------------------------
at() { [ "$(ip -n "$1" xfrm state | grep -c "^src $2 \| dst $2$")" = "$3" ]; }
in_ns "$gw1" sysctl -qw net.ipv4.conf.wan.promote_secondaries=1
ip -n "$gw1" addr add 192.0.2.11/24 dev wan
start=$(now)
ip -n "$gw1" addr del 192.0.2.1/24 dev wan
check "MOBIKE: all SAs move to another address" wait_for 60 at "$gw2" 192.0.2.1 0
wait_for 60 at "$gw2" 192.0.2.11 $((2 * started + 2))
echo "# MOBIKE: $started children in $(ms "$start") ms"
ip -n "$gw2" route replace 10.100.0.0/16 via 192.0.2.11
quiet "moved"
answered "moved" "$(talk 0 "${pairs[@]}")"
none_died "moved"

# --- what comes in the clear dies, early ---------------------------------------------------
ip -n "$gw2" xfrm policy delete src 10.200.0.0/24 dst 10.100.0.0/24 dir out
equal "an answer in the clear does not arrive" "$(talk 0 10.100.0.2-10.200.0.2)" "1 0"
equal "... enforce has dropped it, and that is all" "$(drops "$gw1") $(drops "$gw2")" "1 0"
remember_drops

# --- strongSwan again, with fewer children, beside a running xspd --------------------------
children=$((children / 10))
started=$((children - traps + plain))
swan_conf "$gw1" gw1 gw2 192.0.2.2
check "charon restarts" systemctl restart strongswan.service
bring_up "restarted"
quiet "restarted"
answered "restarted" "$(talk 0 $(for i in {1..19}; do echo "10.100.$i.2-10.200.$i.2"; done))"
none_died "restarted"
for ns in "$gw1" "$gw2"; do
	equal "xspd has lost nothing, and put nothing right" "$("$X" status --netns "$ns" --json |
		field '[d[k] for k in ("lost", "repaired_added", "repaired_removed", "repaired_changed")]')" "[0, 0, 0, 0]"
	equal "... and is the one that was started" "$(property "xspd@$ns.service" NRestarts)" 0
done
systemctl stop strongswan.service strongswan2.service "xspd@$gw1.service" "xspd@$gw2.service"
done_testing
