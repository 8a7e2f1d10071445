// SPDX-License-Identifier: GPL-2.0-only
/* Lines of a batch, whatever they say: read, and done to a mirror. */
#include <stdlib.h>
#include <string.h>

#include "words/change.h"

static uint32_t device(const char *name)
{
	return name[0] == 'e';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct xspd_spd *spd = xspd_spd_new();
	char *text = malloc(size + 1), *line, *next;
	struct xspd_line read;
	char error[64];
	uint32_t index;

	if (!spd || !text)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	for (line = text; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (!xspd_line_read(line, device, &read, error, sizeof(error)))
			xspd_line_apply(spd, &read, &index);
	}
	xspd_spd_free(spd);
	free(text);
	return 0;
}
