/* SPDX-License-Identifier: Apache-2.0 */
/* One file above 400 lines: all of it works on the one struct builder, part by part as in builder.h. */
#include "aggregator/builder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/budget.h"
#include "aggregator/lookup.h"
#include "aggregator/symbols.h"
#include "aggregator/tree.h"
#include "base/hash.h"
#include "base/utf8.h"

struct built_thread {
	struct thread_tree like; /* name owned; nodes unused */
	struct tree tree;        /* no nodes: it was folded, and is free */
	size_t run_room;
	uint32_t next_free; /* of a free one: index + 1; 0: none */
};

struct builder {
	struct builder_options options;
	struct budget budget;
	struct symbols symbols;
	struct profile *profile; /* owned, until it is handed out */
	struct built_thread *threads;
	uint32_t thread_count, thread_room, process_room, free_thread;
	struct lookup thread_names; /* hash of what identifies a thread → index */
	size_t run_count;
	uint64_t start_ns;     /* 0: not known yet */
	struct buf name, file; /* made valid */
	int err;
};

int builder_new(struct builder **ret_builder, const struct builder_options *options)
{
	struct builder *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->options = *options;
	b->budget.max_bytes = options->memory_max_bytes;
	symbols_init(&b->symbols, &b->budget, NULL, NULL);
	b->profile = calloc(1, sizeof(*b->profile));
	if (!b->profile) {
		builder_free(b);
		return -ENOMEM;
	}
	b->profile->values[VALUE_SAMPLES] = profile_value_types[VALUE_SAMPLES];
	b->profile->mode = "wall";
	*ret_builder = b;
	return 0;
}

void builder_free(struct builder *b)
{
	if (!b)
		return;
	for (uint32_t i = 0; i < b->thread_count; i++) {
		free(b->threads[i].like.name);
		free(b->threads[i].like.runs);
		tree_release(&b->threads[i].tree, &b->symbols);
	}
	free(b->threads);
	lookup_release(&b->thread_names);
	symbols_release(&b->symbols);
	buf_release(&b->name);
	buf_release(&b->file);
	profile_free(b->profile);
	free(b);
}

struct profile *builder_profile(struct builder *b)
{
	return b->profile;
}

bool builder_has_window(const struct builder *b)
{
	return b->options.from_ns || b->options.to_ns;
}

bool builder_wants_time(const struct builder *b)
{
	return b->options.runs || builder_has_window(b);
}

void builder_window(const struct builder *b, uint64_t *ret_from_ns, uint64_t *ret_to_ns)
{
	*ret_from_ns = b->options.from_ns;
	*ret_to_ns = b->options.to_ns;
}

bool builder_keeps_runs(const struct builder *b)
{
	return b->options.runs;
}

int builder_error(const struct builder *b)
{
	return b->err;
}

static uint32_t fail(struct builder *b, int err)
{
	if (!b->err)
		b->err = err;
	return BUILDER_NONE;
}

/* The array with room for one more of `count`, which doubles; NULL: no memory, and the error is noted. */
static void *grown(struct builder *b, void *array, uint32_t count, uint32_t *room, size_t bytes)
{
	uint32_t more = *room ? *room * 2 : 4;
	void *larger;

	if (count < *room)
		return array;
	larger = more < UINT32_MAX / 2 ? realloc(array, more * bytes) : NULL;
	if (!larger) {
		fail(b, -ENOMEM);
		return NULL;
	}
	*room = more;
	return larger;
}

/* --- values and notes --- */

