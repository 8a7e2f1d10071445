#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# As a service: what a manager is told and when, the three capabilities of the unit, and the unit
# itself. (tests/vm/swan.sh has a systemd that starts it.)
. tests/lib/tap.sh
new_ns gw
new_ns fresh
confined=(nsenter --net="/run/netns/$fresh" setpriv --no-new-privs
	--bounding-set=-all,+bpf,+net_admin,+perfmon --inh-caps=-all) # of dist/xspd.service
# manager SECONDS SOCKET COMMAND...: what the command says there, a line each, as it comes; with
# READY and each status, what `xspd status` of instance $watch said right then
cat >"$T/manager" <<'END'
import json, os, socket, subprocess, sys, time
xspd, watch, seconds, name = sys.argv[1:5]
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind("\0" + name[1:] if name[0] == "@" else name)
p = subprocess.Popen(sys.argv[5:], env=dict(os.environ, NOTIFY_SOCKET=name))
print("PID", p.pid, flush=True)
end = time.time() + float(seconds)
while time.time() < end and p.poll() is None:
    s.settimeout(max(0.01, end - time.time()))
    try: text = s.recv(4096).decode()
    except TimeoutError: break
    seen = subprocess.run([xspd, "status", "--instance", watch, "--json"], capture_output=True)
    d = json.loads(seen.stdout) if seen.returncode == 0 else {"doubt": ["NONE"], "policies": -1}
    print(text.replace("\n", " "), "|", d["policies"], *d["doubt"], flush=True)
p.terminate()
p.wait()
s.settimeout(1)
try:
    while True: print(s.recv(4096).decode().replace("\n", " "), flush=True)
except TimeoutError: pass
END
manager() { python3 "$T/manager" "$X" "$watch" "$@" 2>"$T/err"; }

# --- what it says ---
for i in $(seq 0 19999); do
	echo "xfrm policy add src 10.1.0.0/16 dst 10.$((8 + i / 250)).$((i % 250)).0/24 dir out priority 100"
done >"$T/batch"
ip -n "$gw" -batch "$T/batch"
watch=$gw
WATCHDOG_USEC=400000 manager 3 "$T/socket" "$X" run --netns "$gw" >"$T/said"
equal "ready, once" "$(grep -c READY=1 "$T/said")" 1
equal "... first of all" "$(sed -n '2s/STATUS.*|/|/p' "$T/said")" "READY=1 | 20000"
equal "... with a status" "$(grep -o 'STATUS=[^|]*[^ |]' "$T/said" | head -n 1)" "STATUS=Mirroring 20000 policies"
lives=$(grep -c WATCHDOG=1 "$T/said")
equal "signs of life, of 3 seconds one in 0.2 at most ($lives)" "$((lives >= 2 && lives <= 16))" 1
equal "stopping, last of all" "$(tail -n 1 "$T/said")" "STOPPING=1"
WATCHDOG_USEC=400000 WATCHDOG_PID=1 manager 2 "@xspd-test-$$" "$X" run --netns "$gw" >"$T/said"
equal "an abstract socket, and somebody else's watchdog" \
	"$(grep -c READY=1 "$T/said") $(grep -c WATCHDOG "$T/said")" "1 0"
NOTIFY_SOCKET=$T/nobody timeout 2 "$X" run --netns "$gw" 2>"$T/err"
equal "a manager that is not there does not matter" \
	"$(grep -c 'NOTIFY_SOCKET: .*, ignoring' "$T/err") $(grep -c mirroring "$T/err")" "1 1"

# --- not before ---
# changes that come faster than so little room lets them be read: no dump holds, so nothing is ready
flood() { while :; do ip -n "$gw" -batch "$T/updates"; done; }
sed -n 's/ add / update /; 1,200p' "$T/batch" >"$T/updates"
flood &
flood=$!
tap_pids+=($flood)
manager 6 "$T/socket2" "$X" run --netns "$gw" --rcvbuf 4096 >"$T/said" &
manager=$!
sleep 3
cp "$T/said" "$T/said.flood"
kill $flood
wait $flood 2>/dev/null
wait $manager
equal "under a flood it has lost events ($(grep -c 'reading all' "$T/err") times)" \
	"$(grep -q 'reading all' "$T/err" && echo yes)" yes
equal "at no time ready with doubt START" "$(grep READY "$T/said" | grep -c START)" 0
equal "ready in the end" "$(grep -c READY=1 "$T/said")" 1

