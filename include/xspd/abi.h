/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The structures shared by the BPF programs, user space and every reader of
 * the pinned maps.  Sizes are asserted; a change of any layout is a new
 * XSPD_ABI_VERSION (the pin directory carries it).
 *
 * Addresses and ports are in network byte order, everything else is in host
 * order.  A zeroed struct is always safe: verdict 0 is DEFER.
 */
#ifndef XSPD_ABI_H
#define XSPD_ABI_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

#define XSPD_ABI_VERSION 1

/* enums are one byte wide so that bpftool prints their names, not numbers */
#define XSPD_PACKED __attribute__((packed))

/* XFRM_POLICY_IN, _OUT, _FWD (uapi/linux/xfrm.h) */
enum xspd_dir {
	XSPD_IN = 0,
	XSPD_OUT = 1,
	XSPD_FWD = 2,
	XSPD_DIR_MAX_ = 3,
	/* none of the kernel's: out, over all if_ids but 0, where xspd_conf.steer says it is kept */
	XSPD_STEER = 3,
} XSPD_PACKED;

/* XFRM_POLICY_TYPE_MAIN, _SUB */
enum xspd_type {
	XSPD_MAIN = 0,
	XSPD_SUB = 1,
	XSPD_TYPE_MAX_ = 2,
	/* deleted policies that the guard still goes by; never looked up otherwise */
	XSPD_GONE_MAIN = 2,
	XSPD_GONE_SUB = 3,
	XSPD_TYPE_ALL_ = 4,
} XSPD_PACKED;

/* XFRM_POLICY_ALLOW, _BLOCK */
enum xspd_action {
	XSPD_ALLOW = 0,
	XSPD_BLOCK = 1,
} XSPD_PACKED;

/* AF_INET, AF_INET6 */
enum xspd_family {
	XSPD_UNSPEC = 0,
	XSPD_INET = 2,
	XSPD_INET6 = 10,
} XSPD_PACKED;

enum xspd_verdict {
	XSPD_DEFER = 0,	  /* the kernel decides */
	XSPD_PLAIN = 1,	  /* passes without IPsec: no policy, or allow without a required template */
	XSPD_PROTECT = 2, /* allow with a required template */
	XSPD_DENY = 3,	  /* block policy, or no policy and the direction's default is block */
	XSPD_VERDICT_MAX_ = 4,
} XSPD_PACKED;

/*
 * Why an answer is what it is.  Names in user/reason.c, in the same order.
 * Everything from XSPD_R_SHORT on comes with XSPD_DEFER.
 */
enum xspd_reason {
	XSPD_R_NONE = 0,	/* nothing was asked */
	XSPD_R_BYPASS,		/* an allow policy without a required template */
	XSPD_R_PROTECT,		/* an allow policy with one */
	XSPD_R_BLOCK,		/* a block policy */
	XSPD_R_NO_POLICY,	/* no policy fits, default accept */
	XSPD_R_DEFAULT_BLOCK,	/* no policy fits, default block */
	XSPD_R_SHORT,		/* the packet ends before its headers do */
	XSPD_R_NOT_IP,		/* neither IPv4 nor IPv6: XFRM is not asked */
	XSPD_R_HEADER,		/* malformed or too many headers to follow */
	XSPD_R_UNKNOWN_MARK,	/* the winner could hang on the mark, unknown here */
	XSPD_R_UNKNOWN_OIF,	/* ... on the outgoing device */
	XSPD_R_UNKNOWN_PORTS,	/* ... on the ports (a fragment) */
	XSPD_R_TIE,		/* equal priorities whose order is not certain */
	XSPD_R_UNMODELLED,	/* a policy with a security context or packet offload could win */
	XSPD_R_CHAIN,		/* too many policies under one masked key */
	XSPD_R_BUSY,		/* the SPD changed during each of the attempts */
	XSPD_R_DOUBT,		/* the mirror may differ from the kernel (enum xspd_doubt) */
	XSPD_R_LEASE,		/* the daemon has not been heard of for too long */
	XSPD_R_ESP,		/* ESP, AH or IPComp that the kernel may not check here */
	XSPD_R_NO_ROUTE,	/* the kernel will not deliver or forward it, or by a route unseen */
	XSPD_R_MULTICAST,	/* multicast or broadcast: may go several ways */
	XSPD_R_ERROR,		/* a map lookup failed that cannot fail */
	XSPD_R_ICMP_ERROR,	/* an ICMP error: the kernel may look up the packet it quotes */
	XSPD_R_MAX_,
} XSPD_PACKED;

