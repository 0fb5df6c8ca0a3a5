/* SPDX-License-Identifier: Apache-2.0 */
/* Reads collapsed (folded) stacks of any origin: a line is frames from the root on, joined by ';', a blank and a number. Told apart line by
 * line, by how a line begins:
 *
 *   process PID "NAME";interpreter N;thread TID "NAME";FUNCTION (FILE:LINE);…   ours; py-spy's writes process PID:"NAME" and thread (TID): NAME
 *   tid:TID;FILE:FUNCTION:LINE;…                                                Tachyon's
 *   P<pid>;T<interpreter>:<tid>;FILE:FUNCTION:LINE;… METRIC                     Austin's, with lines "# key: value" between
 *   COMM-PID/TID;FRAME;…  and  FRAME;FRAME;…                                    stackcollapse-perf.pl's, and everybody's
 *
 * A line that begins like the one before it is read from where the two part: sorted lines of deep stacks cost what is new in them. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "exporters/formats.h"

enum {
	LINE_BYTES_MAX = 16 << 20, /* a stack of REC_DEPTH_MAX frames takes about one */
	PROCESSES_MAX = 16384,     /* they are looked up one by one */
};

/* More samples, or nanoseconds, than any profile has; sums stay below 2^64. */
#define NUMBER_MAX (UINT64_C(1) << 62)

enum line_style { STYLE_FOLDED, STYLE_TACHYON, STYLE_AUSTIN };

/* A piece of a line, not terminated. */
struct span {
	const char *at;
	size_t bytes;
};

/* An element of the last line: where it ends (behind its ';') and the node that it leads to. */
struct place {
	size_t end;
	uint32_t node;
};

struct collapsed_reader {
	struct builder *to;
	struct buf line, last; /* stacks, each element with its ';' */
	struct buf places;     /* struct place, of the last line; the first is its thread */
	enum line_style style; /* of the last line */
	uint32_t thread;       /* of the last line */
	const char *metric;    /* what Austin's numbers are: "wall", "cpu", "memory"; static */
	uint32_t metric_value; /* their place in the profile; BUILDER_NONE: no such line yet */
	uint64_t sum;          /* of all numbers so far */
	uint64_t line_number, first_bad, good, bad, cut, deep, rounded;
};

/* --- numbers --- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* A decimal number that takes the whole text, and reads as we would write it. */
static bool take_number(struct span text, uint64_t max, uint64_t *ret_number)
{
	uint64_t number = 0;

	if (text.bytes == 0 || (text.bytes > 1 && text.at[0] == '0'))
		return false;
	for (size_t i = 0; i < text.bytes; i++) {
		if (!is_digit(text.at[i]) || number > (max - (uint64_t)(text.at[i] - '0')) / 10)
			return false;
		number = number * 10 + (uint64_t)(text.at[i] - '0');
	}
	*ret_number = number;
	return true;
}

/* A thread's number as others write it: also 0x7F12AB. */
static bool take_tid(struct span text, uint64_t *ret_tid)
{
	uint64_t tid = 0;

	if (text.bytes < 3 || text.bytes > 18 || text.at[0] != '0' || (text.at[1] | 32) != 'x')
		return take_number(text, UINT64_MAX, ret_tid);
	for (size_t i = 2; i < text.bytes; i++) {
		char c = text.at[i];
		int digit = is_digit(c) ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;

		if (digit < 0)
			return false;
		tid = tid << 4 | (uint64_t)digit;
	}
	*ret_tid = tid;
	return true;
}

static bool begins(struct span text, const char *with)
{
	size_t bytes = strlen(with);

	return text.bytes >= bytes && memcmp(text.at, with, bytes) == 0;
}

static struct span behind(struct span text, size_t bytes)
{
	return (struct span){.at = text.at + bytes, .bytes = text.bytes - bytes};
}

