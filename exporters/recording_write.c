/* SPDX-License-Identifier: Apache-2.0 */
/* The recording's writer: records of the ring into items of blocks. docs/RECORDING.md has the format.
 *
 * Its memory is bounded: symbols and threads are kept as long as the sampler names them; stacks, which only add up, in a table that begins
 * anew (RESET) when it is full. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporters/recording_state.h"

enum { STACKS_MAX = 1 << 18, UNITS_AN_INTERVAL = 8 };

void recording_fail(struct recording_writer *w, int err)
{
	if (!w->block.err)
		w->block.err = err;
}

/* --- items --- */

struct buf *recording_items(struct recording_writer *w)
{
	return &w->block.columns[COLUMN_ITEMS];
}

/* An item's body is put behind its head when its length is known. */
struct buf *recording_begin(struct recording_writer *w)
{
	w->body.bytes = 0;
	return &w->body;
}

void recording_end(struct recording_writer *w, enum item type)
{
	block_begin_item(&w->block);
	buf_putc(recording_items(w), (char)type);
	put_u(recording_items(w), w->body.bytes);
	buf_add(recording_items(w), w->body.data, w->body.bytes);
	if (w->body.err)
		recording_fail(w, w->body.err);
}

void recording_put_text(struct buf *to, const char *text, size_t bytes)
{
	put_u(to, bytes);
	buf_add(to, text, bytes);
}

void recording_write_empty(struct recording_writer *w, enum item type)
{
	recording_begin(w);
	recording_end(w, type);
}

static void write_session(struct recording_writer *w)
{
	struct buf *body = recording_begin(w);

	put_u(body, (uint64_t)w->unit_ns);
	put_u(body, w->options.interval_ns);
	put_u(body, (uint64_t)w->interval_units);
	put_u(body, w->options.mode);
	put_s(body, (int64_t)w->options.realtime_offset_ns);
	recording_end(w, ITEM_SESSION);
}

static void write_tally(struct recording_writer *w, const struct tally *tally)
{
	const uint64_t now[TALLY_FIELDS] = {
		tally->filtered,          tally->omitted,     tally->out_of_memory, tally->malformed_samples,
		tally->malformed_records, tally->attached_ns, tally->first_ns,      tally->last_ns,
		tally->left_out.wall,     tally->left_out.cpu, tally->left_out.run_wait,
	};
	struct buf *body = recording_begin(w);

	put_u(body, TALLY_FIELDS);
	for (int i = 0; i < TALLY_FIELDS; i++)
		put_s(body, (int64_t)(now[i] - w->tally[i]));
	memcpy(w->tally, now, sizeof(now));
	recording_end(w, ITEM_TALLY);
}

/* --- who is sampled --- */

static void take_target(struct recording_writer *w, const struct rec_target *record)
{
	uint32_t index = lookup_id(&w->target_ids, record->id);
	struct buf *body;

	if (index == LOOKUP_NONE) {
		if (w->target_count == w->target_room) {
			uint32_t room = w->target_room ? w->target_room * 2 : 4;
			struct known_target *larger = realloc(w->targets, room * sizeof(*larger));

			if (!larger)
				return recording_fail(w, -ENOMEM);
			w->targets = larger;
			w->target_room = room;
		}
		index = w->target_count;
		if (lookup_add(&w->target_ids, lookup_hash_id(record->id), index))
			return recording_fail(w, -ENOMEM);
		w->targets[w->target_count++] = (struct known_target){.id = record->id};
	}
	body = recording_begin(w);
	put_u(body, index);
	put_u(body, record->event);
	put_u(body, record->t_ns);
	put_u(body, (uint32_t)record->pid);
	put_u(body, (uint32_t)record->parent_pid);
	put_u(body, record->start_time);
	put_u(body, record->version);
	recording_put_text(body, record->text, record->name_bytes);
	recording_end(w, ITEM_TARGET);
}

static void take_facts(struct recording_writer *w, const struct rec_facts *record, const struct tally *tally)
{
	uint32_t index = lookup_id(&w->target_ids, record->target);
	uint64_t now[FACTS_FIELDS], before[FACTS_FIELDS];
	struct buf *body;

	if (index == LOOKUP_NONE)
		return;
	memcpy(now, (const char *)record + 16, sizeof(now));
	memcpy(before, (const char *)&w->targets[index].facts + 16, sizeof(before));
	body = recording_begin(w);
	put_u(body, index);
	put_u(body, FACTS_FIELDS);
	for (int i = 0; i < FACTS_FIELDS; i++)
		put_s(body, (int64_t)(now[i] - before[i]));
	w->targets[index].facts = *record;
	recording_end(w, ITEM_FACTS);
	write_tally(w, tally);
}

