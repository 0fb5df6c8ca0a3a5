/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 (RFC 4648), for bytes inside of JSON. */
#ifndef SAMPLED_EXPORTERS_BASE64_H
#define SAMPLED_EXPORTERS_BASE64_H

#include <stddef.h>

#include "exporters/writer.h"

void base64_write(struct writer *to, const void *data, size_t bytes);

#endif
