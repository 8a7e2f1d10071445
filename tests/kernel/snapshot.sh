#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# xspd snapshot: save here, load there; what is refused, and how it is told.
. tests/lib/tap.sh
new_ns a
new_ns b
new_ns c
F=$T/spd.snap

# list NS: as ip sees it, without use and age
list() { ip -n "$1" -d xfrm policy | grep -v 'add 20'; }

for i in $(seq 1 250); do
	echo "xfrm policy add src 10.1.0.9/16 dst 10.9.$i.0/24 proto udp dport $i dir out priority 10 tmpl src 1.1.1.1 dst 2.2.2.2 proto esp reqid $i mode tunnel tmpl proto ah reqid 8 mode transport"
	echo "xfrm policy add src 10.9.$i.0/24 dst 10.1.0.0/16 dir fwd priority $((i % 9)) mark $i mask 0xff if_id $i action block"
	echo "xfrm policy add src 2001:db8:$i::/48 dst ::/0 dir in ptype sub priority 7 tmpl proto esp level use"
done >"$T/batch"
ip -n "$a" -batch "$T/batch"
ip -n "$a" xfrm policy update src 10.1.0.9/16 dst 10.9.7.0/24 proto udp dport 7 dir out priority 10

# --- there and back ---
umask 0
equal "save says what it saved" "$("$X" snapshot save "$F" --netns "$a")" \
	"$F: 750 policies, $(stat -c %s "$F") bytes"
equal "the file is for its owner only" "$(stat -c %a "$F")" 600
equal "load says what it loaded" "$("$X" snapshot load "$F" --netns "$b")" "$F: 750 policies loaded"
equal "both namespaces list the same, in the same order" "$(list "$b")" "$(list "$a")"
equal "a second load finds everything there" "$("$X" snapshot load "$F" --netns "$b" --json |
	field 'd["policies"], d["policies_unchanged"], d["refused"], d["left"]')" "(0, 750, [], 0)"
ip -n "$b" xfrm policy flush ptype main
ip -n "$b" xfrm policy add src 10.9.3.0/24 dst 10.1.0.0/16 dir fwd priority 77 mark 3 mask 0xff if_id 3
check "a load over something else" "$X" snapshot load "$F" --netns "$b"
equal "... makes them equal again" "$(list "$b" | grep -c '^src') $(list "$b" | sha1sum)" \
	"$(list "$a" | grep -c '^src') $(list "$a" | sha1sum)"
check "an empty SAD is saved, too" "$X" snapshot save "$T/sa.snap" --states --with-keys --netns "$a"
check "... and loaded" "$X" snapshot load "$T/sa.snap" --states --netns "$b"
before=$(list "$b" | sha1sum)

# --- files that are not taken ---
fails "no such file" 1 "No such file" "$X" snapshot load "$T/none" --netns "$b"
fails "a foreign file" 1 "not a snapshot; nothing is loaded" "$X" snapshot load "$T/batch" --netns "$b"
fails "a device" 1 "not a snapshot" "$X" snapshot load /dev/zero --netns "$b"
head -c 5000 "$F" >"$T/cut"
fails "a truncated file" 1 "truncated; nothing is loaded" "$X" snapshot load "$T/cut" --netns "$b"
cp "$F" "$T/bad"
printf '\xff' | dd of="$T/bad" bs=1 seek=70000 conv=notrunc status=none
fails "a corrupted file" 1 "corrupted \(checksum of the body\); nothing" "$X" snapshot load "$T/bad" --netns "$b"
cp "$F" "$T/bad"
printf '\x02' | dd of="$T/bad" bs=1 seek=12 conv=notrunc status=none
fails "another version" 1 "format version 2, this xspd reads 1" "$X" snapshot load "$T/bad" --netns "$b"
fails "a file without SAs, asked for SAs" 1 "saved without --states" "$X" snapshot load "$F" --states --netns "$b"
equal "none of them changed anything" "$(list "$b" | sha1sum)" "$before"

# --- usage ---
fails "no verb" 2 "save FILE" "$X" snapshot "$F"
fails "no file" 2 "save FILE" "$X" snapshot save
fails "keys of what?" 2 "lacks --states" "$X" snapshot save "$F" --with-keys
fails "keys are not asked of a load" 2 "is for save" "$X" snapshot load "$F" --with-keys --states
fails "no such namespace" 1 "no such namespace" "$X" snapshot save "$F" --netns "no$$"
fails "no such directory" 1 "No such file or directory" "$X" snapshot save "$T/no/dir" --netns "$a"
fails "a device is not replaced by a file" 1 "not a file" "$X" snapshot save /dev/null --netns "$a"
chmod 711 "$T"
install -m 644 "$F" "$T/public"
fails "not root" 1 "run as root" setpriv --reuid 65534 --regid 65534 --clear-groups \
	"$X" snapshot load "$T/public"
equal "nothing is left behind" "$(ls "$T"/*.?????? 2>/dev/null)" ""

