/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the bytes of a packet come from: a linear window or a socket buffer, read front to back.
 * Compiles natively too, for the linear window.
 */
#ifndef XSPD_CURSOR_H
#define XSPD_CURSOR_H

#ifdef __bpf__
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
/* clang copies by single bytes what it cannot prove aligned; the kernel loads words anywhere */
#define XSPD_WORDS(p) __builtin_assume_aligned(p, 4)
#else
#include <stdbool.h>
#include <stddef.h>
#include <netinet/in.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
struct __sk_buff;
#define XSPD_WORDS(p) (p)
#endif

#include "xspd/abi.h"

/* Bytes that are made linear before an skb is parsed: MAC, IP and the usual rest. */
#define XSPD_LINEAR 160

/* Bits of xspd_meta.flags */
enum xspd_meta_flag {
	/*
	 * IPv4 options or an IPv6 routing header: may name another destination,
	 * which the kernel puts into the packet before the check if this one is local.
	 */
	XSPD_META_ROUTING = 1,
	XSPD_META_SINCE_6_7 = 2, /* kernels before 6.7 dissect this packet another way */
};

/* What is met on the way: for FIB lookups and ICMP errors. */
struct xspd_meta {
	__u32 l3;  /* offset of the IP header, as cursor->off counts */
	__u32 l4;  /* of what follows the headers that were followed */
	__u32 len; /* of the datagram, IP header included; with jumbo payloads an upper bound */
	__be32 flowinfo; /* IPv6: traffic class and flow label */
	__u8 tos;
	__u8 ttl;
	__u8 vlan; /* tags met in the packet's bytes */
	__u8 flags;
	__u16 vid; /* not 0: one of them names a VLAN, so that the packet is another device's */
	__u16 pad;
};

/*
 * Where bytes come from: a linear window, or an skb, whose offsets count from
 * the network header.  Set up with xspd_cursor_linear() or xspd_cursor_skb().
 */
struct xspd_cursor {
	const void *pos; /* linear window: the next byte */
	const void *end;
	struct __sk_buff *skb; /* NULL: linear window */
	__u32 off;	       /* of the next byte */
	__u32 limit;	       /* bytes from here on are not the packet's */
	bool gso;	       /* aggregated: the length in the IP header may be 0 */
	struct xspd_meta meta;
};

static __always_inline void xspd_cursor_linear(struct xspd_cursor *cur, const void *data,
					       const void *end)
{
	*cur = (struct xspd_cursor){.pos = data, .end = end};
	cur->limit = (__u32)((const char *)end - (const char *)data);
}

#ifdef __bpf__
/*
 * bpf_skb_load_bytes_relative() sees the linear part only, so headers in page
 * fragments are pulled first.  Invalidates packet pointers.  skb->len counts the
 * MAC header, whose length nobody tells: a datagram cut short by less than
 * that is not noticed here (the kernel drops it), unless a header is missing.
 */
static __always_inline void xspd_cursor_skb(struct xspd_cursor *cur, struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data;
	__u32 len = skb->len;
	__u32 want = len < XSPD_LINEAR ? len : XSPD_LINEAR;

	*cur = (struct xspd_cursor){.skb = skb, .limit = len};
	cur->gso = skb->gso_size != 0;
	if (data + want > (void *)(long)skb->data_end)
		bpf_skb_pull_data(skb, want);
}
#endif

/* Are @n more bytes part of the packet, by all that its headers have said so far? */
static __always_inline bool xspd_room(const struct xspd_cursor *cur, __u32 n)
{
	return cur->off + n <= cur->limit;
}

static __always_inline void xspd_skip(struct xspd_cursor *cur, __u32 n)
{
	if (!cur->skb)
		cur->pos += n;
	cur->off += n;
}

/* Copy @n (a constant) bytes and step over them, or -1.  The only bounds check there is. */
static __always_inline int xspd_load(struct xspd_cursor *cur, void *to, __u32 n)
{
	if (!xspd_room(cur, n))
		return -1;
	if (!cur->skb) {
		if (cur->pos + n > cur->end)
			return -1;
		__builtin_memcpy(to, XSPD_WORDS(cur->pos), n);
	}
#ifdef __bpf__
	if (cur->skb && bpf_skb_load_bytes_relative(cur->skb, cur->off, to, n, BPF_HDR_START_NET))
		return -1;
#endif
	xspd_skip(cur, n);
	return 0;
}

static __always_inline __u16 xspd_be16(__u16 v)
{
	return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? __builtin_bswap16(v) : v;
}

#endif
