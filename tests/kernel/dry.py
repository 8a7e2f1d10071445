# SPDX-License-Identifier: GPL-2.0-only
"""Batches for `ip -batch` and flows that they may govern: dry.py flows|batch SEED [INDEX...].

Few addresses, priorities and marks, so that policies overlap, tie, and are met again by later lines.
Even seeds keep to lines that the kernel takes.
"""
import random
import sys

kind, seed = sys.argv[1], int(sys.argv[2])
rnd = random.Random("%s %d" % (kind, seed))
known = sys.argv[3:]
careful = seed % 2 == 0
V4 = ["10.1.0.0/16", "10.1.2.0/24", "10.1.2.3/32", "10.1.2.3", "0.0.0.0/0", "10.1.2.9/24"]
V6 = ["fd01::/16", "fd01:2::/32", "fd01:2::3/128", "fd01:2::3", "::/0"]
HOSTS = {4: ["10.1.2.3", "10.1.9.9", "192.0.2.1"], 6: ["fd01:2::3", "fd01:9::1", "2001:db8::1"]}


def upper():
    proto = rnd.choice([None] * 8 + ["udp", "tcp", "6", "any", "icmp", "ipv6-icmp", "gre", "esp", "sctp", "0x11", "021"])
    if proto is None:
        return []
    words = ["proto", proto]
    if proto in ("udp", "tcp", "6", "sctp", "0x11", "021"):
        words += rnd.choice([[], ["sport", "53"], ["dport", "0x35"], ["sport", "0", "dport", "53"]])
    elif "icmp" in proto:
        words += rnd.choice([[], ["type", "8"], ["type", "0", "code", "0"], ["code", "3"]])
    elif proto == "gre":
        words += rnd.choice([[], ["key", "7"], ["key", "0.0.0.7"]])
    return words


def selector():
    addrs = V6 if rnd.random() < .3 else V4
    runs = [["src", rnd.choice(addrs)], ["dst", rnd.choice(addrs)], upper()]
    if rnd.random() < .15:
        runs.append(["dev", rnd.choice(["eth0", "lo", "none"])])
    if rnd.random() < .1:
        del runs[rnd.randrange(2)]
    rnd.shuffle(runs)
    return sum(runs, [])


def tmpl(direction):
    if careful:
        return ["tmpl", "src", "10.9.0.1", "dst", "10.9.0.2", "proto", "esp", "reqid", "4", "mode", "tunnel"]
    words = ["tmpl"] + rnd.choice([["proto", "esp"], ["src", "10.9.0.1", "dst", "10.9.0.2", "proto", "ah"],
                                   ["src", "fd09::1", "dst", "fd09::2", "proto", "esp", "spi", "0x10"], []])
    words += ["mode", rnd.choice(["tunnel", "transport", "beet"])]
    if rnd.random() < .5:
        words += ["reqid", str(rnd.randrange(100))]
    if rnd.random() < .3:
        words += ["level", rnd.choice(["use", "required"])]
    return words


def traits(change):
    runs = []
    if rnd.random() < .25:
        runs.append(["mark", "5"] + rnd.choice([[], ["mask", "0xf"]]) if careful else ["mark", rnd.choice(["5", "0x15", "0"])] + rnd.choice([[], ["mask", "0xf"], ["mask", "0"]]))
    if rnd.random() < .15:
        runs.append(["if_id", rnd.choice(["3", "0x4"])])
    if rnd.random() < .2:
        runs.append(["ptype", rnd.choice(["main", "sub"])])
    if not change:
        return runs
    if rnd.random() < .4:
        runs.append(["action", rnd.choice(["block", "allow"])])
    if rnd.random() < .8:
        runs.append(["priority", rnd.choice(["1", "2", "0x3"])])
    if rnd.random() < .2:
        runs.append(["flag"] + rnd.choice([["localok"], ["icmp"], ["localok", "icmp"]]))
    if rnd.random() < .2:
        runs.append(["limit", rnd.choice(["time-hard", "byte-soft"]), "100000"])
    return runs


made = []


def line(number):
    verb = rnd.choice(["add"] * 4 + ["update"] * 4 + ["delete"] * 3 + ["setdefault"] + ["flush"] * (rnd.random() < .04))
    if verb == "flush":
        made[:] = []
        return ["flush"] + rnd.choice([[], ["ptype", "sub"]])
    if verb == "setdefault":
        return ["setdefault", rnd.choice(["in", "out", "fwd"]), rnd.choice(["block", "accept", "accept"])]
    if careful and (verb == "add" or (verb == "delete" and not made)):
        verb = "update"
    if made and verb != "add" and (rnd.random() < .85 or careful and verb == "delete"):
        sel, direction, marks = rnd.choice(made)  # met again
    else:
        sel, direction, marks = selector(), rnd.choice(["out", "out", "in", "fwd"]), traits(False)
    if verb == "delete" and careful:
        made[:] = [m for m in made if m != (sel, direction, marks)]
    if verb == "delete" and known and not careful and rnd.random() < .2:
        index = rnd.choice(known)
        return ["delete", "index", index, "dir", ["in", "out", "fwd"][int(index) & 7]]
    runs = [sel, ["dir", direction]] + marks
    if verb != "delete":
        made.append((sel, direction, marks))
        runs += [r for r in traits(True) if r[0] not in ("mark", "if_id", "ptype")]
        if rnd.random() < .7:
            runs.append(["index", str((5000 + seed * 1000 + number) * 8 + ["in", "out", "fwd"].index(direction))])
        if rnd.random() < .4:
            runs.append(tmpl(direction))
    head = runs[-1:] if runs[-1][0] == "tmpl" else []
    rest = runs[:-1] if head else runs
    rnd.shuffle(rest)
    return [verb] + sum(rest + head, [])


if kind == "batch":
    for number in range(rnd.randrange(1, 40)):
        print("xfrm policy " + " ".join(line(number)))
else:
    for _ in range(300):
        family = rnd.choice([4, 4, 6])
        words = ["dir", rnd.choice(["out", "out", "in", "fwd"]), "src", rnd.choice(HOSTS[family]), "dst",
                 rnd.choice(HOSTS[family])]
        proto = rnd.choice(["udp", "tcp", "icmp" if family == 4 else "ipv6-icmp", "gre", "esp"])
        words += ["proto", proto]
        if proto in ("udp", "tcp"):
            words += ["sport", rnd.choice(["53", "9"]), "dport", rnd.choice(["53", "9"])]
        elif "icmp" in proto:
            words += ["type", rnd.choice(["8", "0"]), "code", rnd.choice(["0", "3"])]
        elif proto == "gre":
            words += ["key", rnd.choice(["7", "8"])]
        words += rnd.choice([[], [], ["mark", "5"], ["mark", "0x25"]])
        words += rnd.choice([[], [], [], ["if_id", "3"]])
        print(" ".join(words + rnd.choice([[], [], ["dev", "eth0"]])))
