/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/records.h"
#include "aggregator/symbols.h"
#include "base/clock.h"
#include "daemon/dump.h"
#include "sampler/ring.h"
#include "sampler/syscalls.h"

/* A stack that moves all the time is caught between two moves sooner or later; not to be waited for any longer. */
#define PATIENCE_NS (2 * NS_PER_S)

enum {
	SYMBOLS_MAX = 1 << 22,
	THREADS_MAX = 1 << 16,
};

/* Emptied meanwhile: it holds what comes while its reader is kept off the CPU. Pages not used cost nothing. */
#define RING_BYTES (UINT64_C(64) << 20)

static void release_symbol(struct dump_symbol *symbol)
{
	free(symbol->name);
	free(symbol->file);
	free(symbol->module);
	free(symbol->build_id);
	*symbol = (struct dump_symbol){0};
}

/* The place for a symbol of this id, empty; NULL: no memory. */
static struct dump_symbol *place_symbol(struct dump *d, uint32_t id)
{
	if (id >= d->symbol_room) {
		uint32_t room = d->symbol_room ? d->symbol_room : 256;
		struct dump_symbol *symbols;

		while (room <= id)
			room *= 2;
		symbols = realloc(d->symbols, room * sizeof(*symbols));
		if (!symbols)
			return NULL;
		memset(symbols + d->symbol_room, 0, (room - d->symbol_room) * sizeof(*symbols));
		d->symbols = symbols;
		d->symbol_room = room;
	}
	release_symbol(&d->symbols[id]);
	return &d->symbols[id];
}

static int add_symbol(struct dump *d, const struct rec_symbol *record)
{
	struct dump_symbol *symbol;

	if (record->id >= SYMBOLS_MAX ||
	    (uint64_t)record->name_bytes + record->file_bytes > record->head.bytes - sizeof(*record))
		return -EPROTO;
	symbol = place_symbol(d, record->id);
	if (!symbol)
		return -ENOMEM;
	symbol->name = strndup(record->text, record->name_bytes);
	symbol->file = strndup(record->text + record->name_bytes, record->file_bytes);
	symbol->first_line = record->first_line;
	return symbol->name && symbol->file ? 0 : -ENOMEM;
}

static int add_mapping(struct dump *d, const struct rec_mapping *record)
{
	char build_id[2 * BUILD_ID_MAX];
	struct symbol_content content;
	struct dump_symbol *symbol;

	if (record->id >= SYMBOLS_MAX)
		return -EPROTO;
	content = symbol_of_mapping(record, build_id);
	symbol = place_symbol(d, record->id);
	if (!symbol)
		return -ENOMEM;
	symbol->name = strndup(content.name, content.name_bytes);
	symbol->file = strdup("");
	symbol->module = strndup(content.module, content.module_bytes);
	symbol->build_id = strndup(content.build_id, content.build_id_bytes);
	symbol->first_line = content.first_line;
	symbol->mapped = true;
	symbol->flags = content.flags;
	naming_take(d->naming, &record->head);
	return symbol->name && symbol->file && symbol->module && symbol->build_id ? 0 : -ENOMEM;
}

static struct dump_thread *find_thread(const struct dump *d, uint32_t id)
{
	for (uint32_t i = 0; i < d->thread_count; i++)
		if (d->threads[i].id == id)
			return &d->threads[i];
	return NULL;
}

static int add_thread(struct dump *d, const struct rec_thread *record)
{
	struct dump_thread *thread = find_thread(d, record->id);

	if (record->name_bytes > record->head.bytes - sizeof(*record))
		return -EPROTO;
	if (!thread) {
		struct dump_thread *threads;

		if (d->thread_count >= THREADS_MAX)
			return -EPROTO;
		threads = realloc(d->threads, (d->thread_count + 1) * sizeof(*threads));
		if (!threads)
			return -ENOMEM;
		d->threads = threads;
		thread = &threads[d->thread_count++];
		*thread = (struct dump_thread){.id = record->id};
	}
	thread->interpreter = record->interpreter;
	thread->tid = record->tid;
	thread->is_main = record->flags & THREAD_MAIN;
	free(thread->name);
	thread->name = record->name_bytes ? strndup(record->text, record->name_bytes) : NULL;
	return record->name_bytes && !thread->name ? -ENOMEM : 0;
}

/* The last stack of a thread stands: there are several where a thread moved before all of them could be read. */
static int add_stack(struct dump *d, const struct rec_stack *record)
{
	struct dump_thread *thread = find_thread(d, record->thread);
	struct frame *frames;

	if (!thread)
		return -EPROTO;
	if (record->shared > record->depth || record->shared > thread->depth ||
	    record->head.bytes - sizeof(*record) != (uint64_t)(record->depth - record->shared) * sizeof(*frames)) {
		/* The next may share frames of this one, so those known are of no use either. */
		thread->depth = 0;
		thread->sampled = false;
		return -EPROTO;
	}
	frames = realloc(thread->frames, (record->depth + 1) * sizeof(*frames));
	if (!frames)
		return -ENOMEM;
	memcpy(frames + record->shared, record->frames, (record->depth - record->shared) * sizeof(*frames));
	thread->frames = frames;
	thread->depth = record->depth;
	thread->status = record->status;
	thread->truncated = record->flags & STACK_TRUNCATED;
	thread->sampled = true;
	return 0;
}