/* The number at the end of a line: an integer, or one with a fraction, which is rounded (flamegraph.pl takes those); or Austin's
 * time,idle,memory of mode "full". *ret_idle: Austin says that the thread was. */
static bool take_count(struct span text, uint64_t *ret_count, bool *ret_rounded, bool *ret_idle)
{
	const char *comma = memchr(text.at, ',', text.bytes), *dot = memchr(text.at, '.', text.bytes);
	struct span whole = text;

	*ret_rounded = *ret_idle = false;
	if (comma) {
		size_t bytes = (size_t)(comma - text.at);

		*ret_idle = begins(behind(text, bytes), ",1,");
		if (!*ret_idle && !begins(behind(text, bytes), ",0,"))
			return false;
		for (size_t i = bytes + 3; i < text.bytes; i++)
			if (!is_digit(text.at[i]) && !(text.at[i] == '-' && i == bytes + 3))
				return false;
		whole.bytes = bytes;
	} else if (dot) {
		whole.bytes = (size_t)(dot - text.at);
		for (size_t i = whole.bytes + 1; i < text.bytes; i++)
			if (!is_digit(text.at[i]))
				return false;
	}
	if (!take_number(whole, NUMBER_MAX / 1000 - 1, ret_count))
		return false;
	if (dot && !comma && whole.bytes + 1 < text.bytes) {
		*ret_rounded = true;
		*ret_count += dot[1] >= '5';
	}
	return true;
}

/* Cuts a line into stack and number. False: it is no stack. */
static bool split_line(struct span line, struct span *ret_stack, struct span *ret_number)
{
	size_t at = line.bytes;

	while (at > 0 && (line.at[at - 1] == ' ' || line.at[at - 1] == '\t' || line.at[at - 1] == '\r'))
		at--;
	line.bytes = at;
	while (at > 0 && line.at[at - 1] != ' ' && line.at[at - 1] != '\t')
		at--;
	if (at < 2 || at == line.bytes)
		return false;
	*ret_stack = (struct span){.at = line.at, .bytes = at - 1};
	*ret_number = behind(line, at);
	return true;
}

/* --- who: the elements above the frames --- */

/* The text without the quotes around it; false: there are none. */
static bool unquote(struct span *text)
{
	if (text->bytes < 2 || text->at[0] != '"' || text->at[text->bytes - 1] != '"')
		return false;
	*text = (struct span){.at = text->at + 1, .bytes = text->bytes - 2};
	return true;
}

struct who {
	uint64_t pid, tid;
	uint64_t interpreter;
	struct span process, thread; /* names; at NULL: none */
	bool has_thread;             /* the line says of which thread it is */
};

/* process 12 "python3 x.py", and py-spy's process 12:"python3 x.py" */
static bool take_process(struct span text, struct who *who)
{
	struct span number = behind(text, 8), name = {0};
	size_t bytes = 0;

	while (bytes < number.bytes && is_digit(number.at[bytes]))
		bytes++;
	if (bytes < number.bytes) {
		name = behind(number, bytes + 1);
		if ((number.at[bytes] != ' ' && number.at[bytes] != ':') || !unquote(&name))
			return false;
	}
	number.bytes = bytes;
	if (!take_number(number, INT32_MAX, &who->pid))
		return false;
	who->process = name;
	return true;
}

/* thread 12 "Worker", thread ?, and py-spy's thread (12): Worker, thread (0x7F00) */
static bool take_thread(struct span text, struct who *who)
{
	struct span number = behind(text, 7), name = {0};
	bool in_brackets = begins(number, "(");
	const char *end;

	if (in_brackets)
		number = behind(number, 1);
	end = memchr(number.at, in_brackets ? ')' : ' ', number.bytes);
	if (in_brackets && !end)
		return false;
	if (end) {
		size_t bytes = (size_t)(end - number.at);

		name = behind(number, bytes + 1);
		if (in_brackets && name.bytes > 0 && !begins(name, ": "))
			return false;
		if (in_brackets)
			name = name.bytes > 0 ? behind(name, 2) : (struct span){0};
		else if (!unquote(&name))
			return false;
		number.bytes = bytes;
	}
	if (begins(number, "?") && number.bytes == 1)
		who->tid = 0;
	else if (!(in_brackets ? take_tid(number, &who->tid) : take_number(number, UINT64_MAX, &who->tid)))
		return false;
	who->thread = name;
	return true;
}

