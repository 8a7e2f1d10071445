#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# xspd lookup --with: what it foretells of a batch is what is true once `ip -batch` has done it, and it
# refuses the line that the kernel refuses.
. tests/lib/tap.sh
SEED=${SEED:-1}
new_ns gw
ip -n "$gw" link add name eth0 type veth peer name p0
start "$gw"
policies_known() { "$X" policy list --netns "$gw" --json | field '" ".join(str(p["index"]) for p in d)'; }
settled() {
	wait_for 10 bash -c "[ \$('$X' status --netns '$gw' --json | grep -c '\"policies\": $(ip -n "$gw" xfrm policy list | grep -c '^src'),') = 1 ]"
	sleep 0.1
}
# same FORETOLD TRUE KNOWN: line by line; the number of a policy that is new without one is free
same() {
	python3 - "$@" <<-'END'
		import sys
		known, bad, named, deferred = set(sys.argv[3].split()), 0, 0, 0
		a, b = open(sys.argv[1]).read().splitlines(), open(sys.argv[2]).read().splitlines()
		assert len(a) == len(b) and a
		def parts(line):
		    flow, answer = line.split(" -> ")
		    w = answer.split()
		    # numbers below are the batch's own or old ones, else chosen by whoever chooses
		    return flow, w[:2], [i if i in known else "new" for i in w[2:]]
		for x, y in zip(a, b):
		    named += len(parts(y)[2]) > 0
		    deferred += parts(y)[1][0] == "defer"
		    if parts(x) != parts(y):
		        bad += 1
		        print("  # foretold %s\n  # true     %s" % (x, y), file=sys.stderr)
		print(bad, named, deferred)
	END
}
wrong=0 named=0 rounds=0 refused=0 lines=0
for round in $(seq "$SEED" $((SEED + 15))); do
	known=$(policies_known)
	python3 tests/kernel/dry.py batch "$round" $known >"$T/batch"
	python3 tests/kernel/dry.py flows "$round" >"$T/flows"
	"$X" lookup --netns "$gw" --with "$T/batch" --file "$T/flows" >"$T/foretold" 2>"$T/err"
	at=$(sed -n "s|^xspd: lookup: $T/batch:\([0-9]*\): the kernel would refuse.*|\1|p" "$T/err")
	# by itself each: of xfrm lines -batch does not say at which it gave up
	nr=0 failed_at=
	while read -r line; do
		nr=$((nr + 1))
		ip -n "$gw" $line 2>"$T/ip" && continue
		failed_at=$nr
		break
	done <"$T/batch"
	if [ "$at" != "$failed_at" ] || { [ -s "$T/err" ] && [ -z "$at" ]; }; then
		not_ok "round $round: refused at the same line"
		sed 's/^/  # /' "$T/err" "$T/ip"
		sed -n "${at:-${failed_at:-1}}p" "$T/batch"
		exit 1
	fi
	lines=$((lines + ${at:-$(wc -l <"$T/batch")}))
	settled
	if [ -n "$at" ]; then # the lines before it are done
		refused=$((refused + 1))
		continue
	fi
	rounds=$((rounds + 1))
	# numbers that were asked for are known, too
	given=$(grep -o ' index [0-9]*' "$T/batch" | awk '{ print $2 }')
	"$X" lookup --netns "$gw" --file "$T/flows" >"$T/true"
	result=($(same "$T/foretold" "$T/true" "$known $given"))
	wrong=$((wrong + ${result[0]:-1000})) named=$((named + ${result[1]:-0}))
done
equal "$lines lines in $rounds batches and $refused that were refused: answers that differ" $wrong 0
equal "... and there was something to tell ($named named)" \
	"$((named > 200)) $((refused > 2)) $((rounds > 3))" "1 1 1"

