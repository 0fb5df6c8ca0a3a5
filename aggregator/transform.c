/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/transform.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What is known of a node's path, its own frame included. */
enum {
	PATH_FOCUS = 1,  /* a frame matches --focus */
	PATH_IGNORE = 2, /* … --ignore */
	PATH_OMIT = 4,   /* … --omit */
	PATH_STOP = 8,   /* … --stop: the outermost one is the new root's child */
	PATH_SMALL = 16, /* it is below the least share: part of an "(other)" */
	FRAME_FIRST = 32 /* … is the outermost frame that matches --stop */
};

/* No node of the result yet. */
#define NOT_MADE (BUILDER_NONE - 1)

struct work {
	struct builder *to;
	const struct profile *from;
	const struct transform *how;
	uint32_t *symbols;           /* number in the result, of each symbol; NOT_MADE */
	uint8_t *matches;            /* PATH_* of each symbol */
	uint8_t values[VALUE_COUNT]; /* place in the result of each value; VALUE_COUNT: it has none */
	uint32_t other;              /* the symbol "(other)" */
	uint64_t least;              /* of the weight, for a node of its own */
};

static bool matches(const regex_t *regex, const char *text)
{
	return regex && regexec(regex, text, 0, NULL, 0) == 0;
}

static bool matches_frame(const regex_t *regex, const struct symbol *symbol)
{
	return matches(regex, symbol->file) || matches(regex, symbol->name) ||
	       (symbol->module[0] && matches(regex, symbol->module));
}

static int prepare(struct work *w)
{
	const struct transform *how = w->how;
	uint32_t count = w->from->symbol_count;

	w->symbols = malloc((count + (size_t)1) * sizeof(*w->symbols));
	w->matches = calloc(count + (size_t)1, 1);
	if (!w->symbols || !w->matches)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		const struct symbol *symbol = &w->from->symbols[i];

		w->symbols[i] = NOT_MADE;
		w->matches[i] = (uint8_t)((matches_frame(how->focus, symbol) ? PATH_FOCUS : 0) |
		                          (matches_frame(how->ignore, symbol) ? PATH_IGNORE : 0) |
		                          (matches(how->omit, symbol->mapped ? symbol->module : symbol->file) ? PATH_OMIT
		                                                                                              : 0) |
		                          (matches_frame(how->stop, symbol) ? PATH_STOP : 0));
	}
	w->other = BUILDER_NONE;
	if (how->min_percent > 0) {
		w->other = builder_symbol(w->to, "(other)", strlen("(other)"), "", 0, 0, FRAME_SPECIAL, 0);
		w->least = (uint64_t)((double)profile_sum(w->from, profile_weight(w->from)) * how->min_percent / 100);
	}
	for (int v = 0; v < VALUE_COUNT; v++) {
		const struct value_type *value = &w->from->values[v];
		uint32_t at = value->name ? builder_value(w->to, value->name, value->unit, (enum value_index)v)
		                          : BUILDER_NONE;

		w->values[v] = at == BUILDER_NONE ? VALUE_COUNT : (uint8_t)at;
		if (value->name && at == BUILDER_NONE)
			builder_note(w->to, "values_left_out", "kinds of values left out: no room for more", 1, true);
	}
	return builder_error(w->to);
}

/* Of native frames the source's file; where that is the module's, as imports have it, it stays. */
static void strip(const struct work *w, struct symbol *symbol)
{
	const char *slash = strrchr(symbol->file, '/');

	if (slash && w->how->strip_dirs && (symbol->kind == FRAME_PYTHON || symbol->module[0]))
		symbol->file = slash + 1;
}

static uint32_t symbol_of(struct work *w, uint32_t index)
{
	struct symbol symbol = w->from->symbols[index];

	if (w->symbols[index] == NOT_MADE) {
		strip(w, &symbol);
		w->symbols[index] = builder_symbol_like(w->to, &symbol);
	}
	return w->symbols[index];
}

/* Names that the profile has of places in its mappings go with them. */
static void carry_names(struct work *w)
{
	struct named_frame frames[NAMED_FRAMES_MAX];
	uint32_t symbol, where;

	for (uint32_t i = 0; named_place(w->from->named, i, &symbol, &where); i++)
		if (w->symbols[symbol] < NOT_MADE)
			builder_named(w->to, w->symbols[symbol], where, frames,
			              named_find(w->from->named, symbol, where, frames, NAMED_FRAMES_MAX));
}

/* Trees are walked by index: parents come before their children. */
struct tree_work {
	const struct thread_tree *tree;
	uint32_t thread;  /* in the result */
	uint8_t *path;    /* PATH_* of each node */
	uint32_t *target; /* node in the result, NOT_MADE; */
	uint32_t *chain;  /* room for the nodes that one resolve() makes */
};

