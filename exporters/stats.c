/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/stats.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

const char *stats_raw_name(const struct stats *s, uint32_t function, size_t *ret_bytes)
{
	*ret_bytes = s->names[function].raw_bytes;
	return s->texts.data + s->names[function].raw_off;
}

const char *stats_safe_name(const struct stats *s, uint32_t function, size_t *ret_bytes)
{
	*ret_bytes = s->names[function].safe_bytes;
	return s->texts.data + s->names[function].safe_off;
}

/* Built-ins and frames such as "<GC>", which have neither a file nor a line in the graph, and the file "~" in pstats. Files of profile.py, told
 * by their edges, have built-ins in a file "" and no "~". */
static bool is_nowhere(const struct stats *s, const struct callgraph_function *f, size_t file_bytes)
{
	return file_bytes == 0 && f->line == 0 && (s->graph->from_samples || !s->graph->edges_are_counts);
}

/* pstats' func_std_string(). */
static void add_raw_name(struct stats *s, const struct callgraph_function *f)
{
	size_t name_bytes, file_bytes;
	const char *name = text_set_get(&s->graph->texts, f->name, &name_bytes);
	const char *file = text_set_get(&s->graph->texts, f->file, &file_bytes);
	bool braces = name_bytes >= 2 && name[0] == '<' && name[name_bytes - 1] == '>';
	char line[16];

	if (!is_nowhere(s, f, file_bytes)) {
		snprintf(line, sizeof(line), ":%" PRIu32 "(", f->line);
		buf_add(&s->texts, file, file_bytes);
		buf_puts(&s->texts, line);
		buf_add(&s->texts, name, name_bytes);
		buf_putc(&s->texts, ')');
	} else if (braces) {
		buf_putc(&s->texts, '{');
		buf_add(&s->texts, name + 1, name_bytes - 2);
		buf_putc(&s->texts, '}');
	} else {
		buf_add(&s->texts, name, name_bytes);
	}
}

/* The same behind it, with U+FFFD for what a terminal must not be given. */
static void add_safe_name(struct stats *s, struct stats_name *name)
{
	static const char replacement[] = "\xef\xbf\xbd";

	for (size_t at = 0; at < name->raw_bytes && !s->texts.err;) {
		const char *text = s->texts.data + name->raw_off + at;
		char copy[4];
		uint32_t character;
		size_t bytes = utf8_next(text, name->raw_bytes - at, &character);

		/* The texts may move while they grow. */
		memcpy(copy, text, bytes);
		if (character == 0xfffd || utf8_is_unsafe(character))
			buf_puts(&s->texts, replacement);
		else
			buf_add(&s->texts, copy, bytes);
		name->characters++;
		at += bytes;
	}
}


int stats_make(struct stats *ret_stats, const struct callgraph *graph)
{
	struct stats *s = ret_stats;

	*s = (struct stats){.graph = graph};
	s->names = calloc(graph->function_count + (size_t)1, sizeof(*s->names));
	s->listing = calloc(graph->function_count + (size_t)1, sizeof(*s->listing));
	for (uint32_t i = 0; i < graph->function_count && s->names && s->listing; i++) {
		const struct callgraph_function *f = &graph->functions[i];
		struct stats_name *name = &s->names[i];

		name->raw_off = s->texts.bytes;
		add_raw_name(s, f);
		name->raw_bytes = s->texts.bytes - name->raw_off;
		buf_putc(&s->texts, '\0'); /* for what takes C strings, however long it is told they are */
		name->safe_off = s->texts.bytes;
		add_safe_name(s, name);
		name->safe_bytes = s->texts.bytes - name->safe_off;
		if (!f->has_sums)
			continue;
		s->listing[f->entry] = i;
		s->count++;
		s->calls = call_count_add(s->calls, f->sums.calls);
		s->primitive_calls = call_count_add(s->primitive_calls, f->sums.primitive_calls);
	}
	if (!s->names || !s->listing || s->texts.err) {
		stats_release(s);
		return -ENOMEM;
	}
	return 0;
}

