#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The Debian package: builds, lintian has nothing to say, installs, works, purges without a trace.
# Installed into an overlay of this machine's own file system, which is thrown away.
set -u
cd "$(dirname "$0")/../.." || exit 1
O=$(realpath -m "${O:-build}")
top=$(mktemp -d)
version=$(sed -n 's/^VERSION := //p' Makefile)
export DEBIAN_FRONTEND=noninteractive

ok() { echo "ok - $*"; }
not_ok() { echo "not ok - $*"; }
check() { # text command...
	local text=$1
	shift
	if "$@" >"$top/out" 2>&1; then ok "$text"; else
		not_ok "$text"
		sed 's/^/# /' "$top/out"
	fi
}
# a mount namespace of our own: the mounts end with it, whatever happens
inside() {
	unshare --mount bash -c '
		set -e
		mount -t tmpfs upper "$0"
		mkdir "$0/upper" "$0/work" "$0/root"
		mount -t overlay root -o "lowerdir=/,upperdir=$0/upper,workdir=$0/work" "$0/root"
		for dir in proc sys dev; do mount --rbind /$dir "$0/root/$dir"; done
		mount -t tmpfs tmp "$0/root/tmp"
		mount -t tmpfs run "$0/root/run"
		printf "#!/bin/sh\nexit 101\n" >"$0/root/usr/sbin/policy-rc.d"
		chmod +x "$0/root/usr/sbin/policy-rc.d"
		cp "$1" "$0/root/tmp/xspd.deb"
		chroot "$0/root" bash -euc "$2"
	' "$top/mnt" "$O/deb/xspd_${version}_$(dpkg --print-architecture).deb" "$1"
}

mkdir "$top/mnt"
trap 'rm -rf "$top"' EXIT

check "make deb" make -s O="$O" deb
check "lintian has nothing to say" lintian --allow-root --fail-on error,warning \
	"$O/deb/xspd_${version}_$(dpkg --print-architecture).changes"
check "installed from the package it runs, and finds its manual" inside '
	dpkg -i /tmp/xspd.deb
	hash -r
	[ "$(command -v xspd)" = /usr/sbin/xspd ]
	xspd version | grep -qx "xspd '"$version"'"
	for page in $(dpkg -L xspd | grep /man8/); do test -s $page; done
	. /usr/share/bash-completion/bash_completion
	. /usr/share/bash-completion/completions/xspd'
# what a purge leaves is what it was before: same files, same bytes
check "purged it leaves nothing" inside '
	names() { find /etc /usr /lib /var/lib/systemd -xdev -name "*xspd*" | sort; }
	names >/tmp/before
	dpkg -i /tmp/xspd.deb
	names >/tmp/with
	! cmp -s /tmp/before /tmp/with
	dpkg --purge xspd
	names >/tmp/after
	diff /tmp/before /tmp/after
	! dpkg -s xspd'
check "make install honours DESTDIR and PREFIX" bash -euc '
	make -s O="$0" install DESTDIR="$1/dest" PREFIX=/opt/x
	"$1/dest/opt/x/sbin/xspd" version
	test -s "$1/dest/opt/x/share/man/man8/xspd.8"
	[ "$(ls "$1/dest")" = opt ] || [ -d "$1/dest/lib/systemd" ]' "$O" "$top"