/* Bits of xspd_conf.doubt; while any is set every answer is DEFER. */
enum xspd_doubt {
	XSPD_DOUBT_START = 1,		/* no full dump yet */
	XSPD_DOUBT_LOST_EVENTS = 2,	/* ENOBUFS */
	XSPD_DOUBT_DUMPING = 4,		/* a re-dump is under way */
	XSPD_DOUBT_COUNT_MISMATCH = 8,	/* GETSPDINFO counts differ from the mirror's */
	XSPD_DOUBT_UNMODELLED = 16,	/* a message that xspd does not understand */
	XSPD_DOUBT_GROWING = 32,	/* the maps are full, a larger set is being built */
	XSPD_DOUBT_STOPPED = 64,	/* the daemon ended in good order */
};
#define XSPD_DOUBT_BITS 7

/* Bits of xspd_flow.unknown: fields that cannot be known where it is asked. */
enum xspd_unknown {
	XSPD_UNKNOWN_MARK = 1,
	XSPD_UNKNOWN_OIF = 2,
	XSPD_UNKNOWN_PORTS = 4,
};

enum xspd_frag {
	XSPD_FRAG_NONE = 0,
	XSPD_FRAG_FIRST = 1,
	XSPD_FRAG_LATER = 2, /* IPv6 atomic fragments count as XSPD_FRAG_FIRST */
} XSPD_PACKED;

/*
 * A flow as xfrm_policy_match() sees it (struct flowi).  IPv4 addresses are in
 * word 0, the other words are 0.  Ports follow the kernel's dissection: ICMP
 * has sport = type and dport = code, GRE has sport = key >> 16 and dport = key
 * & 0xffff, both in network order; every fragment has ports 0.
 */
struct xspd_flow {
	__be32 daddr[4];
	__be32 saddr[4];
	__be16 dport;
	__be16 sport;
	__u32 mark;
	__u32 oif;   /* flowi_oif (in: loopback, fwd/out: egress) */
	__u32 if_id; /* XFRM interface id, 0 = none */
	__u8 proto;
	enum xspd_family family;
	enum xspd_dir dir;
	enum xspd_frag frag; /* informative; matching uses the ports above */
	__u32 unknown;	     /* enum xspd_unknown */
	__u32 pad[2];
};
_Static_assert(sizeof(struct xspd_flow) == 64, "map ABI");

/*
 * Slot numbers index xspd_policy, xspd_info and xspd_count; 0 is no policy.
 * slot2 is the main policy that is asked after a sub policy was found (in and
 * fwd: in direction in, as __xfrm_policy_check() does).  Asked with XSPD_STEER, index2 is the
 * if_id (0: none for certain), also where only the policy is uncertain (XSPD_R_TIE).
 */
struct xspd_answer {
	__u32 slot;
	__u32 slot2;
	__u32 index; /* kernel index of slot, filled by xspd_query only */
	__u32 index2;
	enum xspd_verdict verdict;
	enum xspd_reason reason;
	__u16 tuples; /* mask classes probed */
	__u32 generation_lo;
};
_Static_assert(sizeof(struct xspd_answer) == 24, "map ABI");

/*
 * What BPF_PROG_TEST_RUN of xspd_query takes as data_in and returns as
 * data_out: up to XSPD_QUERY_MAX of these, which is what a page has room for.
 * @eth stands for the Ethernet header the kernel insists on.
 */
#define XSPD_QUERY_MAX 32
struct xspd_query {
	__u8 eth[16];
	struct xspd_flow flow;
	struct xspd_answer answer;
};
_Static_assert(sizeof(struct xspd_query) == 104, "map ABI");

