/* SPDX-License-Identifier: GPL-2.0-only */
/* Policies as people and programs read them: the words of `ip xfrm policy`, and JSON. */
#ifndef XSPD_CLI_SELECTOR_H
#define XSPD_CLI_SELECTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <json-c/json.h>

#include "xspd/abi.h"

/* "udp", or the number as text; lives until the next call. */
const char *cli_proto_name(uint8_t proto);
/* A name or a number up to 255; false if it is neither. */
bool cli_proto_number(const char *text, uint8_t *ret);

/* Protocols whose sport and dport are something else to `ip xfrm policy`. */
bool cli_proto_is_icmp(uint8_t proto);
/* Protocols in which the kernel finds ports at all. */
bool cli_proto_has_ports(uint8_t proto);

/* "src 10.1.0.0/16 dst 10.2.0.0/16 proto udp dport 53 dev eth0" */
void cli_selector_text(const struct xspd_info *info, char *buf, size_t size);
/* "dir out priority 100 index 9 ...": everything else that decides. */
void cli_traits_text(const struct xspd_info *info, char *buf, size_t size);
/* "tmpl src 1.1.1.1 dst 2.2.2.2 proto esp reqid 5 mode tunnel", or empty. */
void cli_tmpl_text(const struct xspd_info *info, char *buf, size_t size);

/* One object with stable keys. */
struct json_object *cli_policy_json(const struct xspd_info *info);

/* Add one member; a NULL text becomes null. */
void cli_json_number(struct json_object *o, const char *key, uint64_t value);
void cli_json_text(struct json_object *o, const char *key, const char *value);
void cli_json_bool(struct json_object *o, const char *key, bool value);
/* As @format writes it ("%.1f"); a NaN becomes null. */
void cli_json_decimal(struct json_object *o, const char *key, double value, const char *format);

/* Print @object (and free it) on stdout. */
void cli_json_print(struct json_object *object);

#endif
