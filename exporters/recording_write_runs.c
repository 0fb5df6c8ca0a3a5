/* SPDX-License-Identifier: Apache-2.0 */
/* Of a recording's writer: stacks, which are defined at their first use, and runs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "exporters/recording_state.h"

/* --- stacks --- */

static void reset(struct recording_writer *w)
{
	recording_write_empty(w, ITEM_RESET);
	w->epoch++;
	w->symbols_written = w->last_symbol = 0;
	w->stack_count = 1;
	lookup_release(&w->children);
	text_set_release(&w->files);
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
			recording_fail(w, -ENOMEM);
			return 0;
		}
		w->stacks = larger;
		w->stack_room = room;
	}
	number = recording_write_symbol(w, symbol);
	if (lookup_add(&w->children, hash, stack)) {
		recording_fail(w, -ENOMEM);
		return 0;
	}
	body = recording_begin(w);
	put_u(body, stack - key->parent);
	put_s(body, (int64_t)number - w->last_symbol);
	put_s(body, (int64_t)key->line - (symbol ? symbol->first_line : 0));
	recording_end(w, ITEM_STACK);
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
			recording_fail(w, -ENOMEM);
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

static bool is_time(int64_t units)
{
	return units >> (RECORDING_TIME_BITS - 1) == 0 || units >> (RECORDING_TIME_BITS - 1) == -1;
}

/* The weight in units; *ret_expected is what a reader takes it for. What is not whole is kept for later. */
static int64_t take_weight(struct recording_writer *w, struct known_thread *t, const struct rec_stack *record,
                           int64_t t_last, int64_t *ret_expected)
{
	int64_t expected = weight_expected(RECORDING_VERSION, w->interval_units, record->count, t->has_run, t_last - t->t_last);
	int64_t weight_ns = (int64_t)record->weight_ns + t->rest_ns, weight = expected, expected_ns;

	if (expected < 0 || __builtin_mul_overflow(expected, w->unit_ns, &expected_ns) ||
	    weight_ns - expected_ns >= 2 * w->unit_ns || weight_ns - expected_ns <= -2 * w->unit_ns)
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
	struct buf *to = recording_items(w), *times = &w->block.columns[COLUMN_TIMES];
	unsigned tag = ITEM_RUN;

	if (record->count == 1)
		t_last = t_first;
	if (!is_time(t_first) || !is_time(t_last) || record->weight_ns > INT64_MAX / 2)
		return recording_fail(w, -ERANGE);
	weight = take_weight(w, t, record, t_last, &expected);
	if (!is_time(weight))
		return recording_fail(w, -ERANGE);
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

/* Times are told from the first run on. */
static void begin_clock(struct recording_writer *w, uint64_t t_ns)
{
	struct buf *body;

	if (w->base_ns)
		return;
	body = recording_begin(w);
	w->base_ns = t_ns;
	put_u(body, w->base_ns);
	recording_end(w, ITEM_CLOCK);
}

void recording_take_stack(struct recording_writer *w, const struct rec_stack *record, const struct record_fate *fate)
{
	uint32_t index = lookup_id(&w->thread_ids, record->thread), stack;
	struct known_thread *t;

	if (index == LOOKUP_NONE)
		return;
	t = &w->threads[index];
	begin_clock(w, record->t_first_ns);
	if (!follow(w, t, record) || !fate->counted)
		return;
	stack = number_stack(w, t, fate->cut);
	if (!w->block.err)
		write_run(w, index, record, stack);
}

/* --- of trees --- */

bool recording_writer_make_room(struct recording_writer *w, uint32_t count)
{
	if (w->stack_count + count <= w->options.stacks_max || w->stack_count == 1)
		return true;
	reset(w);
	return false;
}

uint32_t recording_writer_stack(struct recording_writer *w, uint32_t parent, struct frame frame)
{
	struct path_frame path_frame = {.id = frame.id, .line = frame.where};

	return w->block.err ? 0 : child(w, parent, &path_frame);
}

void recording_writer_run(struct recording_writer *w, const struct rec_stack *run, uint32_t stack)
{
	uint32_t index = lookup_id(&w->thread_ids, run->thread);

	if (index == LOOKUP_NONE || w->block.err)
		return;
	begin_clock(w, run->t_first_ns);
	write_run(w, index, run, stack);
}

void recording_writer_stack_time(struct recording_writer *w, uint32_t thread, uint32_t stack, uint64_t cpu_ns,
                                 uint64_t wait_ns)
{
	uint32_t index = lookup_id(&w->thread_ids, thread);
	struct buf *body;

	if (index == LOOKUP_NONE || w->block.err)
		return;
	body = recording_begin(w);
	put_u(body, index);
	put_u(body, stack);
	put_u(body, cpu_ns);
	put_u(body, wait_ns);
	recording_end(w, ITEM_STACK_TIME);
}