/* Bits of xspd_policy.flags */
enum xspd_policy_flag {
	XSPD_P_BLOCK = 1,      /* action block */
	XSPD_P_PROTECT = 2,    /* allow, with a template that must be met */
	XSPD_P_TIE = 4,	       /* its order among equal priorities is not certain */
	XSPD_P_UNMODELLED = 8, /* may match or not (security context), or win out of order (offload) */
	XSPD_P_MARK = 16,      /* IPv6 with a mark: value and mask are in xspd_info */
	XSPD_P_APART = 32,     /* its order is certain only among policies of its prefix lengths */
	XSPD_P_MANY = 64,      /* XSPD_STEER: stands for several of one selector and priority */
	XSPD_P_IFIDS = 128,     /* ... of different if_ids */
};

/*
 * xspd_policy: one record a slot, one cache line.  Values are stored already
 * masked.  Prefix lengths stay beside the addresses since a policy may be
 * stored under a shorter mask (coarsening) and is verified whole.
 */
struct xspd_policy {
	union {
		struct {
			__be32 daddr;
			__be32 saddr;
			__be32 dmask;
			__be32 smask;
			__u32 mark;
			__u32 mark_mask;
			__u32 pad[2];
		} v4;
		struct {
			__be32 daddr[4];
			__be32 saddr[4];
		} v6;
	};
	__be16 dport;
	__be16 dport_mask;
	__be16 sport;
	__be16 sport_mask;
	__u32 ifindex;	/* 0 = any */
	__u32 part;	/* partition number, index into xspd_part */
	__u32 priority; /* lower wins */
	__u32 pos;	/* equal priorities: lower (older) wins */
	__u32 next;	/* slot of the next in the chain, priority ascending; 0 = end */
	__u8 dlen;
	__u8 slen;
	__u8 proto; /* 0 = any */
	__u8 flags; /* enum xspd_policy_flag */
};
_Static_assert(sizeof(struct xspd_policy) == 64, "map ABI");

/*
 * xspd_info: what people and tools read of a slot.  index 0 marks a free slot.
 * The selector is given as the kernel stores it, host bits included, so that
 * it names the policy (xfrm_policy_insert).
 */
struct xspd_info {
	__u32 index; /* xfrm_userpolicy_info.index */
	enum xspd_dir dir;
	enum xspd_type type;
	enum xspd_family family;
	enum xspd_action action;
	__u8 daddr[16];
	__u8 saddr[16];
	__be16 dport;
	__be16 dport_mask;
	__be16 sport;
	__be16 sport_mask;
	__u8 dlen;
	__u8 slen;
	__u8 proto;
	__u8 flags; /* XFRM_POLICY_LOCALOK, _ICMP as in the kernel */
	__u32 ifindex;
	__u32 priority;
	__u32 pos;
	__u32 mark;
	__u32 mark_mask;
	__u32 if_id;
	__u32 reqid;	      /* of the first template */
	__u8 tmpl_count;      /* 0..6 */
	__u8 tmpl_required;   /* how many of them are not optional */
	__u8 tmpl_proto;      /* of the first template: IPPROTO_ESP, ... */
	__u8 tmpl_mode;	      /* XFRM_MODE_TRANSPORT 0, TUNNEL 1, BEET 4 */
	__u8 tmpl_daddr[16];  /* zero in transport mode */
	__u8 tmpl_saddr[16];
	__u8 tmpl_family;
	__u8 policy_flags; /* enum xspd_policy_flag, as in xspd_policy */
	__u16 pad;
	union {
		__u32 user;  /* selector.user, not matched by the kernel */
		__u32 alias; /* XSPD_STEER, index 0: slot of the one policy it stands for, or 0 */
	};
	__u32 hit;	   /* a packet has met it */
	__u64 base_packets; /* counted before this slot was taken; subtract/add to xspd_count */
	__u64 base_bytes;
	__u64 base_acted;
	__u64 gone_until; /* XSPD_GONE_*: CLOCK_MONOTONIC, ns */
};
_Static_assert(sizeof(struct xspd_info) == 160, "map ABI");

