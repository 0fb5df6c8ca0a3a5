/* SPDX-License-Identifier: Apache-2.0 */
/* /tmp/perf-PID.map: what a program says of code that it made while it ran. Each line "START SIZE NAME", in hexadecimal. Hostile input: runs in the
 * naming child. */
#ifndef SAMPLED_EXPORTERS_NAMES_PERFMAP_H
#define SAMPLED_EXPORTERS_NAMES_PERFMAP_H

#include <stdint.h>

struct perf_map;

/* Reads it anew, as it grows while the program runs; the descriptor stays the caller's. 0, -EINVAL (no regular file) or -ENOMEM. */
int perf_map_read(struct perf_map **ret_map, int fd);
void perf_map_free(struct perf_map *map);
/* The name of the code around an address of the process, that which was told last; NULL: none was. */
const char *perf_map_find(const struct perf_map *map, uint64_t address);

#endif
