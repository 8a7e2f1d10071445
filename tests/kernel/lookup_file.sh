#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# xspd lookup --file: the answers of single lookups, line by line.
. tests/lib/tap.sh
new_ns gw
ip -n "$gw" link add name eth0 type veth peer name p0
ip -n "$gw" -batch - <<-'END'
	xfrm policy add src 10.0.0.0/8 dst 10.0.0.0/8 dir out priority 20 index 9
	xfrm policy add src 10.0.0.0/8 dst 10.0.0.0/8 proto udp dport 53 dir out priority 10 action block index 17
	xfrm policy add src 10.0.0.0/8 dst 10.0.0.0/8 dir in priority 10 index 8
	xfrm policy add src 10.0.0.0/8 dst 10.0.0.0/8 dir out ptype sub priority 10 index 25 mark 5
	xfrm policy add src fd00::/8 dst fd00::/8 dir fwd tmpl proto esp reqid 3 mode transport priority 1 index 10
END
start "$gw"
cat >"$T/flows" <<-'END'
	# a comment, and an empty line

	dir out src 10.0.0.1 dst 10.0.0.2 proto udp sport 1 dport 53
	dir out   src 10.0.0.1	dst 10.0.0.2 proto tcp dport 53 # and a remark
	dir out src 10.0.0.1 dst 10.0.0.2 mark 5
	dir in src 10.0.0.1 dst 10.0.0.2 proto icmp type 8
	dir fwd src fd00::1 dst fd00::2 proto ipv6-icmp type 128 dev eth0
	dir out src 192.0.2.1 dst 10.0.0.2 proto gre key 7
	dir out src 10.0.0.1 dst 10.0.0.2 proto udp frag later
END
cat >"$T/want" <<-'END'
	dir out src 10.0.0.1 dst 10.0.0.2 proto udp sport 1 dport 53 -> block block 17
	dir out src 10.0.0.1 dst 10.0.0.2 proto tcp dport 53 -> plain bypass 9
	dir out src 10.0.0.1 dst 10.0.0.2 mark 5 -> plain bypass 25 9
	dir in src 10.0.0.1 dst 10.0.0.2 proto icmp type 8 -> plain bypass 8
	dir fwd src fd00::1 dst fd00::2 proto ipv6-icmp type 128 dev eth0 -> protect protect 10
	dir out src 192.0.2.1 dst 10.0.0.2 proto gre key 7 -> plain no-policy
	dir out src 10.0.0.1 dst 10.0.0.2 proto udp frag later -> plain bypass 9
END
check "a file" "$X" lookup --netns "$gw" --file "$T/flows"
"$X" lookup --netns "$gw" --file "$T/flows" >"$T/got"
check "its answers" diff "$T/want" "$T/got"
"$X" lookup --netns "$gw" --file - <"$T/flows" >"$T/got"
check "standard input" diff "$T/want" "$T/got"
"$X" lookup --netns "$gw" --file "$T/flows" --json >"$T/json"
equal "JSON" "$(field 'len(d), d[2]["flow"], d[2]["index"], d[2]["index2"], d[0]["verdict"]' <"$T/json")" \
	"(7, 'dir out src 10.0.0.1 dst 10.0.0.2 mark 5', 25, 9, 'block')"
equal "JSON of no flows" "$("$X" lookup --netns "$gw" --file /dev/null --json | field 'd')" "[]"

# many: more than a batch, each as a lookup of its own says
python3 - >"$T/many" <<-'END'
	import random
	random.seed(7)
	for i in range(10000):
	    print("dir %s src %s dst 10.0.%d.%d proto %s dport %d mark %d" % (random.choice(["in", "out", "fwd"]),
	        random.choice(["10.3.3.3", "192.0.2.1"]), i // 256, i % 256, random.choice(["tcp", "udp"]),
	        random.choice([53, 80]), random.choice([0, 5])))
