// SPDX-License-Identifier: GPL-2.0-only
#include <dlfcn.h>
#include <string.h>

#include "util.h"
#include "web/mhd.h"

static struct xspd_mhd loaded;

/* Where each function goes; a pointer to a function may not be cast from one to an object. */
static const struct {
	const char *name;
	void *to;
} functions[] = {
	{"MHD_start_daemon", &loaded.start_daemon},
	{"MHD_stop_daemon", &loaded.stop_daemon},
	{"MHD_create_response_from_buffer", &loaded.create_response_from_buffer},
	{"MHD_add_response_header", &loaded.add_response_header},
	{"MHD_queue_response", &loaded.queue_response},
	{"MHD_destroy_response", &loaded.destroy_response},
	{"MHD_lookup_connection_value", &loaded.lookup_connection_value},
};
_Static_assert(sizeof(loaded) == XSPD_ARRAY_SIZE(functions) * sizeof(void *), "all are looked up");

const struct xspd_mhd *xspd_mhd_load(void)
{
	void *library = dlopen(XSPD_MHD_LIBRARY, RTLD_NOW | RTLD_LOCAL);

	for (size_t i = 0; library && i < XSPD_ARRAY_SIZE(functions); i++) {
		void *symbol = dlsym(library, functions[i].name);

		if (!symbol)
			return NULL;
		memcpy(functions[i].to, &symbol, sizeof(symbol));
	}
	return library ? &loaded : NULL;
}
