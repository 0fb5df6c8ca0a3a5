/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/callgrind_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"

enum { EVENTS_MAX = 64, NAMES_MAX = 1 << 24 };

/* --- names --- */

void callgrind_names_release(struct callgrind_names *names)
{
	text_set_release(&names->texts);
	pair_set_release(&names->numbers);
	buf_release(&names->numbered);
}

/* "(12) rest": takes the number off. False: there is none. */
static bool take_number(struct span *text, uint32_t *ret_number)
{
	struct span rest = *text;
	uint64_t number = 0;
	size_t digits = 0;

	if (!span_begins(rest, "("))
		return false;
	for (rest = span_behind(rest, 1); rest.bytes > 0 && is_digit(rest.at[0]) && number <= UINT32_MAX; digits++) {
		number = number * 10 + (uint64_t)(rest.at[0] - '0');
		rest = span_behind(rest, 1);
	}
	if (digits == 0 || number > UINT32_MAX || !span_begins(rest, ")"))
		return false;
	*text = span_trim(span_behind(rest, 1));
	*ret_number = (uint32_t)number;
	return true;
}

/* Files, functions and objects are numbered apart. */
static uint32_t kind_of(enum callgrind_key key)
{
	static const uint8_t kinds[CALLGRIND_KEYS] = {
		[CALLGRIND_FL] = 1, [CALLGRIND_FI] = 1,  [CALLGRIND_CFI] = 1, [CALLGRIND_JFI] = 1,
		[CALLGRIND_FN] = 2, [CALLGRIND_CFN] = 2, [CALLGRIND_JFN] = 2,
	};

	return kinds[key];
}

uint32_t callgrind_take_name(struct callgrind_names *names, enum callgrind_key key, struct span text)
{
	uint32_t number = 0, at, name = INTERN_FAILED, known = names->numbers.count;
	bool numbered = take_number(&text, &number);

	if (names->err)
		return INTERN_FAILED;
	if (numbered && text.bytes == 0) {
		at = pair_set_find(&names->numbers, kind_of(key), number);
		if (at != INTERN_FAILED)
			memcpy(&name, names->numbered.data + at * sizeof(name), sizeof(name));
		return name;
	}
	if (text.bytes == 0 || names->texts.count >= NAMES_MAX)
		return INTERN_FAILED;
	name = text_set_add(&names->texts, text.at, text.bytes);
	at = numbered ? pair_set_add(&names->numbers, kind_of(key), number) : 0;
	if (numbered && at == known)
		buf_add(&names->numbered, &name, sizeof(name));
	if (name == INTERN_FAILED || at == INTERN_FAILED || names->numbered.err) {
		names->err = -ENOMEM;
		return INTERN_FAILED;
	}
	if (numbered)
		memcpy(names->numbered.data + at * sizeof(name), &name, sizeof(name));
	return name;
}

struct span callgrind_name(const struct callgrind_names *names, uint32_t name)
{
	struct span text = {.at = ""};

	if (name != INTERN_FAILED)
		text.at = text_set_get(&names->texts, name, &text.bytes);
	return text;
}

/* --- numbers and positions --- */

bool callgrind_number(struct span text, uint64_t *ret_number)
{
	unsigned base = 10;
	uint64_t number = 0;

	if (text.bytes > 2 && text.at[0] == '0' && (text.at[1] | 32) == 'x') {
		base = 16;
		text = span_behind(text, 2);
	}
	for (size_t i = 0; i < text.bytes; i++) {
		char c = text.at[i];
		unsigned digit = is_digit(c)                                        ? (unsigned)(c - '0')
		                 : base == 16 && (c | 32) >= 'a' && (c | 32) <= 'f' ? (unsigned)((c | 32) - 'a') + 10
		                                                                    : 16;

		if (digit >= base || number > (UINT64_MAX - digit) / base)
			return false;
		number = number * base + digit;
	}
	*ret_number = number;
	return text.bytes > 0;
}

void callgrind_choose_positions(struct callgrind_positions *positions, struct span text)
{
	struct span word;

	*positions = (struct callgrind_positions){.line_at = 3};
	while (positions->count < 3 && (word = span_word(&text)).bytes > 0) {
		if (word.bytes == 4 && memcmp(word.at, "line", 4) == 0)
			positions->line_at = positions->count;
		positions->count++;
	}
}

