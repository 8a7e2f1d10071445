/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef XSPD_REASON_H
#define XSPD_REASON_H

#include <stdint.h>

#include "xspd/abi.h"

const char *xspd_reason_name(enum xspd_reason reason);
const char *xspd_verdict_name(enum xspd_verdict verdict);
const char *xspd_dir_name(enum xspd_dir dir);
const char *xspd_act_name(enum xspd_act act);
const char *xspd_hook_name(enum xspd_hook hook);
/* Name of one enum xspd_doubt bit. */
const char *xspd_doubt_name(uint32_t bit);
/* Name of one enum xspd_env bit. */
const char *xspd_env_name(uint32_t bit);
/* Name of one enum xspd_mode_flag bit that is a mode. */
const char *xspd_mode_name(uint32_t bit);
const char *xspd_sample_name(enum xspd_sample_kind kind);
const char *xspd_change_name(enum xspd_change_what what);

#endif
