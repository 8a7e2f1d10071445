#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What is written about xspd is about this xspd: every subcommand has its page, every counter and reason its
# row, every link its target; the completion offers what "xspd help" says.
set -u
cd "$(dirname "$0")/../.." || exit 1
X=$(realpath "${O:-build}/xspd")

ok() { echo "ok - $*"; }
missing() { # text, what is missing
	if [ -z "$2" ]; then ok "$1"; else
		echo "not ok - $1"
		echo "# missing: $(echo $2)"
	fi
}

commands=$("$X" help | awk '/^  [a-z]/ && $1 != "help" && $1 != "version" { print $1 }')
[ -n "$commands" ] && ok "xspd help lists commands" || echo "not ok - xspd help lists commands"

lost=
for c in $commands; do [ -s "docs/xspd-$c.8" ] || lost="$lost xspd-$c.8"; done
missing "every subcommand has a man page" "$lost"

lost=
for c in $commands; do grep -q "^\.BR xspd..$c (8)\|xspd..$c *(8)\|\.BR xspd..$c (8)" docs/xspd.8 || lost="$lost $c"; done
missing "xspd(8) names every subcommand's page" "$lost"

lost=
for page in docs/*.8; do
	words=$(LC_ALL=C.UTF-8 MANROFFSEQ='' man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null)
	[ -z "$words" ] || lost="$lost $page:$words"
done
missing "groff has nothing to say about the pages" "$lost"

# options that the usage has and the page does not
lost=
for c in $commands; do
	for option in $("$X" help "$c" | head -1 | grep -o -- '--[a-z][a-z-]*' | sort -u); do
		sed 's/\\-/-/g' "docs/xspd-$c.8" | grep -q -- "$option" || lost="$lost $c:$option"
	done
done
missing "the pages have every option of the usage" "$lost"

lost=
for counter in $(awk '{ print $1 }' /proc/net/xfrm_stat); do
	grep -q "^|.*\b$counter\b.*|.*|.*\`\?.*|$" docs/troubleshooting.md || lost="$lost $counter"
done
missing "docs/troubleshooting.md has every counter of this kernel's xfrm_stat" "$lost"

# reasons other than the answers themselves
lost=
for reason in $(sed -n 's/^\t\[XSPD_R_[A-Z_]*\] = "\(.*\)",/\1/p' user/reason.c); do
	case $reason in none | bypass | protect | block | no-policy | default-block | error) continue ;; esac
	grep -q "\b$reason\b" docs/troubleshooting.md || lost="$lost $reason"
done
missing "docs/troubleshooting.md has every reason to defer" "$lost"

lost=
for page in README.md docs/*.md; do
	for link in $(grep -o '](\([^)#]*\))' "$page" | tr -d '()]' | grep -v '^https\?:'); do
		[ -e "$(dirname "$page")/$link" ] || lost="$lost $page:$link"
	done
done
missing "links lead somewhere" "$lost"

complete_words() { # words...: what bash would offer for the last of them
	PATH=$(dirname "$X"):$PATH bash -c '
		. /usr/share/bash-completion/bash_completion
		. dist/xspd.bash-completion
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
		COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
		_xspd 2>/dev/null
		printf "%s\n" "${COMPREPLY[@]}"' complete "$@"
}
lost=
offered=$(complete_words xspd "")
for c in $commands; do grep -qx "$c" <<<"$offered" || lost="$lost $c"; done
missing "completion offers every subcommand" "$lost"
lost=
offered=$(complete_words xspd attach lo --mode "")
for mode in observe enforce bypass; do grep -qx $mode <<<"$offered" || lost="$lost $mode"; done
missing "completion offers the modes" "$lost"
complete_words xspd attach "" | grep -qx lo && ok "completion offers devices" || echo "not ok - completion offers devices"
lost=
complete_words xspd lookup --e | grep -qx -- --explain || lost="--explain"
complete_words xspd lookup dir "" | grep -qx fwd || lost="$lost fwd"
complete_words xspd policy "" | grep -qx list || lost="$lost list"
missing "completion offers options and words" "$lost"