bool callgrind_take_position(struct callgrind_positions *p, struct span *text)
{
	for (unsigned i = 0; i < p->count; i++) {
		struct span word = span_word(text);
		char sign = word.bytes > 0 && strchr("+-*", word.at[0]) ? word.at[0] : '\0';
		uint64_t number = 0;

		if (sign == '*' ? word.bytes != 1 : !callgrind_number(span_behind(word, sign != '\0'), &number))
			return false;
		p->last[i] = sign == '\0' ? number : sign == '-' ? p->last[i] - number : p->last[i] + number;
	}
	p->line = p->line_at < p->count && p->last[p->line_at] <= UINT32_MAX ? (uint32_t)p->last[p->line_at] : 0;
	return true;
}

/* --- events --- */

/* Events that are times, by the names that writers give them: how many nanoseconds one is. 0: it is none. */
static double ns_of(struct span event)
{
	static const struct {
		const char *name;
		double ns;
	} times[] = {{"Time_ns", 1},        {"Cpu_ns", 1},       {"ns", 1},
	             {"Nanoseconds", 1},    {"us", 1e3},         {"Microseconds", 1e3},
	             {"Milliseconds", 1e6}, {"Time_(10ns)", 10}, {"Time_(\xc2\xb5s)", 1e3}};

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		if (strlen(times[i].name) == event.bytes && strncasecmp(times[i].name, event.at, event.bytes) == 0)
			return times[i].ns;
	return 0;
}

static bool is_named(struct span event, const char *name)
{
	return strlen(name) == event.bytes && strncasecmp(name, event.at, event.bytes) == 0;
}

static void name_events(struct callgrind_events *e, const struct span *events)
{
	struct buf unit = {0}, other = {0};
	double ns = ns_of(events[e->weight]);

	if (ns > 0) {
		e->scale = ns / 1e9;
		buf_puts(&unit, "seconds");
	} else {
		e->scale = 1;
		if (e->weight == e->samples)
			buf_puts(&unit, "samples");
		else
			utf8_add_valid(&unit, events[e->weight].at,
			               events[e->weight].bytes < 60 ? events[e->weight].bytes : 60);
	}
	for (unsigned i = 0; i < e->count; i++) {
		if (i == e->weight || i == e->samples || i == e->cpu)
			continue;
		if (other.bytes)
			buf_putc(&other, ' ');
		utf8_add_valid(&other, events[i].at, events[i].bytes < 60 ? events[i].bytes : 60);
	}
	snprintf(e->unit, sizeof(e->unit), "%s", buf_text(&unit));
	snprintf(e->other, sizeof(e->other), "%s", buf_text(&other));
	buf_release(&unit);
	buf_release(&other);
}

int callgrind_choose_events(struct callgrind_events *ret_events, struct span text, const char *value,
                            struct fault *fault)
{
	struct callgrind_events e = {0};
	struct span events[EVENTS_MAX], names = text, word;
	unsigned asked = EVENTS_MAX, time = EVENTS_MAX, other = EVENTS_MAX;

	e.samples = e.cpu = EVENTS_MAX;
	while (e.count < EVENTS_MAX && (word = span_word(&text)).bytes > 0) {
		if (is_named(word, "Samples"))
			e.samples = e.count;
		else if (other == EVENTS_MAX)
			other = e.count;
		if (is_named(word, "Cpu_ns"))
			e.cpu = e.count;
		if (time == EVENTS_MAX && ns_of(word) > 0)
			time = e.count;
		if (value && is_named(word, value))
			asked = e.count;
		events[e.count++] = word;
	}
	if (e.count == 0)
		return fault_set(fault, -EPROTO, "", "it names no events");
	if (value && asked == EVENTS_MAX)
		return fault_set(fault, -EINVAL, "", "it has no value %.64s; its values: %.*s", value,
		                 (int)(names.bytes < 120 ? names.bytes : 120), names.at);
	e.weight = value ? asked : time < EVENTS_MAX ? time : other < EVENTS_MAX ? other : 0;
	name_events(&e, events);
	*ret_events = e;
	return 0;
}

bool callgrind_take_cost(const struct callgrind_events *e, struct span text, struct callgrind_cost *ret_cost)
{
	struct callgrind_cost cost = {0};
	struct span word;

	for (unsigned i = 0; (word = span_word(&text)).bytes > 0; i++) {
		uint64_t number;

		if (i == e->count || !callgrind_number(word, &number))
			return false;
		if (i == e->weight)
			cost.weight = number;
		if (i == e->samples)
			cost.samples = number;
		if (i == e->cpu)
			cost.cpu_ns = number;
	}
	*ret_cost = cost;
	return true;
}