/* xspd_bucket: eight (tag, slot) pairs, one cache line.  slot 0 = empty. */
#define XSPD_BUCKET_ENTRIES 8
#define XSPD_TAG_ANY 0xffffffffu /* the bucket's overflow chain: any key may be in it */
struct xspd_entry {
	__u32 tag;
	__u32 slot;
};
struct xspd_bucket {
	struct xspd_entry entry[XSPD_BUCKET_ENTRIES];
};
_Static_assert(sizeof(struct xspd_bucket) == 64, "map ABI");

/*
 * xspd_list: records of one mask class ("tuple"), one cache line each.  The
 * tuples of a partition stand in one run, best first.
 */
struct xspd_tuple {
	__u64 dmask[2]; /* IPv6, memory order; IPv4: dmask[0] masks the word saddr:daddr */
	__u64 smask[2];
	__u64 best;	  /* lower bound of priority << 32 | pos of its policies */
	__u32 ports_mask; /* as the word sport:dport lies in xspd_flow */
	__u32 mark_mask;
	__u32 seed; /* tells tuples and partitions apart in the hash */
	__u16 id;   /* its bit in the trie bitmaps */
	__u8 proto_mask;
	__u8 dev;	/* ifindex is part of the key */
	__u8 dlen;
	__u8 slen;
	__u16 pad;
	__u32 policies; /* informative */
};
_Static_assert(sizeof(struct xspd_tuple) == 64, "map ABI");

#define XSPD_TUPLES 256	   /* a partition's most, and the bits of a bitmap */

/* xspd_part: a partition's tuple list.  ref is swapped in one aligned store. */
enum xspd_part_flag {
	XSPD_PART_TIES = 1,  /* holds one with XSPD_P_TIE or _APART: all equal priorities must be seen */
	XSPD_PART_PRUNE = 2, /* the tries are filled and worth asking */
	XSPD_PART_DEFER = 4, /* cannot be represented: answer DEFER */
};
struct xspd_part {
	__u64 ref; /* first list record << 32 | tuples << 16 | flags */
	__u32 if_id;
	enum xspd_dir dir;
	enum xspd_type type;
	enum xspd_family family;
	__u8 pad;
};
_Static_assert(sizeof(struct xspd_part) == 16, "map ABI");

/* Partitions with if_id 0 have fixed numbers, the others are found in xspd_ifid. */
#define XSPD_PARTS_FIXED 32
#define XSPD_PART_FIXED(type, dir, v6) (((type) * 4 + (dir)) * 2 + (v6))
#define XSPD_PART_STEERS(part) ((part) < XSPD_PARTS_FIXED && ((part) >> 1 & 3) == XSPD_STEER)

/* xspd_ifid: key of a partition with an if_id; the value is its number. */
struct xspd_ifid_key {
	__u32 if_id;
	enum xspd_dir dir;
	enum xspd_type type;
	enum xspd_family family;
	__u8 pad;
};
_Static_assert(sizeof(struct xspd_ifid_key) == 8, "map ABI");

/* xspd_dst, xspd_src: inexact prefix of a partition -> tuples that can match below it. */
struct xspd_trie_key {
	__u32 prefixlen; /* 32 + the prefix length */
	__be32 part;
	__u8 addr[16]; /* IPv4: the first four bytes */
};
struct xspd_trie_val {
	__u64 tuples[XSPD_TUPLES / 64];
};
_Static_assert(sizeof(struct xspd_trie_key) == 24, "map ABI");
_Static_assert(sizeof(struct xspd_trie_val) == 32, "map ABI");

/* xspd_count: per CPU and slot. */
struct xspd_count {
	__u64 packets;
	__u64 bytes;
	__u64 last;  /* CLOCK_MONOTONIC, ns, coarse; 0 = never */
	__u64 acted; /* of the packets: dropped, forwarded or marked early (dry run: would have been) */
};
_Static_assert(sizeof(struct xspd_count) == 32, "map ABI");

/* Bits of xspd_known.flags. */
enum xspd_known_flag {
	XSPD_KNOWN_FIB = 1,    /* the route was looked up in the FIB of generation fib */
	XSPD_KNOWN_SOURCE = 2, /* ... and the way back to the source too: */
	XSPD_KNOWN_FITS = 4,   /* it leads to where the packet came from */
};