static void mark_paths(const struct work *w, struct tree_work *t, const uint64_t *totals)
{
	enum value_index by = profile_weight(w->from);

	for (uint32_t n = 1; n < t->tree->node_count; n++) {
		const struct node *node = &t->tree->nodes[n];
		uint8_t above = t->path[node->parent] & (uint8_t)~FRAME_FIRST, own = w->matches[node->symbol];

		t->path[n] = above | own;
		if (own & PATH_STOP && !(above & PATH_STOP))
			t->path[n] |= FRAME_FIRST;
		if (totals && totals[(size_t)n * VALUE_COUNT + by] < w->least)
			t->path[n] |= PATH_SMALL;
	}
}

/* The line that a frame keeps. Of a mapping it is the place, and all there is. */
static uint32_t line_of(const struct work *w, uint32_t line, const struct symbol *symbol)
{
	return w->how->by_function && !symbol->mapped ? symbol->first_line : line;
}

/* The node under `to` for a node's frame, or for the frames that it becomes. */
static uint32_t add_frames(struct work *w, const struct tree_work *t, const struct node *node, uint32_t to)
{
	const struct symbol *symbol = &w->from->symbols[node->symbol];
	struct named_frame frames[NAMED_FRAMES_MAX];
	size_t count = FRAMES_SAME;

	if (w->how->frames && symbol->kind == FRAME_NATIVE)
		count = w->how->frames(w->how->frames_context, w->from, node, frames, NAMED_FRAMES_MAX);
	if (count == FRAMES_SAME)
		return builder_child(w->to, t->thread, to, symbol_of(w, node->symbol),
		                     line_of(w, node->line, symbol));
	for (size_t i = 0; i < count && i < NAMED_FRAMES_MAX; i++) {
		struct symbol named = {.name = frames[i].name,
		                       .file = frames[i].file,
		                       .module = frames[i].module,
		                       .build_id = frames[i].build_id,
		                       .first_line = frames[i].first_line,
		                       .kind = frames[i].kind};

		strip(w, &named);
		to = builder_child(w->to, t->thread, to, builder_symbol_like(w->to, &named),
		                   line_of(w, frames[i].line, &named));
	}
	return to;
}

/* The node of the result for a node, made with those above it that are missing. Only what has samples is made. */
static uint32_t resolve(struct work *w, struct tree_work *t, uint32_t n)
{
	uint32_t depth = 0, to;

	while (n && t->target[n] == NOT_MADE) {
		t->chain[depth++] = n;
		n = t->path[n] & FRAME_FIRST ? 0 : t->tree->nodes[n].parent;
	}
	to = t->target[n];
	while (depth > 0) {
		const struct node *node;
		uint32_t above = n;

		n = t->chain[--depth];
		node = &t->tree->nodes[n];
		if (t->path[n] & PATH_SMALL && above && t->path[above] & PATH_SMALL)
			; /* the same "(other)" */
		else if (t->path[n] & PATH_SMALL)
			to = builder_child(w->to, t->thread, to, w->other, 0);
		else
			to = add_frames(w, t, node, to);
		t->target[n] = to;
	}
	return to;
}

static bool is_wanted(const struct work *w, const struct tree_work *t, uint32_t n, bool *ret_omitted)
{
	*ret_omitted = t->path[n] & PATH_OMIT;
	return !*ret_omitted && !(t->path[n] & PATH_IGNORE) && (!w->how->focus || t->path[n] & PATH_FOCUS);
}

static void add_nodes(struct work *w, struct tree_work *t)
{
	struct profile *result = builder_profile(w->to);

	for (uint32_t n = 0; n < t->tree->node_count; n++) {
		const uint64_t *self = t->tree->nodes[n].self;
		uint64_t values[VALUE_COUNT] = {0}, any = 0;
		bool omitted;

		for (int v = 0; v < VALUE_COUNT; v++) {
			any |= self[v];
			if (w->values[v] < VALUE_COUNT)
				values[w->values[v]] += self[v];
		}
		if (!any)
			continue;
		if (is_wanted(w, t, n, &omitted)) {
			builder_add(w->to, t->thread, resolve(w, t, n), values);
			continue;
		}
		*(omitted ? &result->omitted : &result->filtered) += self[VALUE_SAMPLES];
		left_out_add(&result->left_out, values);
	}
}

static void add_runs(struct work *w, struct tree_work *t)
{
	for (size_t i = 0; i < t->tree->run_count; i++) {
		struct run run = t->tree->runs[i];
		bool omitted;

		if (!is_wanted(w, t, run.node, &omitted)) /* though others may have made its node */
			continue;
		run.node = t->target[run.node];
		if (run.node < NOT_MADE)
			builder_only_run(w->to, t->thread, run);
	}
}

static bool is_wanted_thread(const struct transform *how, const struct thread_tree *tree)
{
	for (size_t i = 0; i < how->thread_count; i++) {
		const struct thread_filter *filter = &how->threads[i];

		if (filter->name ? tree->name && strcmp(filter->name, tree->name) == 0
		                 : tree->tid && filter->tid == tree->tid)
			return true;
	}
	return how->thread_count == 0;
}