void stats_release(struct stats *s)
{
	free(s->names);
	free(s->listing);
	buf_release(&s->texts);
	buf_release(&s->order);
	*s = (struct stats){0};
}

/* Code points in the order of their UTF-8 bytes, so bytes compare as Python's strings do. */
static int compare_bytes(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
	int order = memcmp(a, b, a_bytes < b_bytes ? a_bytes : b_bytes);

	return order ? order : (a_bytes > b_bytes) - (a_bytes < b_bytes);
}

static int compare_strings(const struct stats *s, uint32_t left, uint32_t right)
{
	size_t left_bytes, right_bytes;
	const char *a = text_set_get(&s->graph->texts, left, &left_bytes);
	const char *b = text_set_get(&s->graph->texts, right, &right_bytes);

	return left == right ? 0 : compare_bytes(a, left_bytes, b, right_bytes);
}

const char *stats_file(const struct stats *s, uint32_t function, size_t *ret_bytes)
{
	const struct callgraph_function *f = &s->graph->functions[function];
	const char *file = text_set_get(&s->graph->texts, f->file, ret_bytes);

	if (!is_nowhere(s, f, *ret_bytes))
		return file;
	*ret_bytes = 1;
	return "~";
}

int stats_compare_files(const struct stats *s, uint32_t left, uint32_t right)
{
	size_t left_bytes, right_bytes;
	const char *a = stats_file(s, left, &left_bytes), *b = stats_file(s, right, &right_bytes);

	return compare_bytes(a, left_bytes, b, right_bytes);
}

int stats_compare_function_names(const struct stats *s, uint32_t left, uint32_t right)
{
	return compare_strings(s, s->graph->functions[left].name, s->graph->functions[right].name);
}

int stats_compare_names(const struct stats *s, uint32_t left, uint32_t right)
{
	const struct stats_name *a = &s->names[left], *b = &s->names[right];

	return compare_bytes(s->texts.data + a->raw_off, a->raw_bytes, s->texts.data + b->raw_off, b->raw_bytes);
}

int stats_compare_functions(const struct stats *s, uint32_t left, uint32_t right)
{
	const struct callgraph_function *a = &s->graph->functions[left], *b = &s->graph->functions[right];
	int order = stats_compare_files(s, left, right);

	if (order == 0)
		order = (a->line > b->line) - (a->line < b->line);
	return order ? order : compare_strings(s, a->name, b->name);
}

const char *stats_fact(const struct callgraph *graph, size_t *at, size_t *ret_bytes)
{
	const char *line, *newline;

	if (*at >= graph->facts.bytes)
		return NULL;
	line = graph->facts.data + *at;
	newline = memchr(line, '\n', graph->facts.bytes - *at);
	*ret_bytes = newline ? (size_t)(newline - line) : graph->facts.bytes - *at;
	*at += *ret_bytes + 1;
	return line;
}

/* --- calls --- */

struct end {
	const struct stats *stats;
	bool by_callee;
};

static int compare_edges(const void *left, const void *right, void *context)
{
	const struct end *end = context;
	const struct callgraph_edge *edges = end->stats->graph->edges;
	const struct callgraph_edge *a = &edges[*(const uint32_t *)left], *b = &edges[*(const uint32_t *)right];

	return end->by_callee ? stats_compare_functions(end->stats, a->caller, b->caller)
	                      : stats_compare_functions(end->stats, a->callee, b->callee);
}

int stats_calls_make(struct stats_calls *ret_calls, const struct stats *stats, bool by_callee)
{
	struct end end = {.stats = stats, .by_callee = by_callee};
	int err = callgraph_sort_edges(stats->graph, !by_callee, &ret_calls->starts, &ret_calls->edges);

	for (uint32_t i = 0; i < stats->graph->function_count && !err; i++)
		qsort_r(ret_calls->edges + ret_calls->starts[i], ret_calls->starts[i + 1] - ret_calls->starts[i],
		        sizeof(*ret_calls->edges), compare_edges, &end);
	return err;
}

void stats_calls_release(struct stats_calls *calls)
{
	free(calls->starts);
	free(calls->edges);
	*calls = (struct stats_calls){0};
}
