#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""rules.py FILE.pol[.xz]: put the policies of a rule set (see xspd-bench(8), FILES) into the SPD of
this network namespace, as "xspd bench lookup --shape file:" does: out, and with masks on ports, which
ip xfrm cannot write."""
import lzma, socket, struct, sys

XFRM_MSG_NEWPOLICY, NLM_F_REQUEST, OUT = 0x13, 1, 1


def policy(line):
    family, src, dst, proto, sport, dport, priority = line.split()
    af = socket.AF_INET6 if family == "6" else socket.AF_INET
    (saddr, slen), (daddr, dlen) = (a.split("/") for a in (src, dst))
    (sp, sm), (dp, dm) = ([int(n, 0) for n in p.split("/")] for p in (sport, dport))
    packed = [socket.inet_pton(af, a).ljust(16, b"\0") for a in (daddr, saddr)]
    selector = struct.pack("16s16s4H H3Bxxx2i", *packed, *(socket.htons(n) for n in (dp, dm, sp, sm)), af,
                           int(dlen), int(slen), int(proto), 0, 0)
    limits = struct.pack("4Q4Q", *[2**64 - 1] * 4, *[0] * 4)
    return selector + limits + struct.pack("4Q2I4B4x", *[0] * 4, int(priority), 0, OUT, 0, 0, 0)


def main():
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 6)
    with (lzma.open if sys.argv[1].endswith(".xz") else open)(sys.argv[1], "rt") as rules:
        for line in rules:
            body = policy(line)
            sock.send(struct.pack("=IHHII", 16 + len(body), XFRM_MSG_NEWPOLICY, NLM_F_REQUEST, 1, 0) + body)


main()
