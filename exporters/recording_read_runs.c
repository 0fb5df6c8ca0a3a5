/* SPDX-License-Identifier: Apache-2.0 */
/* Of a recording's reader: symbols, stacks, and runs, each of which adds to a node of its thread's tree. */
#include <stdlib.h>
#include <string.h>

#include "exporters/recording_reader.h"

enum { PAGE_STACKS = 256 };

/* Of where stacks are in the threads' trees; what is beyond is looked up anew. One thread's are far less. */
#define PAGES_MAX_BYTES (UINT64_C(256) << 20)
/* Of the files' names that symbols share. */
#define TEXTS_MAX_BYTES (UINT64_C(1) << 30)

void reader_forget_nodes(struct reader *r, struct read_thread *t)
{
	r->pages_bytes -= t->page_count * sizeof(*t->pages);
	for (uint32_t i = 0; i < t->page_count; i++)
		if (t->pages[i])
			r->pages_bytes -= PAGE_STACKS * sizeof(**t->pages);
	for (uint32_t i = 0; i < t->page_count; i++)
		free(t->pages[i]);
	free(t->pages);
	t->pages = NULL;
	t->page_count = 0;
}

/* --- symbols and stacks --- */

bool reader_symbol(struct reader *r, struct cursor *c)
{
	uint64_t kind = take_u(c), flags = take_u(c);
	struct read_symbol symbol = {.first_line = (uint32_t)take_u(c)};
	size_t name_bytes, file_bytes;
	const char *name = take_text(c, &name_bytes), *file;
	uint64_t number = take_u(c);
	struct text text;

	if (number == 0) {
		file = take_text(c, &file_bytes);
		if (file_bytes > REC_TEXT_MAX) /* as the symbol has it */
			file_bytes = REC_TEXT_MAX + 1;
		if (r->texts.bytes + file_bytes > TEXTS_MAX_BYTES)
			return false;
		text = (struct text){.off = r->texts.bytes, .bytes = file_bytes};
		buf_add(&r->texts, file, file_bytes);
		buf_add(&r->files, &text, sizeof(text));
	} else {
		if (number > COUNT(r->files, struct text))
			return false;
		text = ((struct text *)r->files.data)[number - 1];
		file = r->texts.data + text.off;
		file_bytes = text.bytes;
	}
	if (c->bad || kind > FRAME_SPECIAL || flags > UINT8_MAX ||
	    COUNT(r->symbols, struct read_symbol) >= RECORDING_TABLE_MAX)
		return false;
	if (kind == FRAME_NATIVE)
		symbol.symbol = reader_native_symbol(r, c,
		                                     &(struct symbol_content){.name = name,
		                                                              .name_bytes = (uint32_t)name_bytes,
		                                                              .file = file_bytes ? file : "",
		                                                              .file_bytes = (uint32_t)file_bytes,
		                                                              .first_line = symbol.first_line,
		                                                              .kind = FRAME_NATIVE,
		                                                              .flags = (uint8_t)flags});
	else
		symbol.symbol = builder_symbol(r->to, name, name_bytes, file_bytes ? file : "", file_bytes,
		                               symbol.first_line, (uint8_t)kind, (uint8_t)flags);
	if (c->bad)
		return false;
	buf_add(&r->symbols, &symbol, sizeof(symbol));
	return true;
}

bool reader_stack(struct reader *r, struct cursor *c)
{
	struct read_stack *stacks = (struct read_stack *)r->stacks.data, added;
	uint32_t count = COUNT(r->stacks, struct read_stack);
	uint64_t back = take_u(c), symbol = (uint64_t)r->last_symbol + (uint64_t)take_s(c), line = (uint64_t)take_s(c);

	if (c->bad || back == 0 || back > count || symbol == 0 || symbol > COUNT(r->symbols, struct read_symbol) ||
	    count >= RECORDING_TABLE_MAX)
		return false;
	r->last_symbol = (uint32_t)symbol;
	added.parent = count - (uint32_t)back;
	added.symbol = ((struct read_symbol *)r->symbols.data)[symbol - 1].symbol;
	added.line = (uint32_t)(line + ((struct read_symbol *)r->symbols.data)[symbol - 1].first_line);
	added.depth = stacks[added.parent].depth + 1;
	if (added.depth > RECORDING_DEPTH_MAX)
		return false;
	buf_add(&r->stacks, &added, sizeof(added));
	return true;
}

