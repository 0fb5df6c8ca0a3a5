/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/target.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sampler/core.h"
#include "sampler/exact.h"
#include "sampler/selfstop.h"
#include "sampler/turns.h"

/* From here on a target gets by with little memory. */
#define SLOW_NS         (5 * NS_PER_MS)
#define ONCE_BUDGET_PPM 500000u /* one visit or two are no burden */

enum { VALUES_TRIES = 10 }; /* to read variables while nothing of the process runs */

int target_open(struct target **ret_target, pid_t pid, struct fault *fault)
{
	struct target *target = calloc(1, sizeof(*target));
	int err;

	if (!target)
		return fault_set(fault, -ENOMEM, NULL, "out of memory");
	target->remote.mem_fd = -1;
	err = discover_open(&target->remote, pid, fault);
	if (!err)
		err = discover(&target->proc, &target->remote, fault);
	if (err) {
		target_free(target);
		return err;
	}
	*ret_target = target;
	return 0;
}

int target_open_core(struct target **ret_target, struct core *core, struct fault *fault)
{
	struct target *target = calloc(1, sizeof(*target));
	int err;

	if (!target)
		return fault_set(fault, -ENOMEM, NULL, "out of memory");
	remote_open_core(&target->remote, core);
	err = discover(&target->proc, &target->remote, fault);
	if (err) {
		target_free(target);
		return err;
	}
	*ret_target = target;
	return 0;
}

void target_free(struct target *target)
{
	if (!target)
		return;
	cputime_forget(&target->cputime_files, 0);
	target_free_threads(target);
	exact_free(target->exact);
	codes_free(target->codes);
	edges_free(target->edges);
	plan_release(&target->plan);
	plan_release(&target->again);
	free(target->spare.frames);
	free(target->first_copy.frames);
	free(target->interps);
	free(target->opcode_symbols);
	remote_release(&target->remote);
	free(target);
}

const struct pyproc *target_proc(const struct target *target)
{
	return &target->proc;
}

void target_configure(struct target *target, uint64_t interval_ns, uint32_t group, enum command_line command_line)
{
	target->configured = true;
	target->facts.interval_ns = interval_ns;
	target->group = group;
	target->command_line = command_line;
}

bool target_is_execed(const struct target *target)
{
	return target->execed;
}

/* Names the special frames, and makes room for those of opcodes. */
static int name_special(struct target *target)
{
	target->gc_symbol = symtab_special(target->symbols, "<GC>");
	target->shutdown_symbol = symtab_special(target->symbols, "<shutdown>");
	target->truncated_symbol = symtab_special(target->symbols, "<truncated>");
	target->unreadable_symbol = symtab_special(target->symbols, "<unreadable>");
	target->cut_symbol = symtab_special(target->symbols, "<cut>");
	if (!target->gc_symbol || !target->shutdown_symbol || !target->truncated_symbol || !target->unreadable_symbol || !target->cut_symbol)
		return -ENOMEM;
	if (target->options->native == NATIVE_MARKS) {
		target->native_symbol = symtab_special(target->symbols, "<native>");
		if (!target->native_symbol)
			return -ENOMEM;
	}
	if (target->options->opcodes) {
		target->opcode_symbols = calloc(OPCODES, sizeof(*target->opcode_symbols));
		if (!target->opcode_symbols)
			return -ENOMEM;
	}
	return 0;
}

int target_adopt(struct target *target, const struct sampler_options *options, struct symtab *symbols,
                 struct ring *ring, struct stopper *stopper, uint32_t id)
{
	target->options = options;
	target->symbols = symbols;
	target->ring = ring;
	target->id = id;
	target->facts.target = id;
	if (!target->configured) {
		target->facts.interval_ns = options->interval_ns;
		target->command_line = options->command_line;
	}
	target->interval_ns = target->facts.interval_ns;
	if (name_special(target) != 0 || codes_new(&target->codes, &target->proc.abi, symbols) != 0 ||
	    edges_new(&target->edges, target->interval_ns >= SLOW_NS) != 0)
		return -ENOMEM;
	if (sampler_stops(options))
		return exact_new(&target->exact, target, stopper);
	return 0;
}

void target_finish(struct target *target, uint64_t now_ns, enum target_event event)
{
	for (uint32_t i = 0; i < target->thread_count; i++)
		exact_end(target, target->threads[i], event != TARGET_DETACHED);
	runs_settle(target);
	cputime_forget(&target->cputime_files, 0);
	for (uint32_t i = 0; i < target->thread_count; i++)
		if (target->threads[i]->name[0] && !target->threads[i]->announced && !target->threads[i]->shadow)
			thread_announce(target, target->threads[i]); /* its name came after its last stack */
	if (target->attached) {
		target_write_facts(target);
		target_announce(target, event, now_ns);
	}
	codes_free(target->codes);
	target->codes = NULL;
	symtab_unref(target->symbols, target->gc_symbol);
	symtab_unref(target->symbols, target->shutdown_symbol);
	symtab_unref(target->symbols, target->truncated_symbol);
	symtab_unref(target->symbols, target->unreadable_symbol);
	symtab_unref(target->symbols, target->cut_symbol);
	symtab_unref(target->symbols, target->native_symbol);
	for (uint32_t i = 0; target->opcode_symbols && i < OPCODES; i++)
		symtab_unref(target->symbols, target->opcode_symbols[i]);
	exact_free(target->exact);
	target->exact = NULL;
	symtab_flush_forgotten(target->symbols, target->ring);
}

