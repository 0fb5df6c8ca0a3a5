/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/folded.h"

#include <string.h>

/* --- numbers --- */

bool folded_number(struct span text, uint64_t max, uint64_t *ret_number)
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
		return folded_number(text, UINT64_MAX, ret_tid);
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

bool folded_count(struct span text, uint64_t max, struct folded_count *ret_count)
{
	const char *comma = memchr(text.at, ',', text.bytes), *dot = memchr(text.at, '.', text.bytes);
	struct folded_count count = {.negative = span_begins(text, "-")};
	struct span whole;

	text = span_behind(text, count.negative);
	whole = text;
	if (comma) {
		size_t bytes = (size_t)(comma - text.at);

		count.idle = span_begins(span_behind(text, bytes), ",1,");
		if (!count.idle && !span_begins(span_behind(text, bytes), ",0,"))
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
	if (!folded_number(whole, max, &count.count))
		return false;
	if (dot && !comma && count.count < max && whole.bytes + 1 < text.bytes) {
		count.rounded = true;
		count.count += dot[1] >= '5';
	}
	*ret_count = count;
	return true;
}

bool folded_split(struct span line, struct span *ret_stack, struct span *ret_number)
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
	*ret_number = span_behind(line, at);
	return true;
}

/* The last element, which has no ';' behind it. */
static struct span last_element(struct span stack)
{
	const char *semicolon = memrchr(stack.at, ';', stack.bytes);

	return semicolon ? span_behind(stack, (size_t)(semicolon + 1 - stack.at)) : stack;
}

bool folded_has_two_counts(struct span stack)
{
	struct span last = last_element(stack), inner, number;
	struct folded_count count;

	return !span_begins(last, "thread ") && !span_begins(last, "process ") && !span_begins(last, "interpreter ") &&
	       folded_split(stack, &inner, &number) && folded_count(number, UINT64_MAX / 1000, &count);
}

