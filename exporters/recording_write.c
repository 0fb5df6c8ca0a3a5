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

#include "aggregator/lookup.h"
#include "base/hash.h"
#include "exporters/intern.h"
#include "exporters/recording_block.h"

enum { STACKS_MAX = 1 << 18 };

/* A symbol of the sampler's. */
struct known_symbol {
	char *text; /* owned: name, then file; NULL: a free slot */
	uint32_t id, name_bytes, file_bytes, first_line;
	uint32_t number, epoch; /* in the file, if the epoch is the writer's */
	uint32_t next_free;     /* of a free slot: slot + 1 */
	uint8_t kind, flags;
};

struct path_frame {
	uint32_t id, line; /* the sampler's symbol */
	uint32_t stack;    /* its number in the file, as far as the thread's path goes */
};

struct known_thread {
	uint32_t id; /* 0: a free slot */
	uint32_t next_free;
	struct path_frame *frames; /* owned */
	uint32_t depth, room;
	uint32_t cut, path_depth, path_epoch; /* frames[cut … path_depth) have their stacks */
	bool has_run;
	uint32_t stack, stack_epoch, next; /* next: the thread of the run that came behind this one's last */
	unsigned status;
	int64_t t_last, due;
	int64_t rest_ns; /* of the weights: what rounding left */
};

struct known_target {
	uint32_t id;
	struct rec_facts facts; /* as in the file */
};

/* A stack: a frame on another stack. */
struct stack_key {
	uint32_t parent, id, line;
};

struct recording_writer {
	struct block_writer block;
	struct buf body; /* of the item in the making */
	struct recording_options options;
	int64_t unit_ns, interval_units;
	struct known_symbol *symbols;
	uint32_t symbol_count, symbol_room, free_symbol;
	struct lookup symbol_ids;
	struct known_thread *threads;
	uint32_t thread_count, thread_room, free_thread;
	struct lookup thread_ids;
	struct known_target *targets;
	uint32_t target_count, target_room;
	struct lookup target_ids;
	uint64_t tally[TALLY_FIELDS]; /* as in the file */
	/* Until the next RESET. */
	uint32_t epoch, symbols_written, last_symbol, stack_count; /* stacks[0] is the empty one */
	struct stack_key *stacks;
	uint32_t stack_room;
	struct lookup children; /* hash of the key → stack */
	struct text_set files;
	/* Of the runs. */
	uint64_t base_ns;   /* 0: none yet */
	int64_t last_first; /* when the last run began, in units */
	uint32_t last_thread;
	struct ticks ticks;
};

static void fail(struct recording_writer *w, int err)
{
	if (!w->block.err)
		w->block.err = err;
}

/* --- items --- */

static struct buf *items(struct recording_writer *w)
{
	return &w->block.columns[COLUMN_ITEMS];
}

/* An item's body is put behind its head when its length is known. */
static struct buf *begin(struct recording_writer *w)
{
	w->body.bytes = 0;
	return &w->body;
}

static void end(struct recording_writer *w, enum item type)
{
	block_begin_item(&w->block);
	buf_putc(items(w), (char)type);
	put_u(items(w), w->body.bytes);
	buf_add(items(w), w->body.data, w->body.bytes);
	if (w->body.err)
		fail(w, w->body.err);
}

static void put_text(struct buf *to, const char *text, size_t bytes)
{
	put_u(to, bytes);
	buf_add(to, text, bytes);
}

static void write_empty(struct recording_writer *w, enum item type)
{
	begin(w);
	end(w, type);
}

static void write_session(struct recording_writer *w)
{
	struct buf *body = begin(w);

	put_u(body, (uint64_t)w->unit_ns);
	put_u(body, w->options.interval_ns);
	put_u(body, (uint64_t)w->interval_units);
	put_u(body, w->options.mode);
	put_s(body, (int64_t)w->options.realtime_offset_ns);
	end(w, ITEM_SESSION);
}

