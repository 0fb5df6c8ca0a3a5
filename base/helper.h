/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that we fork for ourselves (who names, who sends, who watches, dot), told from those that become our children because their parent ended
 * (PR_SET_CHILD_SUBREAPER): these nobody else waits for. Any thread. */
#ifndef SAMPLED_BASE_HELPER_H
#define SAMPLED_BASE_HELPER_H

#include <stdbool.h>
#include <sys/types.h>

/* As fork(), with the child noted before anybody else can meet it. */
pid_t helper_fork(void);
/* The same around another way to make a process: nobody asks helper_is() between the two. A pid of 0 or less: it failed. */
void helper_begin(void);
void helper_note(pid_t pid);
/* After it was waited for, by who started it. */
void helper_forget(pid_t pid);
bool helper_is(pid_t pid);

#endif