# --- with its capabilities, and no others ---
ip link add "xt$$v" netns "$fresh" type veth peer name "xt$$w" netns "$fresh"
for dev in "xt$$v" "xt$$w"; do ip -n "$fresh" link set "$dev" up; done
ip -n "$fresh" xfrm policy add src 10.1.0.0/16 dst 10.2.0.0/16 dir out priority 10 index 9 action block
flow="dir out src 10.1.0.1 dst 10.2.0.1"
"${confined[@]}" "$X" run --instance "$fresh" --capacity 16 2>"$T/daemon.log" &
daemon=$!
tap_pids+=("$daemon")
check "it runs" wait_for 20 grep -q mirroring "$T/daemon.log"
equal "with these capabilities" "$(awk '/^Cap(Eff|Bnd)|^NoNew/ { print $2 }' "/proc/$daemon/status" | xargs)" \
	"000000c000001000 000000c000001000 1"
equal "it answers" "$(lookup "$fresh" $flow)" "block 9"
for words in "xt$$v --ingress --mode enforce" "xt$$v --egress" "xt$$w --xdp"; do
	check "attach $words, likewise" "${confined[@]}" "$X" attach $words --instance "$fresh"
done
equal "status names them" \
	"$("${confined[@]}" "$X" status --instance "$fresh" --json | field 'sorted(a["hook"] for a in d["attached"])')" \
	"['egress', 'ingress', 'xdp']"
sed 's/xfrm policy add/& ptype main/' "$T/batch" | head -n 3000 >"$T/more"
ip -n "$fresh" -batch "$T/more"
wait_for 20 bash -c "'$X' status --netns '$fresh' --json | grep -q '\"policies\": 3001,'"
equal "the maps grow" "$(policies "$fresh")" 3001
stop
"${confined[@]}" "$X" run --instance "$fresh" 2>"$T/daemon.log" &
daemon=$!
tap_pids+=("$daemon")
check "another takes the pins over" wait_for 20 grep -q "mirroring 3001" "$T/daemon.log"
check "... and answers" wait_for 5 [ "$(lookup "$fresh" $flow)" = "block 9" ]
equal "with nothing to complain of" "$(grep -vc mirroring "$T/daemon.log")" 0
fails "another namespace needs more" 1 "Operation not permitted; run as root" \
	"${confined[@]}" "$X" run --netns "$gw" --instance other
for words in "xt$$v --ingress" "xt$$v --egress" "xt$$w --xdp"; do
	check "detach $words" "${confined[@]}" "$X" detach $words --instance "$fresh"
done
stop
for cap in bpf net_admin perfmon; do
	fails "without CAP_${cap^^}: said" 1 "instance other: not permitted; run as root, or as one with" \
		"${confined[@]/+$cap/-$cap}" timeout 5 "$X" run --instance other
done

# --- the unit ---
if ! command -v systemd-analyze >/dev/null; then
	ok "the unit # SKIP no systemd-analyze"
	done_testing
fi
installed() { # VARIABLE...: as make install puts it
	make -s install O="${O:-build}" "$@"
}
check "make install" installed DESTDIR="$T/dest" PREFIX=/usr
equal "... honours DESTDIR" "$(cd "$T/dest" && find . -type f -path '*bin*' -o -name '*.service' | sort | xargs)" \
	"./lib/systemd/system/xspd.service ./lib/systemd/system/xspd@.service ./usr/sbin/xspd"
equal "... and PREFIX" "$(sed -n 's/^ExecStart=//p' "$T/dest/lib/systemd/system/"*.service | xargs)" \
	"/usr/sbin/xspd run /usr/sbin/xspd run --instance %i"
check "make install elsewhere" installed DESTDIR= PREFIX="$T/root" UNITDIR="$T/root/units"
for unit in xspd.service xspd@.service; do
	check "$unit: systemd has nothing to complain of" \
		bash -c "out=\$(systemd-analyze verify --man=no '$T/root/units/${unit/@/@gw}' 2>&1); echo \"\$out\"; [ -z \"\$out\" ]"
	check "... and its exposure is low" systemd-analyze security --offline=true --threshold=25 \
		--no-pager "$T/root/units/$unit"
done
equal "the unit has these capabilities" "$(sed -n 's/^CapabilityBoundingSet=//p' "$T/root/units/xspd.service")" \
	"CAP_BPF CAP_NET_ADMIN CAP_PERFMON"
done_testing