/* Keeps a text for as long as the profile lives. */
static const char *keep_text(struct builder *b, const char *text)
{
	/* One block holds all names and units: VALUE_COUNT names of bounded length. */
	enum { TEXT_MAX = 64, BLOCK = 2 * VALUE_COUNT * (TEXT_MAX + 1) };
	struct profile *p = b->profile;
	size_t used = 0, bytes;

	if (!p->value_strings)
		p->value_strings = calloc(1, BLOCK);
	if (!p->value_strings) {
		fail(b, -ENOMEM);
		return NULL;
	}
	while (p->value_strings[used])
		used += TEXT_MAX + 1;
	utf8_add_valid(&b->name, text, strnlen(text, TEXT_MAX));
	if (b->name.err || b->name.bytes == 0)
		buf_putc(&b->name, '?');
	bytes = b->name.bytes;
	if (bytes > TEXT_MAX) /* what was replaced takes more room; no character is cut */
		for (bytes = TEXT_MAX; ((unsigned char)b->name.data[bytes] & 0xc0) == 0x80;)
			bytes--;
	memcpy(p->value_strings + used, b->name.data, bytes);
	b->name.bytes = 0;
	return p->value_strings + used;
}

uint32_t builder_value(struct builder *b, const char *name, const char *unit, enum value_index index)
{
	struct value_type *values = b->profile->values;
	const char *kept_name, *kept_unit;
	uint32_t at = index;

	if (b->err)
		return BUILDER_NONE;
	for (uint32_t i = 0; i < VALUE_COUNT; i++)
		if (values[i].name && strcmp(values[i].name, name) == 0 && strcmp(values[i].unit, unit) == 0)
			return i;
	for (uint32_t i = 0; i < VALUE_COUNT; i++)
		if (strcmp(profile_value_types[i].name, name) == 0 && strcmp(profile_value_types[i].unit, unit) == 0 &&
		    !values[i].name) {
			values[i] = profile_value_types[i];
			return i;
		}
	if (values[at].name)
		for (at = VALUE_ON_CPU; at < VALUE_COUNT && values[at].name; at++)
			;
	if (at == VALUE_COUNT)
		return BUILDER_NONE;
	kept_name = keep_text(b, name);
	kept_unit = kept_name ? keep_text(b, unit) : NULL;
	if (!kept_unit)
		return BUILDER_NONE;
	values[at] = (struct value_type){.name = kept_name, .unit = kept_unit};
	return at;
}

static bool raise_note(struct profile *p, const char *key, double number, bool loss)
{
	for (uint32_t i = 0; i < p->note_count; i++)
		if (strcmp(p->notes[i].key, key) == 0) {
			p->notes[i].number += number;
			p->notes[i].loss |= loss;
			return true;
		}
	return false;
}

void builder_note(struct builder *b, const char *key, const char *label, double number, bool loss)
{
	enum { NOTES_MAX = 32 };
	static const char left_out[] = "notes_left_out";
	struct profile *p = b->profile;

	if (b->err || raise_note(p, key, number, loss))
		return;
	if (p->note_count >= NOTES_MAX - 1 && strcmp(key, left_out) != 0) { /* the last one says that there were more */
		builder_note(b, left_out, "remarks left out: too many", 1, true);
		return;
	}
	if (!p->notes)
		p->notes = calloc(NOTES_MAX, sizeof(*p->notes));
	if (!p->notes) {
		fail(b, -ENOMEM);
		return;
	}
	utf8_add_safe(&b->name, label); /* it goes to terminals */
	p->notes[p->note_count] =
		(struct note){.key = key, .label = strdup(buf_text(&b->name)), .number = number, .loss = loss};
	b->name.bytes = 0;
	if (!p->notes[p->note_count].label)
		fail(b, -ENOMEM);
	else
		p->note_count++;
}

/* --- who was sampled --- */

uint32_t builder_process(struct builder *b, const struct process *process)
{
	struct profile *p = b->profile;
	struct process *processes, *at;
	char *name;

	if (b->err)
		return BUILDER_NONE;
	utf8_add_valid(&b->name, process->name ? process->name : "", process->name ? strlen(process->name) : 0);
	name = strdup(buf_text(&b->name));
	b->name.bytes = 0;
	if (!name)
		return fail(b, -ENOMEM);
	for (uint32_t i = 0; i < p->process_count; i++) {
		at = &p->processes[i];
		if (at->pid != process->pid || at->start_time != process->start_time || strcmp(at->name, name) != 0)
			continue;
		rec_facts_add(&at->facts, &process->facts);
		at->ended |= process->ended;
		at->version = at->version ? at->version : process->version;
		free(name);
		return i;
	}
	processes = grown(b, p->processes, p->process_count, &b->process_room, sizeof(*processes));
	if (!processes) {
		free(name);
		return BUILDER_NONE;
	}
	p->processes = processes;
	p->processes[p->process_count] = *process;
	p->processes[p->process_count].name = name;
	return p->process_count++;
}

