/* SPDX-License-Identifier: Apache-2.0 */
/* In which thread state a system thread runs. It may have several: one in each interpreter that it has entered, and, to 3.11, those of threads that it makes,
 * until these begin. Its one stack is that of the innermost interpreter, and its time counts once.
 *
 * The innermost one is told by the C stack, which grows down: since 3.13 by the shim below a state's outermost frame, in 3.11 and 3.12 by its cframe, to 3.10 by
 * the word there that holds its outermost frame.
 *
 * To 3.12 the state that a subinterpreter is made with has its creator's ids, whichever thread runs it (PyInterpreterState_ThreadHead(),
 * Modules/_xxsubinterpretersmodule.c). Its system thread is the one on whose C stack it runs. */
#ifndef SAMPLED_SAMPLER_CURRENT_H
#define SAMPLED_SAMPLER_CURRENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "sampler/remote.h"

struct target;
struct thread;

/* Whose ids say nothing of the thread that runs it. */
bool current_is_foreign(const struct target *target, const struct thread *t);
/* The system thread that runs a foreign state; 0: it could not be found. False: it has no frames, or those of the thread that is known already. */
bool current_find(struct target *target, struct thread *t, uint64_t now_ns, pid_t *ret_tid);
/* Of the new lists: which states are of one system thread. 0 or -ENOMEM. */
int current_arrange(struct target *target);
/* Of each system thread, which state it runs in now: all others are `outer`. */
void current_choose(struct target *target, uint64_t now_ns);

/* The state of the same system thread that was made first: the main interpreter's, where it has one there, whose `threading` knows its name. */
const struct thread *current_eldest(const struct thread *t);

/* 3.11 and later, of a state that has frames: an address on the C stack in the outermost run of the interpreter's loop for it; else 0. */
raddr_t current_entry(const struct target *target, const struct thread *t);

#endif
