/* SPDX-License-Identifier: Apache-2.0 */
/* Who is sampled, as a recording's items tell it: processes and their threads, which come, get names and go. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "exporters/recording_reader.h"

enum { PROCESSES_MAX = 1 << 20, THREADS_MAX = 1 << 20 };

static char *copy_text(const char *text, size_t bytes)
{
	struct buf valid = {0};
	char *copy;

	utf8_add_valid(&valid, text, bytes > REC_TEXT_MAX ? REC_TEXT_MAX : bytes);
	copy = strdup(buf_text(&valid));
	buf_release(&valid);
	return copy;
}

static bool add_process(struct reader *r, const struct process *process)
{
	struct read_process added = {.fold_at = FOLD_THREADS, .folded = BUILDER_NONE};

	if (COUNT(r->processes, struct read_process) >= PROCESSES_MAX)
		return false;
	added.process = builder_process(r->to, process);
	buf_add(&r->processes, &added, sizeof(added));
	return true;
}

bool reader_target(struct reader *r, struct cursor *c)
{
	uint64_t index = take_u(c), event = take_u(c);
	struct process process = {.ended = event == TARGET_EXITED};
	struct read_process *known;
	const char *name;
	size_t bytes;

	take_u(c); /* when: of no use to a profile, which begins with the first tick */
	process.pid = (int32_t)take_u(c);
	process.parent_pid = (int32_t)take_u(c);
	process.start_time = take_u(c);
	process.version = (uint32_t)take_u(c);
	name = take_text(c, &bytes);
	known = process_at(r, index);
	if (c->bad || (!known && index != COUNT(r->processes, struct read_process)))
		return false;
	process.name = copy_text(name, bytes);
	if (!known) {
		bool added = process.name && add_process(r, &process);

		free(process.name);
		return added;
	}
	if (process.name)
		builder_describe_process(r->to, known->process, &process);
	free(process.name);
	return true;
}

/* As the aggregator does (aggregator/fold.c), so that a process of a great many threads comes out the same. Runs stay with their threads. */
static void fold_ended(struct reader *r, struct read_process *process)
{
	struct thread_tree like = {.process = process->process, .name = (char *)"(ended threads)"};
	uint32_t count = COUNT(process->ended, uint32_t);

	if (builder_keeps_runs(r->to))
		return;
	if (count && process->folded == BUILDER_NONE)
		process->folded = builder_new_thread(r->to, &like);
	for (uint32_t i = 0; i < count; i++)
		builder_fold_thread(r->to, ((uint32_t *)process->ended.data)[i], process->folded);
	process->ended.bytes = 0;
	process->thread_count -= count;
	process->fold_at =
		process->thread_count + FOLD_STEP > FOLD_THREADS ? process->thread_count + FOLD_STEP : FOLD_THREADS;
}

static bool make_room_for_thread(struct reader *r, uint64_t index)
{
	uint32_t room = r->thread_room ? r->thread_room * 2 : 16;
	struct read_thread *larger;

	if (index < r->thread_count)
		return true;
	if (index > r->thread_count || index >= THREADS_MAX)
		return false;
	if (index == r->thread_room) {
		larger = realloc(r->threads, room * sizeof(*larger));
		if (!larger)
			return false;
		r->threads = larger;
		r->thread_room = room;
	}
	r->threads[r->thread_count++] = (struct read_thread){.thread = BUILDER_NONE};
	return true;
}

static void begin_thread(struct reader *r, struct read_thread *t, uint32_t index, uint32_t process)
{
	struct read_process *of = process_at(r, process);

	if (of->thread_count >= of->fold_at)
		fold_ended(r, of);
	reader_forget_nodes(r, t);
	spread_release(&t->spread, &r->budget);
	free(t->like.name);
	*t = (struct read_thread){
		.thread = BUILDER_NONE, .live = true, .touched = t->touched, .process = process, .next = index};
	of->thread_count++;
}

void reader_drop_if_excluded(struct reader *r, struct read_thread *t)
{
	if (!t->live || !t->excluded || t->has_run)
		return;
	builder_drop_thread(r->to, t->thread);
	t->thread = BUILDER_NONE;
}

bool reader_thread(struct reader *r, struct cursor *c)
{
	uint64_t index = take_u(c), flags = take_u(c), process = take_u(c);
	struct thread_tree like = {.interpreter = take_s(c), .tid = take_u(c), .is_main = flags & THREAD_MAIN};
	struct read_process *of = process_at(r, process);
	struct read_thread *t;
	const char *name;
	size_t bytes;

	take_u(c); /* its start time */
	name = take_text(c, &bytes);
	if (c->bad || !of || (flags & THREAD_NEW ? !make_room_for_thread(r, index) : index >= r->thread_count))
		return false;
	t = &r->threads[index];
	if (flags & THREAD_NEW)
		begin_thread(r, t, (uint32_t)index, (uint32_t)process);
	if (!t->live || t->process != process)
		return false;
	like.process = of->process;
	like.name = t->like.name;
	if (bytes) {
		like.name = copy_text(name, bytes);
		free(t->like.name);
	}
	t->like = like;
	if (t->thread != BUILDER_NONE)
		builder_describe_thread(r->to, t->thread, &t->like);
	else
		t->thread = builder_new_thread(r->to, &t->like);
	t->excluded = flags & THREAD_EXCLUDED;
	if (flags & THREAD_ENDED) {
		reader_drop_if_excluded(r, t);
		reader_forget_nodes(r, t);
		spread_release(&t->spread, &r->budget);
		t->live = false;
		buf_add(&of->ended, &t->thread, sizeof(t->thread));
	}
	return true;
}
