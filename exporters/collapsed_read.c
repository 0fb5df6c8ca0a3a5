/* SPDX-License-Identifier: Apache-2.0 */
/* Reads collapsed (folded) stacks of any origin: a line is frames from the root on, joined by ';', a blank and a number. See folded.h for
 * the kinds of lines.
 *
 * A line that begins like the one before it is read from where the two part: sorted lines of deep stacks cost what is new in them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "exporters/folded.h"
#include "exporters/foreign.h"
#include "exporters/formats.h"

enum {
	LINE_BYTES_MAX = 16 << 20, /* a stack of REC_DEPTH_MAX frames takes about one */
	PROCESSES_MAX = 16384,     /* they are looked up one by one */
};

/* More samples, or nanoseconds, than any profile has; sums stay below 2^64. */
#define NUMBER_MAX (UINT64_C(1) << 62)
/* Of one line: it may be microseconds. */
#define COUNT_MAX (NUMBER_MAX / 1000 - 1)

/* An element of the last line: where it ends (behind its ';') and the node that it leads to. */
struct place {
	size_t end;
	uint32_t node;
};

struct collapsed_reader {
	struct builder *to;
	struct buf line, last;   /* stacks, each element with its ';' */
	struct buf places;       /* struct place, of the last line; the first is its thread */
	enum folded_style style; /* of the last line */
	uint32_t thread;         /* of the last line */
	const char *metric;      /* what Austin's numbers are: "wall", "cpu", "memory"; static */
	uint32_t metric_value;   /* their place in the profile; BUILDER_NONE: no such line yet */
	bool has_value;          /* our own head says what the numbers are: they are at VALUE_WALL */
	uint64_t sum;            /* of all numbers so far */
	uint64_t line_number, first_bad, good, bad, cut, deep, rounded;
	uint64_t two_counts; /* of the good lines, those that may have two */
	uint64_t given_back; /* bytes, of memory */
};

static bool is_special(struct span name)
{
	return name.bytes > 2 && ((name.at[0] == '<' && name.at[name.bytes - 1] == '>') ||
	                          (name.bytes == 7 && memcmp(name.at, "(other)", 7) == 0));
}

static uint32_t frame_child(struct collapsed_reader *r, uint32_t parent, struct span text)
{
	struct folded_frame frame;
	uint32_t symbol;

	folded_frame(text, r->style, &frame);
	symbol = builder_symbol(r->to, frame.name.at, frame.name.bytes, frame.file.bytes ? frame.file.at : "",
	                        frame.file.bytes, 0,
	                        frame.file.bytes == 0 && is_special(frame.name) ? FRAME_SPECIAL : FRAME_PYTHON, 0);
	return builder_child(r->to, r->thread, parent, symbol, frame.line);
}

/* --- lines --- */

/* A name of a line as a text, at most REC_TEXT_MAX bytes; NULL: none. */
static char *name_text(struct span name, char *room)
{
	size_t bytes = name.bytes < REC_TEXT_MAX ? name.bytes : REC_TEXT_MAX;

	if (!name.at || name.bytes == 0)
		return NULL;
	for (size_t i = 0; i < bytes; i++)
		room[i] = name.at[i] ? name.at[i] : ' ';
	room[bytes] = '\0';
	return room;
}

/* False: there are too many processes. */
static bool find_thread(struct collapsed_reader *r, const struct folded_who *who)
{
	char process_name[REC_TEXT_MAX + 1], thread_name[REC_TEXT_MAX + 1];
	struct process process = {.pid = (int32_t)who->pid, .name = name_text(who->process, process_name)};
	struct thread_tree like = {.interpreter = (int64_t)who->interpreter,
	                           .tid = who->tid,
	                           .name = name_text(who->thread, thread_name),
	                           /* One that nothing is said of: the writer leaves it out, too. */
	                           .is_main = !who->has_thread || (who->pid && who->tid == who->pid)};

	if (builder_profile(r->to)->process_count >= PROCESSES_MAX)
		return false;
	like.process = builder_process(r->to, &process);
	r->thread = builder_thread(r->to, &like);
	return true;
}

static const struct place *places_of(const struct collapsed_reader *r)
{
	return (const struct place *)(const void *)r->places.data;
}

/* Forgets the places behind the first `bytes`, which this line shares with the last. How many are left. */
static size_t keep_places(struct collapsed_reader *r, size_t shared)
{
	size_t low = 0, high = r->places.bytes / sizeof(struct place);

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (places_of(r)[middle].end <= shared)
			low = middle + 1;
		else
			high = middle;
	}
	r->places.bytes = low * sizeof(struct place);
	return low;
}

static size_t shared_bytes(const struct buf *a, const struct buf *b)
{
	size_t most = a->bytes < b->bytes ? a->bytes : b->bytes, at = 0;

	while (at + 64 <= most && memcmp(a->data + at, b->data + at, 64) == 0)
		at += 64;
	while (at < most && a->data[at] == b->data[at])
		at++;
	return at;
}

