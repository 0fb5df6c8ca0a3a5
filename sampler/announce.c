/* SPDX-License-Identifier: Apache-2.0 */
/* Records of what is sampled and what was not: targets, threads, facts. */
#include <string.h>

#include "base/clock.h"
#include "sampler/current.h"
#include "sampler/exact.h"
#include "sampler/host.h"
#include "sampler/target.h"

bool target_announce(struct target *target, enum target_event event, uint64_t now_ns)
{
	char name[1024] = "";
	bool named = (event == TARGET_ATTACHED || event == TARGET_EXECED) &&
	             host_of(&target->remote)->command_line(&target->remote, target->command_line, name, sizeof(name)) == 0;
	size_t bytes = named ? strlen(name) : 0;
	struct rec_target *record;

	record = ring_reserve(target->ring, rec_round(sizeof(*record) + bytes), REC_TARGET);
	if (!record)
		return false;
	record->id = target->id;
	record->event = event;
	record->t_ns = now_ns;
	record->pid = target->proc.pid;
	record->parent_pid = target->proc.parent_pid;
	record->start_time = target->proc.start_time;
	record->version = target->proc.version;
	record->group = target->group;
	record->pad = 0;
	record->name_bytes = (uint32_t)bytes;
	memcpy(record->text, name, bytes);
	ring_commit(target->ring);
	return true;
}

/* Samples that are neither in the stream yet nor lost: of a run in progress, or waiting for a stop. */
static uint64_t undecided(const struct target *target)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < target->thread_count; i++) {
		const struct thread *t = target->threads[i];

		count += t->run.count + (t->still && !t->shadow ? target->passed_ticks - t->still_ticks : 0) +
		         exact_thread_waiting(t->exact);
	}
	return count;
}

void target_write_facts(struct target *target)
{
	struct rec_facts *record = ring_reserve(target->ring, sizeof(*record), REC_FACTS);
	struct rec_head head;

	if (!record)
		return; /* the next one says it all */
	head = record->head;
	target->facts.reads = target->plan.reads + target->again.reads;
	target->facts.read_segments = target->plan.read_segments + target->again.read_segments;
	target->facts.read_bytes = target->plan.read_bytes + target->again.read_bytes;
	target->facts.read_ns = target->plan.read_ns + target->again.read_ns;
	target->facts.symbols = symtab_defined(target->symbols);
	*record = target->facts;
	record->head = head;
	/* They become attempts when they are decided: so in each record attempts are samples and losses, and never fall. */
	record->attempts -= undecided(target);
	ring_commit(target->ring);
}

static bool write_thread(struct target *target, const struct thread *t, uint64_t start_time, uint32_t flags)
{
	const struct interp *interp = target_interp(target, t->interp);
	const char *name = current_eldest(t)->name[0] ? current_eldest(t)->name : t->name;
	size_t bytes = strlen(name);
	struct rec_thread *record = ring_reserve(target->ring, rec_round(sizeof(*record) + bytes), REC_THREAD);

	if (!record)
		return false;
	record->id = t->id;
	record->target = target->id;
	record->interpreter = interp ? interp->id : 0;
	record->tid = (uint64_t)t->tid;
	record->start_time = start_time;
	record->flags = flags | (t->tid == target->proc.pid ? THREAD_MAIN : 0);
	record->name_bytes = (uint32_t)bytes;
	memcpy(record->text, name, bytes);
	ring_commit(target->ring);
	return true;
}

bool thread_announce(struct target *target, struct thread *t)
{
	if (!target->attached)
		target->attached = target_announce(target, TARGET_ATTACHED, clock_now_ns());
	if (!target->attached)
		return false;
	if (t->tid > 0 && t->start_time == 0)
		t->start_time = host_of(&target->remote)->thread_start(&target->remote, t->tid);
	t->announced = write_thread(target, t, t->start_time, 0);
	return t->announced;
}

void thread_end(struct target *target, struct thread *t)
{
	thread_write_time(target, t);
	cputime_forget(&target->cputime_files, t->id);
	/* When the ring is full the consumer keeps one thread longer than it need. */
	if (t->announced)
		write_thread(target, t, t->start_time, THREAD_ENDED);
}
