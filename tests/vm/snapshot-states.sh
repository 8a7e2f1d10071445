#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# 2,000 real SAs through a snapshot: what is there after a load, how soon, and where the keys are.
. tests/lib/tap.sh
if ! ip xfrm state add src 127.0.0.1 dst 127.0.0.2 proto esp spi 1 enc 'ecb(cipher_null)' '' 2>/dev/null; then
	echo "ok - snapshots of SAs # SKIP this kernel has no ESP"
	exit 0
fi
ip xfrm state flush
N=2000
new_ns a
new_ns b
new_ns c
F=$T/sa.snap

# A key per SA that can be looked for: CAFEBABE and its number.
for i in $(seq 1 $N); do
	key=$(printf 'cafebabe%024x' "$i")
	common="xfrm state add src 192.0.2.1 dst 198.51.$((i / 250)).$((i % 250 + 1)) proto esp spi $((i + 4096)) reqid $i"
	case $((i % 4)) in
	0) echo "$common mode tunnel replay-window 32 aead 'rfc4106(gcm(aes))' 0x${key}01020304 128" ;;
	1) echo "$common mode tunnel flag esn replay-window 64 auth-trunc 'hmac(sha256)' 0x$key$key 128 enc 'cbc(aes)' 0x$key" ;;
	2) echo "$common mode transport mark $i mask 0xffff auth 'hmac(sha1)' 0x${key}01020304 enc 'cbc(aes)' 0x$key output-mark 7" ;;
	3) echo "$common mode tunnel flag af-unspec encap espinudp 4500 4500 0.0.0.0 limit time-hard 3600 limit byte-hard 99999999 auth-trunc 'hmac(sha256)' 0x$key 96 enc 'ecb(cipher_null)' ''" ;;
	esac
done >"$T/batch"
check "the kernel takes $N SAs" ip -n "$a" -batch "$T/batch"
for i in $(seq 1 50); do
	echo "xfrm policy add src 10.1.0.0/16 dst 10.9.$i.0/24 dir out priority 10 tmpl src 192.0.2.1 dst 198.51.0.$((i + 1)) proto esp reqid $i mode tunnel"
done | ip -n "$a" -batch -
# a packet without an SA for it: a larval SA, which is none yet
ip -n "$a" addr add 10.1.0.1/16 dev lo
ip -n "$a" route add default dev lo
ip -n "$a" xfrm policy add src 10.1.0.0/16 dst 10.250.0.0/16 dir out tmpl src 192.0.2.1 dst 203.0.113.1 proto esp reqid 77 mode tunnel
in_ns "$a" ping -c 1 -W 1 10.250.0.1 >/dev/null 2>&1
sas() { ip -n "$1" -s xfrm state; }
count() { ip -n "$1" xfrm state count | sed 's/[^0-9]//g'; }

"$X" snapshot save "$F" --states --with-keys --netns "$a" >"$T/out"
equal "all but larval ones are saved" "$(sed 's/, [0-9]* bytes//' "$T/out")" "$F: 51 policies and $N SAs with their keys"
equal "... for their owner only" "$(stat -c %a "$F")" 600
sleep 1.1 # so that an age that starts anew would show
start=$(date +%s%N)
"$X" snapshot load "$F" --states --netns "$b" >"$T/out" 2>"$T/err"
rc=$?
ms=$((($(date +%s%N) - start) / 1000000))
equal "all are loaded" "$rc $(cat "$T/out" "$T/err")" "0 $F: 51 policies and $N SAs loaded"
start=$(date +%s%N)
ip -n "$c" -batch "$T/batch"
ip_ms=$((($(date +%s%N) - start) / 1000000))
ip -n "$c" xfrm state flush
echo "# $N SAs: load $ms ms, ip -batch $ip_ms ms"
# an emulated processor is no measure
grep -q 'QEMU TCG\|QEMU Virtual' /proc/cpuinfo || equal "2,000 SAs in 100 ms" "$((ms <= 100))" 1
# keys, algorithms, marks, encapsulation, limits, replay state, and the time when they were added
equal "they are what they were, keys and age included" "$(sas "$b" | sha1sum)" \
	"$(sas "$a" | awk '/^src/ { keep = $4 != "203.0.113.1" } keep' | sha1sum)"
equal "... policies, too" "$(ip -n "$b" xfrm policy | sha1sum)" "$(ip -n "$a" xfrm policy | sha1sum)"
before=$(sas "$b" | sha1sum)
check "a second load updates them" "$X" snapshot load "$F" --states --netns "$b"
equal "... and changes nothing" "$(sas "$b" | sha1sum)" "$before"

# keys
keys() { LC_ALL=C grep -aoc $'\xca\xfe\xba\xbe' "$1"; }
equal "a file with keys has keys" "$(($(keys "$F") > 0))" 1
check "saved without keys" "$X" snapshot save "$T/no.snap" --states --netns "$a"
equal "... there is none in it" "$(keys "$T/no.snap")" 0
equal "... but everything else" "$(stat -c %s "$T/no.snap")" "$(stat -c %s "$F")"
"$X" snapshot load "$T/no.snap" --states --netns "$c" >"$T/out" 2>"$T/err"
equal "each SA without its key is refused" "$? $(grep -c "proto esp spi 0x.*: saved without its keys" "$T/err")" "1 $N"
equal "... and none is made" "$(count "$c")" 0
done_testing
