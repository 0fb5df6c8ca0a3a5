/* SPDX-License-Identifier: Apache-2.0 */
/* Chrome trace events, the JSON object format ("Trace Event Format"; Perfetto and speedscope read it): an X event for the time
 * that a function was on a thread's stack, as far as samples tell. It is written when the function leaves; where several leave
 * at once, callers come before what they called, which is how readers nest events of the same time.
 *
 * A function's span goes on while its frame stays on the stack, at whatever line; what it called before its line changed does
 * not. Times are whole eighths of a microsecond: of these, what readers reckon in binary fractions (a start and a duration, the
 * end) is exact, and a callee does not end behind its caller. Spans end one before what follows begins: readers take an event
 * that ends where one of the same name begins for its part. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/version.h"
#include "exporters/formats.h"
#include "exporters/intern.h"
#include "exporters/json_parts.h"
#include "exporters/native.h"
#include "exporters/timeline.h"

/* An event's end, with the name of its symbol. */
struct tail {
	char *text; /* owned; NULL: not made yet */
	size_t bytes;
};

struct chrome {
	const struct profile *profile;
	struct writer *to;
	uint64_t base_ns, gap_ns;
	struct pair_set tids;  /* (pid, tid) that were given out */
	struct tail *tails;    /* of each symbol, made when it is first used */
	struct buf text, head; /* head: of the events of the thread at hand */
	bool any;              /* an event was written */
};

/* A function that is on the stack. */
struct span {
	uint64_t start; /* in eighths of a microsecond */
	uint32_t node;
};

/* A thread while it is written. */
struct track {
	const struct thread_tree *thread;
	int32_t pid;
	uint32_t tid;
	uint32_t *depths;  /* of each node: 1 below the root */
	struct span *open; /* at each depth */
	uint32_t *above;   /* nodes that are to be opened */
	uint32_t depth;    /* of spans that are open */
};

static void make_head(struct chrome *c, const struct track *track, char phase)
{
	c->head.bytes = 0;
	buf_printf(&c->head, "{\"ph\":\"%c\",\"pid\":%" PRId32 ",\"tid\":%" PRIu32, phase, track->pid, track->tid);
	if (c->head.err)
		writer_fail(c->to, c->head.err);
}

static void begin_event(struct chrome *c)
{
	writer_puts(c->to, c->any ? ",\n" : "\n");
	writer_add(c->to, c->head.data, c->head.bytes);
	c->any = true;
}

static const struct tail *tail_of(struct chrome *c, uint32_t index)
{
	const struct symbol *symbol = &c->profile->symbols[index];
	struct buf text = {0};

	if (c->tails[index].text)
		return &c->tails[index];
	buf_puts(&c->text, symbol->name);
	if (symbol->file[0]) {
		buf_puts(&c->text, " (");
		buf_puts(&c->text, symbol->file);
		if (native_has_line(symbol, symbol->first_line))
			buf_printf(&c->text, ":%" PRIu32, symbol->first_line);
		buf_putc(&c->text, ')');
	}
	buf_puts(&text, ",\"name\":");
	json_add_string(&text, buf_text(&c->text));
	buf_puts(&text, "}");
	c->text.bytes = 0;
	if (text.err || c->text.err) {
		buf_release(&text);
		writer_fail(c->to, -ENOMEM);
	}
	c->tails[index] = (struct tail){.text = text.data, .bytes = text.bytes};
	return &c->tails[index];
}

static uint64_t to_eighths(const struct chrome *c, uint64_t t_ns)
{
	return t_ns > c->base_ns ? (t_ns - c->base_ns) / 125 : 0;
}

/* As a number of microseconds. */
static void write_eighths(struct writer *to, uint64_t eighths)
{
	static const char fractions[8][5] = {"", ".125", ".25", ".375", ".5", ".625", ".75", ".875"};

	writer_u64(to, eighths >> 3);
	if (eighths & 7)
		writer_puts(to, fractions[eighths & 7]);
}

/* What has no length at this precision is left out. */
static void write_span(struct chrome *c, const struct track *track, const struct span *span, uint64_t end)
{
	static const char duration[] = ",\"dur\":";
	const struct tail *tail;

	if (end <= span->start)
		return;
	begin_event(c);
	write_eighths(c->to, span->start);
	writer_add(c->to, duration, sizeof(duration) - 1);
	write_eighths(c->to, end - span->start - 1);
	tail = tail_of(c, track->thread->nodes[span->node].symbol);
	writer_add(c->to, tail->text, tail->bytes);
}

static void close_spans(struct chrome *c, struct track *track, uint32_t depth, uint64_t t_ns)
{
	uint64_t end = to_eighths(c, t_ns);

	for (uint32_t at = depth + 1; at <= track->depth; at++)
		write_span(c, track, &track->open[at], end);
	track->depth = depth < track->depth ? depth : track->depth;
}

/* From here on the stack is this; the one before was last seen at end_ns. */
static void switch_stack(struct chrome *c, struct track *track, uint32_t node, uint64_t t_ns, uint64_t end_ns)
{
	const struct node *nodes = track->thread->nodes;
	uint32_t count = 0, kept;

	for (; node && (track->depths[node] > track->depth || track->open[track->depths[node]].node != node);
	     node = nodes[node].parent)
		track->above[count++] = node;
	kept = track->depths[node];
	if (count > 0 && kept < track->depth) {
		uint32_t next = track->above[count - 1];

		if (nodes[next].symbol == nodes[track->open[kept + 1].node].symbol) { /* it has come to another line */
			track->open[++kept].node = next;
			count--;
		}
	}
	close_spans(c, track, kept, end_ns);
	while (count > 0)
		track->open[++track->depth] =
			(struct span){.start = to_eighths(c, t_ns), .node = track->above[--count]};
}

static void write_name(struct chrome *c, const struct track *track, const char *what)
{
	make_head(c, track, 'M');
	begin_event(c);
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
		if (pair_set_add(&c->tids, (uint32_t)pid, (uint32_t)tid) == INTERN_FAILED)
			writer_fail(c->to, -ENOMEM);
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

	if (err)
		writer_fail(c->to, err);
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
		make_head(c, &track, 'X');
		buf_puts(&c->head, ",\"ts\":");
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
	                   .tails = calloc(profile->symbol_count + (size_t)1, sizeof(*c.tails))};

	if (!c.tails)
		return writer_fail(to, -ENOMEM);
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
		free(c.tails[i].text);
	free(c.tails);
	pair_set_release(&c.tids);
	buf_release(&c.text);
	buf_release(&c.head);
	return to->err;
}
