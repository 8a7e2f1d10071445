#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What the command line makes of its words: no daemon, no pins.
. tests/lib/tap.sh
none=xt$$none # an instance that does not exist

fails "no command" 2 "no command" "$X"
fails "unknown command" 2 "unknown command 'stat'; see 'xspd help'" "$X" stat
fails "unknown option" 2 "status: unknown option '--jsn'" "$X" status --jsn
fails "short option" 2 "unknown option '-j'" "$X" status -j
fails "options are not abbreviated" 2 "unknown option '--js'" "$X" status --js
fails "an option lacks its argument" 2 "'--instance' lacks its argument" "$X" status --instance
fails "an option takes no argument" 2 "'--json=1'" "$X" status --json=1
fails "a word too many" 2 "status: takes no words, not 'now'" "$X" status now
fails "a newline stays one line" 2 "unknown command 'a\?b'" "$X" $'a\nb'
fails "instance with a dot" 2 "instance 'a.b'" "$X" status --instance a.b
fails "instance that leaves its directory" 2 "instance '\.\./x'" "$X" status --instance ../x
fails "a read-only option on a command that reads nothing" 2 "unknown option '--json'" "$X" run --json
fails "lease out of range" 2 "run: --lease 1: give a number from 100" "$X" run --lease 1
fails "lease not a number" 2 "run: --lease 3s" "$X" run --lease 3s
fails "no such namespace" 1 "--netns $none: no such namespace" "$X" run --netns "$none"
fails "namespace with a slash" 2 "--netns 'a/b'" "$X" status --netns a/b --instance x
fails "no pins" 1 "instance $none: no pins in .*start 'xspd run'" "$X" status --instance "$none"
fails "policy without a verb" 2 "say 'list' or 'show INDEX'" "$X" policy
fails "policy show without an index" 2 "give the index" "$X" policy show
fails "policy show with words" 2 "policy show nine" "$X" policy show nine
fails "attach without a device" 2 "attach: name a device" "$X" attach --ingress
fails "attach without a hook" 2 "attach eth0: say where" "$X" attach eth0
fails "attach with two devices" 2 "not 'eth1' too" "$X" attach eth0 eth1 --xdp
fails "a name no device has" 2 "cannot be the name of a device" "$X" attach a/b --xdp
fails "detach takes no --clsact" 2 "unknown option '--clsact'" "$X" detach eth0 --clsact

flow="dir out src 10.0.0.1 dst 10.0.0.2"
bad() { # TEXT PATTERN WORDS...
	local text=$1 pattern=$2
	shift 2
	fails "lookup: $text" 2 "lookup: $pattern" "$X" lookup --instance "$none" "$@"
}
bad "no words" "'dir' is missing"
bad "no source" "'src' is missing" dir out dst 10.0.0.2
bad "unknown word" "unknown word 'source'" $flow source 1
bad "word without a value" "'proto' lacks its value" $flow proto
bad "word twice" "'src' is given twice" $flow src 10.0.0.3
bad "no direction" "dir up" dir up src 10.0.0.1 dst 10.0.0.2
bad "v4 prefix out of range" "src 10.0.0.1/33: prefix length out of range, 0 to 32" dir out src 10.0.0.1/33 dst 10.0.0.2
bad "v6 prefix out of range" "dst ::1/129: prefix length out of range, 0 to 128" dir out src ::1 dst ::1/129
bad "prefix that is no number" "src 10.0.0.1/x: prefix length out of range" dir out src 10.0.0.1/x dst 10.0.0.2
bad "a prefix is not a flow" "src 10.0.0.0/24: a flow has one address" dir out src 10.0.0.0/24 dst 10.0.0.2
bad "bad address" "dst 10.0.0: give an IPv4 or IPv6 address" dir out src 10.0.0.1 dst 10.0.0
bad "two families" "src 10.0.0.1 and dst ::1 are of two families" dir out src 10.0.0.1 dst ::1
bad "unknown protocol" "proto foo" $flow proto foo
bad "protocol out of range" "proto 256" $flow proto 256
bad "port out of range" "sport 65536: give a number from 0 to 65535" $flow proto udp sport 65536
bad "negative port" "unknown option '-1'" $flow proto udp dport -1
bad "port without a protocol" "'dport' goes with tcp" $flow dport 1
bad "port of a protocol without" "'sport' goes with tcp" $flow proto icmp sport 1
bad "icmp type out of range" "type 256" $flow proto icmp type 256
bad "type of tcp" "'type' goes with icmp" $flow proto tcp type 1
bad "gre key" "key 1.2.3" $flow proto gre key 1.2.3
bad "mark with a mask" "mark 1/1" $flow mark 1/1
bad "if_id out of range" "if_id 4294967296" $flow if_id 4294967296
bad "fragment kind" "frag middle" $flow frag middle
fails "lookup: missing device" 1 "dev nodev0: no such device" "$X" lookup --instance "$none" $flow dev nodev0

check "help" "$X" help
check "help of every command" bash -c "'$X' help | sed -n 's/^  \([a-z]*\) .*/\1/p' | xargs -n1 '$X' help"
check "--help of a command" "$X" lookup --help
equal "version" "$("$X" version)" "$("$X" --version)"
fails "help of an unknown command" 2 "unknown command 'x'" "$X" help x
for cmd in $("$X" help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
	case $cmd in help | version) continue ;; esac
	check "man page of $cmd" test -s "docs/xspd-$cmd.8"
done

"$X" help >/dev/full 2>"$T/err"
equal "a full disk fails" "$? $(cat "$T/err")" "1 xspd: stdout: No space left on device"
# a reader that is gone before anything is written
rc=$({ sleep 0.2; "$X" help 2>"$T/err"; echo $? >&3; } 3>&1 1> >(exec true))
equal "a closed pipe fails" "$rc $(cat "$T/err")" "1 xspd: stdout: Broken pipe"
"$X" help >&- 2>"$T/err"
equal "a closed stdout fails" "$? $(wc -l <"$T/err")" "1 1"
done_testing
