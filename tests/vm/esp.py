# SPDX-License-Identifier: GPL-2.0-only
"""Helpers of tests/vm/esp.sh.

esp.py forge tunnel|transport DEV MAC   frames in the clear, as if they had come out of IPsec
esp.py sample XSPD NS NS                all that counts, as lines "NUMBER-OF-NS NAME COUNT"
"""
import json, os, re, socket, subprocess, sys

sys.path.insert(0, "tests/lib")
import wire


def forge(mode, dev, mac):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    s.bind((dev, 0))
    if mode == "tunnel":
        frames = [wire.ip4("10.2.0.2", "10.1.0.2", 17, wire.udp(999, "forged"))] * 20 + \
            [wire.ip6("fd02::2", "fd01::2", 17, wire.udp6("fd02::2", "fd01::2", 999, "forged"))] * 10
    else:
        inner = wire.ip4("10.2.0.2", "10.1.0.2", 17, wire.udp(999, "forged"))
        frames = [wire.ip4("192.0.2.2", "192.0.2.1", 17, wire.udp(999, "forged"))] * 25 + \
            [wire.ip4("192.0.2.2", "192.0.2.1", 47, b"\0\0" + inner)] * 5
    for f in frames:
        s.send(bytes.fromhex(mac.replace(":", "")) + bytes.fromhex("020000000009") + f)


def out(*cmd):
    return subprocess.run(cmd, capture_output=True, text=True, check=True).stdout


def counts(xspd, ns, local):
    status = json.loads(out(xspd, "status", "--netns", ns, "--json"))
    ret = {}
    for table, join in (("hooks", "%s-%s"), ("acts", "%.0s%s")):
        for hook, names in status[table].items():
            for name, count in names.items():
                key = join % (hook, name)
                ret[key] = ret.get(key, 0) + count["packets"]
    for p in json.loads(out(xspd, "policy", "list", "--netns", ns, "--json")):
        ret["policy-%d" % p["index"]] = p["packets"]
    for block in out("ip", "-n", ns, "-s", "xfrm", "state").split("\nsrc ")[0:]:
        src = block.split()[1 if block.startswith("src ") else 0]
        carried = re.search(r"lifetime current:\s+\d+\(bytes\), (\d+)\(packets\)", block)
        ret["sa-out" if src == local else "sa-in"] = int(carried.group(1))
    for line in out("nsenter", "--net=/run/netns/" + ns, "cat", "/proc/net/xfrm_stat").splitlines():
        name, count = line.split()
        ret[name] = int(count)
        ret["errors"] = ret.get("errors", 0) + int(count)
    return ret


WANTED = "ingress-esp egress-esp ingress-tie egress-tie drop-plaintext kept-secpath"

if sys.argv[1] == "forge":
    forge(*sys.argv[2:])
else:
    for i, ns in enumerate(sys.argv[3:], 1):
        found = counts(sys.argv[2], ns, "192.0.2.%d" % i)
        for name in WANTED.split() + ["policy-%d" % n for n in (8, 9, 10, 17, 18)]:
            found.setdefault(name, 0)
        for name, count in found.items():
            print(i, name, count)
