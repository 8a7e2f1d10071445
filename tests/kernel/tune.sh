#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# xspd tune on the kernel's own policies: what it says, what it applies, what it refuses.
. tests/lib/tap.sh

MANY=1500
new_ns ns
tune() { "$X" tune --netns "$ns" "$@"; }
bits() { ip -n "$ns" -s -s xfrm policy count | awk '/thresholds/ { printf "%s %s ", $5, $7 }'; }

check "an empty SPD" tune
equal "JSON of an empty SPD" "$(tune --json | field 'd["policies"], d["change"], d["now"]["cliffs"]')" "(0, False, [])"
check "nothing to apply" tune --apply

# the pool of a gateway: clients below the network that catches the others
{
	echo "xfrm policy add src 0.0.0.0/0 dst 10.77.0.0/16 dir out priority 391807 action block"
	for ((i = 1; i < MANY; i++)); do
		echo "xfrm policy add src 0.0.0.0/0 dst 10.77.$((i >> 8)).$((i & 255))/32 dir out priority 383615" \
			"tmpl src 192.0.2.1 dst 192.0.2.2 proto esp reqid $i mode tunnel"
	done
} >"$T/pool"
ip -n "$ns" -batch "$T/pool"

tune --json >"$T/json"
equal "one list has them all" "$(field 'd["now"]["sides"][0]["longest"], d["now"]["cliff_count"]' <"$T/json")" "($MANY, 1)"
equal "the cause is named" "$(field '(lambda c: (c["cause"], c["policies"][0]["dst"], c["policy_count"]))(d["now"]["cliffs"][0])' <"$T/json")" \
	"('cover', '10.77.0.0/16', 1)"
equal "thresholds help" "$(field 'd["change"], d["best"]["rbits4"], d["best"]["sides"][0]["longest"], d["now"]["cliffs"][0]["remedy"]' <"$T/json")" \
	"(True, 32, 1, 'thresholds')"
check "text says it" bash -c "'$X' tune --netns $ns | grep -q '^cliff: out inet: dst 10.77.0.0/16 pulls $MANY policies into one list: about .* per packet'"
check "and what strongSwan wants" bash -c "'$X' tune --netns $ns | grep -q spdh_thresh"
equal "nothing was changed" "$(bits)" "32 32 128 128 "

ip -n "$ns" xfrm state flush
check "apply" tune --apply --max-stall 20000 --json
tune --json --hthresh4 32/32 >"$T/json"
equal "the kernel has them" "$(bits)" "0 32 128 128 "
equal "no SA was made by measuring" "$(ip -n "$ns" xfrm state | wc -l)" 0
equal "the model agrees" "$(field 'd["now"]["sides"][0]["hashed"], d["best"]["sides"][0]["longest"]' <"$T/json")" "($((MANY - 1)), $MANY)"

fails "the way back is refused: it takes too long" 1 "tune: the rebuild would keep every lookup waiting for about [0-9]+ ms, more than --max-stall 1$" \
	bash -c "'$X' tune --netns $ns --hthresh4 32/32 --apply --max-stall 1 >/dev/null"
equal "and not taken" "$(bits)" "0 32 128 128 "
"$X" tune --netns "$ns" --hthresh4 32/32 --apply --max-stall 60000 --json >"$T/json" 2>"$T/err"
equal "slower: restored" "$? $(grep -c 'the old thresholds are back' "$T/err") $(field 'd["applied"]["restored"]' <"$T/json")" "1 1 True"
equal "they are" "$(bits)" "0 32 128 128 "
check "unless it is asked for" tune --hthresh4 32/32 --apply --max-stall 60000 --keep
equal "back" "$(bits)" "32 32 128 128 "

# marks on everything: no threshold tells them apart
new_ns marks
ns=$marks
for ((i = 1; i <= 400; i++)); do
	echo "xfrm policy add src 0.0.0.0/0 dst 0.0.0.0/0 dir out mark $i mask 0xffffffff priority 399999 tmpl src 192.0.2.1 dst 192.0.2.2 proto esp reqid $i mode tunnel"
done >"$T/vti"
ip -n "$ns" -batch "$T/vti"
equal "marks" "$(tune --json | field '(lambda c: (c["cause"], c["length"], d["change"], "if_id" in c["remedy"]))(d["now"]["cliffs"][0])')" \
	"('marks', 400, False, True)"

# an update in place, seen by a daemon: a rebuild would put it elsewhere
new_ns ties
ns=$ties
ip -n "$ns" xfrm policy add src 10.0.0.0/24 dst 10.1.0.0/16 dir out priority 100 action block
ip -n "$ns" xfrm policy add src 10.0.0.0/16 dst 10.1.1.0/24 dir out priority 100
start "$ns"
ip -n "$ns" xfrm policy update src 10.0.0.0/16 dst 10.1.1.0/24 dir out priority 100
wait_for 5 bash -c "'$X' lint --netns '$ns' --json | grep -q ambiguous-tie"
fails "ties are not reordered unasked" 1 "tune: 1 policies overlap others of equal priority" \
	bash -c "'$X' tune --netns $ns --hthresh4 16/16 --apply >/dev/null"
equal "nothing was changed for them" "$(bits)" "32 32 128 128 "
check "asked" tune --hthresh4 16/16 --apply --accept-ties --keep
equal "set" "$(bits)" "16 16 128 128 "
stop >/dev/null

"$X" snapshot save "$T/snap" --netns "$ns" >/dev/null
equal "a snapshot" "$("$X" tune --file "$T/snap" --json | field 'd["policies"], d["now"]["lbits4"]')" "(2, 32)"
fails "apply to a snapshot" 2 "tune: --apply is for the kernel's own policies" "$X" tune --file "$T/snap" --apply
fails "bits out of range" 2 "tune: --hthresh4 33/0: give LBITS/RBITS, each from 0 to 32" "$X" tune --hthresh4 33/0
fails "bits without a slash" 2 "tune: --hthresh6 64: give LBITS/RBITS" "$X" tune --hthresh6 64
fails "keep without apply" 2 "tune: --keep and --accept-ties are for --apply" "$X" tune --keep
fails "a word too many" 2 "tune: takes no words" "$X" tune now
