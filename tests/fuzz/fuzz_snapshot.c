// SPDX-License-Identifier: GPL-2.0-only
/* The check of a snapshot file, behind checksums that are always right. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot/format.h"

/* Two words of counts, then the body. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct xspd_snap_header header = {}, ret;
	size_t body;
	char *file;

	if (size < 8)
		return 0;
	body = size - 8;
	file = malloc(sizeof(header) + body); /* of the exact size: ASan watches its end */
	if (!file)
		return 0;
	memcpy(file + sizeof(header), data + 8, body);
	memcpy(&header.states, data, 4);
	memcpy(&header.policies, data + 4, 4);
	header.states %= 8;
	header.policies %= 8;
	header.body_size = body;
	header.body_crc = xspd_snap_crc(0, file + sizeof(header), body);
	xspd_snap_seal(&header);
	memcpy(file, &header, sizeof(header));
	if (xspd_snap_check(file, sizeof(header) + body, &ret) == XSPD_SNAP_BAD_BODY)
		abort();
	free(file);
	return 0;
}
