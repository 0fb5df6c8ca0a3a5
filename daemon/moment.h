/* SPDX-License-Identifier: Apache-2.0 */
/* Points in time, as people write them. */
#ifndef SAMPLED_DAEMON_MOMENT_H
#define SAMPLED_DAEMON_MOMENT_H

#include <stdint.h>

/* "2026-11-22 05:20", "2026-11-22T05:20:00.5Z", "…+02:00" (without a zone: local time); "05:20" or "05:20:30", the last one that was; "-5m", so long
 * before now_ns; "@1795324800.25", seconds since 1970; "now". Nanoseconds of CLOCK_REALTIME, as now_ns is. 0 or -EINVAL. */
int moment_parse(const char *text, uint64_t now_ns, uint64_t *ret_ns);

#endif