static uint32_t add_thread(struct recording_writer *w, uint32_t id)
{
	uint32_t index = w->free_thread ? w->free_thread - 1 : w->thread_count;

	if (index == w->thread_room) {
		uint32_t room = w->thread_room ? w->thread_room * 2 : 16;
		struct known_thread *larger = realloc(w->threads, room * sizeof(*larger));

		if (!larger)
			return LOOKUP_NONE;
		w->threads = larger;
		w->thread_room = room;
	}
	if (lookup_add(&w->thread_ids, lookup_hash_id(id), index))
		return LOOKUP_NONE;
	if (w->free_thread)
		w->free_thread = w->threads[index].next_free;
	else
		w->thread_count++;
	w->threads[index] = (struct known_thread){.id = id, .next = index};
	return index;
}

static void write_rest(struct recording_writer *w, uint32_t index)
{
	struct known_thread *t = &w->threads[index];
	struct buf *body;

	if (t->rest_ns == 0)
		return;
	body = recording_begin(w);
	put_u(body, index);
	put_s(body, t->rest_ns);
	t->rest_ns = 0;
	recording_end(w, ITEM_REST);
}

static void take_thread(struct recording_writer *w, const struct rec_thread *record, const struct record_fate *fate)
{
	uint32_t index = lookup_id(&w->thread_ids, record->id), flags = record->flags & (THREAD_MAIN | THREAD_ENDED);
	uint32_t target = lookup_id(&w->target_ids, record->target);
	struct buf *body;

	if (target == LOOKUP_NONE)
		return;
	if (index == LOOKUP_NONE) {
		index = add_thread(w, record->id);
		if (index == LOOKUP_NONE)
			return recording_fail(w, -ENOMEM);
		flags |= THREAD_NEW;
	}
	if (flags & THREAD_ENDED)
		write_rest(w, index);
	body = recording_begin(w);
	put_u(body, index);
	put_u(body, flags | (fate->excluded ? THREAD_EXCLUDED : 0));
	put_u(body, target);
	put_s(body, record->interpreter);
	put_u(body, record->tid);
	put_u(body, record->start_time);
	recording_put_text(body, record->text, record->name_bytes);
	recording_end(w, ITEM_THREAD);
	if (!(flags & THREAD_ENDED))
		return;
	lookup_remove(&w->thread_ids, lookup_hash_id(record->id), index);
	free(w->threads[index].frames);
	w->threads[index] = (struct known_thread){.next = w->threads[index].next, .next_free = w->free_thread};
	w->free_thread = index + 1;
}

static void take_time(struct recording_writer *w, const struct rec_time *record, const struct record_fate *fate)
{
	uint32_t index = lookup_id(&w->thread_ids, record->thread);
	struct buf *body;

	if (index == LOOKUP_NONE)
		return;
	body = recording_begin(w);
	put_u(body, index);
	put_u(body, fate->cpu_ns);
	put_u(body, fate->wait_ns);
	recording_end(w, ITEM_TIME);
}

static void take_mark(struct recording_writer *w, const struct rec_mark *record, const struct tally *tally)
{
	struct buf *body;

	for (uint32_t i = 0; i < w->thread_count; i++)
		write_rest(w, i);
	write_tally(w, tally);
	body = recording_begin(w);
	put_u(body, record->sequence);
	put_u(body, record->t_ns);
	recording_end(w, ITEM_MARK);
	block_close(&w->block);
}