# --- what is told ---
ip -n "$gw" xfrm policy flush
ip -n "$gw" xfrm policy flush ptype sub
for d in in out fwd; do ip -n "$gw" xfrm policy setdefault $d accept; done
ip -n "$gw" xfrm policy add src 10.0.0.0/8 dst 10.0.0.0/8 dir out priority 10 index 9
settled
with() { # CHANGES WORDS...
	local changes=$1
	shift
	printf '%b' "$changes" | "$X" lookup --netns "$gw" --with - "$@"
}
flow="dir out src 10.0.0.1 dst 10.0.0.2 proto udp dport 53"
add="xfrm policy add dir out src 10.0.0.0/8 dst 10.0.0.0/8"
equal "a policy that is new: its line, as its number is not known" \
	"$(with "# first\n$add proto udp priority 5 action block\n" $flow | grep -o '^policy.*')" \
	"policy 17 (new, by line 2; the kernel chooses its number)"
equal "JSON" "$(with "$add proto udp priority 5\n" $flow --json | field 'd["policy"]["line"], d["verdict"]')" "(1, 'plain')"
equal "one that is not" "$(with "\n" $flow --json | field 'd["policy"]["line"], d["policy"]["index"]')" "(0, 9)"
equal "--explain, --forward and --reverse" "$(with "$add proto udp priority 5\n" --forward ${flow#dir out} --explain --reverse |
	grep -c -e '^match 17: governs' -e '^fate there: plain' -e '^fate back: plain')" 4
equal "nothing was changed" "$(policies "$gw")" 1
refuses() { # TEXT PATTERN LINE
	printf '%s\n' "xfrm policy flush ptype sub" "$3" >"$T/batch"
	fails "$1" 1 "lookup: $T/batch:2: $2" "$X" lookup --netns "$gw" --with "$T/batch" $flow
}
refuses "what is there" "the kernel would refuse it: there is such a policy" "$add"
refuses "what is not there" "the kernel would refuse it: there is no such policy" "xfrm policy delete src 10.1.0.0/16 dst 10.0.0.0/8 dir out"
refuses "an index of another direction" "the kernel would refuse it: template, index and dir" "$add mark 1 index 8"
refuses "another command" "write 'xfrm policy' and add" "link set eth0 up"
refuses "an abbreviation" "write 'xfrm policy' and add" "x p a src 10.0.0.0/8 dir out"
refuses "a security context" "not understood: ctx" "$add ctx system_u:object_r:ipsec_spd_t:s0"
refuses "an offload" "not understood: offload" "$add offload packet dev eth0"
refuses "no direction" "dir is missing" "xfrm policy add src 10.0.0.0/8 dst 10.0.0.0/8"
refuses "a selector in two pieces" "ip takes a selector in one piece: dst" "xfrm policy add src 10.0.0.0/8 dir out dst 10.0.0.0/8"
refuses "ports of any protocol" "ip takes ports with tcp" "$add proto esp sport 4"
refuses "a device that is not there" "dev nodev0: no such device" "xfrm policy add src 10.0.0.0/8 dev nodev0 dir out"
fails "no such file" 1 "lookup: --with $T/none: No such file" "$X" lookup --netns "$gw" --with "$T/none" $flow
fails "two files on standard input" 2 "cannot both read standard input" "$X" lookup --netns "$gw" --with - --file -

# --- many flows over many policies go through tables: the same answers as the reference's ---
seq 1 3000 | awk '{ printf "xfrm policy update src 10.0.0.0/%d dst 10.%d.%d.0/24 dir out priority %d\n", 8 + $1 % 9, $1 / 256, $1 % 256, $1 % 7 }' >"$T/batch"
python3 - >"$T/flows" <<-'END'
	import random
	for i in range(20000): print("dir out src 10.0.0.1 dst 10.%d.%d.9" % (random.randrange(13), random.randrange(256)))
END
"$X" lookup --netns "$gw" --with "$T/batch" --file "$T/flows" >"$T/many"
head -n 600 "$T/flows" | "$X" lookup --netns "$gw" --with "$T/batch" --file - >"$T/few"
check "tables and the reference agree" bash -c "head -n 600 '$T/many' | diff - '$T/few'"
equal "... on many policies" "$(($(awk '{ print $NF }' "$T/many" | sort -u | wc -l) > 2000))" 1
stop
equal "a stopped daemon: deferred" "$(with "\n" $flow | head -n 1)" "verdict defer reason doubt (the kernel decides)"
done_testing
