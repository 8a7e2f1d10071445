#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# xspd verify: agrees with the kernel on real traffic, and tells when the mirror is wrong.
. tests/lib/tap.sh
new_gateway
in_ns "$client" ping -c 1 -W 2 10.2.0.2 >/dev/null
in_ns "$client" ping -c 1 -W 2 fd02::2 >/dev/null

pol() { ip -n "$gw" xfrm policy add "$@"; }
tmpl="tmpl proto esp reqid 7 mode transport"
pol src 10.1.0.0/24 dst 10.2.0.0/24 proto udp dport 1000 dir fwd priority 10 index 10
pol src 10.1.0.0/24 dst 10.2.0.0/24 proto udp dport 2000 dir fwd priority 10 index 18 action block
# shellcheck disable=SC2086
pol src 10.1.0.0/24 dst 10.2.0.0/24 proto udp dport 3000 dir fwd priority 10 index 26 $tmpl
pol src 10.1.0.0/24 dst 10.2.0.0/24 proto udp dport 4000 dir out priority 10 index 9 action block
pol src 10.1.0.0/24 dst 10.2.0.0/24 proto udp dport 4000 dir fwd priority 10 index 50
pol src 0.0.0.0/0 dst 0.0.0.0/0 proto udp dport 5000 dir in priority 10 index 8 action block
pol src fd01::/64 dst fd02::/64 proto udp dport 2000 dir fwd priority 10 index 34 action block
ip -n "$gw" xfrm policy setdefault in accept fwd block out accept
start "$gw" --lease 60000
"$X" attach c0 --ingress --netns "$gw"
"$X" attach s0 --ingress --netns "$gw"

# traffic: 100 datagrams to each of the ports, over about two seconds
traffic() {
	in_ns "$client" python3 - "$@" <<-'END'
		import socket, sys, time
		for i in range(100):
		    for to in sys.argv[1:]:
		        host, port = to.rsplit("/", 1)
		        s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
		        s.sendto(bytes(100), (host, int(port)))
		    time.sleep(0.02)
	END
}
good="10.2.0.2/1000 10.2.0.2/2000 10.2.0.2/3000 10.2.0.2/4000 10.1.0.1/5000 10.2.0.1/5000 fd02::2/2000 10.2.0.2/6000"
# verify_with OPTIONS -- TRAFFIC...: its output in $T/verify, its exit code
verify_with() {
	local options=() pid rc
	while [ "$1" != -- ]; do options+=("$1"); shift; done
	shift
	"$X" verify --netns "$gw" --seconds $((XSPD_PATIENCE > 1 ? 15 : 6)) "${options[@]}" >"$T/verify" 2>"$T/verify.err" &
	pid=$!
	sleep 1.5
	traffic "$@"
	wait $pid
	rc=$?
	sed 's/^/  # /' "$T/verify" "$T/verify.err"
	return $rc
}
of() { awk -v n="$1" '$2 == n { print $1, $4 + 0, $6 + 0 }' "$T/verify"; }

# shellcheck disable=SC2086
verify_with -- $good
equal "good traffic: exit 0" $? 0
equal "in and fwd blocks: one for one" "$(of XfrmInPolBlock)" "agree 400 400"
# the server's neighbours chatter now and then
equal "default block" "$(of XfrmInNoPols | awk '{ print $1, ($2 >= 100 && $2 < 140 && $3 >= 100) }')" "agree 1"
equal "plaintext that had to be protected" "$(of XfrmInTmplMismatch)" "agree 100 0"
equal "blocked on the way out" "$(of XfrmOutPolBlock | awk '{ print $1, $2, ($3 <= 100) }')" "agree 100 1"
equal "times of use agree" "$(awk '$2 == "use" { print $1 }' "$T/verify")" agree
fexit=$(sed -n 's/^ *fexit *//p' "$T/verify")
case $fexit in
"each lookup compared") equal "each lookup is compared" "$(awk '$2 == "lookups" { print $1, ($3 >= 800), $6 }' "$T/verify")" "agree 1 0" ;;
"not permitted" | "no such function"*) ok "fexit: $fexit" ;;
*) not_ok "fexit: '$fexit'" ;;
esac

# --- enforce: what is dropped early is not expected of the kernel ---
"$X" attach c0 --ingress --mode enforce --netns "$gw"
# shellcheck disable=SC2086
verify_with --json -- $good
equal "enforce: exit 0" $? 0
equal "enforce: agreement" "$(field 'd["agreement"], d["disagree"]' <"$T/verify")" "(True, 0)"
equal "the kernel had to drop little" \
	"$(field 'sum(c["kernel"] for c in d["checks"] if c["check"].startswith("XfrmIn")) < 300' <"$T/verify")" True
"$X" detach c0 --netns "$gw"
"$X" attach c0 --ingress --netns "$gw"

# --- a mirror that is wrong: the daemon sleeps, its lease is long ---
kill -STOP "$daemon"
ip -n "$gw" xfrm policy update src 10.1.0.0/24 dst 10.2.0.0/24 proto udp dport 1000 dir fwd priority 10 action block
verify_with -- 10.2.0.2/1000
equal "a policy that now blocks: exit 1" $? 1
equal "... the kernel blocks more than xspd knows of" "$(of XfrmInPolBlock | cut -d' ' -f1,2)" "disagree 100"
[ "$fexit" != "each lookup compared" ] || equal "... and each of its lookups" \
	"$(awk '$2 == "lookups" { print $1, ($6 >= 100) }' "$T/verify")" "disagree 1"
equal "... one line says so" "$(grep -c '^xspd: verify: .*disagree' "$T/verify.err")" 1
pol src 10.1.0.0/24 dst 10.2.0.0/24 proto udp dport 6000 dir fwd priority 5 index 42
verify_with --json -- 10.2.0.2/6000
equal "a new policy: exit 1" $? 1
equal "... xspd expects a drop by default, and the policy is named" \
	"$(field 'sorted((c["check"], c.get("index")) for c in d["checks"] if c["result"] == "disagree" and c["check"] != "lookups")' <"$T/verify")" \
	"[('XfrmInNoPols', None), ('policy', 42)]"
[ "$fexit" != "each lookup compared" ] || equal "... and each lookup" \
	"$(field '[c["differ"] >= 100 for c in d["checks"] if c["check"] == "lookups"]' <"$T/verify")" "[True]"
kill -CONT "$daemon"
wait_for 10 bash -c "'$X' policy list --netns '$gw' --json | grep -q '\"index\": *42'"
verify_with -- 10.2.0.2/1000 10.2.0.2/6000
equal "awake again: exit 0" $? 0
fails "seconds have a least" 2 "seconds" "$X" verify --seconds 1 --netns "$gw"
done_testing
