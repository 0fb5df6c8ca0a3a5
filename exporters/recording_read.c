/* SPDX-License-Identifier: Apache-2.0 */
/* The recording's reader: items of blocks into a builder. docs/RECORDING.md has the format.
 *
 * A stack's node in a thread's tree is looked up once: each thread keeps, in pages that are made as they are needed, which node a stack's number
 * stands for. So a run costs a few loads, however deep its stack is. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "exporters/recording_unblock.h"

enum { PAGE_STACKS = 256, PROCESSES_MAX = 1 << 20, THREADS_MAX = 1 << 20, TIME_MAX_BITS = 56 };

struct read_symbol {
	uint32_t symbol; /* the builder's */
	uint32_t first_line;
};

struct read_stack {
	uint32_t parent, symbol, line, depth;
};

struct read_thread {
	uint32_t thread; /* the builder's; BUILDER_NONE: there is no memory for it */
	bool live, has_run, excluded;
	uint32_t process, next, stack;
	unsigned status;
	int64_t t_last, due;
	struct thread_tree like; /* name owned */
	uint32_t **pages; /* owned: [stack / PAGE_STACKS][stack % PAGE_STACKS] is a node + 1; 0: not looked up yet */
	uint32_t page_count;
};

struct read_process {
	uint32_t process; /* the builder's */
	uint64_t facts[FACTS_FIELDS];
	bool has_facts;
	uint64_t samples_since, runs_since; /* behind the last facts */
	uint32_t thread_count, fold_at;
	uint32_t folded;  /* the builder's thread of those that ended; BUILDER_NONE: none yet */
	struct buf ended; /* uint32_t: the builder's threads that have ended and were not folded yet */
};

struct reader {
	struct block_reader blocks;
	struct builder *to;
	uint64_t until; /* sequence of the mark to stop at; 0: none */
	bool has_session, ended, at_mark;
	uint64_t realtime_offset_ns, base_ns, mark_ns, run_count;
	int64_t unit_ns, interval_units;
	uint64_t tally[TALLY_FIELDS];
	struct buf symbols, stacks, files,
		texts;               /* struct read_symbol, struct read_stack, struct text, and the files' bytes */
	struct buf processes;        /* struct read_process */
	struct read_thread *threads; /* owned */
	uint32_t thread_count, thread_room;
	uint32_t last_symbol, last_thread;
	int64_t last_first;
	struct ticks ticks;
	uint32_t *chain; /* owned: room for the stacks that one look-up walks */
};

struct text {
	size_t off, bytes;
};

#define COUNT(buf, type) ((uint32_t)((buf).bytes / sizeof(type)))

static struct read_process *process_at(const struct reader *r, uint64_t index)
{
	return index < COUNT(r->processes, struct read_process) ? (struct read_process *)r->processes.data + index
	                                                        : NULL;
}

/* --- the session and what was counted --- */

static bool read_session(struct reader *r, struct cursor *c)
{
	static const char *const modes[] = {[MODE_WALL] = "wall", [MODE_CPU] = "cpu", [MODE_GIL] = "gil"};
	struct profile *p = builder_profile(r->to);
	uint64_t unit_ns = take_u(c), interval_units, mode;

	p->interval_ns = take_u(c);
	interval_units = take_u(c);
	mode = take_u(c);
	r->realtime_offset_ns = (uint64_t)take_s(c);
	if (c->bad || r->has_session || unit_ns == 0 || unit_ns > NS_PER_S || interval_units >> 24 || mode > MODE_GIL)
		return false;
	p->mode = modes[mode];
	r->unit_ns = (int64_t)unit_ns;
	r->interval_units = (int64_t)interval_units;
	r->has_session = true;
	return true;
}

/* Fields that a later version may have more of, each as its difference from before. */
static bool read_fields(struct cursor *c, uint64_t *fields, unsigned known)
{
	uint64_t count = take_u(c);

	for (uint64_t i = 0; i < count && !c->bad; i++) {
		uint64_t difference = (uint64_t)take_s(c);

		if (i < known)
			fields[i] += difference;
	}
	return !c->bad;
}

static bool read_facts(struct reader *r, struct cursor *c)
{
	struct read_process *process = process_at(r, take_u(c));

	if (!process || !read_fields(c, process->facts, FACTS_FIELDS))
		return false;
	process->has_facts = true;
	process->samples_since = process->runs_since = 0;
	return true;
}

static bool read_mark(struct reader *r, struct cursor *c)
{
	uint64_t sequence = take_u(c), t_ns = take_u(c);

	if (!c->bad && r->until && sequence == r->until) {
		r->at_mark = true;
		r->mark_ns = t_ns;
	}
	return !c->bad;
}

/* --- who is sampled --- */

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