/* What stackcollapse-perf.pl writes with --pid and --tid: python3-12, python3-12/14, python3-?/14 */
static bool take_comm(struct span text, struct who *who)
{
	const char *slash = memrchr(text.at, '/', text.bytes), *dash = slash ? slash : text.at + text.bytes;
	struct span pid, tid;

	while (dash > text.at && dash[-1] != '-')
		dash--;
	if (!slash || dash < text.at + 2)
		return false;
	pid = (struct span){.at = dash, .bytes = (size_t)(slash - dash)};
	tid = behind(text, (size_t)(slash + 1 - text.at));
	if (!take_number(tid, UINT64_MAX, &who->tid))
		return false;
	if (!(pid.bytes == 1 && pid.at[0] == '?') && !take_number(pid, INT32_MAX, &who->pid))
		return false;
	who->process = who->thread = (struct span){.at = text.at, .bytes = (size_t)(dash - 1 - text.at)};
	return true;
}

/* T12, T0x7f00, T0:12 */
static bool take_austin_thread(struct span text, struct who *who)
{
	const char *colon = memchr(text.at, ':', text.bytes);
	struct span tid = behind(text, 1);

	if (colon) {
		struct span number = {.at = tid.at, .bytes = (size_t)(colon - tid.at)};

		if (!take_number(number, INT64_MAX, &who->interpreter))
			return false;
		tid = behind(text, (size_t)(colon + 1 - text.at));
	}
	return take_tid(tid, &who->tid);
}

static struct span element_at(struct span stack, size_t at)
{
	const char *end = memchr(stack.at + at, ';', stack.bytes - at); /* there always is one */

	return (struct span){.at = stack.at + at, .bytes = (size_t)(end - stack.at) - at};
}

/* Reads the elements that are no frames. Returns where the frames begin. */
static size_t take_who(struct span stack, struct who *ret_who, enum line_style *ret_style)
{
	struct span first = element_at(stack, 0), next;
	size_t at = 0;

	*ret_who = (struct who){0};
	*ret_style = STYLE_FOLDED;
	if (begins(first, "tid:") && take_number(behind(first, 4), UINT64_MAX, &ret_who->tid)) {
		*ret_style = STYLE_TACHYON;
		ret_who->has_thread = true;
		return first.bytes + 1;
	}
	if (begins(first, "P") && take_number(behind(first, 1), INT32_MAX, &ret_who->pid) &&
	    stack.bytes > first.bytes + 1) {
		next = element_at(stack, first.bytes + 1);
		if (begins(next, "T") && take_austin_thread(next, ret_who)) {
			*ret_style = STYLE_AUSTIN;
			ret_who->has_thread = true;
			return first.bytes + next.bytes + 2;
		}
		ret_who->pid = 0;
	}
	next = first;
	if (begins(next, "process ") && take_process(next, ret_who))
		at += next.bytes + 1;
	if (at < stack.bytes) {
		next = element_at(stack, at);
		if (begins(next, "interpreter ") && take_number(behind(next, 12), INT64_MAX, &ret_who->interpreter))
			at += next.bytes + 1;
	}
	if (at < stack.bytes) {
		next = element_at(stack, at);
		ret_who->has_thread = (begins(next, "thread ") && take_thread(next, ret_who)) ||
		                      (at == 0 && next.bytes + 1 < stack.bytes && take_comm(next, ret_who));
		if (ret_who->has_thread)
			at += next.bytes + 1;
	}
	return at;
}

