/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that read files others made, so as to name native frames. None of them holds anything of what samples.
 *
 *     asking side ── names_child: no capability, nobody's user where it was root, no descriptor but what it is sent
 *                        └─ names_worker: besides, no system call but reading files and answering; bounded memory and CPU time; parses
 *                    names_fetch (with debuginfod alone): no capability, a network; never parses
 *
 * A worker that crashes, or takes too long over a module, is replaced, and the module left out; after a few of them nothing is named any more. */
#ifndef SAMPLED_EXPORTERS_NAMES_CHILD_H
#define SAMPLED_EXPORTERS_NAMES_CHILD_H

#include <sys/types.h>

#include "exporters/names_wire.h"

/* One module as it was sent; descriptors are owned, -1: none. */
struct child_module {
	char *path; /* NULL: there is no module with this number */
	uint8_t build_id[BUILD_ID_MAX];
	uint32_t build_id_bytes, flags;
	uint64_t start;
	int fd, root_fd, perf_map_fd;
	bool bad; /* a worker died of it */
};

/* A child's whole life, from the fork on: gives up everything and answers until the other end of the socket is closed. fetch_fd: to the fetcher;
 * -1: there is none. */
_Noreturn void names_child(int socket_fd, int fetch_fd);

/* A worker's whole life. modules are WIRE_MODULES_MAX. */
_Noreturn void names_worker(int socket_fd, int fetch_fd, struct child_module *modules, pid_t parent);

/* Closes every descriptor above the standard ones but these two (-1: none), and makes the standard ones /dev/null. */
void names_close_others(int fd, int other_fd);

#endif
