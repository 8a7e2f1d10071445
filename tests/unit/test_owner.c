// SPDX-License-Identifier: GPL-2.0-only
/* Owners are told by priorities and marks that these programs give, and by nothing near them. */
#include <arpa/inet.h>
#include <criterion/criterion.h>

#include "owner.h"

static const struct {
	struct xspd_info info;
	const char *owner;
} rows[] = {
	/* as charon prints them: 10.1.0.0/16 === 10.2.0.0/16, a trap of it, with udp/53, a drop */
	{{.dir = XSPD_OUT, .slen = 16, .dlen = 16, .priority = 383615}, "strongswan"},
	{{.dir = XSPD_OUT, .slen = 16, .dlen = 16, .priority = 383616}, "strongswan"},
	{{.dir = XSPD_IN, .slen = 32, .dlen = 32, .priority = 367231}, "strongswan"},
	{{.dir = XSPD_OUT,
	  .slen = 16,
	  .dlen = 16,
	  .proto = 17,
	  .dport_mask = 0xffff,
	  .priority = 383295},
	 "strongswan"},
	{{.dir = XSPD_FWD, .slen = 0, .dlen = 0, .priority = 599999}, "strongswan"},
	{{.dir = XSPD_OUT, .slen = 24, .dlen = 24, .priority = 175423}, "strongswan"},
	/* libreswan: a tunnel of two /24: 1 << 20 | 2 << 18 | 1 << 17 | 104 << 9 | 104 << 1 | 1 */
	{{.dir = XSPD_OUT, .slen = 24, .dlen = 24, .priority = 1757393}, "libreswan"},
	{{.dir = XSPD_OUT, .slen = 24, .dlen = 32, .priority = 1757377}, "libreswan"},
	{{.dir = XSPD_IN, .slen = 32, .dlen = 24, .priority = 1757377}, "libreswan"},
	{{.dir = XSPD_IN, .slen = 24, .dlen = 32, .priority = 1757377}, NULL},
	{{.dir = XSPD_OUT, .mark = 0x2e00, .mark_mask = 0xffffff00}, "cilium"},
	{{.dir = XSPD_IN, .mark = 0xd00, .mark_mask = 0xf00}, "cilium"},
	/* by hand */
	{{.dir = XSPD_OUT, .slen = 16, .dlen = 16, .priority = 0}, NULL},
	{{.dir = XSPD_OUT, .slen = 16, .dlen = 16, .priority = 383614}, NULL},
	{{.dir = XSPD_OUT, .slen = 24, .dlen = 24, .priority = 383615}, NULL},
	{{.dir = XSPD_OUT, .mark = 0x10, .mark_mask = 0xff, .priority = 100}, NULL},
};

Test(owner, hints)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *why, *owner = xspd_owner_hint(&rows[i].info, &why);

		cr_expect(owner == rows[i].owner ||
				  (owner && rows[i].owner && !strcmp(owner, rows[i].owner)),
			  "row %zu: %s", i, owner ? owner : "nobody");
		cr_expect_eq(owner == NULL, why == NULL);
	}
}