static uint32_t thread_hash(const struct thread_tree *t)
{
	uint64_t hash = hash_combine(hash_combine(t->process, (uint64_t)t->interpreter), t->tid);

	return (uint32_t)(t->name ? hash_bytes(hash, t->name, strlen(t->name)) : hash);
}

static bool is_thread(const struct thread_tree *a, const struct thread_tree *b)
{
	return a->process == b->process && a->interpreter == b->interpreter && a->tid == b->tid &&
	       a->is_main == b->is_main && (a->name && b->name ? strcmp(a->name, b->name) == 0 : a->name == b->name);
}

static void widen(struct thread_tree *thread, uint64_t t_first_ns, uint64_t t_last_ns)
{
	if (t_first_ns && (thread->t_first_ns == 0 || t_first_ns < thread->t_first_ns))
		thread->t_first_ns = t_first_ns;
	if (thread->t_last_ns < t_last_ns)
		thread->t_last_ns = t_last_ns;
}

/* What identifies a thread that looks like that, with an own copy of its name. False: no memory, or nonsense. */
static bool make_key(struct builder *b, const struct thread_tree *like, struct thread_tree *ret_key)
{
	*ret_key = (struct thread_tree){
		.process = like->process, .interpreter = like->interpreter, .tid = like->tid, .is_main = like->is_main};
	if (b->err || like->process >= b->profile->process_count)
		return false;
	if (!like->name)
		return true;
	utf8_add_valid(&b->name, like->name, strlen(like->name));
	ret_key->name = strdup(buf_text(&b->name));
	b->name.bytes = 0;
	if (!ret_key->name)
		fail(b, -ENOMEM);
	return ret_key->name;
}

/* Takes the key's name. */
static uint32_t add_thread(struct builder *b, const struct thread_tree *key)
{
	uint32_t index = b->free_thread ? b->free_thread - 1 : b->thread_count;
	struct built_thread *threads = b->threads;
	struct tree tree = {0};

	if (!b->free_thread)
		threads = grown(b, b->threads, b->thread_count, &b->thread_room, sizeof(*threads));
	if (threads)
		b->threads = threads;
	if (!threads || tree_init(&tree, &b->budget) || lookup_add(&b->thread_names, thread_hash(key), index)) {
		tree_release(&tree, &b->symbols);
		free(key->name);
		return fail(b, -ENOMEM);
	}
	if (b->free_thread)
		b->free_thread = threads[index].next_free;
	else
		b->thread_count++;
	threads[index] = (struct built_thread){.like = *key, .tree = tree};
	return index;
}

uint32_t builder_new_thread(struct builder *b, const struct thread_tree *like)
{
	struct thread_tree key;

	return make_key(b, like, &key) ? add_thread(b, &key) : BUILDER_NONE;
}

uint32_t builder_thread(struct builder *b, const struct thread_tree *like)
{
	struct thread_tree key;
	uint32_t hash, at, found;

	if (!make_key(b, like, &key))
		return BUILDER_NONE;
	at = hash = thread_hash(&key);
	while ((found = lookup_next(&b->thread_names, hash, &at)) != LOOKUP_NONE)
		if (is_thread(&b->threads[found].like, &key)) {
			free(key.name);
			widen(&b->threads[found].like, like->t_first_ns, like->t_last_ns);
			return found;
		}
	found = add_thread(b, &key);
	if (found != BUILDER_NONE)
		widen(&b->threads[found].like, like->t_first_ns, like->t_last_ns);
	return found;
}

