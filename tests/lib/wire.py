# SPDX-License-Identifier: GPL-2.0-only
"""Frames by name for tests/kernel/modes.sh, and what arrives of them.

wire.py send DEV MAC NAME...     each frame once ("plain*5": five times), to that station
wire.py frames DEV               each packet that arrives, name and bytes, until killed
wire.py errors DEV               each ICMP error that arrives: type, code, name of what it quotes
wire.py sockets PORT...          each datagram that is delivered: port and name
"""
import errno, re, select, socket, struct, sys

C, S, B, O, GW = "10.1.0.2", "10.2.0.2", "10.1.0.66", "10.1.0.67", "10.1.0.1"
C6, S6, B6, GW6 = "fd01::2", "fd02::2", "fd01::66", "fd01::1"


def checksum(data):
    data += b"\0" * (len(data) & 1)
    s = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while s >> 16:
        s = (s & 0xFFFF) + (s >> 16)
    return ~s & 0xFFFF


def ip4(src, dst, proto, payload, ttl=64, frag=0, options=b""):
    ihl = 5 + len(options) // 4
    head = struct.pack("!BBHHHBBH4s4s", 0x40 | ihl, 0, ihl * 4 + len(payload), 4711, frag, ttl, proto, 0,
                       socket.inet_aton(src), socket.inet_aton(dst)) + options
    return b"\x08\x00" + head[:10] + struct.pack("!H", checksum(head)) + head[12:] + payload


def ip6(src, dst, proto, payload, ttl=64):
    return b"\x86\xdd" + struct.pack("!IHBB", 6 << 28, len(payload), proto, ttl) + \
        socket.inet_pton(socket.AF_INET6, src) + socket.inet_pton(socket.AF_INET6, dst) + payload


def udp(dport, name):
    data = b"xspd:" + name.encode() + b";" + bytes(40)
    return struct.pack("!HHHH", 999, dport, 8 + len(data), 0) + data


def udp6(src, dst, dport, name):
    u = udp(dport, name)
    pseudo = socket.inet_pton(socket.AF_INET6, src) + socket.inet_pton(socket.AF_INET6, dst) + \
        struct.pack("!II", len(u), 17)
    return u[:6] + struct.pack("!H", checksum(pseudo + u) or 0xFFFF) + u[8:]


def icmp(kind, code, rest):
    return struct.pack("!BBHI", kind, code, checksum(struct.pack("!BBHI", kind, code, 0, 0) + rest), 0) + rest


def icmp6(src, dst, kind, code, rest):
    body = struct.pack("!BBHI", kind, code, 0, 0) + rest
    pseudo = socket.inet_pton(socket.AF_INET6, src) + socket.inet_pton(socket.AF_INET6, dst) + \
        struct.pack("!II", len(body), 58)
    return body[:2] + struct.pack("!H", checksum(pseudo + body)) + body[4:]


def frames():
    def fwd(name, port, src=C, **more): return ip4(src, S, 17, udp(port, name), **more)

    def fwd6(name, port, src=C6, **more): return ip6(src, S6, 17, udp6(src, S6, port, name), **more)

    quoted = ip4(S, B, 17, udp(1000, "quoted"))[2:]
    quoted6 = ip6(S6, B6, 17, udp6(S6, B6, 1000, "quoted6"))[2:]
    return {
        # forwarded
        "plain": fwd("plain", 1000),
        "plain-tcp": ip4(C, S, 6, struct.pack("!HHIIBBHHH", 999, 80, 1, 0, 0x50, 2, 100, 0, 0) + b"xspd:plain-tcp;"),
        "padded": ip4(C, S, 17, udp(1000, "padded")) + bytes(20),
        "plain-options": fwd("plain-options", 1000, options=b"\1\1\1\0"),
        "plain-first": ip4(C, S, 17, udp(1000, "plain-first"), frag=0x2000),
        "plain-later": ip4(C, S, 17, b"xspd:plain-later;" + bytes(7), frag=0x0009),
        "ttl1": fwd("ttl1", 1000, ttl=1),
        "ttl2": fwd("ttl2", 1000, ttl=2),
        "bad-sum": fwd("bad-sum", 1000)[:12] + b"\0\0" + fwd("bad-sum", 1000)[14:],
        "blocked": fwd("blocked", 2000),
        "out-blocked": fwd("out-blocked", 2500),
        "unprotected": fwd("unprotected", 3000),
        "blocked-first": ip4(B, S, 17, udp(1000, "blocked-first"), frag=0x2000),
        "blocked-later": ip4(B, S, 17, b"xspd:blocked-later;" + bytes(5), frag=0x0009),
        "blocked-options": fwd("blocked-options", 1000, src=B, options=b"\1\1\1\0"),
        "blocked-error": ip4(B, S, 1, icmp(3, 1, quoted)),
        "blocked-ttl1": fwd("blocked-ttl1", 1000, src=B, ttl=1),
        "out-blocked-ttl1": fwd("out-blocked-ttl1", 1000, src=O, ttl=1),
        "plain6": fwd6("plain6", 1000),
        "hl1": fwd6("hl1", 1000, ttl=1),
        "hbh": ip6(C6, S6, 0, b"\x11\0\1\4\0\0\0\0" + udp6(C6, S6, 1000, "hbh")),
        "blocked6": fwd6("blocked6", 2000),
        "unprotected6": fwd6("unprotected6", 3000),
        "blocked6-first": ip6(B6, S6, 44, b"\x11\0\0\1\0\0\0\7" + udp6(B6, S6, 1000, "blocked6-first")),
        "blocked6-error": ip6(B6, S6, 58, icmp6(B6, S6, 1, 0, quoted6)),
        # for the gateway
        "local": ip4(C, GW, 17, udp(5000, "local")),
        "local-blocked": ip4(B, GW, 17, udp(5000, "local-blocked")),
        "local-unprotected": ip4(C, GW, 17, udp(5001, "local-unprotected")),
        "local-ike": ip4(B, GW, 17, udp(500, "local-ike")),
        "local-natt": ip4(B, GW, 17, udp(4500, "local-natt")),
        "local-vxlan": ip4(B, GW, 17, udp(4789, "local-vxlan")),
        "local-gre": ip4(B, GW, 47, b"\0\0\x08\0" + bytes(20)),
        "local-esp": ip4(B, GW, 50, b"\0\0\x12\x34\0\0\0\1" + bytes(40)),
        "local-ah": ip4(B, GW, 51, b"\x11\4\0\0\0\0\x12\x34\0\0\0\1" + bytes(52)),
        "local-later": ip4(B, GW, 17, b"xspd:local-later;" + bytes(7), frag=0x0009),
        "local-optional": ip4(C, GW, 17, udp(5002, "local-optional")),
        "local6": ip6(C6, GW6, 17, udp6(C6, GW6, 5000, "local6")),
        "local6-blocked": ip6(B6, GW6, 17, udp6(B6, GW6, 5000, "local6-blocked")),
    }