static void write_tally(struct recording_writer *w, const struct tally *tally)
{
	const uint64_t now[TALLY_FIELDS] = {
		tally->filtered,          tally->omitted,     tally->out_of_memory, tally->malformed_samples,
		tally->malformed_records, tally->attached_ns, tally->first_ns,      tally->last_ns,
	};
	struct buf *body = begin(w);

	put_u(body, TALLY_FIELDS);
	for (int i = 0; i < TALLY_FIELDS; i++)
		put_s(body, (int64_t)(now[i] - w->tally[i]));
	memcpy(w->tally, now, sizeof(now));
	end(w, ITEM_TALLY);
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
				return fail(w, -ENOMEM);
			w->targets = larger;
			w->target_room = room;
		}
		index = w->target_count;
		if (lookup_add(&w->target_ids, lookup_hash_id(record->id), index))
			return fail(w, -ENOMEM);
		w->targets[w->target_count++] = (struct known_target){.id = record->id};
	}
	body = begin(w);
	put_u(body, index);
	put_u(body, record->event);
	put_u(body, record->t_ns);
	put_u(body, (uint32_t)record->pid);
	put_u(body, (uint32_t)record->parent_pid);
	put_u(body, record->start_time);
	put_u(body, record->version);
	put_text(body, record->text, record->name_bytes);
	end(w, ITEM_TARGET);
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
	body = begin(w);
	put_u(body, index);
	put_u(body, FACTS_FIELDS);
	for (int i = 0; i < FACTS_FIELDS; i++)
		put_s(body, (int64_t)(now[i] - before[i]));
	w->targets[index].facts = *record;
	end(w, ITEM_FACTS);
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
	body = begin(w);
	put_u(body, index);
	put_s(body, t->rest_ns);
	t->rest_ns = 0;
	end(w, ITEM_REST);
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
			return fail(w, -ENOMEM);
		flags |= THREAD_NEW;
	}
	if (flags & THREAD_ENDED)
		write_rest(w, index);
	body = begin(w);
	put_u(body, index);
	put_u(body, flags | (fate->excluded ? THREAD_EXCLUDED : 0));
	put_u(body, target);
	put_s(body, record->interpreter);
	put_u(body, record->tid);
	put_u(body, record->start_time);
	put_text(body, record->text, record->name_bytes);
	end(w, ITEM_THREAD);
	if (!(flags & THREAD_ENDED))
		return;
	lookup_remove(&w->thread_ids, lookup_hash_id(record->id), index);
	free(w->threads[index].frames);
	w->threads[index] = (struct known_thread){.next = w->threads[index].next, .next_free = w->free_thread};
	w->free_thread = index + 1;
}

/* --- symbols and stacks --- */

static void take_symbol(struct recording_writer *w, const struct rec_symbol *record)
{
	size_t bytes = (size_t)record->name_bytes + record->file_bytes;
	uint32_t slot = w->free_symbol ? w->free_symbol - 1 : w->symbol_count;
	char *text = malloc(bytes + 1);

	if (slot == w->symbol_room && text) {
		uint32_t room = w->symbol_room ? w->symbol_room * 2 : 256;
		struct known_symbol *larger = realloc(w->symbols, room * sizeof(*larger));

		if (larger) {
			w->symbols = larger;
			w->symbol_room = room;
		}
	}
	if (!text || slot == w->symbol_room || lookup_add(&w->symbol_ids, lookup_hash_id(record->id), slot)) {
		free(text);
		return fail(w, -ENOMEM);
	}
	if (w->free_symbol)
		w->free_symbol = w->symbols[slot].next_free;
	else
		w->symbol_count++;
	memcpy(text, record->text, bytes);
	w->symbols[slot] = (struct known_symbol){
		.text = text,
		.id = record->id,
		.name_bytes = record->name_bytes,
		.file_bytes = record->file_bytes,
		.first_line = record->first_line,
		.kind = (uint8_t)record->kind,
		.flags = (uint8_t)record->flags,
	};
}

