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

bool perfscript_head(struct span line, struct perfscript_head *ret_head)
{
	struct perfscript_head head = {.period = 1};
	struct span rest = line, word, event;
	bool has_ids = false;

	for (;;) {
		word = span_word(&rest);
		if (word.bytes == 0)
			return false;
		if (word.at > line.at && take_ids(word, &head)) {
			has_ids = true;
			head.comm = (struct span){.at = line.at, .bytes = (size_t)(word.at - line.at)};
			continue;
		}
		head.has_time = has_ids && take_time(word, &head.time_ns);
		if (head.has_time || (has_ids && word.bytes > 1 && word.at[word.bytes - 1] == ':'))
			break;
	}
	if (head.has_time) { /* the period, if it is there, and the event */
		struct span number;

		word = span_word(&rest);
		number = word;
		if (take_digits(&number, UINT64_MAX / 2, &head.period) && number.bytes == 0)
			word = span_word(&rest);
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
