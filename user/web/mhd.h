/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * libmicrohttpd, loaded when it is asked for: with gnutls, which it brings, it makes the start of
 * every command longer by several milliseconds, and only "run --metrics" has a use for it.
 */
#ifndef XSPD_WEB_MHD_H
#define XSPD_WEB_MHD_H

#include <microhttpd.h>

#define XSPD_MHD_LIBRARY "libmicrohttpd.so.12"

/* The functions in use, by their names without MHD_. */
struct xspd_mhd {
	__typeof__(&MHD_start_daemon) start_daemon;
	__typeof__(&MHD_stop_daemon) stop_daemon;
	__typeof__(&MHD_create_response_from_buffer) create_response_from_buffer;
	__typeof__(&MHD_add_response_header) add_response_header;
	__typeof__(&MHD_queue_response) queue_response;
	__typeof__(&MHD_destroy_response) destroy_response;
	__typeof__(&MHD_lookup_connection_value) lookup_connection_value;
};

/* All of them, for good, or NULL: the library is not there, or is another. */
const struct xspd_mhd *xspd_mhd_load(void);

#endif
