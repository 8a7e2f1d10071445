#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The Debian package on a machine that systemd has started: what installing it starts and enables,
# that it is restarted when it dies and when it is upgraded, and that a purge leaves nothing.
. tests/lib/tap.sh
export DEBIAN_FRONTEND=noninteractive
deb=$(ls "${O:-build}"/deb/xspd_*.deb) || exit 1
unit=/run/systemd/system/xspd.service.d
X=/usr/sbin/xspd

# a root file system that can be written, with what the guest has put into the read-only one
writable() {
	local dir
	modprobe overlay
	mkdir -p /run/over /run/kept/{modules,generators}
	mount --rbind /usr/lib/modules /run/kept/modules
	mount --rbind /usr/lib/systemd/system-generators /run/kept/generators
	mount -t tmpfs over /run/over
	for dir in usr etc var; do
		mkdir -p /run/over/$dir /run/over/.$dir
		mount -t overlay over -o "lowerdir=/$dir,upperdir=/run/over/$dir,workdir=/run/over/.$dir" /$dir
	done
	mount --rbind /run/kept/modules /usr/lib/modules
	mount --rbind /run/kept/generators /usr/lib/systemd/system-generators
	rm -f /usr/sbin/policy-rc.d # which forbids to start services
}
# without the rest of a machine, and with the time that an emulation takes
alone() {
	mkdir -p $unit
	cat >$unit/test.conf <<-END
		[Unit]
		DefaultDependencies=no
		[Service]
		TimeoutStartSec=300
		WatchdogSec=300
		StandardOutput=append:/run/xspd.log
		StandardError=append:/run/xspd.log
	END
	systemctl daemon-reload
}
property() { systemctl show --value -p "$1" xspd.service; }
state() { echo "$(systemctl is-enabled xspd.service 2>/dev/null) $(systemctl is-active xspd.service)"; }
is() { [ "$(state)" = "$1" ]; }
# what has been written since the root can be, but for what stands for deleted files
names() { find /run/over /sys/fs/bpf -xdev -name "*xspd*" ! -type c | sort; }
flow=(dir out src 10.1.0.1 dst 10.2.0.1)

check "a root that can be written" writable
alone
names >"$T/before"
ip xfrm policy add src 10.1.0.0/16 dst 10.2.0.0/16 dir out priority 10 index 9 action block

check "it installs" dpkg -i "$deb"
equal "... and is enabled and started, which means ready" "$(state)" "enabled active"
equal "... as the package's own" "$(property FragmentPath) $(readlink /proc/"$(property MainPID)"/exe)" \
	"/lib/systemd/system/xspd.service $X"
equal "... and says how it is" "$(property StatusText)" "Mirroring 1 policies"
equal "status: in step" "$($X status --json | field 'd["policies"], d["doubt"]')" "(1, [])"
equal "it answers" "$($X lookup "${flow[@]}" | head -n 1 | cut -d' ' -f1-4)" "verdict block reason block"

first=$(property MainPID)
check "it restarts" systemctl restart xspd.service
equal "... is another" "$(state) $(($(property MainPID) != first))" "enabled active 1"
equal "... and knows the policy" "$($X status --json | field 'd["policies"], d["doubt"]')" "(1, [])"
first=$(property MainPID)
kill -KILL "$first"
again() { [ "$(property MainPID)" != "$first" ] && is "enabled active"; }
check "killed, it is started again" wait_for 20 again

ip link add name v0 type veth peer name v1
ip link set v0 up
check "hooks" "$X" attach v0 --ingress --egress
first=$(property MainPID)
check "it is installed anew" dpkg -i "$deb"
equal "... and runs, another one" "$(state) $(($(property MainPID) != first))" "enabled active 1"
equal "... whose hooks they are now" "$($X status --json | field 'len(d["attached"]), d["policies"]')" "(2, 1)"

check "it is purged" dpkg --purge xspd
equal "... and gone" "$(systemctl is-active xspd.service) $(pgrep -cx xspd)" "inactive 0"
names >"$T/after"
equal "... with all files, links and pins" "$(diff "$T/before" "$T/after")" ""
equal "... and hooks" "$(tc filter show dev v0 ingress)$(tc filter show dev v0 egress)$(bpftool net show dev v0 | grep xspd)" ""
equal "dpkg does not know it" "$(dpkg-query -W -f '${db:Status-Status}' xspd 2>/dev/null)" ""
[ $tap_failed = 0 ] || sed 's/^/# /' /run/xspd.log
done_testing