static int add_tree(struct work *w, const struct thread_tree *tree)
{
	struct tree_work t = {.tree = tree};
	uint64_t *totals = w->least ? profile_totals(tree) : NULL;
	uint32_t count = tree->node_count;

	t.path = calloc(count, 1);
	t.target = malloc(count * sizeof(*t.target));
	t.chain = malloc(count * sizeof(*t.chain));
	t.thread = builder_thread(w->to, tree);
	if (!t.path || !t.target || !t.chain || (w->least && !totals))
		goto out;
	memset(t.target, 0xff, count * sizeof(*t.target));
	for (uint32_t n = 1; n < count; n++)
		t.target[n] = NOT_MADE;
	t.target[0] = 0;
	mark_paths(w, &t, totals);
	add_nodes(w, &t);
	add_runs(w, &t);
out:
	free(totals);
	free(t.path);
	free(t.target);
	free(t.chain);
	return t.path && t.target && t.chain && (!w->least || totals) ? builder_error(w->to) : -ENOMEM;
}

static uint64_t span_ns(const struct profile *p)
{
	return p->t_end_ns > p->t_start_ns ? p->t_end_ns - p->t_start_ns : 0;
}

/* Windows that overlap are one; others add up, and so do those that do not tell when they were. */
static void join_times(struct profile *to, const struct profile *from)
{
	uint64_t to_span_ns = span_ns(to), from_span_ns = span_ns(from);
	uint64_t to_end_ns = to->wall_start_ns + to_span_ns, from_end_ns = from->wall_start_ns + from_span_ns;

	if (to->t_end_ns == 0) {
		to->t_start_ns = from->t_start_ns;
		to->t_end_ns = from->t_end_ns;
		to->wall_start_ns = from->wall_start_ns;
		return;
	}
	if (from->wall_start_ns == 0 || to->wall_start_ns == 0 || from->wall_start_ns >= to_end_ns ||
	    to->wall_start_ns >= from_end_ns) {
		to->t_end_ns = to->t_start_ns + to_span_ns + from_span_ns;
	} else {
		uint64_t begin_ns = from->wall_start_ns < to->wall_start_ns ? from->wall_start_ns : to->wall_start_ns;
		uint64_t end_ns = from_end_ns > to_end_ns ? from_end_ns : to_end_ns;

		to->t_end_ns = to->t_start_ns + (end_ns - begin_ns);
	}
	if (from->wall_start_ns != 0 && (to->wall_start_ns == 0 || from->wall_start_ns < to->wall_start_ns))
		to->wall_start_ns = from->wall_start_ns;
}

static void join_profile(struct profile *to, const struct profile *from)
{
	bool first = to->t_end_ns == 0 && to->process_count == 0;

	join_times(to, from);
	if (first || to->interval_ns == from->interval_ns)
		to->interval_ns = from->interval_ns;
	if (first) {
		to->mode = from->mode;
		to->sequence = from->sequence;
	}
	to->imported |= from->imported;
	to->uncounted |= from->uncounted;
	to->filtered += from->filtered;
	to->omitted += from->omitted;
	to->out_of_memory += from->out_of_memory;
	to->left_out.wall += from->left_out.wall;
	to->left_out.cpu += from->left_out.cpu;
	to->left_out.run_wait += from->left_out.run_wait;
	to->malformed_samples += from->malformed_samples;
	to->malformed_records += from->malformed_records;
}

int transform_add(struct builder *to, const struct profile *from, const struct transform *transform)
{
	struct work w = {.to = to, .from = from, .how = transform};
	uint32_t *processes = calloc(from->process_count + (size_t)1, sizeof(*processes));
	int err = processes ? prepare(&w) : -ENOMEM;

	if (!err) {
		join_profile(builder_profile(to), from);
		for (uint32_t i = 0; i < from->note_count; i++)
			builder_note(to, from->notes[i].key, from->notes[i].label, from->notes[i].number,
			             from->notes[i].loss);
		for (uint32_t i = 0; i < from->process_count; i++)
			processes[i] = builder_process(to, &from->processes[i]);
	}
	for (uint32_t i = 0; i < from->thread_count && !err; i++) {
		struct thread_tree tree = from->threads[i];

		tree.process = processes[tree.process];
		if (is_wanted_thread(transform, &tree)) {
			err = add_tree(&w, &tree);
			continue;
		}
		for (uint32_t n = 0; n < tree.node_count; n++) {
			builder_profile(to)->filtered += tree.nodes[n].self[VALUE_SAMPLES];
			left_out_add(&builder_profile(to)->left_out, tree.nodes[n].self);
		}
	}
	if (!err)
		carry_names(&w);
	free(processes);
	free(w.symbols);
	free(w.matches);
	return err ? err : builder_error(to);
}
