/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C (Castagnoli, reflected polynomial 0x82f63b78, as in RFC 3720 and iSCSI). */
#ifndef SAMPLED_EXPORTERS_CRC32C_H
#define SAMPLED_EXPORTERS_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The sum of `data` behind what `crc` is the sum of; begin with 0. */
uint32_t crc32c(uint32_t crc, const void *data, size_t bytes);

#endif