/*
 * What is known of a flow.  Of one direction: its answer.  Of a packet received: how it is
 * routed, and the answers for in, or for fwd and out.
 */
struct xspd_known {
	__u32 slot[2];
	__u32 slot2[2];
	__u32 oif;
	__u32 fib;
	enum xspd_reason reason[2];
	__u8 route; /* enum xspd_route */
	__u8 flags; /* enum xspd_known_flag */
};
_Static_assert(sizeof(struct xspd_known) == 28, "map ABI");

/*
 * xspd_cache, xspd_cache6: per CPU (its entries stand in one run) and flow: everything
 * the answers hung on, and the answers.  Valid only in its generation.
 */
struct xspd_cache4 {
	__u64 generation;
	__u64 addr;	  /* saddr:daddr */
	__u64 ports_mark; /* sport:dport, mark */
	__u32 where;	  /* if_id; of a packet received: the device */
	__u32 rest;	  /* proto, what was asked, unknown, tos */
	struct xspd_known known;
	__u32 pad;
};
_Static_assert(sizeof(struct xspd_cache4) == 64, "map ABI");

struct xspd_cache6 {
	__u64 generation;
	__u64 daddr[2];
	__u64 saddr[2];
	__u64 ports_mark;
	__u32 where;
	__u32 rest;
	struct xspd_known known;
	__u32 pad[11];
};
_Static_assert(sizeof(struct xspd_cache6) == 128, "map ABI");

/* xspd_cache_cpu: how the cache fares, per CPU. */
struct xspd_cache_cpu {
	__u64 hits;
	__u64 misses;
	__u32 window_hits; /* of the present window */
	__u32 window;	   /* lookups in it so far */
	__u32 sparing;	   /* few hit: only some entries are used */
	__u32 skip;	   /* the last lookup's entry was not */
};
_Static_assert(sizeof(struct xspd_cache_cpu) == 32, "map ABI");

/*
 * xspd_stat: per CPU, indexed by (asked * XSPD_HOOK_MAX_ + hook) * XSPD_R_MAX_ + reason; asked is 0
 * where no question was asked, else 1 + its direction.
 */
#define XSPD_ASKED_MAX_ (1 + XSPD_DIR_MAX_)
enum xspd_hook {
	XSPD_HOOK_XDP = 0,
	XSPD_HOOK_INGRESS = 1,
	XSPD_HOOK_EGRESS = 2,
	XSPD_HOOK_MAX_ = 3,
};
struct xspd_stat {
	__u64 packets;
	__u64 bytes;
};
_Static_assert(sizeof(struct xspd_stat) == 16, "map ABI");

/* xspd_jump_tc: where the steering program is, and the one that sets the if_id it has found, if
 * there are any.
 */
#define XSPD_JUMP_STEER_AT 2
#define XSPD_JUMP_IF_ID_AT 3

/* xspd_mode: what a hook of a device does beside counting. No entry: nothing. */
enum xspd_mode_flag {
	XSPD_MODE_MARK = 1,	   /* tc: skb mark, priority, classid from xspd_mark */
	XSPD_MODE_ENFORCE = 2,	   /* ingress, XDP: drop what the kernel is certain to drop */
	XSPD_MODE_BYPASS = 4,	   /* XDP: forward plain traffic past the stack */
	XSPD_MODE_STEER = 8,	   /* egress of a collect-metadata xfrm interface: set the if_id */
	XSPD_MODE_GUARD = 0x10,	   /* egress: count plaintext that had to be protected */
	XSPD_MODE_DRY_RUN = 0x100, /* count what would be done, do nothing */
	XSPD_MODE_NETFILTER = 0x200, /* the operator vouches for netfilter: it changes no verdict */
	XSPD_MODE_SECPATH = 0x400, /* XDP in generic mode: decrypted packets pass here too */
	XSPD_MODE_DROP = 0x800,	   /* guard: drop it, too */
};
struct xspd_mode_key {
	__u32 ifindex;
	__u32 hook; /* enum xspd_hook */
};
struct xspd_mode {
	__u32 flags; /* enum xspd_mode_flag */
	__u8 mac[6]; /* bypass: the device's address; frames to others are not for us */
	__u16 linger; /* guard: seconds for which deleted policies count */
};
_Static_assert(sizeof(struct xspd_mode_key) == 8, "map ABI");
_Static_assert(sizeof(struct xspd_mode) == 12, "map ABI");