static void stack_slim(struct pystack *stack)
{
	free(stack->frames);
	*stack = (struct pystack){0};
}

void target_slim(struct target *target)
{
	cputime_forget(&target->cputime_files, 0);
	plan_slim(&target->plan);
	plan_slim(&target->again);
	stack_slim(&target->spare);
	stack_slim(&target->first_copy);
	for (uint32_t i = 0; i < target->thread_count; i++)
		thread_slim(target->threads[i]);
}

static uint64_t all_lost(const struct target *target)
{
	uint64_t lost = 0;

	for (int i = 0; i < LOSS_CAUSES; i++)
		lost += target->facts.lost[i];
	return lost;
}

/* Stops that come late, until none is waited for or that point in time. */
static void take_late(struct target *target, struct stopper *stopper, uint64_t end_ns)
{
	const struct timespec nap = clock_to_timespec(NS_PER_MS / 2);
	struct rec_facts ignored = {0};
	struct stop stop;

	while (stopper_is_waiting(stopper) && clock_now_ns() < end_ns) {
		while (stopper_take_late(stopper, &stop))
			if (!exact_take_late(target, &stop))
				stop_release(stopper, &stop, &ignored);
		if (stopper_is_waiting(stopper))
			clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
	}
}

static bool any_waits(const struct target *target)
{
	for (uint32_t i = 0; i < target->thread_count; i++)
		if (exact_thread_waiting(target->threads[i]->exact) > 0)
			return true;
	return false;
}

/* The calling thread visits the target, as a sampler's does. NULL: out of memory; nothing is visited then. */
static struct affinity *begin_visits(struct target *target)
{
	struct affinity *affinity = target->remote.core ? NULL : calloc(1, sizeof(*affinity));

	if (!affinity)
		return NULL;
	affinity_begin(affinity);
	visits_begin(&affinity->visits, ONCE_BUDGET_PPM);
	affinity->at_once = turns_begin(false);
	near_join(target, affinity);
	return affinity;
}

/* The variables of the stacks that were read, of the same instant if that can be had. False: they are to be read again, with the stacks. */
static bool take_values(struct target *target, unsigned *tries, uint64_t end_ns)
{
	const struct timespec nap = clock_to_timespec(NS_PER_MS);
	bool last = target->exact || ++*tries == VALUES_TRIES || clock_now_ns() >= end_ns;

	if (!target->values || values_take_all(target->values, target, last))
		return true;
	values_leave(target->values);
	clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
	return false;
}

/* Those whose stacks could not be read, too: nothing is missing silently. */
static void announce_threads(struct target *target)
{
	for (uint32_t i = 0; i < target->thread_count; i++)
		if (!target->threads[i]->announced && !target->threads[i]->shadow)
			thread_announce(target, target->threads[i]);
}

int target_sample_once(struct target *target, struct ring *ring, const struct sampler_options *options,
                       struct values *values, uint64_t patience_ns)
{
	struct sampler_options once = *options;
	struct stopper stopper = {.pending_count = 0};
	struct selfstop selfstop = {.page = NULL};
	uint64_t end_ns = clock_now_ns() + patience_ns;
	struct affinity *affinity;
	struct symtab *symbols;
	unsigned tries = 0;
	int err = symtab_new(&symbols);

	if (err)
		return err;
	target->values = values;
	if (sampler_stops(options) && !target->remote.core) {
		err = selfstop_init(&selfstop);
		if (err) {
			symtab_free(symbols);
			return err;
		}
	}
	once.interval_ns = NS_PER_MS;
	err = target_adopt(target, &once, symbols, ring, &stopper, 1);
	affinity = values ? NULL : begin_visits(target); /* a visit is too short for them: values_begin() goes there */
	while (!err) {
		uint64_t lost = all_lost(target), now_ns;

		if (values)
			values_begin(values, target, !target->exact);
		now_ns = clock_now_ns();
		selfstop_forbid(&selfstop);
		err = target_tick(target, now_ns, now_ns);
		take_late(target, &stopper, end_ns);
		if (!stopper_is_waiting(&stopper))
			selfstop_allow(&selfstop);
		if ((all_lost(target) == lost && !any_waits(target)) || /* each thread's stack has been whole */
		    clock_now_ns() >= end_ns)
			if (err || take_values(target, &tries, end_ns))
				break;
		ring_wake(ring);
	}
	near_leave(target);
	free(affinity);
	if (values)
		values_leave(values);
	if (target->codes) {
		for (uint32_t i = 0; i < target->thread_count; i++)
			target_name_threads(target, clock_now_ns());
		announce_threads(target);
		target_finish(target, clock_now_ns(), TARGET_DETACHED);
	}
	/* What has not come is let go when it does, or when this thread ends. */
	stopper_collect(&stopper);
	selfstop_release(&selfstop);
	symtab_free(symbols);
	return err;
}

bool target_blocked_in(const struct target *target, uint32_t thread, int32_t *ret_number)
{
	int32_t number;

	for (uint32_t i = 0; i < target->thread_count; i++)
		if (target->threads[i]->id == thread) {
			if (!oncpu_number(&target->threads[i]->oncpu, &number) || number < 0)
				return false;
			*ret_number = number;
			return true;
		}
	return false;
}