static void add_place(struct collapsed_reader *r, size_t end, uint32_t node)
{
	buf_add(&r->places, &(struct place){.end = end, .node = node}, sizeof(struct place));
}

/* Walks to the node of the stack in r->line. False: it is no stack that we take. */
static bool find_node(struct collapsed_reader *r, uint32_t *ret_node)
{
	struct span stack = {.at = r->line.data, .bytes = r->line.bytes};
	size_t depth = keep_places(r, shared_bytes(&r->line, &r->last)), at;
	uint32_t node = 0;

	if (depth == 0) {
		struct folded_who who;

		at = folded_who(stack, &who, &r->style);
		if (!find_thread(r, &who))
			return false;
		add_place(r, at, 0);
		depth = 1;
	} else {
		at = places_of(r)[depth - 1].end;
		node = places_of(r)[depth - 1].node;
	}
	while (at < stack.bytes && depth <= REC_DEPTH_MAX) {
		struct span frame = folded_element(stack, at);

		at += frame.bytes + 1;
		if (frame.bytes == 0)
			continue;
		node = frame_child(r, node, frame);
		add_place(r, at, node);
		depth++;
	}
	r->deep += at < stack.bytes;
	*ret_node = node;
	return true;
}

/* Austin's numbers are of its mode; each of its lines is a sample. */
static void austin_values(struct collapsed_reader *r, uint64_t metric, bool idle, uint64_t *values)
{
	bool is_time = strcmp(r->metric, "memory") != 0;

	builder_profile(r->to)->uncounted = true;
	if (r->metric_value == BUILDER_NONE)
		r->metric_value = builder_value(r->to, r->metric, is_time ? "nanoseconds" : "bytes", VALUE_WALL);
	values[VALUE_SAMPLES] = 1;
	if (r->metric_value < VALUE_COUNT)
		values[r->metric_value] += is_time ? metric * 1000 : metric;
	if (idle && builder_value(r->to, "idle", "nanoseconds", VALUE_IDLE) == VALUE_IDLE)
		values[VALUE_IDLE] += metric * 1000;
}

/* Adds the stack whose text, with a ';' behind it, is in r->line. */
static bool add_stack(struct collapsed_reader *r, struct span number)
{
	uint64_t values[VALUE_COUNT] = {0};
	struct folded_count count;
	uint32_t node;

	if (!folded_count(number, COUNT_MAX, &count) || count.count * 1000 > NUMBER_MAX - r->sum ||
	    !find_node(r, &node) || (count.negative && r->style != FOLDED_AUSTIN))
		return false;
	r->sum += count.count * 1000;
	r->rounded += count.rounded;
	if (count.negative) {
		r->given_back += count.count;
		count.count = 0;
	}
	if (r->style == FOLDED_AUSTIN)
		austin_values(r, count.count, count.idle, values);
	else if (r->has_value)
		values[VALUE_WALL] = count.count;
	else
		values[VALUE_SAMPLES] = count.count;
	builder_add(r->to, r->thread, node, values);
	return true;
}

/* "NAME, in UNIT", of our own head: each line counts as one sample, and weighs its number. */
static void read_value(struct collapsed_reader *r, struct span text)
{
	const char *in = memmem(text.at, text.bytes, ", in ", 5);
	char name[72], unit[72];

	if (!in || r->good || r->has_value)
		return;
	snprintf(name, sizeof(name), "%.*s", (int)(in - text.at < 64 ? in - text.at : 64), text.at);
	text = span_behind(text, (size_t)(in + 5 - text.at));
	snprintf(unit, sizeof(unit), "%.*s", (int)(text.bytes < 64 ? text.bytes : 64), text.at);
	r->has_value = builder_value(r->to, name, unit, VALUE_WALL) == VALUE_WALL;
	builder_profile(r->to)->uncounted |= r->has_value;
}

/* "# key: value", of Austin's head and end, and of ours. */
static void read_metadata(struct collapsed_reader *r, struct span line)
{
	static const struct {
		const char *key, *metric, *mode;
	} modes[] = {{"mode: wall", "wall", "wall"},
	             {"mode: cpu", "cpu", "cpu"},
	             {"mode: memory", "memory", "wall"},
	             {"mode: full", "wall", "wall"}};
	static const struct {
		const char *begins, *key, *label;
	} counts[] = {{"saturation: ", "austin_late", "samples later than the interval"},
	              {"errors: ", "austin_errors", "samples lost to errors"}};
	struct span text = line.bytes > 2 ? span_behind(line, 2) : (struct span){.at = line.at};
	uint64_t number;

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (span_begins(text, modes[i].key) && r->metric_value == BUILDER_NONE) {
			r->metric = modes[i].metric;
			builder_profile(r->to)->mode = modes[i].mode;
		}
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct span part;

		if (!span_begins(text, counts[i].begins))
			continue;
		part = span_behind(text, strlen(counts[i].begins));
		for (part.bytes = 0; part.at + part.bytes < line.at + line.bytes && is_digit(part.at[part.bytes]);)
			part.bytes++;
		if (folded_number(part, NUMBER_MAX, &number))
			builder_note(r->to, counts[i].key, counts[i].label, (double)number, number > 0);
	}
	if (span_begins(text, "value: "))
		read_value(r, span_behind(text, 7));
	if (span_begins(text, "interval: ") && folded_number(span_behind(text, 10), NUMBER_MAX / 1000, &number))
		builder_profile(r->to)->interval_ns = number * 1000;
}