/* Bits of xspd_conf.env: why the packet may not be what the kernel will look up. */
enum xspd_env {
	XSPD_ENV_NETFILTER_PRE = 1,  /* hooks before the fwd check: NAT, marks */
	XSPD_ENV_NETFILTER_IN = 2,   /* hooks before the in check: marks */
	XSPD_ENV_NETFILTER_ANY = 4,  /* any rule or conntrack on the forwarding path */
	XSPD_ENV_SYSCTL = 8,	     /* disable_policy or disable_xfrm set on a device other than lo */
};

/*
 * xspd_exempt: local traffic that is never dropped, since its socket has policies of its own.  A set:
 * the map's values, __u32, mean nothing.
 */
struct xspd_exempt {
	__be16 dport;
	__u8 proto;
	__u8 pad;
};
_Static_assert(sizeof(struct xspd_exempt) == 4, "map ABI");

/* xspd_mark: what XSPD_MODE_MARK writes, by policy index, else by reqid. */
enum xspd_mark_kind { XSPD_MARK_INDEX = 0, XSPD_MARK_REQID = 1 };
struct xspd_mark_key {
	__u32 kind;  /* enum xspd_mark_kind */
	__u32 value; /* an xfrm_userpolicy_info.index, or an xfrm_user_tmpl.reqid */
};
/* Bits of xspd_mark.set: which of the fields are to be written. */
enum xspd_mark_set { XSPD_MARK_MARK = 1, XSPD_MARK_PRIORITY = 2, XSPD_MARK_CLASSID = 4 };
struct xspd_mark {
	__u32 set;  /* enum xspd_mark_set */
	__u32 mark; /* skb->mark, in the bits of mark_mask */
	__u32 mark_mask;
	__u32 priority; /* skb->priority */
	__u32 classid;	/* __sk_buff.tc_classid: major << 16 | minor */
};
_Static_assert(sizeof(struct xspd_mark_key) == 8, "map ABI");
_Static_assert(sizeof(struct xspd_mark) == 20, "map ABI");

/*
 * What the modes did, or why they did not although the answer called for it.
 * xspd_act: per CPU, indexed by hook * XSPD_A_MAX_ + act. Names in user/reason.c.
 */
enum xspd_act {
	XSPD_A_NONE = 0,
	XSPD_A_MARKED,
	XSPD_A_DROP_BLOCK,   /* a block policy */
	XSPD_A_DROP_DEFAULT, /* no policy, and the default is block */
	XSPD_A_DROP_PLAIN,   /* plaintext that had to be protected */
	XSPD_A_FORWARDED,    /* past the stack */
	XSPD_A_KEEP_EXEMPT,  /* IKE, or a port of the exempt list */
	XSPD_A_KEEP_PROTO,   /* a protocol whose handler may not check */
	XSPD_A_KEEP_FRAGMENT,
	XSPD_A_KEEP_ICMP,    /* an ICMP error: judged by what it quotes */
	XSPD_A_KEEP_NETFILTER,
	XSPD_A_KEEP_SYSCTL,
	XSPD_A_KEEP_SECPATH, /* came out of IPsec: the kernel compares the templates */
	XSPD_A_KEEP_OPTIONS, /* IPv4 options, routing headers */
	XSPD_A_KEEP_TTL,     /* 1: an ICMP error is due first */
	XSPD_A_KEEP_LOOPBACK,
	XSPD_A_KEEP_GENERIC, /* XDP in generic mode cannot tell what came out of IPsec */
	XSPD_A_UP_FIB,	     /* bypass: no neighbour, MTU exceeded, or not forwarded */
	XSPD_A_UP_PORT,	     /* bypass: the other device is not a bypass device */
	XSPD_A_UP_VERDICT,   /* bypass: not plain in both directions */
	XSPD_A_KEEP_ROUTE,   /* perhaps not for us, but without a route: an ICMP error is due */
	XSPD_A_LEAK,	       /* guard: plaintext leaves that an out policy wants protected */
	XSPD_A_LEAK_GONE,      /* ... a policy deleted a moment ago */
	XSPD_A_DROP_LEAK,      /* the same, dropped */
	XSPD_A_DROP_LEAK_GONE,
	XSPD_A_KEEP_OPTIONAL,  /* guard: the policy's templates may leave it as it is */
	XSPD_A_KEEP_LINK,      /* guard: for the link: neighbour discovery, multicast, no address yet */
	XSPD_A_KEEP_DOUBT,     /* guard: whether a deleted policy took it cannot be known */
	XSPD_A_STEERED,	     /* got the if_id of its policy */
	XSPD_A_UNSTEERED,    /* no policy, or none for certain: the reason is counted */
	XSPD_A_KEEP_QUEUE,   /* steer: behind a qdisc it could get the if_id of another packet */
	XSPD_A_KEEP_METADATA, /* steer: another program has given it one */
	XSPD_A_MAX_,
} XSPD_PACKED;

