#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What xspd run --metrics serves: read by promtool and a real Prometheus, and by a real browser. The
# dashboard names nothing that is not there.
. tests/lib/tap.sh
. tests/lib/wire.sh
new_ns mon # the server listens where it was started, not in the namespace that is mirrored
serve() {
	nsenter --net="/run/netns/$mon" "$X" run --netns "$gw" "$@" 2>"$T/daemon.log" &
	daemon=$!
	tap_pids+=("$daemon")
	wait_for 20 grep -q mirroring "$T/daemon.log"
}
get() { in_ns "$mon" curl -sS --max-time 10 "$@"; }
metric() { get http://127.0.0.1:9099/metrics | awk -v m="$1" '$1 == m { print $2 }'; }
query() { get -G http://127.0.0.1:9090/api/v1/query --data-urlencode "query=$1"; }
value() { query "$1" | field '" ".join(r["value"][1] for r in d["data"]["result"])'; }

# a name to be escaped, where packets go out
ip -n "$gw" link set s0 down
ip -n "$gw" link set s0 name 'a<b&"c'
ip -n "$gw" link set 'a<b&"c' up
ip -n "$gw" neigh replace 10.2.0.2 lladdr "$server_mac" dev 'a<b&"c' nud permanent
pol() { ip -n "$gw" xfrm policy add "$@"; }
pol src 10.1.0.0/24 dst 10.2.0.0/24 proto udp dport 2000 dir fwd priority 10 index 10 action block
pol src 10.1.0.0/24 dst 10.2.0.0/24 dir out priority 20 index 9
pol src 10.1.0.0/24 dst 10.2.0.0/24 proto udp dport 1000 dev 'a<b&"c' dir fwd priority 30 index 18
for i in $(seq 1 40); do echo "xfrm policy add src 10.1.0.0/24 dst 10.3.0.$i dir out priority 5"; done >"$T/batch"
# the kernel's own lookup suffers from this: one /16 over many hosts
for i in $(seq 1 300); do echo "xfrm policy add src 10.5.$((i / 200)).$((i % 200)) dst 10.1.0.0/24 dir in priority 5"; done >>"$T/batch"
echo "xfrm policy add src 10.5.0.0/16 dst 10.1.0.0/24 dir in priority 9" >>"$T/batch"
ip -n "$gw" -batch "$T/batch"

fails "no such address" 2 "run: --metrics 10.0.0.1: give \[ADDR:\]PORT, or unix:PATH" "$X" run --metrics 10.0.0.1
fails "no such port" 2 "run: --metrics 70000: give" "$X" run --metrics 70000
fails "an address of others" 1 "run: --metrics 192.0.2.1:9099: Cannot assign" "$X" run --metrics 192.0.2.1:9099
serve --metrics 9099 --top 43
fails "a port in use" 1 "run: --metrics 9099: Address already in use; give another" \
	in_ns "$mon" "$X" run --netns "$gw" --instance other --metrics 9099
attach c0 --ingress
send plain blocked "blocked*2"
wait_for 5 bash -c "[ \$('$X' status --netns '$gw' --json | grep -c '\"samples\": 0,') = 0 ]"

# --- the text ---
get http://127.0.0.1:9099/metrics >"$T/metrics"
promtool check metrics <"$T/metrics" >"$T/out" 2>&1
equal "promtool finds nothing to say" "$?:$(cat "$T/out")" "0:"
equal "per direction, hook and reason" "$(metric 'xspd_packets_total{direction="fwd",hook="ingress",reason="block"}')" 3
equal "per policy" "$(
	grep -c '^xspd_policy_packets_total{index="10",.*} 3$' "$T/metrics")" 1
equal "labels are escaped" "$(grep -c 'xspd_policy_packets_total{index="18",.*dev a<b&\\"c"} 1$' "$T/metrics")" 1
equal "all policies, as many as asked for" "$(grep -c '^xspd_policy_packets_total' "$T/metrics")" 43
equal "the mirror" "$(awk '/^xspd_policies/ { n += $2 } END { print n }' "$T/metrics")" 344
equal "doubt, by bit" "$(grep -c '^xspd_doubt{bit="[A-Z_]*"} 0$' "$T/metrics")" 7
equal "the kernel's counters of that namespace" \
	"$(metric 'xspd_xfrm_stat_total{counter="XfrmInPolBlock"}')" "$(in_ns "$gw" awk '/XfrmInPolBlock/ { print $2 }' /proc/net/xfrm_stat)"
equal "... which has dropped" "$(metric 'xspd_xfrm_stat_total{counter="XfrmInPolBlock"}')" 3
before=$(metric xspd_mirror_lag_seconds_count)
pol src 10.9.0.0/24 dst 10.2.0.0/24 dir in priority 20
wait_for 5 bash -c "'$X' status --netns '$gw' --json | grep -q '\"policies\": 345,'"
equal "the lag is counted" "$(($(metric xspd_mirror_lag_seconds_count) > before))" 1
equal "changes" "$(metric 'xspd_changes_total{change="add"}')" 1
get -H 'Accept: application/openmetrics-text; version=1.0.0' -D "$T/head" http://127.0.0.1:9099/metrics >"$T/open"
equal "OpenMetrics for who asks for it" "$(grep -ci '^content-type: application/openmetrics-text; version=1.0.0' "$T/head") $(
	tail -1 "$T/open") $(grep -c '^# TYPE xspd_packets counter' "$T/open")" "1 # EOF 1"
