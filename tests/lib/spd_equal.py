#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""spd_equal.py XSPD NETNS: is `xspd policy list` of a namespace what `ip xfrm policy` lists?

Every field that both know of every policy. Differences on stdout, exit 1 if there are any.
"""
import json
import re
import socket
import subprocess
import sys

xspd, netns = sys.argv[1:]


def number(text):
    try:
        return int(text, 0)
    except ValueError:
        return socket.getprotobyname(text)


def host(prefix):
    return prefix if "/" in prefix else prefix + ("/128" if ":" in prefix else "/32")


def kernel():
    text = subprocess.run(["ip", "-n", netns, "-s", "xfrm", "policy", "list", "nosock"],
                          capture_output=True, text=True, check=True).stdout
    for block in re.split(r"^(?=src )", text, flags=re.M)[1:]:
        selector, rest = block.split("\n", 1)
        head, *tmpls = re.split(r"^\s*tmpl ", rest, flags=re.M)
        word = dict(zip((w := selector.split())[::2], w[1::2]))
        icmp = "type" in word or "code" in word
        of = lambda key: re.search(r"\b%s (\S+)" % key, head).group(1)
        mark = re.search(r"^\s*mark (\S+)/(\S+)", block, re.M)
        if_id = re.search(r"^\s*if_id (\S+)", block, re.M)
        tmpl = None
        if tmpls:
            t = dict(re.findall(r"\b(src|dst|proto|mode) (\S+)", tmpls[0]))
            reqid = re.search(r"reqid (\d+)", tmpls[0]).group(1)
            tmpl = len(tmpls), t["src"], t["dst"], t["proto"], t["mode"], int(reqid)
        yield int(of("index")), (
            of("dir"), of("ptype"), of("action"), int(of("priority")), host(word["src"]),
            host(word["dst"]), number(word.get("proto", "0")),
            int(word.get("type" if icmp else "sport", 0)), int(word.get("code" if icmp else "dport", 0)),
            number(mark.group(1)) if mark else 0, number(mark.group(2)) if mark else 0,
            number(if_id.group(1)) if if_id else 0, word.get("dev"), tmpl)


def mirror():
    text = subprocess.run([xspd, "policy", "list", "--netns", netns, "--json"],
                          capture_output=True, text=True, check=True).stdout
    for p in json.loads(text):
        t = p["tmpl"]
        yield p["index"], (
            p["dir"], p["type"], p["action"], p["priority"], host(p["src"]), host(p["dst"]), p["proto"],
            p["sport"], p["dport"], p["mark"], p["mark_mask"], p["if_id"], p["dev"],
            (t["count"], t["src"], t["dst"], t["proto"], t["mode"], t["reqid"]) if t else None)


theirs, ours = dict(kernel()), dict(mirror())
wrong = [i for i in theirs.keys() | ours.keys() if theirs.get(i) != ours.get(i)]
for i in sorted(wrong)[:5]:
    print("index", i, "kernel", theirs.get(i), "mirror", ours.get(i))
print(len(theirs), "policies,", len(wrong), "differ")
sys.exit(bool(wrong))