static bool read_target(struct reader *r, struct cursor *c)
{
	struct profile *p = builder_profile(r->to);
	uint64_t index = take_u(c), event = take_u(c);
	struct process process = {.ended = event == TARGET_EXITED}, *kept;
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
	if (known->process >= p->process_count || !process.name) {
		free(process.name);
		return true;
	}
	kept = &p->processes[known->process];
	kept->pid = process.pid;
	kept->parent_pid = process.parent_pid;
	kept->start_time = process.start_time;
	kept->version = process.version ? process.version : kept->version;
	kept->ended |= process.ended;
	if (bytes) {
		free(kept->name);
		kept->name = process.name;
	} else {
		free(process.name);
	}
	return true;
}

static void forget_nodes(struct read_thread *t)
{
	for (uint32_t i = 0; i < t->page_count; i++)
		free(t->pages[i]);
	free(t->pages);
	t->pages = NULL;
	t->page_count = 0;
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
	forget_nodes(t);
	free(t->like.name);
	*t = (struct read_thread){.thread = BUILDER_NONE, .live = true, .process = process, .next = index};
	of->thread_count++;
}

/* A thread that is over, and of which nothing was wanted, is not in the profile. */
static void drop_if_excluded(struct reader *r, struct read_thread *t)
{
	if (!t->live || !t->excluded || t->has_run)
		return;
	builder_drop_thread(r->to, t->thread);
	t->thread = BUILDER_NONE;
}

static bool read_thread(struct reader *r, struct cursor *c)
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
		drop_if_excluded(r, t);
		forget_nodes(t);
		t->live = false;
		buf_add(&of->ended, &t->thread, sizeof(t->thread));
	}
	return true;
}

/* --- symbols and stacks --- */

