/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked about a target besides its memory: which files are mapped, which threads there are, what they do. Of a process the
 * kernel tells it, of a core its notes do. */
#ifndef SAMPLED_SAMPLER_HOST_H
#define SAMPLED_SAMPLER_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/fault.h"
#include "sampler/command_line.h"
#include "sampler/oncpu.h"
#include "sampler/procfs.h"
#include "sampler/regs.h"
#include "sampler/remote.h"

struct host {
	/* What there is to say before its memory is looked at. 0, or -errno with *fault filled, as discover(). */
	int (*check)(const struct remote *r, struct proc_stat *ret_stat, struct fault *fault);
	/* Whether it is still what began then, and not another process of this number. */
	bool (*is_same)(const struct remote *r, uint64_t start_time);
	/* As proc_ns_pid(), proc_maps_each(), proc_open_mapped(). */
	int (*ns_pid)(const struct remote *r, pid_t *ret_ns_pid);
	int (*maps_each)(const struct remote *r, int (*fn)(void *context, const struct proc_map *map), void *context);
	int (*open_mapped)(const struct remote *r, const struct proc_map *map);
	/* The command line, as command_line_show() shows it. 0 or -errno. */
	int (*command_line)(const struct remote *r, enum command_line how, char *to, size_t room);
	/* The inode of the program among the mappings; 0: not known. */
	uint64_t (*program)(const struct remote *r);
	/* A file's name as the target sees it, from the one in the mappings. */
	void (*name_file)(const struct remote *r, const char *path, char *to, size_t room);
	/* The tid, in our pid namespace, of a thread: by its pthread_self(), and by its number as its Python noted it, or -1 where that
	 * does not. 0: the process has no such thread, or that is not known. */
	pid_t (*find_tid)(const struct remote *r, pid_t ns_pid, uint64_t pthread_self, pid_t ns_tid);
	/* When it began, in clock ticks since boot; 0: not known. */
	uint64_t (*thread_start)(const struct remote *r, pid_t tid);
	/* As oncpu_open(). */
	void (*open_oncpu)(const struct remote *r, struct oncpu *o, pid_t tid);
	/* The registers of a thread that stands for good. False: they are not known, or it lives. */
	bool (*registers)(const struct remote *r, pid_t tid, struct unwind_regs *ret_regs);
};

const struct host *host_of(const struct remote *r);

extern const struct host host_process; /* host.c */
extern const struct host host_core;    /* core_host.c */

#endif
