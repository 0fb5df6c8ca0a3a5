/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the threads that -t asks for are there: all threads are looked at, and what no thread is called is told with the names that there are. */
#ifndef SAMPLED_DAEMON_THREAD_NAMES_H
#define SAMPLED_DAEMON_THREAD_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/option_values.h"

enum { THREAD_NAMES_MAX = 64 };

struct thread_names {
	const struct thread_list *asked;
	bool met[THREAD_LIST_MAX];
	char *names[THREAD_NAMES_MAX]; /* owned; each once */
	size_t count;
	uint64_t left_out; /* threads of other names, beyond these */
};

/* A thread that there is: its name (NULL: none known) and number (0: unknown). */
void thread_names_take(struct thread_names *names, const char *name, uint64_t tid);
/* Says what was asked for and is not there, at the end or so far. True: there was something. */
bool thread_names_check(const struct thread_names *names, bool is_end);
void thread_names_release(struct thread_names *names);

#endif
