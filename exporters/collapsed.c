/* SPDX-License-Identifier: Apache-2.0 */
/* Collapsed stacks: one line a stack, frames joined by ';', then a blank and the count; or the weight, where samples are not counted, which
 * the first line, "# value: NAME, in UNIT", says.
 *
 * All trees are joined into one trie whose edges are the frames' texts, so that stacks which read alike become one line, and
 * lines are put in order by ranking the texts once: no line is ever held in memory whole, since a recursion 16,384 deep has
 * lines of a megabyte. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "exporters/formats.h"
#include "exporters/intern.h"
#include "exporters/native.h"
#include "base/utf8.h"
#include "exporters/walk.h"

struct collapsed {
	const struct profile *profile;
	enum collapsed_style style;
	enum value_index value; /* what the numbers are */
	struct text_set labels;
	struct pair_set nodes; /* of the trie: (parent, label); number 0 is the root, whose label is none */
	struct buf counts;     /* uint64_t a node */
	struct buf scratch;    /* an element's text while it is made */
	int err;
};

static uint64_t *counts_of(const struct collapsed *c)
{
	return (uint64_t *)(void *)c->counts.data;
}

static uint32_t trie_child(struct collapsed *c, uint32_t parent, uint32_t label)
{
	static const uint64_t none = 0;
	uint32_t before = c->nodes.count, node = pair_set_add(&c->nodes, parent, label);

	if (c->nodes.count > before)
		buf_add(&c->counts, &none, sizeof(none));
	if (node == INTERN_FAILED || c->counts.err) {
		c->err = -ENOMEM;
		return 0;
	}
	return node;
}

/* Appends text without what would break a line or a frame (readers split at ';' and skip bad lines without a word), or
 * steer the terminal that it may be shown on. */
static void add_clean(struct buf *to, const char *text)
{
	size_t left = strlen(text);

	while (left > 0) {
		uint32_t c;
		size_t length = utf8_next(text, left, &c);

		if (c == ';' || utf8_is_unsafe(c))
			buf_putc(to, c == ';' ? ':' : ' ');
		else if (c == 0xfffd)
			buf_puts(to, "\xef\xbf\xbd");
		else
			buf_add(to, text, length);
		text += length;
		left -= length;
	}
}

/* The element whose text stands in scratch, as a child of parent. */
static uint32_t add_element(struct collapsed *c, uint32_t parent)
{
	uint32_t label = c->scratch.err ? INTERN_FAILED : text_set_add(&c->labels, c->scratch.data, c->scratch.bytes);

	c->scratch.bytes = 0;
	if (label == INTERN_FAILED) {
		c->err = -ENOMEM;
		return 0;
	}
	return trie_child(c, parent, label);
}

static void frame_text(struct collapsed *c, const struct symbol *symbol, uint32_t line)
{
	const char *file = symbol->file, *slash = strrchr(file, '/');

	if (c->style == COLLAPSED_TACHYON) {
		if (file[0] == '\0' && line == 0) { /* its special frames: <GC> */
			add_clean(&c->scratch, symbol->name);
			return;
		}
		add_clean(&c->scratch, file[0] == '\0' ? "~" : slash ? slash + 1 : file);
		buf_putc(&c->scratch, ':');
		add_clean(&c->scratch, symbol->name);
		buf_printf(&c->scratch, ":%" PRIu32, line);
		return;
	}
	add_clean(&c->scratch, symbol->name);
	if (file[0] != '\0') {
		buf_puts(&c->scratch, " (");
		add_clean(&c->scratch, file);
		if (native_has_line(symbol, line))
			buf_printf(&c->scratch, ":%" PRIu32, line);
		buf_putc(&c->scratch, ')');
	}
}

static void quoted_name(struct collapsed *c, const char *name)
{
	if (!name || name[0] == '\0')
		return;
	buf_puts(&c->scratch, " \"");
	add_clean(&c->scratch, name);
	buf_putc(&c->scratch, '"');
}