static bool is_kept(const struct builder *b, uint32_t thread)
{
	return thread < b->thread_count && b->threads[thread].tree.nodes;
}

void builder_describe_thread(struct builder *b, uint32_t thread, const struct thread_tree *like)
{
	struct thread_tree key, given = *like, *kept;

	if (!is_kept(b, thread))
		return;
	kept = &b->threads[thread].like;
	given.process = kept->process;
	given.interpreter = kept->interpreter;
	if (is_thread(kept, &given) || !make_key(b, &given, &key))
		return;
	lookup_remove(&b->thread_names, thread_hash(kept), thread);
	free(kept->name);
	kept->name = key.name;
	kept->tid = key.tid;
	kept->is_main = key.is_main;
	/* Cannot fail: an entry has just been removed. */
	lookup_add(&b->thread_names, thread_hash(kept), thread);
}

void builder_drop_thread(struct builder *b, uint32_t thread)
{
	struct built_thread *t;

	if (b->err || !is_kept(b, thread))
		return;
	t = &b->threads[thread];
	lookup_remove(&b->thread_names, thread_hash(&t->like), thread);
	tree_release(&t->tree, &b->symbols);
	b->run_count -= t->like.run_count;
	free(t->like.runs);
	free(t->like.name);
	*t = (struct built_thread){.next_free = b->free_thread};
	b->free_thread = thread + 1;
}

void builder_fold_thread(struct builder *b, uint32_t thread, uint32_t into)
{
	struct built_thread *from, *to;

	if (b->err || thread == into || !is_kept(b, thread) || !is_kept(b, into))
		return;
	from = &b->threads[thread];
	to = &b->threads[into];
	b->profile->out_of_memory += tree_merge(&to->tree, &b->symbols, &from->tree);
	widen(&to->like, from->like.t_first_ns, from->like.t_last_ns);
	builder_drop_thread(b, thread);
}

uint32_t builder_symbol(struct builder *b, const char *name, size_t name_bytes, const char *file, size_t file_bytes,
                        uint32_t first_line, uint8_t kind, uint8_t flags)
{
	struct symbol_content content = {.first_line = first_line, .kind = kind, .flags = flags};
	uint32_t slot;

	if (b->err)
		return BUILDER_NONE;
	b->name.bytes = b->file.bytes = 0;
	utf8_add_valid(&b->name, name, name_bytes > REC_TEXT_MAX ? REC_TEXT_MAX : name_bytes);
	utf8_add_valid(&b->file, file, file_bytes > REC_TEXT_MAX ? REC_TEXT_MAX : file_bytes);
	if (name_bytes > REC_TEXT_MAX || file_bytes > REC_TEXT_MAX)
		content.flags |= SYMBOL_CUT;
	if (b->name.err || b->file.err)
		return fail(b, -ENOMEM);
	content.name = b->name.data ? b->name.data : "";
	content.file = b->file.data ? b->file.data : "";
	content.name_bytes = (uint32_t)b->name.bytes;
	content.file_bytes = (uint32_t)b->file.bytes;
	/* Kept until the end by the reference that symbols_intern() adds. */
	slot = symbols_intern(&b->symbols, &content);
	b->name.bytes = b->file.bytes = 0;
	return slot == SYMBOL_LOST ? BUILDER_NONE : slot;
}

uint32_t builder_child(struct builder *b, uint32_t thread, uint32_t parent, uint32_t symbol, uint32_t line)
{
	if (b->err || thread >= b->thread_count || parent >= b->threads[thread].tree.count ||
	    symbol >= b->symbols.count)
		return BUILDER_NONE;
	return tree_child(&b->threads[thread].tree, &b->symbols, parent, symbol, line);
}

/* --- samples --- */

void builder_add(struct builder *b, uint32_t thread, uint32_t node, const uint64_t values[VALUE_COUNT])
{
	if (b->err)
		return;
	if (thread >= b->thread_count || node >= b->threads[thread].tree.count) {
		b->profile->out_of_memory += values[VALUE_SAMPLES];
		return;
	}
	for (int v = 0; v < VALUE_COUNT; v++)
		b->threads[thread].tree.nodes[node].self[v] += values[v];
}

