/* SPDX-License-Identifier: Apache-2.0 */
/* The process that asks debuginfod servers, by build id: it has a network and a cache, no capability, and parses nothing of what it fetches. */
#ifndef SAMPLED_EXPORTERS_NAMES_FETCH_H
#define SAMPLED_EXPORTERS_NAMES_FETCH_H

#include <stdint.h>

/* Its whole life: answers WIRE_FETCH until the other end is closed. urls: separated by blanks. bytes_max: of one file; 0: 1 GiB.
 * Files are kept in $XDG_CACHE_HOME/sampled/debuginfod (~/.cache/…), and so is, for a day, that there are none. */
_Noreturn void names_fetch(int socket_fd, const char *urls, uint64_t bytes_max);

#endif