/* The elements above a thread's frames. */
static uint32_t thread_element(struct collapsed *c, const struct thread_tree *tree)
{
	uint32_t at = 0;

	if (c->style == COLLAPSED_TACHYON) {
		buf_printf(&c->scratch, "tid:%" PRIu64, tree->tid);
		return add_element(c, at);
	}
	if (c->profile->process_count > 1) {
		const struct process *process = &c->profile->processes[tree->process];

		buf_printf(&c->scratch, "process %" PRId32, process->pid);
		quoted_name(c, process->name);
		at = add_element(c, at);
	}
	if (tree->interpreter != 0) {
		buf_printf(&c->scratch, "interpreter %" PRId64, tree->interpreter);
		at = add_element(c, at);
	}
	/* What a line that was read says nothing of is not named when it is written. */
	if (c->profile->imported && tree->is_main && !tree->tid && !tree->name && !tree->nodes[0].self[c->value])
		return at;
	if (tree->tid)
		buf_printf(&c->scratch, "thread %" PRIu64, tree->tid);
	else
		buf_puts(&c->scratch, "thread ?");
	quoted_name(c, tree->name);
	return add_element(c, at);
}

static void add_tree(struct collapsed *c, const struct thread_tree *tree)
{
	uint32_t *at = calloc(tree->node_count, sizeof(*at)); /* trie node of each tree node */

	if (!at) {
		c->err = -ENOMEM;
		return;
	}
	at[0] = thread_element(c, tree);
	if (!c->err)
		counts_of(c)[at[0]] += tree->nodes[0].self[c->value];
	for (uint32_t n = walk_next(tree, 0, NULL); n && !c->err; n = walk_next(tree, n, NULL)) {
		const struct node *node = &tree->nodes[n];

		frame_text(c, &c->profile->symbols[node->symbol], node->line);
		at[n] = add_element(c, at[node->parent]);
		if (!c->err)
			counts_of(c)[at[n]] += node->self[c->value];
	}
	free(at);
}

/* A text as an element of a line: the last one (bare) or one that another follows (with its ';'). The two sort apart. */
struct element {
	const char *text;
	uint32_t label;
	bool inner;
};

static int compare_elements(const void *left, const void *right)
{
	const struct element *a = left, *b = right;
	const unsigned char *p = (const unsigned char *)a->text, *q = (const unsigned char *)b->text;

	while (*p && *p == *q) {
		p++;
		q++;
	}
	/* Texts hold no ';', so with it no inner element is the beginning of another text. */
	return (*p ? *p : a->inner ? ';' : 0) - (*q ? *q : b->inner ? ';' : 0);
}

/* Ranks of every label's text: ranks[2 × label] as the last element, ranks[2 × label + 1] as an inner one. */
static void rank_labels(struct collapsed *c, uint32_t *ranks)
{
	uint32_t count = 2 * c->labels.count;
	struct element *elements = calloc((size_t)count + 1, sizeof(*elements));

	if (!elements) {
		c->err = -ENOMEM;
		return;
	}
	for (uint32_t i = 0; i < count; i++)
		elements[i] =
			(struct element){.text = text_set_get(&c->labels, i / 2, NULL), .label = i / 2, .inner = i % 2};
	qsort(elements, count, sizeof(*elements), compare_elements);
	for (uint32_t i = 0; i < count; i++)
		ranks[2 * (size_t)elements[i].label + elements[i].inner] = i;
	free(elements);
}

/* A place in the order of lines: a node's own line, or all lines below it. */
struct place {
	uint32_t node;
	uint32_t rank; /* among its parent's places */
	bool inner;
};

static int compare_places(const void *left, const void *right)
{
	const struct place *a = left, *b = right;

	return (a->rank > b->rank) - (a->rank < b->rank);
}

/* Gives each node's line its number in text order, in order[node]: places sorted by rank are hung into their parents' lists,
 * which are then walked depth first. */