static void take_forget(struct recording_writer *w, const struct rec_forget *record)
{
	uint32_t slot = lookup_id(&w->symbol_ids, record->id);

	if (slot == LOOKUP_NONE)
		return;
	lookup_remove(&w->symbol_ids, lookup_hash_id(record->id), slot);
	free(w->symbols[slot].text);
	w->symbols[slot] = (struct known_symbol){.next_free = w->free_symbol};
	w->free_symbol = slot + 1;
}

static void reset(struct recording_writer *w)
{
	write_empty(w, ITEM_RESET);
	w->epoch++;
	w->symbols_written = w->last_symbol = 0;
	w->stack_count = 1;
	lookup_release(&w->children);
	text_set_release(&w->files);
}

/* What a frame names whose symbol is not known any more: the sampler does not write such. */
static const struct known_symbol nobody = {.text = (char *)""};

/* The number of a symbol in the file, which is written into it when it is not there yet. */
static uint32_t write_symbol(struct recording_writer *w, struct known_symbol *symbol)
{
	struct known_symbol copy = symbol ? *symbol : nobody;
	uint32_t files, file;
	struct buf *body;

	if (symbol && symbol->number && symbol->epoch == w->epoch)
		return symbol->number;
	files = w->files.count;
	file = text_set_add(&w->files, copy.text + copy.name_bytes, copy.file_bytes);
	if (file == INTERN_FAILED) {
		fail(w, -ENOMEM);
		return 0;
	}
	body = begin(w);
	put_u(body, copy.kind);
	put_u(body, copy.flags);
	put_u(body, copy.first_line);
	put_text(body, copy.text, copy.name_bytes);
	put_u(body, file == files ? 0 : file + 1);
	if (file == files)
		put_text(body, copy.text + copy.name_bytes, copy.file_bytes);
	end(w, ITEM_SYMBOL);
	w->symbols_written++;
	if (symbol) {
		symbol->number = w->symbols_written;
		symbol->epoch = w->epoch;
	}
	return w->symbols_written;
}

static uint32_t add_stack(struct recording_writer *w, const struct stack_key *key, uint32_t hash)
{
	uint32_t slot = lookup_id(&w->symbol_ids, key->id), number, stack = w->stack_count;
	struct known_symbol *symbol = slot == LOOKUP_NONE ? NULL : &w->symbols[slot];
	struct buf *body;

	if (stack == w->stack_room) {
		uint32_t room = w->stack_room * 2;
		struct stack_key *larger = realloc(w->stacks, room * sizeof(*larger));

		if (!larger) {
			fail(w, -ENOMEM);
			return 0;
		}
		w->stacks = larger;
		w->stack_room = room;
	}
	number = write_symbol(w, symbol);
	if (lookup_add(&w->children, hash, stack)) {
		fail(w, -ENOMEM);
		return 0;
	}
	body = begin(w);
	put_u(body, stack - key->parent);
	put_s(body, (int64_t)number - w->last_symbol);
	put_s(body, (int64_t)key->line - (symbol ? symbol->first_line : 0));
	end(w, ITEM_STACK);
	w->last_symbol = number;
	w->stacks[stack] = *key;
	w->stack_count++;
	return stack;
}

static uint32_t child(struct recording_writer *w, uint32_t parent, const struct path_frame *frame)
{
	struct stack_key key = {.parent = parent, .id = frame->id, .line = frame->line};
	uint32_t hash = (uint32_t)hash_combine(hash_combine(parent, frame->id), frame->line), at = hash, stack;

	while ((stack = lookup_next(&w->children, hash, &at)) != LOOKUP_NONE)
		if (memcmp(&w->stacks[stack], &key, sizeof(key)) == 0)
			return stack;
	return add_stack(w, &key, hash);
}

/* --- runs --- */