static int add_facts(struct dump *d, const struct rec_facts *record)
{
	d->facts = *record;
	return 0;
}

/* 0, -EPROTO: it makes no sense, -ENOMEM. */
static int add_record(struct dump *d, const struct rec_head *record)
{
	switch (record->type) {
	case REC_SYMBOL:
		return record->bytes < sizeof(struct rec_symbol) ? -EPROTO
		                                                 : add_symbol(d, (const struct rec_symbol *)record);
	case REC_MAPPING:
		return record_check(record) ? -EPROTO : add_mapping(d, (const struct rec_mapping *)record);
	case REC_TARGET:
		if (record->bytes >= sizeof(struct rec_target))
			naming_take(d->naming, record);
		return 0;
	case REC_THREAD:
		return record->bytes < sizeof(struct rec_thread) ? -EPROTO
		                                                 : add_thread(d, (const struct rec_thread *)record);
	case REC_STACK:
		return record->bytes < sizeof(struct rec_stack) ? -EPROTO
		                                                : add_stack(d, (const struct rec_stack *)record);
	case REC_FACTS:
		return record->bytes < sizeof(struct rec_facts) ? -EPROTO
		                                                : add_facts(d, (const struct rec_facts *)record);
	default:
		return 0;
	}
}

int dump_feed(struct dump *dump, const struct rec_head *record)
{
	int err = add_record(dump, record);

	if (err != -EPROTO)
		return err;
	dump->left_out++;
	return 0;
}

static int compare_threads(const void *left, const void *right)
{
	const struct dump_thread *a = left, *b = right;

	if (a->interpreter != b->interpreter)
		return a->interpreter < b->interpreter ? -1 : 1;
	if (a->is_main != b->is_main)
		return a->is_main ? -1 : 1;
	return (a->tid > b->tid) - (a->tid < b->tid);
}

/* The sampling side, in a thread of its own. */
struct sampling {
	struct target *target;
	const struct sampler_options *options;
	struct ring *ring;
	struct values *values; /* NULL: not asked for */
	int err;
};

static void *sample(void *context)
{
	struct sampling *sampling = context;

	sampling->err = target_sample_once(sampling->target, sampling->ring, sampling->options, sampling->values,
	                                   PATIENCE_NS);
	ring_close(sampling->ring);
	return NULL;
}

/* Reads records until the ring is closed. 0 or -ENOMEM. */
static int drain(struct dump *d, struct ring *ring)
{
	const struct rec_head *record;
	int err = 0;

	while (!ring_at_end(ring)) {
		while (!err && (record = ring_peek(ring))) {
			err = dump_feed(d, record);
			ring_release(ring);
		}
		if (err)
			return err;
		ring_wait(ring, NS_PER_MS);
	}
	return 0;
}

/* Of those that were not runnable. */
static void name_syscalls(struct dump *d, const struct target *target)
{
	for (uint32_t i = 0; i < d->thread_count; i++) {
		struct dump_thread *thread = &d->threads[i];
		int32_t number;

		if (thread->sampled && !(thread->status & (STATUS_RUNNABLE | STATUS_UNKNOWN)) &&
		    target_blocked_in(target, thread->id, &number))
			thread->syscall = syscall_name(number);
	}
}

int dump_take(struct dump *ret_dump, struct target *target, const struct sampler_options *options,
              const struct values_options *values, struct naming *naming)
{
	struct sampling sampling = {.target = target, .options = options};
	struct dump d = {.naming = naming, .values.options = *values};
	pthread_t thread;
	int err = ring_new(&sampling.ring, RING_BYTES);

	if (err)
		return err;
	sampling.values = values->level == VALUES_OFF ? NULL : &d.values;
	err = -pthread_create(&thread, NULL, sample, &sampling);
	if (!err) {
		err = drain(&d, sampling.ring);
		pthread_join(thread, NULL); /* a full ring does not hold it up */
		err = err ? err : sampling.err ? sampling.err : d.values.err;
	}
	ring_free(sampling.ring);
	name_syscalls(&d, target);
	if (err) {
		dump_release(&d);
		return err;
	}
	if (d.thread_count > 0)
		qsort(d.threads, d.thread_count, sizeof(d.threads[0]), compare_threads);
	*ret_dump = d;
	return 0;
}

uint32_t dump_gil_holders(const struct dump *dump)
{
	uint32_t most = 0, count = 0;

	for (uint32_t i = 0; i < dump->thread_count; i++) { /* in the order of their interpreters */
		const struct dump_thread *thread = &dump->threads[i];

		if (i > 0 && thread->interpreter != thread[-1].interpreter)
			count = 0;
		count += thread->sampled && thread->status & STATUS_GIL;
		most = count > most ? count : most;
	}
	return most;
}

void dump_release(struct dump *dump)
{
	for (uint32_t i = 0; i < dump->symbol_room; i++)
		release_symbol(&dump->symbols[i]);
	for (uint32_t i = 0; i < dump->thread_count; i++) {
		free(dump->threads[i].name);
		free(dump->threads[i].frames);
		free(dump->threads[i].locals);
	}
	values_release(&dump->values);
	free(dump->symbols);
	free(dump->threads);
	*dump = (struct dump){0};
}
