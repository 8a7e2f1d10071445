#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Every command that `xspd help` lists: on an empty SPD, without a daemon, with what a killed one left,
# with closed stdout, in 80 columns, and its JSON as python reads it. A command that is not told
# here how to be called is a failure, so that no new one is left out.
. tests/lib/tap.sh
new_ns gw
ip -n "$gw" link add name eth0 type veth peer name p0
ip -n "$gw" link set eth0 up
ip -n "$gw" link set p0 up
new_ns none # never has a daemon
SNAP=$T/empty.snap
"$X" snapshot save "$SNAP" --netns "$gw" >"$T/save.json"

# words COMMAND: what to call it with, a line each; "json" before those that answer in JSON.
# "kernel" before those that need no daemon; "only" before those that are called but not to succeed.
words() {
	case $1 in
	run) echo "daemon" ;;
	status) echo "json" ;;
	policy) printf '%s\n' "json list" "only show 8" ;;
	lookup)
		printf '%s\n' "json dir out src 10.0.0.1 dst 10.0.0.2" "json dir in src ::1 dst ::2 --explain --reverse" \
			"json --forward src 10.0.0.1 dst 10.0.0.2" "json --file /dev/null" "json --with /dev/null dir out src 10.0.0.1 dst 10.0.0.2"
		;;
	attach) printf '%s\n' "eth0 --ingress" "eth0 --xdp --mode enforce --dry-run" ;;
	detach) echo "eth0" ;;
	exempt) printf '%s\n' "json list" "add udp 4500" "del udp 4500" ;;
	mark) printf '%s\n' "json list" "set reqid 7 mark 1" "del reqid 7" ;;
	verify) echo "json --seconds 2" ;;
	snapshot) printf '%s\n' "kernel json save $T/other.snap" "kernel json load $SNAP" ;;
	diff) printf '%s\n' "kernel json $SNAP $SNAP" "json $SNAP live" ;;
	lint) echo "kernel json" ;;
	tune) echo "kernel json" ;;
	top) echo "json --interval 1 --count 1" ;;
	events) echo "json --last 5" ;;
	bench) echo "kernel json lookup --shape one --policies 10 --no-kernel" ;;
	help | version) echo "bare" ;;
	*) return 1 ;;
	esac
}
commands=$("$X" help | sed -n 's/^  \([a-z]*\) .*/\1/p')
for cmd in $commands; do
	words "$cmd" >/dev/null || not_ok "$cmd: tell this test how to call it"
done

# wide TEXT FILE: no line of what people read is wider than 80 columns; tabs end at the next eighth
wide() { expand "$2" | awk -v most=80 'length > most { print; bad = 1 } END { exit bad }' >"$T/wide" ||
	{ not_ok "$1: wider than 80 columns" && sed 's/^/  # /' "$T/wide"; }; }

# each STATE: call every command as it is told, in the state the namespace is in.
# What is to be: daemon (all succeed), stale (reading succeeds), none (one line, exit 1).
each() {
	local state=$1 ns=$2 cmd line flags rc n=0 bad=0
	for cmd in $commands; do
		while read -r line; do
			flags=
			while [[ $line =~ ^(json|kernel|only|bare|daemon)( |$) ]]; do
				flags="$flags ${BASH_REMATCH[1]}"
				line=${line#"${BASH_REMATCH[1]}"}
				line=${line# }
			done
			[[ $flags = *bare* || $flags = *daemon* ]] && continue
			call "$state" "$ns" "$cmd" "$line" "$flags" </dev/null || bad=$((bad + 1))
			n=$((n + 1))
		done < <(words "$cmd")
	done
	equal "$state: $n calls, failures" "$bad" 0
}
complain() {
	echo "# $*"
	sed 's/^/#   /' "$T/err"
	return 1
}
call() {
	local state=$1 ns=$2 cmd=$3 line=$4 flags=$5 rc
	COLUMNS=80 timeout 60 "$X" $cmd $line --netns "$ns" >"$T/out" 2>"$T/err"
	rc=$?
	[ $rc -le 2 ] || complain "$cmd $line ($state): exit $rc" || return
	if [[ $flags = *only* ]]; then
		[ "$(wc -l <"$T/err")" -le 1 ] || complain "$cmd $line ($state): more than a line" || return
	elif [ "$state" = none ] && [[ $flags != *kernel* ]]; then
		[ $rc = 1 ] && [ ! -s "$T/out" ] && [ "$(grep -c '^xspd: ' "$T/err")" = 1 ] &&
			[ "$(wc -l <"$T/err")" = 1 ] || complain "$cmd $line ($state): exit $rc" || return
	elif [ $rc != 0 ] && [ "$state" = daemon ]; then
		complain "$cmd $line ($state): exit $rc" || return
	elif [ $rc = 1 ] && [ "$(wc -l <"$T/err")" != 1 ] && [ "$cmd" != status ]; then
		complain "$cmd $line ($state): exit 1 without its one line" || return
	fi
	wide "$cmd $line" "$T/out"
	[[ $flags = *json* ]] || return 0
	COLUMNS=80 timeout 60 "$X" $cmd $line --netns "$ns" --json >"$T/out" 2>"$T/err"
	[ $? -le 1 ] || complain "$cmd $line --json ($state)" || return
	[ "$state" = daemon ] || [ -s "$T/out" ] || return 0
	python3 -m json.tool <"$T/out" >/dev/null 2>"$T/err" || complain "$cmd $line --json ($state): no JSON" || return
}

each none "$none"
start "$gw"
each daemon "$gw"

# stdout closed, or full: a failure, and nothing else goes wrong
bad=0 n=0
for cmd in $commands; do
	while read -r line; do
		[[ $line =~ ^(daemon|only|kernel only) ]] && continue
		line=$(sed -E 's/^((json|kernel|bare) ?)+//' <<<"$line")
		[[ $line =~ ^(eth0|add|del|set) ]] && continue # has nothing to say
		options="--netns $gw"
		[[ $cmd = help || $cmd = version ]] && options=
		for to in '>&-' '>/dev/full'; do
			eval "timeout 60 \"\$X\" $cmd $line $options $to" 2>"$T/err" </dev/null
			rc=$?
			n=$((n + 1))
			[ $rc = 1 ] && grep -q '^xspd: .*stdout' "$T/err" && continue
			# nothing to say is said anywhere
			[ $rc = 0 ] && [ ! -s "$T/err" ] && [ -z "$(eval "\"\$X\" $cmd $line $options" 2>&1)" ] && continue
			bad=$((bad + 1))
			complain "$cmd $line $to: exit $rc"
		done
	done < <(words "$cmd")
done
equal "without a stdout that takes it: $n calls, failures" $bad 0

stop KILL 2>/dev/null
each stale "$gw"
done_testing
