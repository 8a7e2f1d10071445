#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# xspd diff: snapshots of a kernel, and what a running daemon answers to the flows that it names.
. tests/lib/tap.sh
new_ns gw
pol() { ip -n "$gw" xfrm policy "$@"; }
save() { "$X" snapshot save "$T/$1" --netns "$gw" >/dev/null; }
diffs() { "$X" diff "$@" --netns "$gw"; }

save empty
pol add src 10.0.0.0/8 dst 10.0.0.0/8 dir out priority 20 tmpl proto esp reqid 1 mode transport
pol add src 10.1.0.0/16 dst 10.2.0.0/16 proto udp dir out priority 10
pol add src fd00::/8 dst fd00::/8 dir fwd priority 10 action block mark 5 mask 0xf if_id 3
save a
equal "a snapshot and itself" "$(diffs "$T/a" "$T/a")" \
	"regions 0: policies removed 0, added 0, changed 0, moved 0"
diffs "$T/empty" "$T/a" >"$T/out"
equal "from nothing" "$(grep ^region "$T/out")" "region dir out src 10.1.0.0/16 dst 10.2.0.0/16 proto udp
region dir out src 10.0.0.0/8 dst 10.0.0.0/8
region dir fwd src fd00::/8 dst fd00::/8 mark 0x5/0xf if_id 0x3
regions 3: policies removed 0, added 3, changed 0, moved 0"
pol delete src 10.1.0.0/16 dst 10.2.0.0/16 proto udp dir out
save b
diffs "$T/a" "$T/b" >"$T/out"
equal "one that is gone: who takes its flows" "$(tr -d '\t' <"$T/out" | grep -E '^(region |before|after)')" \
	"region dir out src 10.1.0.0/16 dst 10.2.0.0/16 proto udp
before plain reason bypass
after  protect reason protect"
start "$gw"
wait_for 5 bash -c "[ \$('$X' status --netns '$gw' --json | grep -c '\"policies\": 2,') = 1 ]"
equal "live" "$(diffs "$T/a" live | tail -n 1)" \
	"regions 1: policies removed 1, added 0, changed 0, moved 0"
example=$(sed -n 's/^\texample //p' "$T/out")
equal "the program says what is foretold of the example: $example" "$(lookup "$gw" $example | cut -d' ' -f1)" protect
equal "JSON" "$(diffs "$T/a" live --json | field '[r["before"]["verdict"] + " " + r["after"]["verdict"] for r in d["regions"]], d["removed"]')" \
	"(['plain protect'], 1)"

# --- all examples of a larger change, asked of the program before and after ---
python3 - >"$T/batch" <<-'END'
	import random
	random.seed(3)
	for i in range(400):
	    s, d = random.choice([8, 16, 24, 32]), random.choice([8, 16, 24, 32])
	    print("xfrm policy update src 10.%d.%d.1/%d dst 10.%d.%d.2/%d dir %s priority %d action %s" % (random.randrange(4),
	        random.randrange(3), s, random.randrange(4), random.randrange(3), d, random.choice(["in", "out", "fwd"]),
	        random.randrange(1, 2000), random.choice(["allow", "block"])))
END
head -n 300 "$T/batch" | ip -n "$gw" -batch -
save c
tail -n 100 "$T/batch" | ip -n "$gw" -batch -
ip -n "$gw" xfrm policy delete src 10.0.0.0/8 dst 10.0.0.0/8 dir out
save d
diffs "$T/c" "$T/d" --json >"$T/json"
python3 - "$T/json" >"$T/flows" <<-'END'
	import json, sys
	for r in json.load(open(sys.argv[1]))["regions"]: print(r["example"])
END
answers() { # of whoever is live, as verdict and selector
	wait_for 5 bash -c "[ \$('$X' status --netns '$gw' --json | grep -c '\"policies\": $(ip -n "$gw" xfrm policy list | grep -c '^src'),') = 1 ]"
	"$X" lookup --netns "$gw" --file "$T/flows" >"$T/got"
	"$X" policy list --netns "$gw" --json >"$T/list"
	python3 - "$T/got" "$T/list" <<-'END'
		import json, sys
		by = {str(p["index"]): p["src"] + " " + p["dst"] for p in json.load(open(sys.argv[2]))}
		for line in open(sys.argv[1]):
		    words = line.split(" -> ")[1].split()
		    print(words[0], by[words[2]] if len(words) > 2 else None)
	END
}
foretold() { # before|after
	python3 - "$T/json" "$1" <<-'END'
		import json, sys
		for r in json.load(open(sys.argv[1]))["regions"]:
		    a = r[sys.argv[2]]
		    print(a["verdict"], a["policy"]["src"] + " " + a["policy"]["dst"] if a["policy"] else None)
	END
}
foretold before >"$T/before"
foretold after >"$T/after"
equal "$(wc -l <"$T/flows") regions, each of a change" "$(($(wc -l <"$T/flows") > 10)) $(paste -d= "$T/before" "$T/after" |
	awk -F= '$1 == $2' | wc -l)" "1 0"
answers >"$T/now"
equal "the program answers all examples as foretold after" "$(diff "$T/after" "$T/now" | grep -c '^[<>]')" 0
ip -n "$gw" xfrm policy flush
"$X" snapshot load "$T/c" --netns "$gw" >/dev/null
answers >"$T/then"
equal "... and with the older snapshot loaded, as before" "$(diff "$T/before" "$T/then" | grep -c '^[<>]')" 0

fails "no such file" 1 "diff: $T/none: No such file" "$X" diff "$T/none" "$T/a"
echo hello >"$T/foreign"
fails "not a snapshot" 1 "diff: $T/foreign: " "$X" diff "$T/foreign" "$T/a"
fails "one alone" 2 "give two" "$X" diff "$T/a"
fails "live without a daemon" 1 "no pins in .*start 'xspd run'" "$X" diff "$T/a" live --instance "xt$$none"
stop
fails "live of a stopped daemon" 1 "diff: live: the mirror cannot be relied upon \(doubt\)" "$X" diff live "$T/a" --netns "$gw"
done_testing