equal "read-only" "$(get -o /dev/null -w '%{http_code}' -X POST http://127.0.0.1:9099/metrics) $(
	get -o /dev/null -w '%{http_code}' http://127.0.0.1:9099/etc) $(
	get -o /dev/null -w '%{http_code}' -I http://127.0.0.1:9099/)" "405 404 200"
head -c 300000 /dev/zero >"$T/body"
equal "... also with a large body" "$(get -o /dev/null -w '%{http_code}' -H Expect: --data-binary "@$T/body" http://127.0.0.1:9099/) $(
	get -o /dev/null -w '%{http_code}' -X GET -H Expect: --data-binary "@$T/body" http://127.0.0.1:9099/)" "405 200"
# more clients than there are places, none of which comes to its end
nsenter --net="/run/netns/$mon" python3 -c 'import socket, time
s = [socket.create_connection(("127.0.0.1", 9099)) for i in range(24)]
for x in s: x.sendall(b"GET /metrics HTTP/1.1\r\n")
print("ready", flush=True)
time.sleep(60)' >"$T/slow" &
slow=$!
tap_pids+=("$slow")
wait_for 10 grep -q ready "$T/slow"
equal "clients that say nothing do not keep Prometheus out" "$(get -o /dev/null -w '%{http_code}' http://127.0.0.1:9099/metrics)" 200
kill "$slow"

# --- Prometheus ---
cat >"$T/prometheus.yml" <<-END
	global: { scrape_interval: 1s }
	scrape_configs: [{ job_name: xspd, static_configs: [{ targets: ['127.0.0.1:9099'] }] }]
END
nsenter --net="/run/netns/$mon" prometheus --config.file="$T/prometheus.yml" --storage.tsdb.path="$T/tsdb" \
	--web.listen-address=127.0.0.1:9090 --log.level=error >"$T/prometheus.log" 2>&1 &
prometheus=$!
tap_pids+=("$prometheus")
scraped() { [ "$(value 'up{job="xspd"}')" = 1 ]; }
check "Prometheus scrapes it" wait_for 30 scraped
equal "and has what we have" "$(value 'xspd_packets_total{direction="fwd",hook="ingress",reason="block"}')" 3
send "blocked*5"
eight() { [ "$(value 'xspd_policy_packets_total{index="10"}')" = 8 ]; }
check "and what comes" wait_for 10 eight
get http://127.0.0.1:9090/api/v1/label/__name__/values >"$T/names"
python3 - dist/grafana-xspd.json "$T/names" >"$T/exprs" 2>"$T/missing" <<-'END'
	import json, re, sys
	board, names = json.load(open(sys.argv[1])), set(json.load(open(sys.argv[2]))["data"])
	exprs = [t["expr"] for p in board["panels"] for t in p["targets"]]
	used = {n for e in exprs for n in re.findall(r"xspd_\w+", e)}
	print("\n".join(e.replace("$__rate_interval", "10s").replace("$instance", ".+") for e in exprs))
	sys.exit("missing: %s" % (used - names) if used - names or len(used) < 10 else 0)
END
equal "the dashboard names only what is there" "$?:$(cat "$T/missing")" "0:"
bad=$(while read -r expr; do query "$expr" | grep -q '"status":"success"' || echo "$expr"; done <"$T/exprs")
equal "... and Prometheus understands all of it" "$bad" ""
kill "$prometheus"
wait "$prometheus" 2>/dev/null

# --- the page ---
get http://127.0.0.1:9099/ >"$T/page"
equal "the page says how it is" "$(grep -c 'In step with the kernel' "$T/page") $(grep -c '<td>out<td>IPv4<td><code>src /24 dst /32</code><td class="n">40<' "$T/page")" "1 1"
equal "... what slows the kernel down" "$(grep -Ec 'src 10.5.0.0/16 pulls 30[0-9] policies into one list.*[0-9] us' "$T/page")" 1
equal "... escaped" "$(grep -c 'dev a&lt;b&amp;&quot;c' "$T/page") $(grep -c 'a<b' "$T/page")" "1 0"
equal "... and loads nothing" "$(grep -Eoi '(src|href|url)[=(][^ >]*' "$T/page" | xargs)" "href=/metrics"
nsenter --net="/run/netns/$mon" timeout 100 chromium --headless --no-sandbox --disable-gpu --hide-scrollbars \
	--user-data-dir="$T/chromium" --window-size=1100,800 --screenshot="$T/page.png" http://127.0.0.1:9099/ >"$T/out" 2>&1
equal "a browser draws it" "$(head -c 4 "$T/page.png" | tail -c 3) $(($(stat -c %s "$T/page.png") > 20000))" "PNG 1"
[ -z "${XSPD_KEEP_SCREENSHOT:-}" ] || cp "$T/page.png" "$XSPD_KEEP_SCREENSHOT"

# --- fewer, and over a unix socket ---
stop
equal "it ends in good order" "$?" 0
serve --metrics "unix:$T/socket" --top 5
u() { curl -sS --max-time 10 --unix-socket "$T/socket" http://xspd/metrics; }
equal "a unix socket; no more policies than asked for" "$(u | grep -c '^xspd_policy_bytes_total')" 5
equal "... the busiest" "$(u | grep -c '^xspd_policy_packets_total{index="10"')" 1
kill -KILL "$daemon"
wait "$daemon" 2>/dev/null
serve --metrics "unix:$T/socket"
equal "what a killed one left is no obstacle" "$(u | grep -c '^xspd_up 1$')" 1
stop
equal "nothing is left of it" "$([ -e "$T/socket" ] && echo there)" ""
done_testing
