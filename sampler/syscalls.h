/* SPDX-License-Identifier: Apache-2.0 */
/* What a system call of this machine is called. */
#ifndef SAMPLED_SAMPLER_SYSCALLS_H
#define SAMPLED_SAMPLER_SYSCALLS_H

#include <stdint.h>

/* "epoll_wait"; NULL: the headers that we were built with know no such number. Static. */
const char *syscall_name(int32_t number);

/* By number, made when building (syscall_names.awk); NULL: none. */
extern const char *const syscall_names[];
extern const unsigned syscall_name_count;

#endif
