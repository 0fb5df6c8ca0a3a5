/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept for samples of threads that stand: of a target, and of each of its threads. */
#include <errno.h>
#include <stdlib.h>

#include "sampler/exact_look.h"

#define NATIVE_FRAMES 1024u

bool target_knows_loop(struct target *target)
{
	struct modules *modules = NULL;
	struct symtab *symbols;
	bool knows = false;

	if (symtab_new(&symbols) != 0)
		return false;
	if (modules_new(&modules, &target->remote, &target->proc, symbols, 1) == 0)
		knows = modules_know_eval(modules);
	modules_free(modules);
	symtab_free(symbols);
	return knows;
}

int exact_new(struct exact **ret_exact, const struct target *target, struct stopper *stopper)
{
	struct exact *x = calloc(1, sizeof(*x));
	int err = x ? 0 : -ENOMEM;

	if (!err && target->options->native > NATIVE_MARKS) {
		x->unwound.room = NATIVE_FRAMES;
		x->unwound.frames = calloc(NATIVE_FRAMES, sizeof(*x->unwound.frames));
		err = x->unwound.frames
		              ? modules_new(&x->modules, &target->remote, &target->proc, target->symbols, target->id)
		              : -ENOMEM;
		if (!err)
			err = unwinder_new(&x->unwinder, x->modules);
	}
	if (err) {
		exact_free(x);
		return err;
	}
	x->stopper = stopper;
	*ret_exact = x;
	return 0;
}

void exact_free(struct exact *x)
{
	if (!x)
		return;
	unwinder_free(x->unwinder);
	modules_free(x->modules);
	free(x->unwound.frames);
	free(x->merged.frames);
	free(x);
}

void exact_forget(struct exact *x)
{
	if (x->modules)
		modules_forget(x->modules);
}

void exact_thread_free(struct exact_thread *thread)
{
	if (!thread)
		return;
	free(thread->last.frames);
	free(thread);
}

void exact_thread_forget(struct exact_thread *thread)
{
	if (!thread)
		return;
	thread->stood = false;
	thread->last.depth = 0;
}

uint32_t exact_thread_waiting(const struct exact_thread *thread)
{
	return thread ? thread->waiting.count : 0;
}

struct exact_thread *exact_of(const struct target *target, struct thread *t)
{
	if (t->exact)
		return t->exact;
	t->exact = calloc(1, sizeof(*t->exact));
	if (!t->exact)
		return NULL;
	t->exact->stack_bytes =
		target->options->native_stack_bytes ? target->options->native_stack_bytes : NATIVE_STACK_BYTES;
	return t->exact;
}