static bool read_symbol(struct reader *r, struct cursor *c)
{
	uint64_t kind = take_u(c), flags = take_u(c);
	struct read_symbol symbol = {.first_line = (uint32_t)take_u(c)};
	size_t name_bytes, file_bytes;
	const char *name = take_text(c, &name_bytes), *file;
	uint64_t number = take_u(c);
	struct text text;

	if (number == 0) {
		file = take_text(c, &file_bytes);
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
	if (c->bad || (kind != FRAME_PYTHON && kind != FRAME_SPECIAL) || flags > UINT8_MAX ||
	    COUNT(r->symbols, struct read_symbol) >= RECORDING_TABLE_MAX)
		return false;
	symbol.symbol = builder_symbol(r->to, name, name_bytes, file_bytes ? file : "", file_bytes, symbol.first_line,
	                               (uint8_t)kind, (uint8_t)flags);
	buf_add(&r->symbols, &symbol, sizeof(symbol));
	return true;
}

static bool read_stack(struct reader *r, struct cursor *c)
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

static bool begin_tables(struct reader *r)
{
	const struct read_stack empty = {0};

	for (uint32_t i = 0; i < r->thread_count; i++) {
		forget_nodes(&r->threads[i]);
		r->threads[i].stack = 0;
	}
	r->symbols.bytes = r->stacks.bytes = r->files.bytes = r->texts.bytes = 0;
	r->last_symbol = 0;
	buf_add(&r->stacks, &empty, sizeof(empty));
	return true;
}

/* Where a thread keeps the node of a stack, or NULL without memory. */
static uint32_t *place_of(struct read_thread *t, uint32_t stack)
{
	uint32_t page = stack / PAGE_STACKS;

	if (page >= t->page_count) {
		uint32_t count = page + 1 + page / 2;
		uint32_t **larger = realloc(t->pages, count * sizeof(*larger));

		if (!larger)
			return NULL;
		memset(larger + t->page_count, 0, (count - t->page_count) * sizeof(*larger));
		t->pages = larger;
		t->page_count = count;
	}
	if (!t->pages[page])
		t->pages[page] = calloc(PAGE_STACKS, sizeof(**t->pages));
	return t->pages[page] ? &t->pages[page][stack % PAGE_STACKS] : NULL;
}

/* The thread's node for a stack, made with those above it that are missing. */
static uint32_t find_node(struct reader *r, struct read_thread *t, uint32_t stack)
{
	const struct read_stack *stacks = (const struct read_stack *)r->stacks.data;
	uint32_t depth = 0, node = 0;

	for (uint32_t at = stack; at != 0; at = stacks[at].parent) {
		uint32_t *place = place_of(t, at);

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
			*place_of(t, at) = node + 1;
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
	return units > -(INT64_C(1) << TIME_MAX_BITS) && units < INT64_C(1) << TIME_MAX_BITS;
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

static uint64_t to_ns(const struct reader *r, int64_t units)
{
	return r->base_ns + (uint64_t)units * (uint64_t)r->unit_ns;
}

static bool read_run(struct reader *r, unsigned tag)
{
	struct cursor *c = &r->blocks.columns[COLUMN_ITEMS];
	uint64_t index, count = 1, stack;
	struct read_process *process;
	struct read_thread *t;
	int64_t first, last, weight;

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
	    !read_times(r, t, tag, count, &first, &last))
		return false;
	weight = t->has_run ? last - t->t_last : (int64_t)count * r->interval_units;
	if (tag & RUN_WEIGHT)
		weight = add(weight, take_s(&r->blocks.columns[COLUMN_TIMES]));
	if (weight < 0 || !is_time(weight) || c->bad || r->blocks.columns[COLUMN_STACKS].bad ||
	    r->blocks.columns[COLUMN_TIMES].bad)
		return false;
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
	builder_run(r->to, t->thread, node_of(r, t, t->stack), to_ns(r, first), to_ns(r, last), count,
	            (uint64_t)weight * (uint64_t)r->unit_ns, t->status);
	return true;
}

/* What rounding left of a thread's weights goes to where its last run went. */
static bool read_rest(struct reader *r, struct cursor *c)
{
	uint64_t index = take_u(c), rest_ns = (uint64_t)take_s(c), values[VALUE_COUNT];
	struct node last = {0};
	struct read_thread *t;

	if (c->bad || index >= r->thread_count || !r->threads[index].live)
		return false;
	t = &r->threads[index];
	if (builder_has_window(r->to) || !t->has_run)
		return true;
	node_add(&last, 0, rest_ns, t->status);
	memcpy(values, last.self, sizeof(values));
	builder_add(r->to, t->thread, node_of(r, t, t->stack), values);
	return true;
}

/* --- all of it --- */

static bool read_item(struct reader *r, unsigned type)
{
	struct cursor *from = &r->blocks.columns[COLUMN_ITEMS];
	size_t bytes;
	const char *body = take_text(from, &bytes);
	struct cursor c = {.at = (const unsigned char *)body, .end = (const unsigned char *)body + bytes};

	if (from->bad)
		return false;
	switch ((enum item)type) {
	case ITEM_SESSION:
		return read_session(r, &c);
	case ITEM_SYMBOL:
		return read_symbol(r, &c);
	case ITEM_STACK:
		return read_stack(r, &c);
	case ITEM_TARGET:
		return read_target(r, &c);
	case ITEM_THREAD:
		return read_thread(r, &c);
	case ITEM_FACTS:
		return read_facts(r, &c);
	case ITEM_TALLY:
		return read_fields(&c, r->tally, TALLY_FIELDS);
	case ITEM_CLOCK:
		r->base_ns = take_u(&c);
		if (!c.bad)
			builder_set_start(r->to, r->base_ns);
		return !c.bad;
	case ITEM_MARK:
		return read_mark(r, &c);
	case ITEM_REST:
		return read_rest(r, &c);
	case ITEM_RESET:
		return begin_tables(r);
	case ITEM_END:
		r->ended = true;
		return true;
	default:
		return true; /* of a later version: passed over */
	}
}

static bool read_block(struct reader *r)
{
	struct cursor *items = &r->blocks.columns[COLUMN_ITEMS];

	while (items->at < items->end && !r->at_mark) {
		unsigned tag = *items->at++;

		if (!(tag & ITEM_RUN ? read_run(r, tag) : read_item(r, tag)))
			return false;
	}
	return true;
}

static void set_times(struct reader *r)
{
	struct profile *p = builder_profile(r->to);
	uint64_t attached_ns = r->tally[5], first_ns = r->tally[6], last_ns = r->tally[7], from_ns, to_ns;
	struct rec_facts facts;

	profile_facts(p, &facts);
	if (facts.t_start_ns && (first_ns == 0 || facts.t_start_ns < first_ns))
		first_ns = facts.t_start_ns;
	first_ns = first_ns ? first_ns : r->base_ns ? r->base_ns : attached_ns;
	last_ns = last_ns < facts.t_last_ns ? facts.t_last_ns : last_ns;
	last_ns = r->mark_ns ? r->mark_ns : last_ns;
	last_ns = last_ns > first_ns ? last_ns : first_ns;
	builder_window(r->to, &from_ns, &to_ns);
	if (to_ns && first_ns + to_ns < last_ns)
		last_ns = first_ns + to_ns;
	p->t_start_ns = first_ns + from_ns < last_ns ? first_ns + from_ns : last_ns;
	p->t_end_ns = last_ns;
	p->wall_start_ns = p->t_start_ns + r->realtime_offset_ns;
}

static void set_facts(struct reader *r)
{
	struct profile *p = builder_profile(r->to);

	for (uint32_t i = 0; i < COUNT(r->processes, struct read_process); i++) {
		struct read_process *from = process_at(r, i);
		struct rec_facts facts = {0};

		if (from->process >= p->process_count)
			continue;
		memcpy((char *)&facts + 16, from->facts, sizeof(from->facts));
		/* Of a recording that is cut off, the last facts do not know of the last samples yet. */
		facts.samples += from->samples_since;
		facts.attempts += from->samples_since;
		facts.runs += from->runs_since;
		if (!from->has_facts && from->samples_since)
			facts.interval_ns = p->interval_ns;
		if (!p->processes[from->process].facts.interval_ns)
			p->processes[from->process].facts.interval_ns = facts.interval_ns;
		rec_facts_add(&p->processes[from->process].facts, &facts);
	}
	p->filtered += r->tally[0];
	p->omitted += r->tally[1];
	p->out_of_memory += r->tally[2];
	p->malformed_samples += r->tally[3];
	p->malformed_records += r->tally[4];
}

static void set_values(struct builder *to)
{
	for (uint32_t i = 0; i < VALUE_COUNT; i++)
		builder_value(to, profile_value_types[i].name, profile_value_types[i].unit, (enum value_index)i);
}

/* How it ended. 0 with *fault filled: what was before is there. */
static int tell_end(struct reader *r, enum block_state state, struct fault *fault)
{
	char label[160];

	if (state == BLOCK_NO_MORE && r->ended)
		return 0;
	if (state == BLOCK_DAMAGED) {
		fault_set(fault, -EPROTO, r->run_count ? "what is before it was read" : "",
		          "block %" PRIu64 ", at byte %" PRIu64 ", is damaged", r->blocks.number, r->blocks.start_byte);
		if (r->run_count == 0)
			return -EPROTO;
		snprintf(label, sizeof(label), "read up to a damaged block, of number %" PRIu64 ", at byte",
		         r->blocks.number);
		builder_note(r->to, "damaged_at_byte", label, (double)r->blocks.start_byte, true);
		return 0;
	}
	fault_set(fault, 0, "what was written before is read",
	          "it was not ended: cut off behind block %" PRIu64 ", at byte %" PRIu64, r->blocks.number - 1,
	          r->blocks.start_byte);
	builder_note(r->to, "cut_at_byte", "the recording was not ended: cut off at byte", (double)r->blocks.start_byte,
	             true);
	return 0;
}

static int read_all(struct reader *r, struct fault *fault)
{
	enum block_state state = BLOCK_GOOD;
	int err = 0;

	set_values(r->to);
	begin_tables(r);
	while (state == BLOCK_GOOD && !r->at_mark && !builder_error(r->to)) {
		state = block_next(&r->blocks, &err, fault);
		if (state == BLOCK_GOOD && !read_block(r))
			state = BLOCK_DAMAGED;
	}
	if (builder_error(r->to))
		return fault_set(fault, builder_error(r->to), "", "%s", strerror(-builder_error(r->to)));
	if (state == BLOCK_ERROR)
		return err;
	if (r->until && !r->at_mark)
		return fault_set(fault, -EPROTO, "", "its mark %" PRIu64 " is missing", r->until);
	err = r->at_mark ? 0 : tell_end(r, state, fault);
	for (uint32_t i = 0; i < r->thread_count; i++)
		drop_if_excluded(r, &r->threads[i]);
	set_facts(r);
	set_times(r);
	builder_profile(r->to)->sequence = r->at_mark ? r->until : 0;
	return err;
}

static void release(struct reader *r)
{
	for (uint32_t i = 0; i < r->thread_count; i++) {
		forget_nodes(&r->threads[i]);
		free(r->threads[i].like.name);
	}
	free(r->threads);
	for (uint32_t i = 0; i < COUNT(r->processes, struct read_process); i++)
		buf_release(&process_at(r, i)->ended);
	buf_release(&r->processes);
	buf_release(&r->symbols);
	buf_release(&r->stacks);
	buf_release(&r->files);
	buf_release(&r->texts);
	free(r->chain);
	block_reader_release(&r->blocks);
}

int recording_read_to_mark(struct input *from, struct builder *to, uint64_t sequence, struct fault *fault)
{
	struct reader r = {.to = to, .until = sequence, .unit_ns = 1};
	int err = block_reader_init(&r.blocks, from, fault);

	if (err)
		return err;
	r.chain = calloc(RECORDING_DEPTH_MAX + 1, sizeof(*r.chain));
	err = r.chain ? read_all(&r, fault) : fault_set(fault, -ENOMEM, "", "out of memory");
	if (!err && (r.symbols.err || r.stacks.err || r.files.err || r.texts.err || r.processes.err))
		err = fault_set(fault, -ENOMEM, "", "out of memory");
	release(&r);
	return err;
}

int recording_read(struct input *from, struct builder *to, struct fault *fault)
{
	return recording_read_to_mark(from, to, 0, fault);
}
