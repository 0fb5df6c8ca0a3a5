/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/perfscript_head.h"

#include "base/clock.h"

static bool take_digits(struct span *text, uint64_t max, uint64_t *ret_number)
{
	uint64_t number = 0;
	size_t i = 0;

	for (; i < text->bytes && is_digit(text->at[i]); i++) {
		if (number > (max - (uint64_t)(text->at[i] - '0')) / 10)
			return false;
		number = number * 10 + (uint64_t)(text->at[i] - '0');
	}
	if (i == 0)
		return false;
	*text = (struct span){.at = text->at + i, .bytes = text->bytes - i};
	*ret_number = number;
	return true;
}

static bool take_char(struct span *text, char c)
{
	if (text->bytes == 0 || text->at[0] != c)
		return false;
	text->at++;
	text->bytes--;
	return true;
}

/* 14, 12/14, -1 */
static bool take_ids(struct span word, struct perfscript_head *head)
{
	uint64_t first, second = 0;
	bool both;

	take_char(&word, '-');
	if (!take_digits(&word, INT32_MAX, &first))
		return false;
	both = take_char(&word, '/');
	if (both)
		take_char(&word, '-');
	if ((both && !take_digits(&word, INT32_MAX, &second)) || word.bytes > 0)
		return false;
	head->pid = both ? first : 0;
	head->tid = both ? second : first;
	return true;
}

/* 27078.806564: */
static bool take_time(struct span word, uint64_t *ret_ns)
{
	uint64_t seconds, part, unit = NS_PER_S, ns = 0;

	if (!take_digits(&word, UINT32_MAX, &seconds) || !take_char(&word, '.') || word.bytes == 0)
		return false;
	while (word.bytes > 1 && is_digit(word.at[0])) {
		part = (uint64_t)(word.at[0] - '0');
		unit /= 10;
		ns += part * unit;
		take_char(&word, word.at[0]);
	}
	if (unit == NS_PER_S || word.bytes != 1 || word.at[0] != ':')
		return false;
	*ret_ns = seconds * NS_PER_S + ns;
	return true;
}

/* Of a line without a time: whether the number that `later` took for its tid is the period, and what stands before says who it was. */
static bool is_period(const struct perfscript_head *before, const struct perfscript_head *later)
{
	struct span rest = before->comm;

	if (before->comm.bytes == 0 || later->pid)
		return false;
	span_word(&rest);
	return before->pid || span_trim(rest).bytes == 0;
}

bool perfscript_is_frame(struct span line, struct span *ret_rest)
{
	struct span rest = line, address = span_word(&rest);

	for (size_t i = 0; i < address.bytes; i++)
		if (!is_digit(address.at[i]) && !(address.at[i] >= 'a' && address.at[i] <= 'f'))
			return false;
	*ret_rest = span_trim(rest);
	return address.bytes > 0 && ret_rest->bytes > 0;
}

bool perfscript_head(struct span line, struct perfscript_head *ret_head)
{
	struct perfscript_head head = {.period = 1}, before = head;
	struct span rest = line, word, event, number = {0};
	bool has_ids = false;

	for (;;) {
		struct perfscript_head taken = head;

		word = span_word(&rest);
		if (word.bytes == 0)
			return false;
		if (word.at > line.at && take_ids(word, &taken)) {
			before = head;
			head = taken;
			has_ids = true;
			head.comm = (struct span){.at = line.at, .bytes = (size_t)(word.at - line.at)};
			number = word;
			continue;
		}
		head.has_time = has_ids && take_time(word, &head.time_ns);
		if (head.has_time || (has_ids && word.bytes > 1 && word.at[word.bytes - 1] == ':'))
			break;
		if (word.at[0] != '[') /* the processor may stand between */
			number.bytes = 0;
	}
	if (head.has_time) { /* the period, if it is there, and the event */
		word = span_word(&rest);
		number = word;
		head.has_period = take_digits(&number, UINT64_MAX / 2, &head.period) && number.bytes == 0;
		if (head.has_period)
			word = span_word(&rest);
	} else if (number.bytes > 0 && is_period(&before, &head)) {
		head = before;
		head.has_period = take_digits(&number, UINT64_MAX / 2, &head.period);
	}
	event = word;
	if (event.bytes < 2 || event.at[event.bytes - 1] != ':')
		return false;
	event.bytes--;
	head.comm = span_trim(head.comm);
	head.event = event;
	head.rest = rest;
	*ret_head = head;
	return head.comm.bytes > 0;
}
