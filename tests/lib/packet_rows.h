/* SPDX-License-Identifier: GPL-2.0-only */
/* Packets by rule, and the flow that XFRM makes of each. */
#ifndef XSPD_TESTS_PACKET_ROWS_H
#define XSPD_TESTS_PACKET_ROWS_H

#include "craft.h"
#include "../../bpf/lib/parse.h"

struct packet_row {
	const char *name;
	struct craft_spec spec;
	enum xspd_reason reason;
	uint8_t proto;
	uint16_t sport, dport; /* host order */
	enum xspd_frag frag;
	uint8_t flags; /* enum xspd_meta_flag */
};

/* A row is a line. */
/* clang-format off */
#define L4(n, ...) .l4_len = n, .l4 = {__VA_ARGS__}
#define EXT(n, ...) .ext_count = n, .ext = {__VA_ARGS__}
#define UDP_BYTES 0x12, 0x34, 0x56, 0x78, 0, 20
#define GRE_BYTES(...) 0xde, 0xad, 0xbe, 0xef, __VA_ARGS__
#define V4 .family = 4
#define V6 .family = 6
#define NEW XSPD_META_SINCE_6_7
#define RT XSPD_META_ROUTING

static const struct packet_row packet_rows[] = {
	/* ports: TCP, UDP, SCTP, UDPLITE */
	{"tcp4", {V4, .proto = 6, L4(20, UDP_BYTES)}, 0, 6, 0x1234, 0x5678},
	{"udp4", {V4, .proto = 17, L4(20, UDP_BYTES)}, 0, 17, 0x1234, 0x5678},
	{"sctp4", {V4, .proto = 132, L4(20, UDP_BYTES)}, 0, 132, 0x1234, 0x5678},
	{"udplite4", {V4, .proto = 136, L4(20, UDP_BYTES)}, 0, 136, 0x1234, 0x5678},
	{"tcp6", {V6, .proto = 6, L4(20, UDP_BYTES)}, 0, 6, 0x1234, 0x5678},
	{"udp6", {V6, .proto = 17, L4(20, UDP_BYTES)}, 0, 17, 0x1234, 0x5678},
	{"sctp6", {V6, .proto = 132, L4(20, UDP_BYTES)}, 0, 132, 0x1234, 0x5678},
	{"udplite6", {V6, .proto = 136, L4(20, UDP_BYTES)}, 0, 136, 0x1234, 0x5678},
	/* none: DCCP, ESP, AH, IPComp, tunnels, MH, "no next header" */
	{"dccp4", {V4, .proto = 33, L4(20, UDP_BYTES)}, 0, 33},
	{"esp4", {V4, .proto = 50, L4(20, UDP_BYTES)}, 0, 50},
	{"ah4", {V4, .proto = 51, L4(24, 6, 4, UDP_BYTES)}, 0, 51},
	{"ah6", {V6, .proto = 51, L4(24, 6, 4, UDP_BYTES)}, 0, 51},
	{"ipcomp6", {V6, .proto = 108, L4(20, UDP_BYTES)}, 0, 108},
	{"ipip", {V4, .proto = 4, L4(20, 0x45, UDP_BYTES)}, 0, 4},
	{"6in4", {V4, .proto = 41, L4(40, 0x60, UDP_BYTES)}, 0, 41},
	{"6in6", {V6, .proto = 41, L4(40, 0x60, UDP_BYTES)}, 0, 41},
	{"mh6", {V6, .proto = 135, L4(8, 59, 0, 5)}, 0, 135, .flags = NEW},
	{"none6", {V6, .proto = 59, L4(20, UDP_BYTES)}, 0, 59},
	{"hopopts in 4", {V4, .proto = 0, L4(20, 17, 0, UDP_BYTES)}, 0, 0},
	{"fragment header in 4", {V4, .proto = 44, L4(20, 17, 0, UDP_BYTES)}, 0, 44},
	{"dstopts in 4", {V4, .proto = 60, L4(20, 17, 0, UDP_BYTES)}, 0, 60},
	/* ICMP: type and code, if all of its header is there and it fits the family */
	{"echo4", {V4, .proto = 1, L4(8, 8, 3)}, 0, 1, 8, 3},
	{"echo6", {V6, .proto = 58, L4(8, 128, 1)}, 0, 58, 128, 1},
	{"icmp4 of 7", {V4, .proto = 1, L4(7, 8, 3)}, 0, 1, .flags = NEW},
	{"icmp6 of 7", {V6, .proto = 58, L4(7, 128, 1)}, 0, 58, .flags = NEW},
	{"icmp6 in 4", {V4, .proto = 58, L4(8, 128, 1)}, 0, 58},
	{"icmp4 in 6", {V6, .proto = 1, L4(8, 8, 3)}, 0, 1},
	/* short L4: four bytes or none */
	{"udp4 of 0", {V4, .proto = 17, L4(0)}, 0, 17},
	{"udp4 of 3", {V4, .proto = 17, L4(3, UDP_BYTES)}, 0, 17},
	{"udp4 of 4", {V4, .proto = 17, L4(4, UDP_BYTES)}, 0, 17, 0x1234, 0x5678},
	{"udp6 of 1", {V6, .proto = 17, L4(1, UDP_BYTES)}, 0, 17, .flags = NEW},
	{"udp6 of 3", {V6, .proto = 17, L4(3, UDP_BYTES)}, 0, 17},
	{"udp6 of 4", {V6, .proto = 17, L4(4, UDP_BYTES)}, 0, 17, 0x1234, 0x5678},
	/* padding is not L4 */
	{"padded udp4", {V4, .proto = 17, L4(2, UDP_BYTES), .pad = 40}, 0, 17},
	{"padded udp6", {V6, .proto = 17, L4(2, UDP_BYTES), .pad = 40}, 0, 17},
	{"padded icmp4", {V4, .proto = 1, L4(4, 8, 3), .pad = 40}, 0, 1, .flags = NEW},
	{"no payload length", {V6, .proto = 17, L4(8, UDP_BYTES), .no_length = 1},
	 0, 17, .flags = NEW},
	{"jumbogram", {V6, EXT(1, {0, 0}), .proto = 17, L4(8, UDP_BYTES), .no_length = 1},
	 0, 17, 0x1234, 0x5678, .flags = NEW},
	/* wrong lengths */
	{"tot_len beyond", {V4, .proto = 17, L4(8, UDP_BYTES), .length = 1}, XSPD_R_HEADER},
	{"tot_len below head", {V4, .proto = 17, L4(8, UDP_BYTES), .length = -9}, XSPD_R_HEADER},
	{"tot_len into L4", {V4, .proto = 17, L4(8, UDP_BYTES), .length = -5}, 0, 17},
	{"payload beyond", {V6, .proto = 17, L4(8, UDP_BYTES), .length = 1}, XSPD_R_HEADER},
	{"payload into L4", {V6, .proto = 17, L4(8, UDP_BYTES), .length = -5}, 0, 17},
	/* IPv4 options */
	{"one option word", {V4, .options = 1, .proto = 17, L4(8, UDP_BYTES)},
	 0, 17, 0x1234, 0x5678, .flags = RT},
	{"all option words", {V4, .options = 10, .proto = 6, L4(20, UDP_BYTES)},
	 0, 6, 0x1234, 0x5678, .flags = RT},
	{"options and echo", {V4, .options = 3, .proto = 1, L4(8, 8, 3)}, 0, 1, 8, 3, .flags = RT},
	/* extension headers, any order */
	{"hop", {V6, EXT(1, {0, 0}), .proto = 17, L4(8, UDP_BYTES)},
	 0, 17, 0x1234, 0x5678, .flags = NEW},
	{"routing", {V6, EXT(1, {43, 2}), .proto = 17, L4(8, UDP_BYTES)},
	 0, 17, 0x1234, 0x5678, .flags = NEW | RT},
	{"dst routing hop", {V6, EXT(3, {60, 1}, {43, 7}, {0, 3}), .proto = 6, L4(20, UDP_BYTES)},
	 0, 6, 0x1234, 0x5678, .flags = NEW | RT},
	{"hop and echo", {V6, EXT(2, {0, 0}, {60, 0}), .proto = 58, L4(8, 128, 1)},
	 0, 58, 128, 1, .flags = NEW},
	{"hop and ah", {V6, EXT(1, {0, 0}), .proto = 51, L4(24, 6, 4)}, 0, 51, .flags = NEW},
	{"eight", {V6, EXT(8, {60, 0}, {60, 1}, {60, 0}, {60, 0}, {60, 0}, {60, 0}, {60, 0}, {60, 0}),
	  .proto = 17, L4(8, UDP_BYTES)},
	 0, 17, 0x1234, 0x5678, .flags = NEW},
	{"nine", {V6, EXT(9, {60, 0}, {60, 1}, {60, 0}, {60, 0}, {60, 0}, {60, 0}, {60, 0}, {60, 0}, {60, 0}),
	  .proto = 17, L4(8, UDP_BYTES)},
	 XSPD_R_HEADER},
	{"dstopts cut", {V6, .proto = 60, L4(1, 17, 0)}, 0, 60, .flags = NEW},
	{"dstopts past the end", {V6, .proto = 60, L4(8, 17, 200)}, 0, 17, .flags = NEW},
	/* fragments: no ports, whatever they hold */
	{"first4", {V4, .frag = CRAFT_FIRST, .proto = 17, L4(8, UDP_BYTES)},
	 0, 17, .frag = XSPD_FRAG_FIRST},
	{"middle4", {V4, .frag = CRAFT_MIDDLE, .proto = 6, L4(20, UDP_BYTES)},
	 0, 6, .frag = XSPD_FRAG_LATER},
	{"last4", {V4, .frag = CRAFT_LAST, .proto = 1, L4(8, 8, 3)}, 0, 1, .frag = XSPD_FRAG_LATER},
	{"first gre4", {V4, .frag = CRAFT_FIRST, .proto = 47, L4(8, 0x20, 0, 8, 0, GRE_BYTES(0))},
	 0, 47, .frag = XSPD_FRAG_FIRST},
	{"df4", {V4, .frag = CRAFT_ATOMIC, .proto = 17, L4(8, UDP_BYTES)}, 0, 17, 0x1234, 0x5678},
	{"first6", {V6, .frag = CRAFT_FIRST, .proto = 17, L4(8, UDP_BYTES)},
	 0, 17, .frag = XSPD_FRAG_FIRST, .flags = NEW},
	{"middle6", {V6, .frag = CRAFT_MIDDLE, .proto = 58, L4(8, 128, 1)},
	 0, 58, .frag = XSPD_FRAG_LATER, .flags = NEW},
	{"last6", {V6, .frag = CRAFT_LAST, .proto = 6, L4(20, UDP_BYTES)},
	 0, 6, .frag = XSPD_FRAG_LATER, .flags = NEW},
	{"atomic6", {V6, .frag = CRAFT_ATOMIC, .proto = 17, L4(8, UDP_BYTES)},
	 0, 17, .frag = XSPD_FRAG_FIRST, .flags = NEW},
	{"hop first6", {V6, EXT(1, {0, 0}), .frag = CRAFT_FIRST, .proto = 17, L4(8, UDP_BYTES)},
	 0, 17, .frag = XSPD_FRAG_FIRST, .flags = NEW},
	{"options in first6", {V6, .frag = CRAFT_FIRST, .inner = 60, .proto = 17, L4(8, UDP_BYTES)},
	 XSPD_R_HEADER},
	{"fragment header cut", {V6, .proto = 44, L4(7, 17, 0)}, 0, 44, .flags = NEW},
	/* GRE: the key */
	{"gre key", {V4, .proto = 47, L4(12, 0x20, 0, 8, 0, GRE_BYTES(0))}, 0, 47, 0xdead, 0xbeef},
	{"gre key6", {V6, .proto = 47, L4(12, 0x20, 0, 8, 0, GRE_BYTES(0))}, 0, 47, 0xdead, 0xbeef},
	{"gre key seq", {V4, .proto = 47, L4(16, 0x30, 0, 8, 0, GRE_BYTES(0))},
	 0, 47, 0xdead, 0xbeef},
	{"gre csum key", {V4, .proto = 47, L4(16, 0xa0, 0, 8, 0, 9, 9, 0, 0, GRE_BYTES(0))},
	 0, 47, 0xdead, 0xbeef},
	{"gre no key", {V4, .proto = 47, L4(16, 0x90, 0, 8, 0, GRE_BYTES(0))}, 0, 47},
	{"gre routing", {V4, .proto = 47, L4(16, 0x60, 0, 8, 0, GRE_BYTES(0))},
	 0, 47, .flags = NEW},
	{"gre teb", {V4, .proto = 47, L4(12, 0x20, 0, 0x65, 0x58, GRE_BYTES(0))},
	 0, 47, 0xdead, 0xbeef},
	{"pptp", {V4, .proto = 47, L4(16, 0x20, 0x81, 0x88, 0x0b, GRE_BYTES(0))},
	 0, 47, 0, 0xbeef, .flags = NEW},
	{"version 1 without ppp", {V4, .proto = 47, L4(16, 0x20, 1, 8, 0, GRE_BYTES(0))},
	 0, 47, .flags = NEW},
	{"version 2", {V4, .proto = 47, L4(16, 0x20, 2, 8, 0, GRE_BYTES(0))}, 0, 47, .flags = NEW},
	{"gre key cut", {V4, .proto = 47, L4(7, 0x20, 0, 8, 0, GRE_BYTES(0))}, 0, 47, .flags = NEW},
	{"gre key at the end", {V4, .proto = 47, L4(8, 0x20, 0, 8, 0, GRE_BYTES(0))},
	 0, 47, 0xdead, 0xbeef, .flags = NEW},
	{"gre cut", {V4, .proto = 47, L4(3, 0x20, 0, 8, 0)}, 0, 47},
	/* VLAN tags in the bytes */
	{"one tag", {V4, .tags = 1, .proto = 17, L4(8, UDP_BYTES)}, 0, 17, 0x1234, 0x5678},
	{"two tags", {V6, .tags = 2, .proto = 17, L4(8, UDP_BYTES)}, 0, 17, 0x1234, 0x5678},
	{"three tags", {V4, .tags = 3, .proto = 17, L4(8, UDP_BYTES)}, XSPD_R_HEADER},
};
/* clang-format on */
#define PACKET_ROWS (sizeof(packet_rows) / sizeof(packet_rows[0]))

#endif
