/* SPDX-License-Identifier: GPL-2.0-only */
/* An SA as a netlink message: what must be known of it to save and load it. Pure. */
#ifndef XSPD_SNAPSHOT_STATE_H
#define XSPD_SNAPSHOT_STATE_H

#include <stdbool.h>
#include <linux/netlink.h>
#include <linux/xfrm.h>

struct xspd_snap_state {
	struct xfrm_usersa_info info;
	bool larval;	/* waits for a key manager: nothing to save yet */
	bool keyed;	/* has a key of at least one bit */
	bool keys_zero; /* ... but every byte of it is 0: hidden, or taken out */
	bool lifetime;	/* tells its age in XFRMA_LTIME_VAL */
};

/**
 * xspd_snap_state_read() - Look at an XFRM_MSG_NEWSA message; reads nothing past its end.
 * Return: 0, or -EBADMSG if it is malformed.
 */
int xspd_snap_state_read(const struct nlmsghdr *nlh, struct xspd_snap_state *ret);

/* Overwrite the keys of a message that xspd_snap_state_read() took. */
void xspd_snap_state_wipe(struct nlmsghdr *nlh);

/*
 * A request sets the age of an SA by an attribute only; the kernel lists it in the info. @nlh
 * has sizeof(struct xfrm_lifetime_cur) + NLA_HDRLEN bytes of room behind it.
 */
void xspd_snap_state_age(struct nlmsghdr *nlh, const struct xspd_snap_state *state);

#endif
