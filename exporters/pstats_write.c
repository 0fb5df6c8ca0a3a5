/* SPDX-License-Identifier: Apache-2.0 */
/* pstats files: see pstats.h. Written in marshal's version 2, without references, which every Python since 2.5 reads. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "exporters/formats.h"
#include "exporters/pstats.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* A function has fewer callers than there are functions, so its edges are put next to each other. */
struct pstats {
	const struct callgraph *graph;
	struct writer *to;
	uint32_t *first; /* of each function: where its callers begin in edges; the next one's begin is their end */
	uint32_t *edges; /* indices into graph->edges, by callee */
	struct buf text; /* while it is made valid */
};

static void put_u32(struct writer *to, uint32_t value)
{
	unsigned char bytes[4];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(value >> (8 * i));
	writer_add(to, bytes, sizeof(bytes));
}

static void put_int(struct writer *to, int64_t value)
{
	unsigned char bytes[2];
	uint32_t digits = 0;

	if (value < 0 || value <= INT32_MAX) { /* -1: unknown */
		writer_putc(to, MARSHAL_INT);
		put_u32(to, value < 0 ? UINT32_MAX : (uint32_t)value);
		return;
	}
	for (int64_t left = value; left > 0; left >>= 15)
		digits++;
	writer_putc(to, MARSHAL_LONG);
	put_u32(to, digits);
	for (; value > 0; value >>= 15) {
		bytes[0] = (unsigned char)(value & 0xff);
		bytes[1] = (unsigned char)(value >> 8 & 0x7f);
		writer_add(to, bytes, sizeof(bytes));
	}
}

static void put_float(struct writer *to, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	writer_putc(to, MARSHAL_BINARY_FLOAT);
	put_u32(to, (uint32_t)bits);
	put_u32(to, (uint32_t)(bits >> 32));
}

static bool is_surrogate(const unsigned char *p, size_t bytes)
{
	return bytes >= 3 && p[0] == 0xed && p[1] >= 0xa0 && p[1] <= 0xbf && (p[2] & 0xc0) == 0x80;
}

/* Python's own names may hold lone surrogates, which it writes and reads as if they were characters; all else that is not UTF-8 it refuses. */
static void put_text(struct pstats *p, const char *text, size_t bytes)
{
	p->text.bytes = 0;
	while (bytes > 0) {
		uint32_t c;
		size_t length = utf8_next(text, bytes, &c);

		if (c == 0xfffd && is_surrogate((const unsigned char *)text, bytes))
			length = 3;
		if (c == 0xfffd && length == 1)
			buf_puts(&p->text, REPLACEMENT);
		else
			buf_add(&p->text, text, length);
		text += length;
		bytes -= length;
	}
	writer_putc(p->to, MARSHAL_UNICODE);
	put_u32(p->to, (uint32_t)p->text.bytes);
	if (p->text.bytes > 0)
		writer_add(p->to, p->text.data, p->text.bytes);
}

static void put_tuple(struct writer *to, uint32_t count)
{
	writer_putc(to, MARSHAL_TUPLE);
	put_u32(to, count);
}

/* What has no file stands in "~", line 0, as built-in functions do: pstats prints <GC> as {GC}. */
static void put_key(struct pstats *p, uint32_t function)
{
	const struct callgraph_function *f = &p->graph->functions[function];
	size_t name_bytes, file_bytes;
	const char *name = text_set_get(&p->graph->texts, f->name, &name_bytes);
	const char *file = text_set_get(&p->graph->texts, f->file, &file_bytes);

	put_tuple(p->to, 3);
	if (file_bytes == 0 && f->line == 0)
		put_text(p, "~", 1);
	else
		put_text(p, file, file_bytes);
	put_int(p->to, f->line);
	put_text(p, name, name_bytes);
}

static void put_function(struct pstats *p, uint32_t function)
{
	const struct call_sums *sums = &p->graph->functions[function].sums;

	put_key(p, function);
	put_tuple(p->to, 5);
	put_int(p->to, sums->primitive_calls);
	put_int(p->to, sums->calls);
	put_float(p->to, sums->self_s);
	put_float(p->to, sums->total_s);
	writer_putc(p->to, MARSHAL_DICT);
	for (uint32_t i = p->first[function]; i < p->first[function + 1] && !p->to->err; i++) {
		const struct callgraph_edge *edge = &p->graph->edges[p->edges[i]];

		put_key(p, edge->caller);
		put_tuple(p->to, 4);
		put_int(p->to, edge->sums.calls);
		put_int(p->to, edge->sums.primitive_calls);
		put_float(p->to, edge->sums.self_s);
		put_float(p->to, edge->sums.total_s);
	}
	writer_putc(p->to, MARSHAL_NULL);
}

/* What has an entry: callers have one as well, since gprof2dot asks for it. NULL: no memory. */
static bool *find_shown(const struct callgraph *graph)
{
	bool *shown = calloc(graph->function_count + (size_t)1, sizeof(*shown));

	for (uint32_t i = 0; shown && i < graph->function_count; i++)
		shown[i] = graph->functions[i].has_sums;
	for (uint32_t i = 0; shown && i < graph->edge_count; i++)
		shown[graph->edges[i].caller] = shown[graph->edges[i].callee] = true;
	return shown;
}

/* pstats.Stats refuses a file without any function. */
static void put_nothing(struct pstats *p)
{
	put_tuple(p->to, 3);
	put_text(p, "~", 1);
	put_int(p->to, 0);
	put_text(p, PSTATS_NOTHING, strlen(PSTATS_NOTHING));
	put_tuple(p->to, 5);
	put_int(p->to, 0);
	put_int(p->to, 0);
	put_float(p->to, 0);
	put_float(p->to, 0);
	writer_putc(p->to, MARSHAL_DICT);
	writer_putc(p->to, MARSHAL_NULL);
}

static void put_facts(struct pstats *p)
{
	struct buf text = {0};

	if (p->graph->from_samples || p->graph->facts.bytes > 0) {
		buf_puts(&text, PSTATS_FACTS);
		if (!p->graph->from_samples)
			buf_puts(&text, PSTATS_CALLS);
		if (!p->graph->is_time)
			buf_printf(&text, PSTATS_UNIT "%s\n", p->graph->unit);
		buf_add(&text, p->graph->facts.data, p->graph->facts.bytes);
		put_text(p, text.data, text.bytes);
	}
	if (text.err && !p->text.err)
		p->text.err = text.err;
	buf_release(&text);
}

int pstats_write(const struct callgraph *graph, const struct export_options *options, struct writer *to)
{
	struct pstats p = {.graph = graph, .to = to};
	bool *shown = find_shown(graph), any = false;
	int err = shown ? callgraph_sort_edges(graph, false, &p.first, &p.edges) : -ENOMEM;

	(void)options;
	if (!err) {
		writer_putc(to, MARSHAL_DICT);
		for (uint32_t i = 0; i < graph->function_count && !to->err; i++) {
			any |= shown[i];
			if (shown[i])
				put_function(&p, i);
		}
		if (!any)
			put_nothing(&p);
		writer_putc(to, MARSHAL_NULL);
		put_facts(&p);
		err = p.text.err;
	}
	writer_fail(to, err);
	free(shown);
	free(p.first);
	free(p.edges);
	buf_release(&p.text);
	return to->err;
}