static void order_lines(struct collapsed *c, const uint32_t *ranks, uint32_t *order)
{
	uint32_t nodes = c->nodes.count, next_number = 1;
	size_t count = 2 * (size_t)(nodes - 1);
	struct place *places = calloc(count + 1, sizeof(*places));
	uint32_t *first = calloc(nodes, sizeof(*first)),
		 *next = calloc(count + 1, sizeof(*next)); /* index + 1, 0 none */

	if (!places || !first || !next) {
		c->err = -ENOMEM;
		goto out;
	}
	for (size_t i = 0; i < count; i++) {
		uint32_t node = (uint32_t)(i / 2) + 1;

		places[i] = (struct place){.node = node,
		                           .rank = ranks[2 * (size_t)pair_set_get(&c->nodes, node).b + i % 2],
		                           .inner = i % 2};
	}
	qsort(places, count, sizeof(*places), compare_places);
	for (size_t i = count; i > 0; i--) {
		uint32_t parent = pair_set_get(&c->nodes, places[i - 1].node).a;

		next[i - 1] = first[parent];
		first[parent] = (uint32_t)i;
	}
	for (uint32_t at = 0;;) { /* first[node] moves on as its places are walked */
		uint32_t i = first[at];

		if (i == 0) {
			if (at == 0)
				break;
			at = pair_set_get(&c->nodes, at).a;
			continue;
		}
		first[at] = next[i - 1];
		if (places[i - 1].inner)
			at = places[i - 1].node;
		else
			order[places[i - 1].node] = next_number++;
	}
out:
	free(places);
	free(first);
	free(next);
}

struct line {
	uint64_t count;
	uint32_t order, node;
};

static int compare_lines(const void *left, const void *right)
{
	const struct line *a = left, *b = right;

	if (a->count != b->count)
		return a->count < b->count ? 1 : -1;
	return (a->order > b->order) - (a->order < b->order);
}

/* stack: room for the deepest line's labels. */
static void write_line(const struct collapsed *c, const struct line *line, uint32_t *stack, struct writer *to)
{
	size_t depth = 0;

	for (uint32_t n = line->node; n; n = pair_set_get(&c->nodes, n).a)
		stack[depth++] = pair_set_get(&c->nodes, n).b;
	while (depth > 0) {
		size_t bytes;
		const char *text = text_set_get(&c->labels, stack[--depth], &bytes);

		writer_add(to, text, bytes);
		writer_putc(to, depth ? ';' : ' ');
	}
	writer_u64(to, line->count);
	writer_putc(to, '\n');
}

static void write_lines(struct collapsed *c, struct writer *to)
{
	uint32_t nodes = c->nodes.count, line_count = 0;
	uint32_t *order = calloc(nodes, sizeof(*order)), *stack = calloc(nodes, sizeof(*stack));
	uint32_t *ranks = calloc(2 * (size_t)c->labels.count + 1, sizeof(*ranks));
	struct line *lines = calloc(nodes, sizeof(*lines));

	if (!order || !stack || !ranks || !lines) {
		c->err = -ENOMEM;
		goto out;
	}
	rank_labels(c, ranks);
	if (!c->err)
		order_lines(c, ranks, order);
	if (c->err)
		goto out;
	for (uint32_t n = 1; n < nodes; n++)
		if (counts_of(c)[n] > 0)
			lines[line_count++] = (struct line){.count = counts_of(c)[n], .order = order[n], .node = n};
	qsort(lines, line_count, sizeof(*lines), compare_lines);
	for (uint32_t i = 0; i < line_count && !to->err; i++)
		write_line(c, &lines[i], stack, to);
out:
	free(order);
	free(stack);
	free(ranks);
	free(lines);
}

/* What the numbers are, where they are no samples: other readers pass over such a line. */
static void write_value(struct collapsed *c, struct writer *to)
{
	const struct value_type *type = &c->profile->values[c->value];

	if (c->value == VALUE_SAMPLES)
		return;
	c->scratch.bytes = 0;
	buf_puts(&c->scratch, "# value: ");
	add_clean(&c->scratch, type->name);
	buf_puts(&c->scratch, ", in ");
	add_clean(&c->scratch, type->unit);
	buf_putc(&c->scratch, '\n');
	if (c->scratch.err)
		c->err = c->scratch.err;
	else
		writer_add(to, c->scratch.data, c->scratch.bytes);
}

int collapsed_write(const struct profile *profile, const struct export_options *options, struct writer *to)
{
	struct collapsed c = {.profile = profile, .style = options->collapsed_style, .value = profile_counted(profile)};

	trie_child(&c, 0, UINT32_MAX); /* the root: no label has this number */
	for (uint32_t i = 0; i < profile->thread_count && !c.err; i++)
		add_tree(&c, &profile->threads[i]);
	if (!c.err) {
		write_value(&c, to);
		write_lines(&c, to);
	}
	writer_fail(to, c.err);
	text_set_release(&c.labels);
	pair_set_release(&c.nodes);
	buf_release(&c.counts);
	buf_release(&c.scratch);
	return to->err;
}
