#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What a daemon cannot have: memory, maps, bpffs, the instance, its privileges.  Each time one clear
# line, the kernel decides, and nothing is left behind.
. tests/lib/tap.sh
new_ns gw
new_ns other
ip -n "$gw" link add e0 type veth peer name e1
ip -n "$gw" xfrm policy add src 10.0.0.0/8 dst 10.0.0.0/8 dir out priority 10 index 9 action block
flow="dir out src 10.0.0.1 dst 10.0.0.2"
says() { "$X" lookup --netns "$gw" --json $flow | field 'd["verdict"] + " " + d["reason"]'; }
is_now() { [ "$(says)" = "$1" ]; }
pins() { find "$PINS/$gw" "$PINS/$other" 2>/dev/null | sort; }
# What is attached in the namespace: filters of clsact, and links.
filters() {
	for hook in ingress egress; do tc -n "$gw" filter show dev e0 $hook; done
	for link in "$PINS/$gw"/v1/links/*; do
		[ ! -e "$link" ] || in_ns "$gw" bpftool link show pinned "$link" | grep prog
	done
}
# nothing_left TEXT: no pin of either instance, nothing attached
nothing_left() { equal "$1: no pin and no filter is left" "$(pins)$(filters)" ""; }

# --- at the start ---
fails "out of map space" 1 "out of memory; give --capacity" \
	bash -c "ulimit -v 400000; exec '$X' run --netns '$gw' --capacity 16777216"
nothing_left "out of map space"
for kib in 6000 9000 12000 16000; do
	(
		ulimit -v $kib
		exec timeout 5 "$X" run --netns "$gw"
	) >"$T/out" 2>"$T/err"
	rc=$?
	if [ $rc = 124 ]; then
		ok "$kib KiB are enough"
	else
		equal "out of memory at $kib KiB: one line, exit 1 or 127 ($(head -c 120 "$T/err"))" \
			"$(wc -l <"$T/err") $((rc == 1 || rc == 127))" "1 1"
		nothing_left "out of memory at $kib KiB"
	fi
	rm -rf "${PINS:?}/$gw"
done
unshare -m bash -c "mount --make-rprivate / && umount -l /sys/fs/bpf &&
	exec setpriv --bounding-set=-sys_admin --reuid 0 '$X' run" >"$T/out" 2>"$T/err"
equal "no bpffs, and none can be mounted: exit 1, one line that says so" \
	"$? $(wc -l <"$T/err") $(grep -c '/sys/fs/bpf: mount bpffs: .*; run as root' "$T/err")" "1 1 1"
unshare -m bash -c "mount --make-rprivate / && mount -t bpf none /sys/fs/bpf &&
	mount -o remount,ro /sys/fs/bpf && exec '$X' run --netns '$gw'" >"$T/out" 2>"$T/err"
equal "read-only bpffs: exit 1, one line that says so" \
	"$? $(wc -l <"$T/err") $(grep -c 'read-only; mount bpffs there writable' "$T/err")" "1 1 1"
nothing_left "read-only bpffs"
unshare -m bash -c "mount --make-rprivate / && umount -l /sys/fs/bpf &&
	timeout -s TERM 8 '$X' run --netns '$gw'" >"$T/out" 2>"$T/err"
equal "no bpffs: it is mounted, and that is said" "$(grep -c 'mounted bpffs there' "$T/err")" 1
nothing_left "no bpffs"
fails "without CAP_NET_ADMIN" 1 "not permitted; run as root" nsenter --net="/run/netns/$gw" \
	setpriv --bounding-set=-net_admin --inh-caps=-net_admin --reuid 0 "$X" run --instance "$gw"
nothing_left "without CAP_NET_ADMIN"
fails "without CAP_BPF and CAP_SYS_ADMIN" 1 "not permitted; run as root" nsenter \
	--net="/run/netns/$gw" setpriv --bounding-set=-sys_admin,-bpf --reuid 0 "$X" run --instance "$gw"
nothing_left "without CAP_BPF"

# --- while it runs ---
start "$gw" --capacity 64
check "attach both directions" "$X" attach e0 --ingress --egress --netns "$gw"
before=$(pins)
attached=$(filters)
equal "two programs are attached" "$(grep -c prog <<<"$attached")" 2
held() { find "/proc/$daemon/fd" -lname 'anon_inode:bpf-*' | wc -l; }
maps=$(held)
equal "it answers" "$(says)" "block block"
fails "a second daemon of the instance" 1 "another 'xspd run' holds" timeout 20 "$X" run --netns "$gw"
equal "... leaves the pins alone" "$(pins)" "$before"
equal "... and what is attached" "$(filters)" "$attached"
equal "... and the answers" "$(says)" "block block"

# memory ends while the maps grow
limit=$(($(awk '/VmSize/ { print $2 }' "/proc/$daemon/status") * 1024 + 3000000))
prlimit --pid "$daemon" --as="$limit:unlimited"
for i in $(seq 0 39999); do
	echo "xfrm policy add src 10.1.0.0/16 dst 11.$((i / 250)).$((i % 250)).0/24 dir out priority 100"
done >"$T/batch"
ip -n "$gw" -batch "$T/batch"
sleep 2
if kill -0 "$daemon" 2>/dev/null; then
	equal "out of memory while growing: deferred" "$(says | cut -d' ' -f1)" defer
	equal "... and said so" "$(($(grep -c 'annot allocate memory' "$T/daemon.log") > 0))" 1
	prlimit --pid "$daemon" --as=unlimited:unlimited
	check "... and right once there is memory" wait_for 60 is_now "block block"
	wait_for 30 bash -c "[ \$('$X' status --netns '$gw' --json | grep -c '\"policies\": 40001,') = 1 ]"
	equal "... with all the policies" "$(policies "$gw")" 40001
else
	not_ok "out of memory while growing: the daemon has ended"
fi
equal "the same programs are attached" "$(filters)" "$attached"
equal "one set of pins is left" "$(find "$PINS/$gw/v1" -name 'set-*' | wc -l)" 1

equal "no map or program is held beside those of one set" "$(held)" "$maps"

ip -n "$gw" xfrm policy flush
wait_for 20 bash -c "'$X' status --netns '$gw' --json | grep -q '\"policies\": 0,'"
stop
check "ended in good order: deferred" is_now "defer doubt"
equal "... and attached as before" "$(filters)" "$attached"
check "detach" "$X" detach e0 --netns "$gw"
equal "... leaves no filter" "$(filters)" ""
done_testing
