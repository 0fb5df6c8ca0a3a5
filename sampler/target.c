/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/target.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sampler/owed.h"
#include "sampler/held.h"

/* From here on a target gets by with little memory. */
#define SLOW_NS (5 * NS_PER_MS)

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

void target_free(struct target *target)
{
	if (!target)
		return;
	target_free_threads(target);
	codes_free(target->codes);
	edges_free(target->edges);
	callees_free(target->callees);
	plan_release(&target->plan);
	plan_release(&target->again);
	free(target->spare.frames);
	free(target->first_copy.frames);
	for (uint32_t i = 0; i < HELD_MAX; i++) {
		free(target->held[i].stack.frames);
		free(target->held[i].other.frames);
	}
	free(target->interps);
	remote_release(&target->remote);
	free(target);
}

const struct pyproc *target_proc(const struct target *target)
{
	return &target->proc;
}

void target_configure(struct target *target, uint64_t interval_ns, uint32_t group)
{
	target->configured = true;
	target->facts.interval_ns = interval_ns;
	target->group = group;
}

bool target_is_execed(const struct target *target)
{
	return target->execed;
}

static uint32_t special_symbol(struct symtab *symbols, const char *name)
{
	return symtab_intern(symbols, &(struct symbol_text){.name = name,
	                                                    .file = "",
	                                                    .name_bytes = (uint32_t)strlen(name),
	                                                    .kind = FRAME_SPECIAL});
}

int target_adopt(struct target *target, const struct sampler_options *options, struct symtab *symbols,
                 struct ring *ring, uint32_t id)
{
	target->options = options;
	target->symbols = symbols;
	target->ring = ring;
	target->id = id;
	target->facts.target = id;
	if (!target->configured)
		target->facts.interval_ns = options->interval_ns;
	target->interval_ns = target->facts.interval_ns;
	target->gc_symbol = special_symbol(symbols, "<GC>");
	target->truncated_symbol = special_symbol(symbols, "<truncated>");
	target->unreadable_symbol = special_symbol(symbols, "<unreadable>");
	if (!target->gc_symbol || !target->truncated_symbol || !target->unreadable_symbol ||
	    codes_new(&target->codes, &target->proc.abi, symbols) != 0 || edges_new(&target->edges, target->interval_ns >= SLOW_NS) != 0)
		return -ENOMEM;
	if (target->proc.abi.frames == FRAMES_HEAP && callees_new(&target->callees) != 0)
		return -ENOMEM;
	return 0;
}

void target_finish(struct target *target, uint64_t now_ns, enum target_event event)
{
	held_end(target, NULL);
	owed_lose(target, NULL);
	runs_close_all(target);
	for (uint32_t i = 0; i < target->thread_count; i++)
		if (target->threads[i]->name[0] && !target->threads[i]->announced)
			thread_announce(target, target->threads[i]); /* its name came after its last stack */
	if (target->attached) {
		target_write_facts(target);
		target_announce(target, event, now_ns);
	}
	codes_free(target->codes);
	target->codes = NULL;
	symtab_unref(target->symbols, target->gc_symbol);
	symtab_unref(target->symbols, target->truncated_symbol);
	symtab_unref(target->symbols, target->unreadable_symbol);
	symtab_flush_forgotten(target->symbols, target->ring);
}

static void stack_slim(struct pystack *stack)
{
	free(stack->frames);
	*stack = (struct pystack){0};
}

void target_slim(struct target *target)
{
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

int target_sample_once(struct target *target, struct ring *ring, uint64_t patience_ns)
{
	static const struct sampler_options once = {.interval_ns = NS_PER_MS, .gc = true};
	uint64_t end_ns = clock_now_ns() + patience_ns;
	struct symtab *symbols;
	int err = symtab_new(&symbols);

	if (err)
		return err;
	err = target_adopt(target, &once, symbols, ring, 1);
	while (!err) {
		uint64_t lost = all_lost(target);

		err = target_tick(target, clock_now_ns());
		if ((all_lost(target) == lost && target->held_count == 0) || clock_now_ns() >= end_ns)
			break; /* each thread's stack has been whole */
		ring_wake(ring);
	}
	if (target->codes) {
		for (uint32_t i = 0; i < target->thread_count; i++)
			target_name_threads(target, clock_now_ns());
		target_finish(target, clock_now_ns(), TARGET_DETACHED);
	}
	symtab_free(symbols);
	return err;
}
