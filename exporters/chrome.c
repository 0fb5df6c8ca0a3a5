/* SPDX-License-Identifier: Apache-2.0 */
/* Chrome trace events, the JSON object format ("Trace Event Format"; Perfetto and speedscope read it): a B and an E event
 * around the time that a function was on a thread's stack, as far as samples tell.
 *
 * A function's span goes on while its frame stays on the stack, at whatever line; what it called before its line changed does
 * not. Spans end a nanosecond before what follows begins: readers pair events of the same time by their names, whatever their
 * order in the file. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/version.h"
#include "exporters/formats.h"
#include "exporters/intern.h"
#include "exporters/json_parts.h"
#include "exporters/timeline.h"

struct chrome {
	const struct profile *profile;
	struct writer *to;
	uint64_t base_ns, gap_ns;
	struct pair_set tids; /* (pid, tid) that were given out */
	char **labels;        /* of each symbol, made when it is first used */
	struct buf text;
	bool any; /* an event was written */
};

/* A thread while it is written. */
struct track {
	const struct thread_tree *thread;
	int32_t pid;
	uint32_t tid;
	uint32_t *depths; /* of each node: 1 below the root */
	uint32_t *open;   /* the node of the span at each depth */
	uint32_t *above;  /* nodes that are to be opened */
	uint32_t depth;   /* of spans that are open */
};

static void begin_event(struct chrome *c, const struct track *track, char phase)
{
	writer_puts(c->to, c->any ? ",\n{\"ph\":\"" : "\n{\"ph\":\"");
	c->any = true;
	writer_putc(c->to, phase);
	writer_puts(c->to, track->pid < 0 ? "\",\"pid\":-" : "\",\"pid\":");
	writer_u64(c->to, track->pid < 0 ? 0 - (uint64_t)track->pid : (uint64_t)track->pid);
	writer_puts(c->to, ",\"tid\":");
	writer_u64(c->to, track->tid);
}

static const char *label_of(struct chrome *c, uint32_t index)
{
	const struct symbol *symbol = &c->profile->symbols[index];

	if (!symbol->file[0])
		return symbol->name;
	if (!c->labels[index]) {
		buf_puts(&c->text, symbol->name);
		buf_puts(&c->text, " (");
		buf_puts(&c->text, symbol->file);
		buf_printf(&c->text, ":%" PRIu32 ")", symbol->first_line);
		c->labels[index] = strdup(buf_text(&c->text));
		c->text.bytes = 0;
		if (!c->labels[index] && !c->to->err)
			c->to->err = -ENOMEM;
	}
	return c->labels[index] ? c->labels[index] : "";
}

static void write_span_event(struct chrome *c, const struct track *track, char phase, uint64_t t_ns, uint32_t node)
{
	begin_event(c, track, phase);
	writer_puts(c->to, ",\"ts\":");
	json_decimal(c->to, t_ns > c->base_ns ? t_ns - c->base_ns : 0, 3);
	writer_puts(c->to, ",\"name\":");
	writer_json_string(c->to, label_of(c, track->thread->nodes[node].symbol));
	writer_putc(c->to, '}');
}

static void close_spans(struct chrome *c, struct track *track, uint32_t depth, uint64_t t_ns)
{
	for (; track->depth > depth; track->depth--)
		write_span_event(c, track, 'E', t_ns - 1, track->open[track->depth]);
}

/* From here on the stack is this; the one before was last seen at end_ns. */
static void switch_stack(struct chrome *c, struct track *track, uint32_t node, uint64_t t_ns, uint64_t end_ns)
{
	const struct node *nodes = track->thread->nodes;
	uint32_t count = 0, kept;

	for (; node && (track->depths[node] > track->depth || track->open[track->depths[node]] != node);
	     node = nodes[node].parent)
		track->above[count++] = node;
	kept = track->depths[node];
	if (count > 0 && kept < track->depth) {
		uint32_t next = track->above[count - 1];

		if (nodes[next].symbol == nodes[track->open[kept + 1]].symbol) { /* it has come to another line */
			track->open[++kept] = next;
			count--;
		}
	}
	close_spans(c, track, kept, end_ns);
	while (count > 0) {
		track->open[++track->depth] = track->above[--count];
		write_span_event(c, track, 'B', t_ns, track->open[track->depth]);
	}
}