static void read_line(struct collapsed_reader *r, bool cut)
{
	struct span line = {.at = r->line.data, .bytes = r->line.bytes}, stack, number;
	struct buf last = r->last;

	if (!cut && (line.bytes == 0 || span_begins(line, "#"))) {
		if (span_begins(line, "# "))
			read_metadata(r, line);
		return;
	}
	r->cut += cut;
	if (!cut && folded_split(line, &stack, &number)) {
		bool two_counts = folded_has_two_counts(stack);

		r->line.data[stack.bytes] = ';';
		r->line.bytes = stack.bytes + 1;
		if (add_stack(r, number)) {
			r->good++;
			r->two_counts += two_counts;
			r->last = r->line;
			r->line = last;
			return;
		}
		r->last.bytes = r->places.bytes = 0;
	}
	r->bad += !cut;
	if (r->first_bad == 0)
		r->first_bad = r->line_number;
}

static void add_notes(const struct collapsed_reader *r)
{
	if (r->bad)
		builder_note(r->to, "bad_lines", "lines that are no stacks", (double)r->bad, true);
	if (r->cut)
		builder_note(r->to, "long_lines", "lines left out, longer than 16 MiB", (double)r->cut, true);
	if (r->deep)
		builder_note(r->to, "deep_stacks", "lines whose stack was cut at 16,384 frames", (double)r->deep, true);
	if (r->given_back)
		builder_note(r->to, "given_back_bytes", "bytes of memory given back, left out", (double)r->given_back,
		             true);
	if (r->rounded)
		builder_note(r->to, "rounded_counts", "counts with a fraction, rounded", (double)r->rounded, false);
}

int collapsed_read(struct input *from, struct builder *to, struct fault *fault)
{
	struct collapsed_reader r = {.to = to, .metric = "wall", .metric_value = BUILDER_NONE};
	bool cut;
	int err;

	builder_profile(to)->imported = true;
	while (!builder_error(to) && !r.places.err && input_line(from, &r.line, LINE_BYTES_MAX, &cut)) {
		r.line_number++;
		read_line(&r, cut);
	}
	add_notes(&r);
	err = from->err ? from->err : r.places.err ? r.places.err : builder_error(to);
	buf_release(&r.line);
	buf_release(&r.last);
	buf_release(&r.places);
	if (err)
		return input_fault(err, fault);
	if (r.good == 0)
		return fault_set(fault, -EPROTO, "a line is frames joined by ';', a blank and a count",
		                 "it has no line that is a stack; line %" PRIu64 " is the first that is not",
		                 r.first_bad);
	if (r.two_counts == r.good)
		return fault_set(fault, -EPROTO, "sampled diff BEFORE AFTER compares two files",
		                 "each of its lines has two counts, as difffolded.pl writes them: it is a difference, "
		                 "no profile");
	return 0;
}

/* Any text could be it: it is in no format that has a mark of its own, and most of the first lines are stacks; where none has more than one frame,
 * all are. Where the first line is longer than what is seen of it, it must look like frames. */
bool collapsed_detect(const unsigned char *head, size_t bytes)
{
	struct span rest = {.at = (const char *)head, .bytes = bytes}, stack, number;
	size_t good = 0, joined = 0, bad = 0;

	if (foreign_by_content(head, bytes))
		return false;
	while (rest.bytes > 0) {
		const char *newline = memchr(rest.at, '\n', rest.bytes);
		struct span line = {.at = rest.at, .bytes = newline ? (size_t)(newline - rest.at) : rest.bytes};
		struct folded_count count;
		bool is_joined;

		rest = span_behind(rest, newline ? line.bytes + 1 : line.bytes);
		if (line.bytes == 0 || span_begins(line, "#"))
			continue;
		if (folded_split(line, &stack, &number) && folded_count(number, COUNT_MAX, &count) &&
		    folded_is_stack(stack, &is_joined)) {
			good++;
			joined += is_joined;
		} else if (newline || bytes < FORMAT_HEAD_BYTES) {
			bad++;
		} else if (good + bad == 0 && memchr(line.at, ';', line.bytes) && line.at[0] != '{' &&
		           line.at[0] != '[' && line.at[0] != '<' && !memchr(line.at, '\0', line.bytes)) {
			good++;
		}
	}
	return good > bad && (joined > 0 || bad == 0);
}
