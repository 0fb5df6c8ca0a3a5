/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc tells of a process. All text from it is parsed as hostile. */
#ifndef SAMPLED_SAMPLER_PROCFS_H
#define SAMPLED_SAMPLER_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

struct proc_stat {     /* of /proc/PID/stat or /proc/PID/task/TID/stat */
	char comm[64]; /* may hold ')', blanks, newlines */
	char state;    /* R S D Z T t X I … */
	pid_t parent_pid;
	uint64_t flags;      /* PF_KTHREAD is 0x00200000 */
	uint64_t start_time; /* clock ticks since boot */
	uint32_t cpu;        /* that it ran on last */
	uint32_t policy;     /* SCHED_OTHER … (sched(7)) */
};

/* Parses a stat file's bytes; the name ends at the last ')'. 0 or -EPROTO. */
int proc_stat_parse(struct proc_stat *ret_stat, const char *text, size_t bytes);
/* tid 0: the process. 0, -ESRCH or another -errno. */
int proc_stat_read(struct proc_stat *ret_stat, pid_t pid, pid_t tid);

/* The whole of a /proc file, at most max_bytes, appended to *to. 0 or -errno. */
int proc_read_file(const char *path, struct buf *to, size_t max_bytes);

/* Appends the arguments, each but the last ended by a NUL, as the process has them now; of one without any its comm in []. 0 or -errno. */
int proc_arguments(pid_t pid, struct buf *to);
/* For matching, not for showing (command_line.h): the arguments joined by blanks, made valid UTF-8 without control characters, at most room - 1 bytes. */
int proc_command_line(pid_t pid, char *to, size_t room);

/* Copies text that may hold anything as clean UTF-8, with a NUL: control characters (C0, DEL, C1) become blanks, malformed bytes
 * U+FFFD. Returns the bytes written; room is above 0. */
size_t proc_clean_text(char *to, size_t room, const char *from, size_t bytes);

/* A tid of the process' innermost pid namespace to ours, by NSpid of /proc/PID/task/TID/status. -ESRCH: none such. */
int proc_ns_tid(pid_t pid, pid_t ns_tid, pid_t *ret_tid);
/* The process' own pid in its innermost namespace. */
int proc_ns_pid(pid_t pid, pid_t *ret_ns_pid);

/* Children of pid, in no order: at most room; returns how many there are, or -errno. Each thread has a list of its own in
 * /proc: those of a process with more than threads_max threads are passed over, all but the main thread's. */
int proc_children(pid_t pid, size_t threads_max, pid_t *ret_children, size_t room);

struct proc_map {
	uint64_t start, end, file_off;
	bool readable, writable, executable, deleted;
	uint64_t inode;
	uint32_t dev_major, dev_minor;
	const char *
		path; /* as in maps, unescaped of \012, without " (deleted)"; "" when anonymous; valid during the call */
};

/* Calls fn for each line of maps text; lines that make no sense are passed over. Stops when fn returns not 0. */
int proc_maps_parse(const char *text, size_t bytes, int (*fn)(void *context, const struct proc_map *map),
                    void *context);
int proc_maps_each(pid_t pid, int (*fn)(void *context, const struct proc_map *map), void *context);

/* Opens the file behind a mapping, read-only, regular files only, O_NONBLOCK|O_NOFOLLOW for the last part where a path is
 * walked: first /proc/PID/map_files/START-END, then /proc/PID/exe when it is that file, then /proc/PID/root/PATH when device
 * and inode agree. A file descriptor or -errno. */
int proc_open_mapped(pid_t pid, const struct proc_map *map);

#endif