/* --- frames --- */

/* FUNCTION (FILE:LINE), or py-spy's FUNCTION (FILE.py). The text that we write of the three is the one that was read. */
static void split_folded(struct span text, struct span *ret_name, struct span *ret_file, uint64_t *ret_line)
{
	const char *open = memmem(text.at, text.bytes, " (", 2), *colon;
	struct span file;

	*ret_name = text;
	if (!open || open == text.at || text.at[text.bytes - 1] != ')')
		return;
	file = behind(text, (size_t)(open + 2 - text.at));
	file.bytes--;
	colon = memrchr(file.at, ':', file.bytes);
	if (colon && colon > file.at && take_number(behind(file, (size_t)(colon + 1 - file.at)), UINT32_MAX, ret_line))
		file.bytes = (size_t)(colon - file.at);
	else if (file.bytes < 4 || memcmp(file.at + file.bytes - 3, ".py", 3) != 0)
		return;
	*ret_file = file;
	ret_name->bytes = (size_t)(open - text.at);
}

/* FILE:FUNCTION:LINE. Tachyon's files are without folders, so the first colon is theirs; Austin's may be C:\x.py. */
static void split_colons(struct span text, enum line_style style, struct span *ret_name, struct span *ret_file,
                         uint64_t *ret_line)
{
	const char *last = memrchr(text.at, ':', text.bytes), *first;
	size_t bytes;

	*ret_name = text;
	if (!last || !take_number(behind(text, (size_t)(last + 1 - text.at)), UINT32_MAX, ret_line))
		return;
	bytes = (size_t)(last - text.at);
	first = style == STYLE_TACHYON ? memchr(text.at, ':', bytes) : memrchr(text.at, ':', bytes);
	if (!first || first + 1 == last) {
		*ret_line = 0;
		return;
	}
	*ret_name = (struct span){.at = first + 1, .bytes = (size_t)(last - first - 1)};
	*ret_file = (struct span){.at = text.at, .bytes = (size_t)(first - text.at)};
	if (ret_file->bytes == 0)
		*ret_file = (struct span){.at = "/", .bytes = 1}; /* a folder's: it has no last part */
	else if (ret_file->bytes == 1 && ret_file->at[0] == '~')
		*ret_file = (struct span){0};
}

static bool is_special(struct span name)
{
	return name.bytes > 2 && ((name.at[0] == '<' && name.at[name.bytes - 1] == '>') ||
	                          (name.bytes == 7 && memcmp(name.at, "(other)", 7) == 0));
}

static uint32_t frame_child(struct collapsed_reader *r, uint32_t parent, struct span text)
{
	struct span name, file = {0};
	char special[32];
	uint64_t line = 0;
	uint32_t symbol;

	if (r->style == STYLE_FOLDED)
		split_folded(text, &name, &file, &line);
	else
		split_colons(text, r->style, &name, &file, &line);
	if (r->style == STYLE_AUSTIN && name.bytes > 2 && name.bytes < sizeof(special) && name.at[0] == ':' &&
	    name.at[name.bytes - 1] == ':') { /* :GC:, :INVALID: */
		memcpy(special, name.at, name.bytes);
		special[0] = '<';
		special[name.bytes - 1] = '>';
		name.at = special;
	}
	symbol = builder_symbol(r->to, name.at, name.bytes, file.at ? file.at : "", file.bytes, 0,
	                        file.bytes == 0 && is_special(name) ? FRAME_SPECIAL : FRAME_PYTHON, 0);
	return builder_child(r->to, r->thread, parent, symbol, (uint32_t)line);
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
static bool find_thread(struct collapsed_reader *r, const struct who *who)
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
		struct who who;

		at = take_who(stack, &who, &r->style);
		if (!find_thread(r, &who))
			return false;
		add_place(r, at, 0);
		depth = 1;
	} else {
		at = places_of(r)[depth - 1].end;
		node = places_of(r)[depth - 1].node;
	}
	while (at < stack.bytes && depth <= REC_DEPTH_MAX) {
		struct span frame = element_at(stack, at);

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
	uint64_t values[VALUE_COUNT] = {0}, count;
	bool rounded, idle;
	uint32_t node;

	if (!take_count(number, &count, &rounded, &idle) || count * 1000 > NUMBER_MAX - r->sum || !find_node(r, &node))
		return false;
	r->sum += count * 1000;
	r->rounded += rounded;
	if (r->style == STYLE_AUSTIN)
		austin_values(r, count, idle, values);
	else
		values[VALUE_SAMPLES] = count;
	builder_add(r->to, r->thread, node, values);
	return true;
}