bool folded_is_stack(struct span stack, bool *ret_joined)
{
	const char *semicolon = memchr(stack.at, ';', stack.bytes);
	struct span rest = stack, word = span_word(&rest);
	bool is_number = true;

	*ret_joined = semicolon && semicolon > stack.at;
	for (size_t i = 0; i < stack.bytes; i++)
		is_number &= is_digit(stack.at[i]) || strchr("+-*.,:; \t", stack.at[i]);
	return !is_number && (*ret_joined || (word.bytes > 0 && word.at[word.bytes - 1] != ':'));
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

/* process 12 "python3 x.py", and py-spy's process 12:"python3 x.py" */
static bool take_process(struct span text, struct folded_who *who)
{
	struct span number = span_behind(text, 8), name = {0};
	size_t bytes = 0;

	while (bytes < number.bytes && is_digit(number.at[bytes]))
		bytes++;
	if (bytes < number.bytes) {
		name = span_behind(number, bytes + 1);
		if ((number.at[bytes] != ' ' && number.at[bytes] != ':') || !unquote(&name))
			return false;
	}
	number.bytes = bytes;
	if (!folded_number(number, INT32_MAX, &who->pid))
		return false;
	who->process = name;
	return true;
}

/* thread 12 "Worker", thread ?, and py-spy's thread (12): Worker, thread (0x7F00) */
static bool take_thread(struct span text, struct folded_who *who)
{
	struct span number = span_behind(text, 7), name = {0};
	bool in_brackets = span_begins(number, "(");
	const char *end;

	if (in_brackets)
		number = span_behind(number, 1);
	end = memchr(number.at, in_brackets ? ')' : ' ', number.bytes);
	if (in_brackets && !end)
		return false;
	if (end) {
		size_t bytes = (size_t)(end - number.at);

		name = span_behind(number, bytes + 1);
		if (in_brackets && name.bytes > 0 && !span_begins(name, ": "))
			return false;
		if (in_brackets)
			name = name.bytes > 0 ? span_behind(name, 2) : (struct span){0};
		else if (!unquote(&name))
			return false;
		number.bytes = bytes;
	}
	if (span_begins(number, "?") && number.bytes == 1)
		who->tid = 0;
	else if (!(in_brackets ? take_tid(number, &who->tid) : folded_number(number, UINT64_MAX, &who->tid)))
		return false;
	who->thread = name;
	return true;
}

/* What stackcollapse-perf.pl writes with --pid and --tid: python3-12, python3-12/14, python3-?/14 */
static bool take_comm(struct span text, struct folded_who *who)
{
	const char *slash = memrchr(text.at, '/', text.bytes), *dash = slash ? slash : text.at + text.bytes;
	struct span pid, tid;

	while (dash > text.at && dash[-1] != '-')
		dash--;
	if (!slash || dash < text.at + 2)
		return false;
	pid = (struct span){.at = dash, .bytes = (size_t)(slash - dash)};
	tid = span_behind(text, (size_t)(slash + 1 - text.at));
	if (!folded_number(tid, UINT64_MAX, &who->tid))
		return false;
	if (!(pid.bytes == 1 && pid.at[0] == '?') && !folded_number(pid, INT32_MAX, &who->pid))
		return false;
	who->process = who->thread = (struct span){.at = text.at, .bytes = (size_t)(dash - 1 - text.at)};
	return true;
}

/* T12, T0x7f00, T0:12 */
static bool take_austin_thread(struct span text, struct folded_who *who)
{
	const char *colon = memchr(text.at, ':', text.bytes);
	struct span tid = span_behind(text, 1);

	if (colon) {
		struct span number = {.at = tid.at, .bytes = (size_t)(colon - tid.at)};

		if (!folded_number(number, INT64_MAX, &who->interpreter))
			return false;
		tid = span_behind(text, (size_t)(colon + 1 - text.at));
	}
	return take_tid(tid, &who->tid);
}

struct span folded_element(struct span stack, size_t at)
{
	const char *end = memchr(stack.at + at, ';', stack.bytes - at); /* there always is one */

	return (struct span){.at = stack.at + at, .bytes = (size_t)(end - stack.at) - at};
}

size_t folded_who(struct span stack, struct folded_who *ret_who, enum folded_style *ret_style)
{
	struct span first = folded_element(stack, 0), next;
	size_t at = 0;

	*ret_who = (struct folded_who){0};
	*ret_style = FOLDED_PLAIN;
	if (span_begins(first, "tid:") && folded_number(span_behind(first, 4), UINT64_MAX, &ret_who->tid)) {
		*ret_style = FOLDED_TACHYON;
		ret_who->has_thread = true;
		return first.bytes + 1;
	}
	if (span_begins(first, "P") && folded_number(span_behind(first, 1), INT32_MAX, &ret_who->pid) &&
	    stack.bytes > first.bytes + 1) {
		next = folded_element(stack, first.bytes + 1);
		if (span_begins(next, "T") && take_austin_thread(next, ret_who)) {
			*ret_style = FOLDED_AUSTIN;
			ret_who->has_thread = true;
			return first.bytes + next.bytes + 2;
		}
		ret_who->pid = 0;
	}
	next = first;
	if (span_begins(next, "process ") && take_process(next, ret_who))
		at += next.bytes + 1;
	if (at < stack.bytes) {
		next = folded_element(stack, at);
		if (span_begins(next, "interpreter ") &&
		    folded_number(span_behind(next, 12), INT64_MAX, &ret_who->interpreter))
			at += next.bytes + 1;
	}
	if (at < stack.bytes) {
		next = folded_element(stack, at);
		ret_who->has_thread = (span_begins(next, "thread ") && take_thread(next, ret_who)) ||
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
	file = span_behind(text, (size_t)(open + 2 - text.at));
	file.bytes--;
	colon = memrchr(file.at, ':', file.bytes);
	if (colon && colon > file.at &&
	    folded_number(span_behind(file, (size_t)(colon + 1 - file.at)), UINT32_MAX, ret_line))
		file.bytes = (size_t)(colon - file.at);
	else if (file.bytes < 4 || memcmp(file.at + file.bytes - 3, ".py", 3) != 0)
		return;
	*ret_file = file;
	ret_name->bytes = (size_t)(open - text.at);
}

/* FILE:FUNCTION:LINE. Tachyon's files are without folders, so the first colon is theirs; Austin's may be C:\x.py. */
static void split_colons(struct span text, enum folded_style style, struct span *ret_name, struct span *ret_file,
                         uint64_t *ret_line)
{
	const char *last = memrchr(text.at, ':', text.bytes), *first;
	size_t bytes;

	*ret_name = text;
	if (!last || !folded_number(span_behind(text, (size_t)(last + 1 - text.at)), UINT32_MAX, ret_line))
		return;
	bytes = (size_t)(last - text.at);
	first = style == FOLDED_TACHYON ? memchr(text.at, ':', bytes) : memrchr(text.at, ':', bytes);
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

void folded_frame(struct span text, enum folded_style style, struct folded_frame *ret_frame)
{
	struct span name, file = {0};
	uint64_t line = 0;

	if (style == FOLDED_PLAIN)
		split_folded(text, &name, &file, &line);
	else
		split_colons(text, style, &name, &file, &line);
	ret_frame->name = name;
	ret_frame->file = file;
	ret_frame->line = (uint32_t)line;
	if (style == FOLDED_AUSTIN && name.bytes > 2 && name.bytes < sizeof(ret_frame->special) && name.at[0] == ':' &&
	    name.at[name.bytes - 1] == ':') { /* :GC:, :INVALID: */
		memcpy(ret_frame->special, name.at, name.bytes);
		ret_frame->special[0] = '<';
		ret_frame->special[name.bytes - 1] = '>';
		ret_frame->name.at = ret_frame->special;
	}
}