void recording_writer_take(struct recording_writer *w, const struct rec_head *record, const struct record_fate *fate,
                           const struct tally *tally)
{
	if (w->block.err)
		return;
	switch (record ? record->type : 0) {
	case REC_SYMBOL:
		recording_take_symbol(w, (const struct rec_symbol *)record);
		break;
	case REC_MAPPING:
		recording_take_mapping(w, (const struct rec_mapping *)record);
		break;
	case REC_FORGET:
		recording_take_forget(w, (const struct rec_forget *)record);
		break;
	case REC_THREAD:
		take_thread(w, (const struct rec_thread *)record, fate);
		break;
	case REC_STACK:
		recording_take_stack(w, (const struct rec_stack *)record, fate);
		break;
	case REC_FACTS:
		take_facts(w, (const struct rec_facts *)record, tally);
		break;
	case REC_TARGET:
		take_target(w, (const struct rec_target *)record);
		break;
	case REC_TIME:
		take_time(w, (const struct rec_time *)record, fate);
		break;
	case REC_MARK:
		take_mark(w, (const struct rec_mark *)record, tally);
		break;
	default:
		break;
	}
	block_close_if_due(&w->block);
}

/* --- its life --- */

int recording_open(int *ret_fd, const char *path, struct fault *fault)
{
	struct stat stat;
	int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600), err = errno;

	if (fd < 0 && err == ELOOP)
		return fault_set(fault, -err, "name the file itself", "it is a symbolic link");
	if (fd < 0 && err == EISDIR)
		return fault_set(fault, -err, "", "it is a directory");
	if (fd < 0)
		return fault_set(fault, -err, "", "%s", strerror(err));
	if (fstat(fd, &stat) != 0 || !S_ISREG(stat.st_mode)) {
		close(fd);
		return fault_set(fault, -EINVAL, "a recording is a file", "it is not a regular file");
	}
	if (ftruncate(fd, 0) != 0) {
		err = errno;
		close(fd);
		return fault_set(fault, -err, "", "%s", strerror(err));
	}
	*ret_fd = fd;
	return 0;
}

int recording_writer_new(struct recording_writer **ret_writer, int fd, const struct recording_options *options)
{
	struct recording_writer *w = calloc(1, sizeof(*w));
	uint64_t interval_units;
	int err;

	if (!w)
		return -ENOMEM;
	w->options = *options;
	if (w->options.stacks_max == 0)
		w->options.stacks_max = STACKS_MAX;
	/* The sampler waits up to a quarter of an interval at random; finer times would tell of little else. */
	w->unit_ns = options->interval_ns ? (int64_t)(options->interval_ns / UNITS_AN_INTERVAL) : 100;
	w->unit_ns = w->unit_ns < 1 ? 1 : w->unit_ns > (int64_t)NS_PER_MS ? (int64_t)NS_PER_MS : w->unit_ns;
	/* Only what is expected hangs on it: of hours and more, as an import may say, it need not be true. */
	interval_units = options->interval_ns / (uint64_t)w->unit_ns;
	w->interval_units = interval_units >> RECORDING_INTERVAL_BITS ? (INT64_C(1) << RECORDING_INTERVAL_BITS) - 1
	                                                              : (int64_t)interval_units;
	w->epoch = 1;
	w->stack_count = 1;
	w->stack_room = 256;
	w->stacks = calloc(w->stack_room, sizeof(*w->stacks));
	err = w->stacks ? block_writer_init(&w->block, fd, options->pack) : -ENOMEM;
	if (!err) {
		write_session(w);
		block_close(&w->block);
		err = w->block.err;
	}
	if (err) {
		recording_writer_free(w);
		return err;
	}
	*ret_writer = w;
	return 0;
}

void recording_writer_free(struct recording_writer *w)
{
	if (!w)
		return;
	for (uint32_t i = 0; i < w->symbol_count; i++)
		free(w->symbols[i].text);
	for (uint32_t i = 0; i < w->thread_count; i++)
		free(w->threads[i].frames);
	free(w->symbols);
	free(w->threads);
	free(w->targets);
	free(w->stacks);
	lookup_release(&w->symbol_ids);
	lookup_release(&w->thread_ids);
	lookup_release(&w->target_ids);
	lookup_release(&w->children);
	text_set_release(&w->files);
	buf_release(&w->body);
	block_writer_release(&w->block);
	free(w);
}

int recording_writer_finish(struct recording_writer *w, const struct tally *tally)
{
	for (uint32_t i = 0; i < w->thread_count && !w->block.err; i++)
		write_rest(w, i);
	if (!w->block.err) {
		write_tally(w, tally);
		recording_write_empty(w, ITEM_END);
		block_close(&w->block);
	}
	return w->block.err;
}

int recording_writer_error(const struct recording_writer *w)
{
	return w->block.err;
}

uint64_t recording_writer_bytes(const struct recording_writer *w)
{
	return w->block.bytes;
}