void builder_set_start(struct builder *b, uint64_t t_start_ns)
{
	b->start_ns = t_start_ns;
}

/* a × b / c, which fits. */
static uint64_t scaled(uint64_t a, uint64_t b, uint64_t c)
{
	return (uint64_t)((unsigned __int128)a * b / c);
}

/* How many of `count` samples, the i-th (from 0) at first_ns + span_ns × i / (count - 1), are earlier than at_ns. */
static uint64_t earlier(uint64_t first_ns, uint64_t span_ns, uint64_t count, uint64_t at_ns)
{
	uint64_t off_ns = at_ns - first_ns;

	if (at_ns <= first_ns)
		return 0;
	if (off_ns > span_ns || count == 1 || span_ns == 0)
		return count;
	return (uint64_t)(((unsigned __int128)off_ns * (count - 1) + span_ns - 1) / span_ns);
}

/* Cuts what lies outside of the window off; false: nothing is left. Windows that meet share a run out without a rest: each sample and each
 * nanosecond of its weight lies in one of them. */
static bool cut_to_window(struct builder *b, uint64_t *first_ns, uint64_t *last_ns, uint64_t *count,
                          uint64_t *weight_ns)
{
	uint64_t span_ns = *last_ns - *first_ns, gaps = *count > 1 ? *count - 1 : 1, from, to;

	if (b->start_ns == 0)
		b->start_ns = *first_ns;
	if (!builder_has_window(b))
		return true;
	/* A window from the start on holds what lies before it by the rounding of times. */
	from = b->options.from_ns ? earlier(*first_ns, span_ns, *count, b->start_ns + b->options.from_ns) : 0;
	to = b->options.to_ns ? earlier(*first_ns, span_ns, *count, b->start_ns + b->options.to_ns) : *count;
	if (from >= to) {
		b->profile->filtered += *count;
		return false;
	}
	b->profile->filtered += *count - (to - from);
	*weight_ns = scaled(*weight_ns, to, *count) - scaled(*weight_ns, from, *count);
	*last_ns = *first_ns + scaled(span_ns, to - 1, gaps);
	*first_ns += scaled(span_ns, from, gaps);
	*count = to - from;
	return true;
}

void builder_only_run(struct builder *b, uint32_t thread, struct run run)
{
	struct built_thread *t;

	if (b->err || !b->options.runs || thread >= b->thread_count || run.node >= b->threads[thread].tree.count)
		return;
	if (b->options.runs_max && b->run_count >= b->options.runs_max) {
		fail(b, -E2BIG);
		return;
	}
	t = &b->threads[thread];
	if (t->like.run_count == t->run_room) {
		/* Half as large again: what counts is how little lies unused (a large array grows in place). */
		size_t room = t->run_room ? t->run_room + t->run_room / 2 : 64;
		struct run *runs = realloc(t->like.runs, room * sizeof(*runs));

		if (!runs) {
			fail(b, -ENOMEM);
			return;
		}
		t->like.runs = runs;
		t->run_room = room;
	}
	t->like.runs[t->like.run_count++] = run;
	b->run_count++;
}