/* "# key: value", of Austin's head and end. */
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
	struct span text = line.bytes > 2 ? behind(line, 2) : (struct span){.at = line.at};
	uint64_t number;

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (begins(text, modes[i].key) && r->metric_value == BUILDER_NONE) {
			r->metric = modes[i].metric;
			builder_profile(r->to)->mode = modes[i].mode;
		}
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct span part = text;

		if (!begins(text, counts[i].begins))
			continue;
		part = behind(text, strlen(counts[i].begins));
		for (part.bytes = 0; part.at + part.bytes < line.at + line.bytes && is_digit(part.at[part.bytes]);)
			part.bytes++;
		if (take_number(part, NUMBER_MAX, &number))
			builder_note(r->to, counts[i].key, counts[i].label, (double)number, number > 0);
	}
	if (begins(text, "interval: ") && take_number(behind(text, 10), NUMBER_MAX / 1000, &number))
		builder_profile(r->to)->interval_ns = number * 1000;
}

static void read_line(struct collapsed_reader *r, bool cut)
{
	struct span line = {.at = r->line.data, .bytes = r->line.bytes}, stack, number;
	struct buf last = r->last;

	if (!cut && (line.bytes == 0 || begins(line, "#"))) {
		if (begins(line, "# "))
			read_metadata(r, line);
		return;
	}
	r->cut += cut;
	if (!cut && split_line(line, &stack, &number)) {
		r->line.data[stack.bytes] = ';';
		r->line.bytes = stack.bytes + 1;
		if (add_stack(r, number)) {
			r->good++;
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
		return fault_set(fault, err, "", err == -EPROTO ? "its compressed data is damaged" : "%s",
		                 strerror(-err));
	if (r.good == 0)
		return fault_set(fault, -EPROTO, "a line is frames joined by ';', a blank and a count",
		                 "it has no line that is a stack; line %" PRIu64 " is the first that is not",
		                 r.first_bad);
	return 0;
}

/* Any text could be it: most of the first lines must end in a number. Where the first line is longer than what is seen of it, it must look
 * like frames. */
bool collapsed_detect(const unsigned char *head, size_t bytes)
{
	struct span rest = {.at = (const char *)head, .bytes = bytes}, stack, number;
	size_t good = 0, bad = 0;
	uint64_t count;
	bool rounded, idle;

	while (rest.bytes > 0) {
		const char *newline = memchr(rest.at, '\n', rest.bytes);
		struct span line = {.at = rest.at, .bytes = newline ? (size_t)(newline - rest.at) : rest.bytes};

		rest = behind(rest, newline ? line.bytes + 1 : line.bytes);
		if (line.bytes == 0 || begins(line, "#"))
			continue;
		if (split_line(line, &stack, &number) && take_count(number, &count, &rounded, &idle))
			good++;
		else if (newline || bytes < 4096)
			bad++;
		else if (good + bad == 0 && memchr(line.at, ';', line.bytes) && !memchr("{[<", line.at[0], 3) &&
		         !memchr(line.at, '\0', line.bytes))
			good++;
	}
	return good > 0 && good >= bad;
}
