// SPDX-License-Identifier: GPL-2.0-only
/* How long many SAs take to load, by the means that there are. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/pfkeyv2.h>
#include <linux/xfrm.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <libmnl/libmnl.h>

#include "bench/path.h"
#include "bench/tunnel.h"
#include "nl/talk.h"
#include "util.h"

const char *const xspd_sa_names[XSPD_SA_WAYS] = {
	[XSPD_SA_BATCH] = "ip -batch",
	[XSPD_SA_SNAPSHOT] = "xspd snapshot load",
	[XSPD_SA_PFKEY] = "PF_KEY",
	[XSPD_SA_NETLINK] = "netlink, packed",
};

/* One SADB_ADD, as racoon or setkey send it. */
struct add {
	struct sadb_msg msg;
	struct sadb_sa sa;
	struct sadb_x_sa2 sa2;
	struct {
		struct sadb_address ext;
		struct sockaddr_in addr;
	} src, dst;
	struct {
		struct sadb_key ext;
		uint8_t bytes[24]; /* 20, and padding */
	} key;
	struct sadb_key none; /* ESP has to have an encryption key (pfkey_msg2xfrm_state()) */
};
_Static_assert(sizeof(struct add) % 8 == 0, "PF_KEY counts in words of 64 bits");

static struct add add_make(uint32_t n)
{
	struct add add = {
		.msg = {.sadb_msg_version = PF_KEY_V2,
			.sadb_msg_type = SADB_ADD,
			.sadb_msg_satype = SADB_SATYPE_ESP,
			.sadb_msg_len = sizeof(add) / 8,
			.sadb_msg_seq = n,
			.sadb_msg_pid = (uint32_t)getpid()},
		.sa = {.sadb_sa_len = sizeof(add.sa) / 8,
		       .sadb_sa_exttype = SADB_EXT_SA,
		       .sadb_sa_spi = htonl(0x100000 + n),
		       .sadb_sa_state = SADB_SASTATE_MATURE,
		       /* it takes none without either */
		       .sadb_sa_auth = SADB_AALG_SHA1HMAC,
		       .sadb_sa_encrypt = SADB_EALG_NULL},
		.key = {.ext = {.sadb_key_len = sizeof(add.key) / 8,
				.sadb_key_exttype = SADB_EXT_KEY_AUTH,
				.sadb_key_bits = 160}},
		.none = {.sadb_key_len = sizeof(add.none) / 8,
			 .sadb_key_exttype = SADB_EXT_KEY_ENCRYPT},
		.sa2 = {.sadb_x_sa2_len = sizeof(add.sa2) / 8,
			.sadb_x_sa2_exttype = SADB_X_EXT_SA2,
			.sadb_x_sa2_mode = 2, /* tunnel */
			.sadb_x_sa2_reqid = n},
		.src = {.ext = {.sadb_address_len = sizeof(add.src) / 8,
				.sadb_address_exttype = SADB_EXT_ADDRESS_SRC,
				.sadb_address_prefixlen = 32},
			.addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc0000201)}},
		.dst = {.ext = {.sadb_address_len = sizeof(add.dst) / 8,
				.sadb_address_exttype = SADB_EXT_ADDRESS_DST,
				.sadb_address_prefixlen = 32},
			.addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc0000202)}},
	};

	return add;
}

static int pfkey(uint32_t count)
{
	xspd_autoclose int fd = socket(AF_KEY, SOCK_RAW | SOCK_CLOEXEC, PF_KEY_V2);
	char reply[4096] __attribute__((aligned(8)));

	if (fd < 0)
		return -errno;
	for (uint32_t n = 1; n <= count; n++) {
		struct add add = add_make(n);

		if (send(fd, &add, sizeof(add), 0) < 0)
			return -errno;
		/* it is told of what it has done, as everybody is */
		if (recv(fd, reply, sizeof(reply), 0) < (ssize_t)sizeof(struct sadb_msg))
			return -EBADMSG;
		if (((struct sadb_msg *)reply)->sadb_msg_errno)
			return -((struct sadb_msg *)reply)->sadb_msg_errno;
	}
	return 0;
}

static int batch(uint32_t count)
{
	xspd_autofree char *text = malloc((size_t)count * 160 + 1);
	size_t at = 0;

	if (!text)
		return -ENOMEM;
	for (uint32_t n = 1; n <= count; n++)
		at += (size_t)sprintf(text + at,
				      "xfrm state add src 192.0.2.1 dst 192.0.2.2 proto esp spi %u "
				      "reqid %u mode tunnel enc ecb(cipher_null) \"\" "
				      "auth digest_null \"\"\n",
				      0x100000 + n, n);
	return xspd_path_run((char *[]){"ip", "-batch", "-", NULL}, text);
}

static int self(char *verb, char *file, char *keys)
{
	return xspd_path_run((char *[]){"/proc/self/exe", "snapshot", verb, file, "--states",
					"--json", keys, NULL},
			     "");
}

static int count_read(const struct nlmsghdr *nlh, void *ctx)
{
	const struct nlattr *attr;

	mnl_attr_for_each (attr, nlh, sizeof(uint32_t))
		if (mnl_attr_get_type(attr) == XFRMA_SAD_CNT)
			*(uint32_t *)ctx = mnl_attr_get_u32(attr);
	return MNL_CB_OK;
}

/* All of them there? */
static int check(uint32_t want)
{
	char buf[128] __attribute__((aligned(4)));
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	uint32_t count = 0;
	int err;

	nlh->nlmsg_type = XFRM_MSG_GETSADINFO;
	mnl_nlmsg_put_extra_header(nlh, sizeof(uint32_t));
	err = xspd_nl_talk(NETLINK_XFRM, nlh, count_read, &count);
	return err ?: count == want ? 0 : -EBADE;
}

static int load(enum xspd_sa_way way, uint32_t count, char *file)
{
	switch (way) {
	case XSPD_SA_BATCH:
		return batch(count);
	case XSPD_SA_SNAPSHOT:
		return self("load", file, NULL);
	case XSPD_SA_PFKEY:
		return pfkey(count);
	default:
		return xspd_tunnel_sas(count);
	}
}

int xspd_tunnel_load(enum xspd_sa_way way, uint32_t count, double *ret_s)
{
	char file[] = "/tmp/xspd-bench-XXXXXX";
	xspd_autoclose int fd = -1;
	uint64_t start;
	int err = unshare(CLONE_NEWNET) < 0 ? -errno : 0;

	if (err)
		return err;
	if (way == XSPD_SA_SNAPSHOT) {
		fd = mkstemp(file);
		err = fd < 0 ? -errno : xspd_tunnel_sas(count);
		err = err ?: self("save", file, "--with-keys");
		if (!err && unshare(CLONE_NEWNET) < 0)
			err = -errno;
	}
	start = xspd_now(CLOCK_MONOTONIC);
	err = err ?: load(way, count, file);
	*ret_s = (double)(xspd_now(CLOCK_MONOTONIC) - start) / 1e9;
	if (fd >= 0)
		unlink(file);
	return err ?: check(count);
}
