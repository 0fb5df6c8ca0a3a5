/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/stream.h"

#include <stdlib.h>
#include <string.h>

/* What was written of a thread: its latest stack, for `shared`, and its part of its target's facts. */
struct stream_thread {
	uint32_t id;
	uint32_t target;
	struct frame *frames;
	uint32_t depth;
	uint64_t samples, runs;
	uint64_t t_first_ns, t_last_ns;
};

static void *must(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

/* Appends a record with room for `text_bytes` behind the fixed part, all zeros but for its head. */
static void *add(struct stream *s, uint32_t type, size_t fixed_bytes, size_t text_bytes)
{
	uint32_t bytes = rec_round(fixed_bytes + text_bytes);
	struct rec_head *record = must(buf_reserve(&s->bytes, bytes));

	if (s->interval_ns == 0)
		s->interval_ns = 1000000;
	if (s->now_ns == 0)
		s->now_ns = 1000000000;
	memset(record, 0, bytes);
	*record = (struct rec_head){.bytes = bytes, .type = type};
	s->bytes.bytes += bytes;
	return record;
}

void stream_release(struct stream *s)
{
	for (size_t i = 0; i < s->thread_count; i++)
		free(s->threads[i].frames);
	free(s->threads);
	buf_release(&s->bytes);
	*s = (struct stream){0};
}

static struct rec_target *add_target(struct stream *s, uint32_t id, enum target_event event, int32_t pid, size_t text_bytes)
{
	struct rec_target *record = add(s, REC_TARGET, sizeof(*record), text_bytes);

	record->id = id;
	record->event = event;
	record->t_ns = s->now_ns;
	record->pid = pid;
	record->parent_pid = 1;
	record->start_time = 100 * (uint64_t)pid;
	record->version = 0x030b02;
	record->name_bytes = (uint32_t)text_bytes;
	return record;
}

void stream_target(struct stream *s, uint32_t id, int32_t pid, const char *name)
{
	memcpy(add_target(s, id, TARGET_ATTACHED, pid, strlen(name))->text, name, strlen(name));
}

void stream_target_event(struct stream *s, uint32_t id, enum target_event event, int32_t pid)
{
	add_target(s, id, event, pid, 0);
}

static void add_symbol(struct stream *s, uint32_t id, enum frame_kind kind, const char *name, const char *file,
                       uint32_t first_line)
{
	size_t name_bytes = strlen(name);
	size_t file_bytes = strlen(file);
	struct rec_symbol *record = add(s, REC_SYMBOL, sizeof(*record), name_bytes + file_bytes);

	record->id = id;
	record->kind = kind;
	record->first_line = first_line;
	record->name_bytes = (uint32_t)name_bytes;
	record->file_bytes = (uint32_t)file_bytes;
	memcpy(record->text, name, name_bytes);
	memcpy(record->text + name_bytes, file, file_bytes);
}

void stream_symbol(struct stream *s, uint32_t id, const char *name, const char *file, uint32_t first_line)
{
	add_symbol(s, id, FRAME_PYTHON, name, file, first_line);
}

void stream_special(struct stream *s, uint32_t id, const char *name)
{
	add_symbol(s, id, FRAME_SPECIAL, name, "", 0);
}

static unsigned hex_digit(char digit)
{
	return (unsigned)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

void stream_mapping(struct stream *s, uint32_t id, uint32_t flags, const char *path, const char *build_id)
{
	size_t path_bytes = strlen(path), build_id_bytes = strlen(build_id) / 2;
	struct rec_mapping *record = add(s, REC_MAPPING, sizeof(*record), path_bytes + build_id_bytes);

	record->id = id;
	record->target = 1;
	record->flags = flags;
	record->dev_major = 8;
	record->inode = 1000 + id;
	record->path_bytes = (uint32_t)path_bytes;
	record->build_id_bytes = (uint32_t)build_id_bytes;
	record->start = UINT64_C(0x7f0000000000) + id * UINT64_C(0x100000);
	record->end = record->start + 0x10000;
	record->file_off = flags & MAPPING_MEMORY ? 0 : 0x1000;
	memcpy(record->text, path, path_bytes);
	for (size_t i = 0; i < build_id_bytes; i++)
		record->text[path_bytes + i] =
			(char)(hex_digit(build_id[2 * i]) << 4 | hex_digit(build_id[2 * i + 1]));
}

void stream_forget(struct stream *s, uint32_t id)
{
	struct rec_forget *record = add(s, REC_FORGET, sizeof(*record), 0);

	record->id = id;
}

static struct stream_thread *find_thread(struct stream *s, uint32_t id)
{
	for (size_t i = 0; i < s->thread_count; i++)
		if (s->threads[i].id == id)
			return &s->threads[i];
	s->threads = must(realloc(s->threads, (s->thread_count + 1) * sizeof(*s->threads)));
	s->threads[s->thread_count] = (struct stream_thread){.id = id};
	return &s->threads[s->thread_count++];
}

void stream_thread_of(struct stream *s, uint32_t id, uint32_t target, int64_t interpreter, uint64_t tid, uint32_t flags,
                      const char *name)
{
	size_t name_bytes = name ? strlen(name) : 0;
	struct rec_thread *record = add(s, REC_THREAD, sizeof(*record), name_bytes);

	record->id = id;
	record->target = target;
	record->interpreter = interpreter;
	record->tid = tid;
	record->start_time = 100 * tid;
	record->flags = flags;
	record->name_bytes = (uint32_t)name_bytes;
	if (name_bytes)
		memcpy(record->text, name, name_bytes);
	find_thread(s, id)->target = target;
}

void stream_thread(struct stream *s, uint32_t id, uint32_t target, uint64_t tid, uint32_t flags, const char *name)
{
	stream_thread_of(s, id, target, 0, tid, flags, name);
}

void stream_stack(struct stream *s, uint32_t thread, uint16_t status, uint32_t count, const struct frame *frames,
                  uint32_t depth)
{
	struct stream_thread *last = find_thread(s, thread);
	struct rec_stack *record;
	uint32_t shared = 0;
	uint32_t own;

	while (shared < depth && shared < last->depth &&
	       memcmp(&frames[shared], &last->frames[shared], sizeof(*frames)) == 0)
		shared++;
	own = depth - shared;
	record = add(s, REC_STACK, sizeof(*record), own * sizeof(*frames));
	record->thread = thread;
	record->count = count;
	record->t_last_ns = s->now_ns;
	record->t_first_ns = s->now_ns - (count - 1) * s->interval_ns;
	record->weight_ns = count * s->interval_ns;
	record->status = status;
	record->depth = depth;
	record->shared = shared;
	if (own)
		memcpy(record->frames, frames + shared, own * sizeof(*frames));

	last->frames = must(realloc(last->frames, (depth + 1) * sizeof(*frames)));
	if (own)
		memcpy(last->frames + shared, frames + shared, own * sizeof(*frames));
	last->depth = depth;
	last->samples += count;
	last->runs++;
	if (last->t_first_ns == 0)
		last->t_first_ns = record->t_first_ns;
	last->t_last_ns = record->t_last_ns;
}

void stream_facts(struct stream *s, uint32_t target, const uint64_t lost[LOSS_CAUSES])
{
	struct rec_facts *record = add(s, REC_FACTS, sizeof(*record), 0);

	record->target = target;
	record->interval_ns = s->interval_ns;
	for (size_t i = 0; i < s->thread_count; i++) {
		const struct stream_thread *thread = &s->threads[i];

		if (thread->target != target || thread->runs == 0)
			continue;
		record->samples += thread->samples;
		record->runs += thread->runs;
		if (record->t_start_ns == 0 || thread->t_first_ns < record->t_start_ns)
			record->t_start_ns = thread->t_first_ns;
		if (record->t_last_ns < thread->t_last_ns)
			record->t_last_ns = thread->t_last_ns;
	}
	record->attempts = record->samples;
	for (int i = 0; i < LOSS_CAUSES && lost; i++) {
		record->lost[i] = lost[i];
		record->attempts += lost[i];
	}
	if (record->runs)
		record->ticks = (record->t_last_ns - record->t_start_ns) / s->interval_ns + 1;
	record->ticks_credited = record->ticks; /* nothing was read */
}

void stream_time(struct stream *s, uint32_t thread, uint64_t cpu_ns, uint64_t wait_ns)
{
	struct rec_time *record = add(s, REC_TIME, sizeof(*record), 0);

	record->thread = thread;
	record->t_from_ns = s->now_ns - 20000000;
	record->t_to_ns = s->now_ns;
	record->cpu_ns = cpu_ns;
	record->wait_ns = wait_ns;
}

void stream_mark(struct stream *s, uint64_t sequence)
{
	struct rec_mark *record = add(s, REC_MARK, sizeof(*record), 0);

	record->sequence = sequence;
	record->t_ns = s->now_ns;
}

void stream_raw(struct stream *s, const struct rec_head *record)
{
	memcpy(add(s, record->type, record->bytes, 0), record, record->bytes);
}

const struct rec_head *stream_next(const struct stream *s, size_t *at)
{
	const struct rec_head *record;

	if (*at >= s->bytes.bytes)
		return NULL;
	record = (const struct rec_head *)(s->bytes.data + *at);
	*at += record->bytes;
	return record;
}

int stream_feed(const struct stream *s, struct aggregator *aggregator)
{
	const struct rec_head *record;
	size_t at = 0;
	int first = 0;

	while ((record = stream_next(s, &at))) {
		int err = aggregator_feed(aggregator, record);

		first = first ? first : err;
	}
	return first;
}

struct profile *stream_profile(const struct stream *s, const struct aggregator_options *options)
{
	const struct aggregator_options all = {.idle = true, .interval_ns = s->interval_ns};
	struct aggregator *aggregator;
	struct profile *profile;

	if (aggregator_new(&aggregator, options ? options : &all) != 0)
		abort();
	stream_feed(s, aggregator);
	if (aggregator_profile(aggregator, &profile) != 0)
		abort();
	aggregator_free(aggregator);
	profile->wall_start_ns = STREAM_WALL_START_NS;
	return profile;
}
