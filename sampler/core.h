/* SPDX-License-Identifier: Apache-2.0 */
/* What a process left when it died, or what gcore wrote of a living one: an ELF core file. Its memory is read through remote.h,
 * after remote_open_core(). Nothing in it is believed: all counts and lengths are bounded, and what does not lie in the file is not
 * there.
 *
 * Mappings of files are mostly not in a core, since the files have them: they are read from the file of that name if its build id
 * is that of the one that was mapped, or from one given with core_add_file(). One thread at a time, but for core_open_mapped(). */
#ifndef SAMPLED_SAMPLER_CORE_H
#define SAMPLED_SAMPLER_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/procfs.h>
#include <sys/types.h>

#include "base/fault.h"
#include "sampler/command_line.h"
#include "sampler/procfs.h"
#include "sampler/record.h"
#include "sampler/remote.h"

struct core;

struct core_thread {
	pid_t tid; /* in the innermost pid namespace where the kernel wrote the core; as the debugger saw it in others */
	int signal;              /* that ended the process, in the thread it was delivered to; else 0 */
	elf_gregset_t registers; /* in the order of struct user_regs_struct (sys/user.h) */
};

struct core_process {
	pid_t pid, parent_pid;
	char name[17];      /* as far as the kernel keeps it */
	char arguments[81]; /* the beginning of the command line */
};

enum core_file_state {
	CORE_FILE_UNASKED, /* nothing of it was needed so far */
	CORE_FILE_USED,
	CORE_FILE_MISSING,  /* there is none of that name here, or it cannot be read */
	CORE_FILE_OTHER,    /* there is one, of another build */
	CORE_FILE_UNPROVEN, /* the core does not say of which build it was */
};

struct core_file {        /* that was mapped */
	const char *path; /* as the kernel told it; "" where the core names none */
	enum core_file_state state;
	uint8_t build_id[BUILD_ID_MAX];
	uint32_t build_id_bytes; /* 0: not told */
};

/* Opens a core file: regular files only. 0, or -errno with *fault filled: -ENOEXEC it is no core, or none of this machine. */
int core_open(struct core **ret_core, const char *path, struct fault *fault);
void core_free(struct core *core);
/* Names the file that was mapped and is elsewhere now: the one of its build id, or the program where neither has such an id. 0, or
 * -errno with *fault filled: -EINVAL nothing like it was mapped. */
int core_add_file(struct core *core, const char *path, struct fault *fault);

/* Threads, the one that the signal was delivered to first. */
size_t core_thread_count(const struct core *core);
const struct core_thread *core_thread(const struct core *core, size_t i);
/* The thread whose pthread_self() this is, or where registers do not tell, the one of this number; NULL: none. */
const struct core_thread *core_find_thread(const struct core *core, uint64_t pthread_self, pid_t tid);
const struct core_process *core_process(const struct core *core);
/* The command line as its memory has it, shown as command_line_show() does. False: it is not there. */
bool core_command_line(struct core *core, enum command_line how, char *to, size_t room);
/* Who owns the core file. */
void core_owner(const struct core *core, uid_t *ret_uid, gid_t *ret_gid);

/* Bytes that the headers promise and that are not in the file, which was cut. */
uint64_t core_missing_bytes(const struct core *core);
size_t core_file_count(const struct core *core);
struct core_file core_file(const struct core *core, size_t i);

/* As remote_read_some(). */
ssize_t core_read_some(struct core *core, raddr_t addr, void *to, size_t bytes);
/* As proc_maps_each(): mappings of files, whose inode is the file's index plus 1, and code that lies in none, in rising order. */
int core_maps_each(struct core *core, int (*fn)(void *context, const struct proc_map *map), void *context);
/* As proc_open_mapped(). */
int core_open_mapped(struct core *core, const struct proc_map *map);
/* The program's inode in core_maps_each(); 0: not known. */
uint64_t core_program(const struct core *core);

/* Reads a core's memory as a process': the core stays the caller's, and must outlive *ret_remote. */
void remote_open_core(struct remote *ret_remote, struct core *core);

#endif