static void write_name(struct chrome *c, const struct track *track, const char *what)
{
	begin_event(c, track, 'M');
	writer_printf(c->to, ",\"name\":\"%s\",\"args\":{\"name\":", what);
	json_string_of(c->to, &c->text);
	writer_puts(c->to, "}}");
}

/* Viewers tell threads apart by pid and tid, of 32 bits: two trees of one thread (interpreters), or an unknown tid, take one
 * that no kernel gives out. */
static uint32_t take_tid(struct chrome *c, int32_t pid, uint64_t tid, uint32_t index)
{
	enum { NEVER_A_TID = 0x40000000 };
	uint32_t before = c->tids.count;

	if (tid > 0 && tid < NEVER_A_TID) {
		if (pair_set_add(&c->tids, (uint32_t)pid, (uint32_t)tid) == INTERN_FAILED && !c->to->err)
			c->to->err = -ENOMEM;
		if (c->tids.count > before)
			return (uint32_t)tid;
	}
	return NEVER_A_TID + index;
}

static int track_init(struct track *track, const struct thread_tree *thread)
{
	uint32_t deepest = 0;

	*track = (struct track){.thread = thread};
	track->depths = calloc(thread->node_count, sizeof(*track->depths));
	if (!track->depths)
		return -ENOMEM;
	for (uint32_t i = 1; i < thread->node_count; i++) {
		track->depths[i] = track->depths[thread->nodes[i].parent] + 1;
		deepest = track->depths[i] > deepest ? track->depths[i] : deepest;
	}
	track->open = calloc(deepest + (size_t)1, sizeof(*track->open));
	track->above = calloc(deepest + (size_t)1, sizeof(*track->above));
	return track->open && track->above ? 0 : -ENOMEM;
}

static void write_thread(struct chrome *c, uint32_t index)
{
	const struct thread_tree *thread = &c->profile->threads[index];
	const struct process *process = &c->profile->processes[thread->process];
	struct timeline line = {.thread = thread};
	struct timeline_slice slice;
	struct track track;
	uint64_t end_ns = 0;
	int err = track_init(&track, thread);

	if (err && !c->to->err)
		c->to->err = err;
	if (!c->to->err) {
		track.pid = process->pid;
		track.tid = take_tid(c, track.pid, thread->tid, index);
		buf_puts(&c->text, process->name ? process->name : "");
		write_name(c, &track, "process_name");
		if (thread->name && thread->name[0])
			buf_puts(&c->text, thread->name);
		else
			buf_printf(&c->text, "thread %" PRIu64, thread->tid);
		if (thread->interpreter)
			buf_printf(&c->text, ", interpreter %" PRId64, thread->interpreter);
		write_name(c, &track, "thread_name");
	}
	while (!c->to->err && timeline_next(&line, &slice)) {
		if (slice.start_ns - end_ns > c->gap_ns)
			close_spans(c, &track, 0, end_ns);
		switch_stack(c, &track, slice.node, slice.start_ns, end_ns);
		end_ns = slice.end_ns;
	}
	if (!c->to->err)
		close_spans(c, &track, 0, end_ns);
	free(track.depths);
	free(track.open);
	free(track.above);
}

int chrome_write(const struct profile *profile, const struct export_options *options, struct writer *to)
{
	struct chrome c = {.profile = profile,
	                   .to = to,
	                   .base_ns = timeline_base_ns(profile),
	                   .gap_ns = timeline_gap_ns(profile),
	                   .labels = calloc(profile->symbol_count + (size_t)1, sizeof(char *))};

	if (!c.labels)
		return to->err = to->err ? to->err : -ENOMEM;
	writer_puts(to, "{\"displayTimeUnit\":\"ms\",\n\"otherData\":{\"producer\":\"sampled " SAMPLED_VERSION
	                "\",\"title\":");
	json_title(&c.text, profile, options);
	json_string_of(to, &c.text);
	writer_printf(to, ",\"clock\":\"CLOCK_MONOTONIC\",\"start_ns\":\"%" PRIu64 "\",\"facts\":", c.base_ns);
	json_facts(to, profile);
	writer_puts(to, "},\n\"traceEvents\":[");
	for (uint32_t i = 0; i < profile->thread_count && !to->err; i++)
		write_thread(&c, i);
	writer_puts(to, "]}\n");
	for (uint32_t i = 0; i < profile->symbol_count; i++)
		free(c.labels[i]);
	free(c.labels);
	pair_set_release(&c.tids);
	buf_release(&c.text);
	return to->err;
}