/*
 * What a packet was sampled for.  Programs put samples into the ring xspd_ring, so many a
 * second and CPU; the daemon moves them to xspd_sample, where they stay until overwritten.
 */
enum xspd_sample_kind {
	XSPD_S_NONE = 0,
	XSPD_S_FIRST, /* the first packet of a policy */
	XSPD_S_DENY,  /* the kernel is about to drop it */
	XSPD_S_DROP,  /* dropped here */
	XSPD_S_WOULD, /* ... or would have been, in a dry run */
	XSPD_S_LEAK,  /* the guard let it go */
	XSPD_S_MAX_,
} XSPD_PACKED;
struct xspd_sample {
	__u64 seq;  /* 0: empty, or being written; its place is seq % XSPD_SAMPLES */
	__u64 time; /* CLOCK_REALTIME, ns; in the ring CLOCK_MONOTONIC */
	__be32 daddr[4];
	__be32 saddr[4];
	__be16 dport;
	__be16 sport;
	__u32 mark;
	__u32 ifindex; /* of the hook */
	__u32 slot;
	__u32 index; /* of the policy, 0: none */
	__u32 bytes;
	__u32 missed; /* samples that this CPU left out since its last */
	__u8 proto;
	enum xspd_family family;
	enum xspd_dir dir;
	enum xspd_frag frag;
	__u8 hook;
	enum xspd_reason reason;
	enum xspd_act act;
	enum xspd_sample_kind kind;
};
_Static_assert(sizeof(struct xspd_sample) == 88, "map ABI");
#define XSPD_SAMPLES	 1024
#define XSPD_SAMPLE_RING 65536 /* bytes */

/* xspd_change: what has happened to the SPD, kept until overwritten, across restarts too. */
enum xspd_change_what {
	XSPD_C_NONE = 0,
	XSPD_C_ADD,
	XSPD_C_UPDATE,
	XSPD_C_DELETE,
	XSPD_C_EXPIRE,
	XSPD_C_FLUSH,	/* count policies of type after.type */
	XSPD_C_DEFAULT, /* count: the defaults, as in xspd_conf; was: as they were */
	XSPD_C_ALARM,	/* count of was policies deleted within a second */
	XSPD_C_START,	/* the daemon read count policies */
	XSPD_C_LOST,	/* events were lost: what follows from a re-read is marked so */
	XSPD_C_MAX_,
} XSPD_PACKED;
struct xspd_changed {
	__u64 seq;  /* 0: empty, or being written; its place is seq % XSPD_CHANGES */
	__u64 time; /* CLOCK_REALTIME, ns */
	enum xspd_change_what what;
	__u8 reread; /* found by reading all policies again: when it happened is not known */
	__u16 pad;
	__u32 pid; /* of the request, 0: not told */
	__u32 count;
	__u32 was;
	char comm[16]; /* name of that process */
	__u8 pad2[16];
	struct xspd_info before; /* index 0: none */
	struct xspd_info after;
};
_Static_assert(sizeof(struct xspd_changed) == 384, "map ABI");
#define XSPD_CHANGES 8192