END
"$X" lookup --netns "$gw" --file "$T/many" >"$T/got"
equal "an answer for each of 10,000" "$(wc -l <"$T/got")" 10000
bad=0
while read -r line; do
	single=$("$X" lookup --netns "$gw" ${line%% ->*} | awk '/^verdict/ { v = $2 " " $4 }
		/^policy [0-9]/ { v = v " " $2 } /^and then/ { v = v " " $4 } END { print v }')
	[ "$single" = "${line##*-> }" ] || bad=$((bad + 1))
done < <(awk 'NR % 331 == 0' "$T/got")
equal "... as each alone" $bad 0

wrong() { # TEXT RC PATTERN LINE: what came before has been answered
	printf '%s\n' "dir out src 10.0.0.1 dst 10.0.0.2" "" "$4" "dir in src 10.0.0.1 dst 10.0.0.2" |
		"$X" lookup --netns "$gw" --file - >"$T/out" 2>"$T/err"
	equal "$1" "$? $(wc -l <"$T/out") $(wc -l <"$T/err") $(grep -cE "^xspd: lookup: stdin:3: $3" "$T/err")" "$2 1 1 1"
}
wrong "a line that is none" 2 "unknown word 'hello'" "hello"
wrong "an address that is none" 2 "src 10.0.0: give an" "dir out src 10.0.0 dst 10.0.0.2"
wrong "a device that is not there" 1 "dev nodev0: no such device" "dir out src 10.0.0.1 dst 10.0.0.2 dev nodev0"
wrong "too long" 2 "'src' is given twice" "$(printf 'src 10.0.0.1 %.0s' $(seq 100))"
wrong "endless" 2 "line too long" "dir $(printf 'x%.0s' $(seq 3000))"
fails "no such file" 1 "lookup: --file $T/none: No such file" "$X" lookup --netns "$gw" --file "$T/none"
fails "a directory" 1 "lookup: --file $T: Is a directory" "$X" lookup --netns "$gw" --file "$T"
fails "words besides" 2 "takes no words besides, not 'dir'" "$X" lookup --netns "$gw" --file - dir out
fails "with --explain" 2 "does not go with --explain" "$X" lookup --netns "$gw" --file - --explain
fails "--snat alone" 2 "'*--snat goes with --forward" "$X" lookup --netns "$gw" --snat 1.2.3.4 dir out src 10.0.0.1 dst 10.0.0.2
path="--forward src 10.0.0.1 dst 10.0.0.2"
fails "--snat of another family" 2 "--snat fd00::1: not of the family" "$X" lookup --netns "$gw" $path --snat fd00::1
for nat in 10.0.0 10.0.0.1: 10.0.0.1:0 10.0.0.1:65536 '[fd00::1]x' '[fd00::1]:' ''; do
	fails "--snat '$nat'" 2 "--snat .*: give ADDR, ADDR:PORT" "$X" lookup --netns "$gw" $path --snat "$nat"
done
fails "dir with --forward" 2 "dir out: --forward asks fwd, then out" "$X" lookup --netns "$gw" $path dir out
fails "iif without --reverse" 2 "'iif' goes with --reverse" "$X" lookup --netns "$gw" $path iif eth0

# the daemon swaps its maps and stops while we ask
(
	for i in $(seq 60); do cat "$T/many"; done | "$X" lookup --netns "$gw" --file - >"$T/long" 2>"$T/err"
	echo $? >"$T/rc"
) &
seq 1 9000 | awk '{ printf "xfrm policy add src 172.16.%d.%d dst 172.17.0.0/16 dir out\n", $1 / 256, $1 % 256 }' | ip -n "$gw" -batch -
wait $!
equal "growth meanwhile" "$(cat "$T/rc") $(wc -l <"$T/long") $(grep -c . "$T/err")" "0 600000 0"
equal "... changes no answer, or defers" "$(grep -v -e '-> defer' "$T/long" | sort -u | wc -l)" "$(sort -u "$T/got" | wc -l)"
stop
equal "a stopped daemon: deferred" "$("$X" lookup --netns "$gw" --file "$T/flows" | grep -c -e '-> defer doubt$')" 7
done_testing