/* The thread has something of the tables at hand. */
static void touch(struct reader *r, uint32_t index)
{
	if (r->threads[index].touched)
		return;
	r->threads[index].touched = true;
	buf_add(&r->touched, &index, sizeof(index));
}

bool reader_begin_tables(struct reader *r)
{
	const struct read_stack empty = {0};

	for (uint32_t i = 0; i < COUNT(r->touched, uint32_t); i++) {
		struct read_thread *t = &r->threads[((uint32_t *)r->touched.data)[i]];

		reader_forget_nodes(r, t);
		t->stack = 0;
		t->touched = false;
	}
	r->touched.bytes = 0;
	r->symbols.bytes = r->stacks.bytes = r->files.bytes = r->texts.bytes = 0;
	r->last_symbol = 0;
	buf_add(&r->stacks, &empty, sizeof(empty));
	return true;
}

/* Where a thread keeps the node of a stack, or NULL without memory. */
static uint32_t *place_of(struct reader *r, struct read_thread *t, uint32_t stack)
{
	uint32_t page = stack / PAGE_STACKS;

	if (page >= t->page_count) {
		uint32_t count = page + 1 + page / 2;
		uint32_t **larger = realloc(t->pages, count * sizeof(*larger));

		if (!larger)
			return NULL;
		memset(larger + t->page_count, 0, (count - t->page_count) * sizeof(*larger));
		r->pages_bytes += (count - t->page_count) * sizeof(*larger);
		t->pages = larger;
		t->page_count = count;
	}
	if (!t->pages[page]) {
		t->pages[page] = calloc(PAGE_STACKS, sizeof(**t->pages));
		r->pages_bytes += t->pages[page] ? PAGE_STACKS * sizeof(**t->pages) : 0;
	}
	return t->pages[page] ? &t->pages[page][stack % PAGE_STACKS] : NULL;
}

/* All at once, so that it is seldom. */
static void forget_all_nodes(struct reader *r)
{
	for (uint32_t i = 0; i < COUNT(r->touched, uint32_t); i++)
		reader_forget_nodes(r, &r->threads[((uint32_t *)r->touched.data)[i]]);
}

/* The thread's node for a stack, made with those above it that are missing. */
static uint32_t find_node(struct reader *r, struct read_thread *t, uint32_t stack)
{
	const struct read_stack *stacks = (const struct read_stack *)r->stacks.data;
	uint32_t depth = 0, node = 0;

	if (r->pages_bytes > PAGES_MAX_BYTES)
		forget_all_nodes(r);
	for (uint32_t at = stack; at != 0; at = stacks[at].parent) {
		uint32_t *place = place_of(r, t, at);

		if (!place)
			return BUILDER_NONE;
		if (*place) {
			node = *place - 1;
			break;
		}
		r->chain[depth++] = at;
	}
	while (depth > 0 && node != BUILDER_NONE) {
		uint32_t at = r->chain[--depth];

		node = builder_child(r->to, t->thread, node, stacks[at].symbol, stacks[at].line);
		if (node != BUILDER_NONE)
			*place_of(r, t, at) = node + 1;
	}
	return node;
}

/* --- runs --- */

static uint32_t node_of(struct reader *r, struct read_thread *t, uint32_t stack)
{
	uint32_t page = stack / PAGE_STACKS;

	if (page < t->page_count && t->pages[page] && t->pages[page][stack % PAGE_STACKS])
		return t->pages[page][stack % PAGE_STACKS] - 1;
	return find_node(r, t, stack);
}