void builder_run(struct builder *b, uint32_t thread, uint32_t node, uint64_t t_first_ns, uint64_t t_last_ns,
                 uint64_t count, uint64_t weight_ns, unsigned status)
{
	if (b->err || count == 0)
		return;
	t_last_ns = t_last_ns < t_first_ns ? t_first_ns : t_last_ns;
	if (!cut_to_window(b, &t_first_ns, &t_last_ns, &count, &weight_ns))
		return;
	if (thread >= b->thread_count || node >= b->threads[thread].tree.count) {
		b->profile->out_of_memory += count;
		return;
	}
	node_add(&b->threads[thread].tree.nodes[node], count, weight_ns, status);
	widen(&b->threads[thread].like, t_first_ns, t_last_ns);
	while (b->options.runs && count > 0 && !b->err) { /* in pieces that the fields of a run can hold */
		uint64_t pieces = 1 + count / (RUN_COUNT_MAX + UINT64_C(1)), part, span_ns;

		if (pieces <= (t_last_ns - t_first_ns) >> 32)
			pieces = ((t_last_ns - t_first_ns) >> 32) + 1;
		if (pieces <= weight_ns >> 32)
			pieces = (weight_ns >> 32) + 1;
		pieces = pieces > count ? count : pieces > 0 ? pieces : 1;
		part = pieces > 1 ? count / pieces : count;
		span_ns = t_last_ns - t_first_ns;
		if (part < count && count > 1)
			span_ns = span_ns / (count - 1) * (part - 1);
		builder_only_run(b, thread,
		                 (struct run){.t_first_ns = t_first_ns,
		                              .span_ns = span_ns > UINT32_MAX ? UINT32_MAX : (uint32_t)span_ns,
		                              .weight_ns = weight_ns / pieces > UINT32_MAX
		                                                   ? UINT32_MAX
		                                                   : (uint32_t)(weight_ns / pieces),
		                              .node = node,
		                              .status = status & 0xffu,
		                              .count = part & RUN_COUNT_MAX});
		if (part < count && count > 1)
			t_first_ns += (t_last_ns - t_first_ns) / (count - 1) * part;
		weight_ns -= weight_ns / pieces;
		count -= part;
	}
}

/* --- the end --- */

static int compare_runs(const void *left, const void *right)
{
	const struct run *a = left, *b = right;

	return (a->t_first_ns > b->t_first_ns) - (a->t_first_ns < b->t_first_ns);
}

/* Samples that were held back come late: nearly all is in order already. */
static void sort_runs(struct thread_tree *thread)
{
	for (size_t i = 1; i < thread->run_count; i++)
		if (thread->runs[i].t_first_ns < thread->runs[i - 1].t_first_ns) {
			qsort(thread->runs, thread->run_count, sizeof(*thread->runs), compare_runs);
			return;
		}
}

static uint32_t deepest(const struct node *nodes, uint32_t count)
{
	uint32_t *depths = calloc(count, sizeof(*depths)), depth = 0;

	for (uint32_t i = 1; depths && i < count; i++) {
		depths[i] = depths[nodes[i].parent] + 1;
		depth = depths[i] > depth ? depths[i] : depth;
	}
	free(depths);
	return depth;
}

int builder_finish(struct builder *b, struct profile **ret_profile)
{
	struct profile *p = b->profile;
	bool has_times = p->t_end_ns != 0;

	if (b->err)
		return b->err;
	p->threads = calloc(b->thread_count + (size_t)1, sizeof(*p->threads));
	if (!p->threads || symbols_copy(&b->symbols, p))
		return b->err = -ENOMEM;
	for (uint32_t i = 0; i < b->thread_count; i++) {
		struct built_thread *from = &b->threads[i];
		struct thread_tree *to = &p->threads[p->thread_count];

		if (!is_kept(b, i))
			continue;
		p->thread_count++;
		*to = from->like;
		to->nodes = from->tree.nodes;
		to->node_count = from->tree.count;
		to->depth_max = deepest(to->nodes, to->node_count);
		lookup_release(&from->tree.children);
		from->tree = (struct tree){0};
		from->like.name = NULL;
		from->like.runs = NULL;
		sort_runs(to);
		/* Where profiles of several clocks were joined, the threads' times do not compare. */
		if (has_times)
			continue;
		if (to->t_last_ns && (p->t_start_ns == 0 || to->t_first_ns < p->t_start_ns))
			p->t_start_ns = to->t_first_ns;
		if (p->t_end_ns < to->t_last_ns)
			p->t_end_ns = to->t_last_ns;
	}
	p->has_runs = b->options.runs;
	b->thread_count = 0;
	b->profile = NULL;
	*ret_profile = p;
	return 0;
}
