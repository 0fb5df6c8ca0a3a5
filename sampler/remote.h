/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of another process, or of what it left when it died (remote_open_core() in core.h): read and never written. */
#ifndef SAMPLED_SAMPLER_REMOTE_H
#define SAMPLED_SAMPLER_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* An address in the target; never a C pointer. */
typedef uint64_t raddr_t;

/* A copy that lies within a cache line as its source does takes every aligned word whole. The kernel copies by `rep movsb` (FSRM, FSRS), and where the
 * destination lies up to 31 bytes behind the source, modulo 4096, the processor takes both to overlap and goes byte by byte: half as fast, and what is
 * stored meanwhile is read half old, half new (measured, AMD EPYC: 20 torn words in each copy of 2 KiB that another CPU writes; else none). */
#define REMOTE_LINE 64u /* bytes */

struct core;

struct remote {
	pid_t pid;
	int mem_fd;        /* /proc/PID/mem, or -1: of this program's memory, whatever the process executes later */
	bool use_mem_file; /* process_vm_readv is not to be had (ENOSYS, seccomp): read mem_fd, or the core */
	struct core *core; /* it is no process, but what one left (core.h); else NULL. Not owned */
};

/* Opens pid's memory for reading. 0, -ESRCH (gone), -EPERM (not permitted) or another -errno. */
int remote_open(struct remote *ret_remote, pid_t pid);
void remote_release(struct remote *r);
/* Whether the memory that was opened is still the process', as what is mapped at addr tells at the least cost: 0, -ESTALE (it has executed another program; not told without mem_fd), -ESRCH
 * (gone). */
int remote_check(const struct remote *r, raddr_t addr);

/* Reads exactly `bytes` at addr, or fails: -ESRCH gone (or no memory left), -EFAULT not mapped, -EPERM not permitted. */
int remote_read(const struct remote *r, raddr_t addr, void *to, size_t bytes);
/* One pointer or word of 8 bytes. */
int remote_read_u64(const struct remote *r, raddr_t addr, uint64_t *ret_value);
int remote_read_i32(const struct remote *r, raddr_t addr, int32_t *ret_value);
/* As much as is mapped of [addr, addr + bytes): the count read, at least 1, or -errno. */
ssize_t remote_read_some(const struct remote *r, raddr_t addr, void *to, size_t bytes);

/* Reads `count` pieces (at most 1,024) in one system call; local[i] and from[i] are of equal length, and should lie alike within REMOTE_LINE. Returns how many
 * pieces were read whole before the first bad one, or -errno when the process is gone or not permitted. */
int remote_readv(const struct remote *r, const struct iovec *local, const struct iovec *from, size_t count);

#endif
