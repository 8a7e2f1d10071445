#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Pins that do not fit, and callers who may not: one line that names the thing and the remedy.
. tests/lib/tap.sh
new_ns gw
ip -n "$gw" link add name eth0 type veth peer name p0
flow="dir out src 10.0.0.1 dst 10.0.0.2"
nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all "$@"; }

# --- no privilege; the binary must be somewhere nobody can read it ---
chmod 755 "$T" && install -m 755 "$X" "$T/xspd" && Y=$T/xspd
fails "run without privilege" 1 "not permitted; run as root" nobody "$Y" run --instance "$gw"
fails "run in another namespace" 1 "--netns $gw: Operation not permitted; run as root" nobody "$Y" run --netns "$gw"
start "$gw"
for cmd in "status" "policy list" "policy show 1" "lookup $flow" "attach eth0 --xdp" "detach eth0"; do
	fails "$cmd without privilege" 1 "(not permitted|Permission denied|Operation not permitted); run as root" \
		nobody "$Y" $cmd --instance "$gw"
done
equal "nothing was attached" "$("$X" status --netns "$gw" | grep -c 'nothing by')" 1
fails "ip netns exec hides the pins: said so" 1 "no bpffs on /sys/fs/bpf; use --netns" \
	ip netns exec "$gw" "$X" status --instance "$gw"
fails "the wrong namespace" 1 "wrong network namespace: instance $gw mirrors '$gw'" \
	"$X" attach lo --ingress --instance "$gw"
fails "run of another user of the pins" 1 "another 'xspd run' holds $PINS/$gw/v1; stop it" "$X" run --instance "$gw"
stop

# --- pins of another version ---
new_ns old
mkdir -p "$PINS/$old/v7"
for cmd in "status" "policy list" "lookup $flow" "attach lo --xdp"; do
	fails "$cmd with pins of v7" 1 "pins of another version \(v7, this xspd has v1\); use the xspd" \
		"$X" $cmd --netns "$old"
done
mkdir -p "$PINS/$old/v1/set-1"
bpftool map create "$PINS/$old/v1/set-1/xspd_conf" type array key 4 value 128 entries 1 name xspd_conf flags 0x400
ln -s set-1 "$PINS/$old/v1/maps"
fails "a record of another size" 1 "pins of another version .*restart 'xspd run'" "$X" status --netns "$old"
rm "$PINS/$old/v1/set-1/xspd_conf"
bpftool map create "$PINS/$old/v1/set-1/xspd_conf" type array key 4 value 256 entries 1 name xspd_conf flags 0x400
fails "a record of another ABI" 1 "pins of another version .*restart 'xspd run'" "$X" status --netns "$old"
start "$old"
check "xspd run takes such a directory over" "$X" status --netns "$old"

# --- odd words against a live instance ---
fails "an index that is no policy's" 1 "policy show 4000000001: no such index" "$X" policy show 4000000001 --netns "$old"
fails "a device of another namespace" 1 "dev eth0: no such device" "$X" lookup --netns "$old" $flow dev eth0
"$X" policy list --netns "$old" --json >/dev/full 2>"$T/err"
equal "a full disk" "$? $(cat "$T/err")" "1 xspd: stdout: No space left on device"

# --- program and reference at odds: a record altered behind their backs ---
ip -n "$old" xfrm policy add src 10.0.0.0/8 dst 10.0.0.0/8 dir out priority 1 index 9
wait_for 5 "$X" policy show 9 --netns "$old"
check "they agree" "$X" lookup --netns "$old" $flow --explain
slot=$("$X" policy show 9 --netns "$old" --json | field 'd["slot"]')
info=$PINS/$old/v1/maps/xspd_info
hex=$(bpftool map lookup pinned "$info" key "$slot" 0 0 0 -j | field '" ".join(d["value"][:7] + ["0x01"] + d["value"][8:])')
bpftool map update pinned "$info" key "$slot" 0 0 0 value $hex
"$X" lookup --netns "$old" $flow --explain >"$T/out" 2>"$T/err"
equal "they disagree: said so, and exit 1" \
	"$? $(head -n 1 "$T/out") $(grep -c 'DISAGREE: plain bypass 9 0 against block block 9 0' "$T/err")" \
	"1 verdict plain reason bypass 1"
equal "JSON says so too" "$("$X" lookup --netns "$old" $flow --explain --json 2>/dev/null | field 'd["agrees"]')" False
done_testing