def more():
    """Sent by name only."""
    def fwd(name, port, src=C, **k): return ip4(src, S, 17, udp(port, name), **k)

    quoted = ip4(S, C, 17, udp(1000, "quoted"))[2:]
    return {
        "dns": fwd("dns", 53),
        "ike": fwd("ike", 500),
        "natt": fwd("natt", 4500),
        "ike-later": ip4(C, S, 17, b"xspd:ike-later;" + bytes(9), frag=0x0009),
        "esp": ip4(C, S, 50, b"\0\0\x12\x34\0\0\0\1xspd:esp;" + bytes(40)),
        "ah": ip4(C, S, 51, b"\x11\4\0\0\0\0\x12\x34\0\0\0\1xspd:ah;" + bytes(52)),
        "error": ip4(C, S, 1, icmp(3, 1, quoted)),
        "echo": ip4(C, S, 1, icmp(8, 0, b"xspd:echo;")),
        "dhcp": ip4("0.0.0.0", S, 17, udp(67, "dhcp")),
        "optional": fwd("optional", 6000),
        "marked": fwd("marked", 7000),
        "exempt": ip4(C, S, 17, struct.pack("!HH", 1999, 999) + udp(1, "exempt")[4:]),
        "hdrincl": fwd("hdrincl", 1000),
        "first6": ip6(C6, S6, 44, b"\x11\0\0\1\0\0\0\7" + udp6(C6, S6, 1000, "first6")),
        "ns6": ip6(C6, S6, 58, icmp6(C6, S6, 135, 0, socket.inet_pton(socket.AF_INET6, S6) + b"xspd:ns6;")),
    }


def send(dev, mac, names):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    s.bind((dev, 0))
    known = frames()
    for word in names or known:
        name, _, times = word.partition("*")
        if name not in known:
            known.update(more())
        for _ in range(int(times or 1)):
            try:
                s.send(bytes.fromhex(mac.replace(":", "")) + s.getsockname()[4] + known[name])
            except OSError as e:
                if e.errno != errno.ENOBUFS:  # dropped on the way out
                    raise


def say(*words):
    print(*words, flush=True)


def arriving(dev):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    s.bind((dev, 3))
    say("ready")
    while True:
        frame, addr = s.recvfrom(4000)
        if addr[2] != socket.PACKET_OUTGOING and frame[12:14] in (b"\x08\0", b"\x86\xdd"):
            name = re.findall(rb"xspd:([a-z0-9-]+);", frame)
            yield frame, name[0].decode() if name else None


def all_frames(dev):
    for frame, name in arriving(dev):
        if name:
            say("frame", name, frame.hex())


def errors(dev):
    for frame, name in arriving(dev):
        at = 14 + (frame[14] & 15) * 4 if frame[12] == 8 else 54
        if name and frame[23 if frame[12] == 8 else 20] in (1, 58):
            say("error", frame[at], frame[at + 1], name)


def sockets(ports):
    socks = []
    for port in ports:
        s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        s.bind(("::", int(port)))
        socks.append(s)
    say("ready")
    while True:
        for s in select.select(socks, [], [])[0]:
            data = s.recv(4000)
            say("socket", s.getsockname()[1], data[5:].split(b";")[0].decode())


if __name__ == "__main__":
    command, args = sys.argv[1], sys.argv[2:]
    try:
        if command == "send":
            send(args[0], args[1], args[2:])
        elif command == "frames":
            all_frames(args[0])
        elif command == "errors":
            errors(args[0])
        else:
            sockets(args)
    except KeyboardInterrupt:
        pass