/* xspd_source: what the benchmark's frames look like (xspd_frame), and how many arrived. */
struct xspd_source {
	__u32 ifindex; /* they are sent through it */
	__u32 count;   /* flows of xspd_flows to take in turn; IPv4, UDP */
	__u32 next;
	__u8 macs[12]; /* destination, source */
};
_Static_assert(sizeof(struct xspd_source) == 24, "map ABI");

#define XSPD_LAGS 12

/* By what the rules route that bpf_fib_lookup() is not told (fib_rule_match()), at most. */
enum xspd_rules {
	XSPD_RULES_SEEN = 0,
	XSPD_RULES_MARK = 1,   /* by skb->mark */
	XSPD_RULES_TUNNEL = 2, /* by tunnel id, which no packet shows; or nobody knows by what */
};

/*
 * xspd_conf: one record.  The first cache line is read for every packet; the
 * rest is what `xspd status` shows.  Only the daemon writes it.
 */
struct xspd_conf {
	__u32 abi;	   /* XSPD_ABI_VERSION */
	__u32 doubt;	   /* enum xspd_doubt */
	__u64 generation;  /* +2 with every published change; odd while one is in the making */
	__u64 lease_until; /* CLOCK_MONOTONIC, ns */
	__u32 defaults;	   /* bit 1 << dir: that direction's default is block */
	__u32 env;	   /* enum xspd_env */
	__u32 route_mtu;   /* the smallest MTU that a route has of its own; 0: none has */
	__u32 steer;	   /* 0, or XSPD_STEER is kept: its records plus one */
	__u32 route_many;  /* not 0: a route has several next hops, or may have */
	__u32 route_rules; /* enum xspd_rules */
	__u64 pad1[2];

	__u32 pid;
	__u32 lease_ms;
	__u64 netns_ino;	/* of the mirrored namespace */
	__u64 started;		/* CLOCK_REALTIME, ns */
	__u64 doubt_since;	/* CLOCK_REALTIME, ns; 0 = none */
	__u64 doubts;		/* times doubt was raised */
	__u64 events;		/* netlink messages applied */
	__u64 lost;		/* times ENOBUFS was seen */
	__u64 dumps;
	__u64 swaps;		/* sets of maps put into service by this daemon */
	__u32 policies;
	__u32 tuples;
	__u32 parts;
	__u32 ties;		/* policies with XSPD_P_TIE */
	__u32 unmodelled;	/* policies with XSPD_P_UNMODELLED */
	__u32 slots;		/* capacity */
	__u32 buckets;
	__u32 cpus;
	__u64 map_bytes;	/* for matching: policy, bucket, list, part, ifid, tries */
	__u64 repaired_add;	/* what the re-dumps put right, in total */
	__u64 repaired_del;
	__u64 repaired_mod;
	__u64 last_repair;	/* CLOCK_REALTIME, ns, of the last re-dump that put anything right; 0 = none */
	__u32 last_add;		/* what that was */
	__u32 last_del;
	__u32 last_mod;
	__u32 threshold_changes;
	__u32 doubt_times[XSPD_DOUBT_BITS];	/* by bit number of enum xspd_doubt: times it was raised */
	__u32 cache;		/* entries a CPU; 0: no cache */

	__u64 changes[XSPD_C_MAX_]; /* by enum xspd_change_what; flush counts policies */
	__u64 samples;		    /* taken, and left out for their number */
	__u64 samples_missed;
	__u64 lag_sum; /* ns from the daemon's waking for changes to their being published */
	__u64 lag_max;
	__u64 lag_count[XSPD_LAGS]; /* by upper bound, 50 us << n; the last has none */
	__u32 gone;		    /* deleted policies that linger */
	__u32 linger;		    /* seconds they do; 0: no guard asks for it */
};
_Static_assert(sizeof(struct xspd_conf) == 472, "map ABI");

#endif