/* The thread's stack becomes the record's. False: it cannot be known. */
static bool follow(struct recording_writer *w, struct known_thread *t, const struct rec_stack *record)
{
	if (record->shared > t->depth) { /* the record it shares with was none that we were told of */
		t->depth = t->path_depth = 0;
		return false;
	}
	if (record->depth > t->room) {
		uint32_t room = t->room ? t->room : 16;
		struct path_frame *larger;

		while (room < record->depth)
			room *= 2;
		larger = realloc(t->frames, room * sizeof(*larger));
		if (!larger) {
			fail(w, -ENOMEM);
			return false;
		}
		t->frames = larger;
		t->room = room;
	}
	for (uint32_t i = record->shared; i < record->depth; i++) {
		const struct frame *frame = &record->frames[i - record->shared];

		t->frames[i] = (struct path_frame){.id = frame->id, .line = frame->where};
	}
	t->depth = record->depth;
	if (t->path_depth > record->shared)
		t->path_depth = record->shared;
	return true;
}

/* The number of the thread's stack, without the frames that are cut off. */
static uint32_t number_stack(struct recording_writer *w, struct known_thread *t, uint32_t cut)
{
	uint32_t depth, stack;

	if (w->stack_count + (t->depth - cut) > w->options.stacks_max && w->stack_count > 1)
		reset(w);
	if (t->path_epoch != w->epoch || t->cut != cut || t->path_depth < cut)
		t->path_depth = cut;
	t->path_epoch = w->epoch;
	t->cut = cut;
	depth = t->path_depth;
	stack = depth > cut ? t->frames[depth - 1].stack : 0;
	for (; depth < t->depth && !w->block.err; depth++)
		t->frames[depth].stack = stack = child(w, stack, &t->frames[depth]);
	t->path_depth = depth;
	return stack;
}

static int64_t to_units(const struct recording_writer *w, uint64_t t_ns)
{
	int64_t off_ns = (int64_t)(t_ns - w->base_ns), units = off_ns / w->unit_ns;

	return units - (off_ns % w->unit_ns < 0);
}

/* The weight in units; *ret_expected is what a reader takes it for. What is not whole is kept for later. */
static int64_t take_weight(struct recording_writer *w, struct known_thread *t, const struct rec_stack *record,
                           int64_t t_last, int64_t *ret_expected)
{
	int64_t expected = t->has_run ? t_last - t->t_last : (int64_t)record->count * w->interval_units;
	int64_t weight_ns = (int64_t)record->weight_ns + t->rest_ns, weight = expected;
	int64_t off_ns = weight_ns - expected * w->unit_ns;

	if (expected < 0 || off_ns >= 2 * w->unit_ns || off_ns <= -2 * w->unit_ns)
		weight = weight_ns > 0 ? weight_ns / w->unit_ns : 0;
	t->rest_ns = weight_ns - weight * w->unit_ns;
	*ret_expected = expected;
	return weight;
}