static bool is_time(int64_t units)
{
	return units > -(INT64_C(1) << RECORDING_TIME_BITS) && units < INT64_C(1) << RECORDING_TIME_BITS;
}

/* What is expected of hostile numbers wraps, and is checked before it counts. */
static int64_t add(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

static bool read_times(struct reader *r, struct read_thread *t, unsigned tag, uint64_t count, int64_t *ret_first,
                       int64_t *ret_last)
{
	struct cursor *times = &r->blocks.columns[COLUMN_TIMES];
	int64_t due = t->has_run ? t->due + r->interval_units * 16 : r->last_first * 16, first = r->last_first, last;

	if (!(tag & RUN_SAME))
		first = add(ticks_expect(&r->ticks, due, r->interval_units), take_s(times));
	if (!is_time(first))
		return false;
	due = due_next(due, first, r->interval_units);
	ticks_enter(&r->ticks, first, r->interval_units);
	last = first;
	if (tag & RUN_COUNT) {
		due += (int64_t)(count - 1) * r->interval_units * 16;
		last = add(ticks_expect(&r->ticks, due, r->interval_units), take_s(times));
		if (!is_time(last) || last < first)
			return false;
		due = due_next(due, last, r->interval_units);
		ticks_enter(&r->ticks, last, r->interval_units);
	}
	t->due = due;
	*ret_first = first;
	*ret_last = last;
	return is_time(due >> 4);
}

/* False: no clock shows that. */
static bool to_ns(const struct reader *r, int64_t units, uint64_t *ret_ns)
{
	int64_t ns;

	return !__builtin_mul_overflow(units, r->unit_ns, &ns) && !__builtin_add_overflow(r->base_ns, ns, ret_ns);
}

bool reader_run(struct reader *r, unsigned tag)
{
	struct cursor *c = &r->blocks.columns[COLUMN_ITEMS];
	uint64_t index, count = 1, stack;
	struct read_process *process;
	struct read_thread *t;
	int64_t first, last, weight;
	uint64_t first_ns, last_ns, weight_ns, taken_ns, left_ns, outside;
	const struct left_out *left_out = &builder_profile(r->to)->left_out;
	uint32_t node;

	if (tag & RUN_THREAD)
		index = take_u(c);
	else
		index = r->last_thread < r->thread_count ? r->threads[r->last_thread].next : UINT64_MAX;
	if (index >= r->thread_count || !r->threads[index].live || !r->has_session || r->base_ns == 0)
		return false;
	t = &r->threads[index];
	if (tag & RUN_STATUS)
		t->status = (unsigned)take_u(c) & 0xff;
	if (tag & RUN_COUNT)
		count = take_u(c) + 2;
	stack = tag & RUN_STACK ? take_u(&r->blocks.columns[COLUMN_STACKS]) : t->stack;
	if (count > UINT32_MAX || stack >= COUNT(r->stacks, struct read_stack) ||
	    !read_times(r, t, tag, count, &first, &last) || !to_ns(r, first, &first_ns) || !to_ns(r, last, &last_ns))
		return false;
	weight = weight_expected(r->blocks.format, r->interval_units, count, t->has_run, last - t->t_last);
	if (tag & RUN_WEIGHT)
		weight = add(weight, take_s(&r->blocks.columns[COLUMN_TIMES]));
	if (weight < 0 || !is_time(weight) || c->bad || r->blocks.columns[COLUMN_STACKS].bad ||
	    r->blocks.columns[COLUMN_TIMES].bad)
		return false;
	touch(r, (uint32_t)index);
	t->has_run = true;
	t->stack = (uint32_t)stack;
	t->t_last = last;
	r->threads[r->last_thread].next = (uint32_t)index;
	r->last_thread = (uint32_t)index;
	r->last_first = first;
	process = process_at(r, t->process);
	process->samples_since += count;
	process->runs_since++;
	r->run_count++;
	if (r->run_last_ns < last_ns)
		r->run_last_ns = last_ns;
	r->has_weight |= weight > 0;
	node = node_of(r, t, t->stack);
	weight_ns = (uint64_t)weight * (uint64_t)r->unit_ns;
	outside = builder_outside(r->to);
	left_ns = left_out->wall;
	taken_ns = builder_run(r->to, t->thread, node, first_ns, last_ns, count, weight_ns, t->status);
	process->window_samples += count - (builder_outside(r->to) - outside);
	left_ns = left_out->wall - left_ns;
	/* What is left out, or lies outside of the window, takes its part of the CPU time with it. */
	if (taken_ns > 0)
		spread_add(&t->spread, node, taken_ns, t->status, &r->budget);
	if (left_ns > 0)
		spread_add(&t->spread, BUILDER_NONE, left_ns, t->status, &r->budget);
	if (taken_ns + left_ns < weight_ns)
		spread_add(&t->spread, NODE_OUTSIDE, weight_ns - taken_ns - left_ns, t->status, &r->budget);
	return true;
}

/* What rounding left of a thread's weights goes to where its last run went. */
bool reader_rest(struct reader *r, struct cursor *c)
{
	uint64_t index = take_u(c), rest_ns = (uint64_t)take_s(c), values[VALUE_COUNT];
	struct node last = {0};
	struct read_thread *t;

	if (c->bad || index >= r->thread_count || !r->threads[index].live)
		return false;
	t = &r->threads[index];
	if (builder_selects(r->to) || !t->has_run) {
		if (!builder_has_window(r->to))
			builder_profile(r->to)->left_out.wall += rest_ns;
		return true;
	}
	r->has_weight |= rest_ns != 0;
	node_add(&last, 0, rest_ns, t->status);
	memcpy(values, last.self, sizeof(values));
	builder_add(r->to, t->thread, node_of(r, t, t->stack), values);
	return true;
}

/* --- CPU time --- */

struct given {
	struct reader *reader;
	const struct read_thread *thread;
};

static void add_time(void *context, uint32_t node, uint64_t cpu_ns, uint64_t wait_ns)
{
	const uint64_t values[VALUE_COUNT] = {[VALUE_CPU] = cpu_ns, [VALUE_RUN_WAIT] = wait_ns};
	struct given *given = context;

	if (node == BUILDER_NONE)
		left_out_add(&builder_profile(given->reader->to)->left_out, values);
	else if (node != NODE_OUTSIDE)
		builder_add(given->reader->to, given->thread->thread, node, values);
}

bool reader_time(struct reader *r, struct cursor *c)
{
	uint64_t index = take_u(c), cpu_ns = take_u(c), wait_ns = take_u(c);
	struct given given = {.reader = r};

	if (c->bad || index >= r->thread_count || !r->threads[index].live)
		return false;
	given.thread = &r->threads[index];
	spread_give(&r->threads[index].spread, cpu_ns, wait_ns, add_time, &given);
	r->has_time = true;
	return true;
}

/* When it was, and in which state, is not said: it is in no window. */
bool reader_stack_time(struct reader *r, struct cursor *c)
{
	uint64_t index = take_u(c), stack = take_u(c), cpu_ns = take_u(c), wait_ns = take_u(c);
	struct given given = {.reader = r};

	if (c->bad || index >= r->thread_count || !r->threads[index].live ||
	    stack >= COUNT(r->stacks, struct read_stack))
		return false;
	given.thread = &r->threads[index];
	if (builder_selects(r->to)) {
		add_time(&given, builder_has_window(r->to) ? NODE_OUTSIDE : BUILDER_NONE, cpu_ns, wait_ns);
		return true;
	}
	touch(r, (uint32_t)index);
	add_time(&given, node_of(r, &r->threads[index], (uint32_t)stack), cpu_ns, wait_ns);
	r->has_time = true;
	return true;
}
