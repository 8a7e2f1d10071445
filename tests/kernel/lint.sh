#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# xspd lint on the kernel's own policies and SAs, with and without a daemon, and on a snapshot.
. tests/lib/tap.sh

new_ns ns
ids() { field '" ".join(sorted({f["id"] for f in d["findings"]}))'; }
lint() { "$X" lint --netns "$ns" "$@"; }
pol() { ip -n "$ns" xfrm policy add "$@"; }

equal "nothing on an empty SPD" "$(lint)" "0 policies: 0 errors, 0 warnings, 0 infos"
equal "JSON of an empty SPD" "$(lint --json | field 'd["policies"], d["complete"], d["findings"]')" "(0, True, [])"

pol src 10.1.0.0/16 dst 10.2.0.0/16 dir out priority 100 tmpl src 192.0.2.1 dst 192.0.2.2 proto esp reqid 7 mode tunnel
pol src 10.2.0.0/16 dst 10.1.0.0/16 dir in priority 100 tmpl src 192.0.2.2 dst 192.0.2.1 proto esp reqid 7 mode tunnel
lint --json >"$T/json"
equal "exit 1 at a warning" $? 1
equal "orphans: no SA, no key manager" "$(ids <"$T/json")" orphan
equal "each names its policy" \
	"$(field '[(f["severity"], f["policy_count"], f["policies"][0]["reqid"]) for f in d["findings"]]' <"$T/json")" \
	"[('warning', 1, 7), ('warning', 1, 7)]"
lint --fail-on error >/dev/null
equal "no failure below --fail-on" $? 0
lint --ignore orphan >"$T/out"
equal "what is ignored does not fail" "$? $(cat "$T/out")" "0 2 policies: 0 errors, 0 warnings, 0 infos"

nsenter --net="/run/netns/$ns" ip xfrm monitor acquire >/dev/null 2>&1 &
monitor=$!
tap_pids+=("$monitor")
wait_for 5 bash -c "'$X' lint --netns '$ns' --json | grep -q no-sa"
equal "a key manager listens: traps" "$(lint --json | ids)" no-sa
lint --fail-on warning >/dev/null
equal "which is no failure" $? 0
lint --fail-on info >/dev/null
equal "but information" $? 1
kill "$monitor"
wait "$monitor" 2>/dev/null

pol src 0.0.0.0/0 dst 0.0.0.0/0 dir fwd action block priority 900
pol src 10.1.2.0/24 dst 10.2.3.0/24 dir out priority 200
pol src 10.9.0.1/24 dst 10.2.3.0/24 dir out priority 200 action block
equal "all at once" "$(lint --json | ids)" "fwd-blocks-out junk-bits never-wins orphan"
check "text names the reason and the remedy" bash -c \
	"'$X' lint --netns '$ns' | grep -A3 '^error fwd-blocks-out: index [0-9]* blocks forwarded' | grep -q 'remedy: .*policies_fwd_out'"
check "JSON is JSON" bash -c "'$X' lint --netns '$ns' --json | python3 -m json.tool"

"$X" snapshot save "$T/snap" --netns "$ns" >/dev/null
equal "a snapshot, without its SAs" "$("$X" lint --file "$T/snap" --json | ids)" "fwd-blocks-out junk-bits never-wins"
fails "no such snapshot" 1 "lint: $T/none: No such file" "$X" lint --file "$T/none"
echo nonsense >"$T/bad"
fails "a file that is none" 1 "lint: $T/bad: " "$X" lint --file "$T/bad"

# an update in place: only who has watched it knows that the first pair is in order
new_ns ns2
ns=$ns2
pol src 10.0.0.0/24 dst 10.1.0.0/16 dir out priority 100 action block
pol src 10.0.0.0/16 dst 10.1.1.0/24 dir out priority 100
equal "a tie by age, of a dump" "$(lint --json --ignore shadowed-bypass | ids)" tie-by-age
start "$ns"
equal "and of a daemon" "$(lint --json --ignore shadowed-bypass | ids)" tie-by-age
equal "which was asked" "$(lint --json | field 'd["order_from_daemon"]')" True
# the newer one again: a dump shows nothing of that
ip -n "$ns" xfrm policy update src 10.0.0.0/16 dst 10.1.1.0/24 dir out priority 100
wait_for 5 bash -c "'$X' lint --netns '$ns' --json | grep -q ambiguous-tie"
equal "the daemon saw the update" "$(lint --json | ids)" ambiguous-tie
stop >/dev/null

fails "a word too many" 2 "lint: takes no words, not 'now'" "$X" lint now
fails "no such level" 2 "lint: --fail-on fatal: say error, warning, info or never" "$X" lint --fail-on fatal
fails "no such finding" 2 "lint: --ignore spelling: no such finding" "$X" lint --ignore spelling
fails "not root" 1 "lint: read the kernel's policies: Operation not permitted; run as root" \
	setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all "$X" lint
"$X" lint --netns "$ns" >/dev/full 2>"$T/err"
equal "a full disk fails" "$? $(tail -1 "$T/err")" "1 xspd: stdout: No space left on device"