static void write_run(struct recording_writer *w, uint32_t index, const struct rec_stack *record, uint32_t stack)
{
	struct known_thread *t = &w->threads[index];
	int64_t t_first = to_units(w, record->t_first_ns), t_last = to_units(w, record->t_last_ns), expected, weight,
		due;
	struct buf *to = items(w), *times = &w->block.columns[COLUMN_TIMES];
	unsigned tag = ITEM_RUN;

	if (record->count == 1)
		t_last = t_first;
	weight = take_weight(w, t, record, t_last, &expected);
	tag |= w->last_thread < w->thread_count && w->threads[w->last_thread].next == index ? 0 : RUN_THREAD;
	tag |= t->stack_epoch == w->epoch && t->stack == stack ? 0 : RUN_STACK;
	tag |= t->has_run && t->status == record->status ? 0 : RUN_STATUS;
	tag |= record->count > 1 ? RUN_COUNT : 0;
	tag |= weight == expected ? 0 : RUN_WEIGHT;
	tag |= t_first == w->last_first ? RUN_SAME : 0;
	block_begin_item(&w->block);
	buf_putc(to, (char)tag);
	if (tag & RUN_THREAD)
		put_u(to, index);
	if (tag & RUN_STATUS)
		put_u(to, record->status);
	if (tag & RUN_COUNT)
		put_u(to, record->count - 2);
	if (tag & RUN_STACK)
		put_u(&w->block.columns[COLUMN_STACKS], stack);
	due = t->has_run ? t->due + w->interval_units * 16 : w->last_first * 16;
	if (!(tag & RUN_SAME))
		put_s(times, t_first - ticks_expect(&w->ticks, due, w->interval_units));
	due = due_next(due, t_first, w->interval_units);
	ticks_enter(&w->ticks, t_first, w->interval_units);
	if (tag & RUN_COUNT) {
		due += (int64_t)(record->count - 1) * w->interval_units * 16;
		put_s(times, t_last - ticks_expect(&w->ticks, due, w->interval_units));
		due = due_next(due, t_last, w->interval_units);
		ticks_enter(&w->ticks, t_last, w->interval_units);
	}
	t->due = due;
	if (tag & RUN_WEIGHT)
		put_s(times, weight - expected);
	t->has_run = true;
	t->stack = stack;
	t->stack_epoch = w->epoch;
	t->status = record->status;
	t->t_last = t_last;
	if (w->last_thread < w->thread_count)
		w->threads[w->last_thread].next = index;
	w->last_thread = index;
	w->last_first = t_first;
}

static void take_stack(struct recording_writer *w, const struct rec_stack *record, const struct record_fate *fate)
{
	uint32_t index = lookup_id(&w->thread_ids, record->thread), stack;
	struct known_thread *t;

	if (index == LOOKUP_NONE)
		return;
	t = &w->threads[index];
	if (w->base_ns == 0) {
		struct buf *body = begin(w);

		w->base_ns = record->t_first_ns;
		put_u(body, w->base_ns);
		end(w, ITEM_CLOCK);
	}
	if (!follow(w, t, record) || !fate->counted)
		return;
	stack = number_stack(w, t, fate->cut);
	if (!w->block.err)
		write_run(w, index, record, stack);
}

static void take_mark(struct recording_writer *w, const struct rec_mark *record, const struct tally *tally)
{
	struct buf *body;

	for (uint32_t i = 0; i < w->thread_count; i++)
		write_rest(w, i);
	write_tally(w, tally);
	body = begin(w);
	put_u(body, record->sequence);
	put_u(body, record->t_ns);
	end(w, ITEM_MARK);
	block_close(&w->block);
}

void recording_writer_take(struct recording_writer *w, const struct rec_head *record, const struct record_fate *fate,
                           const struct tally *tally)
{
	if (w->block.err)
		return;
	switch (record ? record->type : 0) {
	case REC_SYMBOL:
		take_symbol(w, (const struct rec_symbol *)record);
		break;
	case REC_FORGET:
		take_forget(w, (const struct rec_forget *)record);
		break;
	case REC_THREAD:
		take_thread(w, (const struct rec_thread *)record, fate);
		break;
	case REC_STACK:
		take_stack(w, (const struct rec_stack *)record, fate);
		break;
	case REC_FACTS:
		take_facts(w, (const struct rec_facts *)record, tally);
		break;
	case REC_TARGET:
		take_target(w, (const struct rec_target *)record);
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
	int err;

	if (!w)
		return -ENOMEM;
	w->options = *options;
	if (w->options.stacks_max == 0)
		w->options.stacks_max = STACKS_MAX;
	/* A unit is a 512th of the interval: finer times would only tell of the jitter. */
	w->unit_ns = options->interval_ns ? (int64_t)(options->interval_ns / 512) : 100;
	w->unit_ns = w->unit_ns < 1 ? 1 : w->unit_ns > (int64_t)NS_PER_MS ? (int64_t)NS_PER_MS : w->unit_ns;
	w->interval_units = (int64_t)options->interval_ns / w->unit_ns;
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
		write_empty(w, ITEM_END);
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