# --- refusals: SAs that this kernel does not want, in a file of our own making ---
python3 - "$F" "$T/made.snap" "$T/nokeys.snap" <<'EOF'
import struct, sys, zlib
old = open(sys.argv[1], "rb").read()
body = old[64:]
def state(spi, name):
    info = bytearray(224)
    info[56:60] = bytes([2, 2, 2, 2])		# id.daddr
    info[72:80] = struct.pack("!I", spi) + bytes([50, 0, 0, 0])	# id.spi, id.proto
    info[80:84] = bytes([1, 1, 1, 1])		# saddr
    info[40:42] = info[212:214] = struct.pack("=H", 2)	# family of the selector, and its own
    algo = name.encode().ljust(64, b"\0") + struct.pack("=I", 128) + b"SECRETSECRETSECR"
    attr = struct.pack("=HH", 4 + len(algo), 2) + algo	# XFRMA_ALG_CRYPT
    return struct.pack("=IHHII", 16 + 224 + len(attr), 16, 0, 0, 0) + bytes(info) + attr
def write(path, states, flags):
    b = b"".join(states) + body
    head = b"xspdsnap" + struct.pack("=IIIIIIQQIII", 0x01020304, 1, flags, len(states), 750,
                                     zlib.crc32(b), len(b), 0, 0, 0, 0)
    open(path, "wb").write(head + struct.pack("=I", zlib.crc32(head)) + b)
states = [state(0x100 + i, "no(such-cipher)") for i in range(2)]
write(sys.argv[2], states, 3)
write(sys.argv[3], states, 1)
EOF
"$X" snapshot load "$T/made.snap" --states --netns "$c" >"$T/out" 2>"$T/err"
equal "refused SAs make the load fail" "$?" 1
equal "... each is told with the kernel's reason" "$(grep -Ec '^xspd: snapshot: SA src 1.1.1.1 dst 2.2.2.2 proto esp spi 0x0000010[01] reqid 0: .+: .*CRYPT algorithm not found' "$T/err")" 2
equal "... and costs nothing but itself" "$(cat "$T/out")" \
	"$T/made.snap: 750 policies and 0 SAs loaded, 0 policies and 2 SAs refused"
equal "... in JSON, too" "$("$X" snapshot load "$T/made.snap" --states --netns "$c" --json 2>&1 |
	field 'len(d["refused"]), d["refused"][1]["kind"], d["policies_unchanged"]')" "(2, 'state', 750)"
"$X" snapshot load "$T/nokeys.snap" --states --netns "$c" >"$T/out" 2>"$T/err"
equal "SAs saved without keys are refused, and say why" "$? $(grep -c "saved without its keys; use 'save --with-keys'" "$T/err")" "1 2"
"$X" snapshot load "$T/made.snap" --netns "$c" >"$T/out" 2>"$T/err"
equal "SAs that are not asked for stay out" "$? $(grep -c "its 2 SAs stay out without --states" "$T/err")" "0 1"

# --- many: progress, interruption, repetition ---
for i in $(seq 0 119); do for j in $(seq 0 249); do
	echo "xfrm policy add src 10.1.0.0/16 dst 10.$i.$j.0/24 dir out priority 100"
done; done >"$T/batch"
ip -n "$a" xfrm policy flush ptype main
ip -n "$a" xfrm policy flush ptype sub
ip -n "$a" -batch "$T/batch"
check "30,000 policies are saved" "$X" snapshot save "$F" --netns "$a"
ip -n "$b" xfrm policy flush ptype main
ip -n "$b" xfrm policy flush ptype sub
script -qec "'$X' snapshot load '$F' --netns '$b'" /dev/null </dev/null >"$T/out" 2>&1
equal "a terminal is shown the progress" "$(grep -c 'xspd: snapshot: [0-9]* of 30000' "$T/out")" 1
equal "... and all is loaded" "$(list "$b" | grep -c '^src')" 30000
"$X" snapshot load "$F" --netns "$c" >"$T/out" 2>"$T/err"
equal "... but nobody else" "$(wc -c <"$T/err")" 0
ip -n "$c" xfrm policy flush ptype main
# interrupted at some moment between its first and its last entry
for delay in 0.02 0.03 0.04 0.01 0.05 0.06 0.08 0.1; do
	"$X" snapshot load "$F" --netns "$c" >"$T/out" 2>"$T/err" &
	sleep $delay
	kill -INT $! 2>/dev/null
	wait $!
	rc=$?
	have=$(list "$c" | grep -c 'dst 10.*\.0/24')
	[ "$rc" = 1 ] && [ "$have" -gt 0 ] && [ "$have" -lt 30000 ] && break
	ip -n "$c" xfrm policy flush ptype main
done
equal "an interrupted load says what it did" "$rc $(grep -Ec "interrupted with [0-9]+ entries left; load $F again" "$T/err")" "1 1"
equal "... and did that" "$(sed -E 's/.*: ([0-9]+) policies loaded.*/\1/' "$T/out")" "$have"
check "... and is finished by another" "$X" snapshot load "$F" --netns "$c"
equal "... in the same order" "$(list "$c" | grep -v sub | grep -A1 'src 10.1.0.0/16 dst 10' | sha1sum)" \
	"$(list "$a" | grep -A1 'src 10.1.0.0/16 dst 10' | sha1sum)"
done_testing
