/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/stats_limit.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

/* What int() takes: a sign, and digits with single underscores between them. */
static bool read_whole(const char *text, uint64_t *ret_count, bool *ret_negative)
{
	uint64_t value = 0;
	const char *at = text;

	*ret_negative = *at == '-';
	if (*at == '-' || *at == '+')
		at++;
	if (!isdigit((unsigned char)*at))
		return false;
	for (; *at; at++) {
		if (*at == '_' && isdigit((unsigned char)at[1]))
			continue;
		if (!isdigit((unsigned char)*at))
			return false;
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
			value = UINT64_MAX / 16; /* more than can be, whatever follows */
	}
	*ret_count = value;
	return true;
}

/* What float() takes; strtod() would take hexadecimal numbers and nan(…) besides. */
static bool read_float(const char *text, double *ret_value)
{
	char *end;

	if (strpbrk(text, "xX(") || isspace((unsigned char)*text))
		return false;
	*ret_value = strtod(text, &end);
	return end != text && *end == '\0';
}

/* repr() of a float in 0 … 1: the shortest digits that read back as the same. */
static void show_float(struct buf *to, double value)
{
	char text[40];

	for (int digits = 1; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	buf_puts(to, text);
	if (!strpbrk(text, ".en"))
		buf_puts(to, ".0");
}

/* repr() of a string. */
static void show_text(struct buf *to, const char *text)
{
	char quote = strchr(text, '\'') && !strchr(text, '"') ? '"' : '\'';

	buf_putc(to, quote);
	for (size_t left = strlen(text), bytes; left > 0; left -= bytes, text += bytes) {
		uint32_t character;

		bytes = utf8_next(text, left, &character);
		if (character == '\\' || character == (unsigned char)quote)
			buf_printf(to, "\\%c", (char)character);
		else if (character == '\n' || character == '\r' || character == '\t')
			buf_printf(to, "\\%c", character == '\n' ? 'n' : character == '\r' ? 'r' : 't');
		else if (character == 0xfffd && bytes == 1) /* as Python has it from the command line */
			buf_printf(to, "\\udc%02x", (unsigned char)*text);
		else if (utf8_is_unsafe(character))
			buf_printf(to, character < 0x100 ? "\\x%02" PRIx32 : "\\u%04" PRIx32, character);
		else
			buf_add(to, text, bytes);
	}
	buf_putc(to, quote);
}

/* Whether a brace begins a repetition: {3}, {3,}, {,3}, {3,4}. */
static bool is_repetition(const char *brace)
{
	const char *at = brace + 1 + strspn(brace + 1, "0123456789");
	bool digits = at > brace + 1;

	if (*at == ',') {
		size_t more = strspn(at + 1, "0123456789");

		digits |= more > 0;
		at += 1 + more;
	}
	return digits && *at == '}';
}

/* Past a bracket expression: a ']' that comes first in it is one of its characters. */
static const char *bracket_end(const char *at)
{
	const char *end = at + 1 + (at[1] == '^');

	end = *end ? strchr(end + 1, ']') : NULL;
	return end ? end + 1 : at + strlen(at);
}

/* What Python writes otherwise than POSIX and is common in names: \d, \D, (?:, and a brace as such, as in "{built-in". */
static void add_posix(struct buf *to, const char *text)
{
	while (*text) {
		const char *next = text + 1;

		if (*text == '\\' && (text[1] == 'd' || text[1] == 'D')) {
			buf_puts(to, text[1] == 'd' ? "[0-9]" : "[^0-9]");
			text += 2;
			continue;
		}
		if (*text == '\\' && text[1])
			next = text + 2;
		else if (*text == '[')
			next = bracket_end(text);
		else if (*text == '{' && !is_repetition(text))
			buf_putc(to, '\\');
		buf_add(to, text, (size_t)(next - text));
		if (*text == '(' && text[1] == '?' && text[2] == ':')
			next = text + 3;
		text = next;
	}
}

int stats_limit_read(struct stats_limit *ret_limit, const char *text)
{
	struct stats_limit *limit = ret_limit;
	struct buf posix = {0};
	bool negative;
	int err = 0;

	*limit = (struct stats_limit){.kind = STATS_LIMIT_REGEX};
	if (read_whole(text, &limit->count, &negative)) {
		limit->kind = STATS_LIMIT_COUNT;
		buf_printf(&limit->shown, "%" PRIu64, limit->count);
		if (negative && limit->count > 0)
			limit->count = UINT64_MAX;
	} else if (read_float(text, &limit->fraction)) {
		limit->kind = STATS_LIMIT_FRACTION;
		if (limit->fraction > 1 || limit->fraction < 0)
			return -ERANGE;
		show_float(&limit->shown, limit->fraction);
	} else {
		show_text(&limit->shown, text);
		add_posix(&posix, text);
		limit->has_regex =
			!posix.err && regcomp(&limit->regex, buf_text(&posix), REG_EXTENDED | REG_NOSUB) == 0;
		err = posix.err ? posix.err : limit->has_regex ? 0 : -EINVAL;
		buf_release(&posix);
	}
	return limit->shown.err ? limit->shown.err : err;
}

void stats_limit_release(struct stats_limit *limit)
{
	if (limit->has_regex)
		regfree(&limit->regex);
	buf_release(&limit->shown);
	*limit = (struct stats_limit){0};
}

static bool matches(const struct stats *stats, const regex_t *regex, uint32_t function)
{
	size_t bytes;
	const char *name = stats_raw_name(stats, function, &bytes);
	regmatch_t whole = {.rm_so = 0, .rm_eo = (regoff_t)bytes};

	return regexec(regex, name, 0, &whole, REG_STARTEND) == 0;
}

static void keep_matching(struct stats_selection *s, const struct stats *stats, const regex_t *regex)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < s->count; i++)
		if (matches(stats, regex, s->functions[i]))
			s->functions[kept++] = s->functions[i];
	s->count = kept;
}

/* pstats' eval_print_amount(). */
static void restrict_to(struct stats_selection *s, const struct stats *stats, struct stats_limit *limit)
{
	uint32_t before = s->count;

	if (limit->kind == STATS_LIMIT_COUNT && limit->count < s->count)
		s->count = (uint32_t)limit->count;
	else if (limit->kind == STATS_LIMIT_FRACTION && limit->fraction < 1)
		s->count = (uint32_t)(s->count * limit->fraction + .5);
	else if (limit->kind == STATS_LIMIT_REGEX && limit->has_regex)
		keep_matching(s, stats, &limit->regex);
	else if (limit->kind == STATS_LIMIT_REGEX)
		buf_printf(&s->message, "   <Invalid regular expression %s>\n", buf_text(&limit->shown));
	if (s->count != before)
		buf_printf(&s->message, "   List reduced from %" PRIu32 " to %" PRIu32 " due to restriction <%s>\n",
		           before, s->count, buf_text(&limit->shown));
}

int stats_select(struct stats_selection *ret_selection, const struct stats *stats, struct stats_limit *limits,
                 size_t limit_count)
{
	struct stats_selection *s = ret_selection;

	*s = (struct stats_selection){.functions = malloc((stats->count + (size_t)1) * sizeof(*s->functions)),
	                              .count = stats->count};
	if (!s->functions) {
		s->count = 0;
		return -ENOMEM;
	}
	memcpy(s->functions, stats->listing, stats->count * sizeof(*s->functions));
	if (stats->is_sorted) {
		buf_puts(&s->message, "   Ordered by: ");
		buf_add(&s->message, stats->order.data, stats->order.bytes);
		buf_putc(&s->message, '\n');
	} else {
		buf_puts(&s->message, "   Random listing order was used\n");
	}
	for (size_t i = 0; i < limit_count; i++)
		restrict_to(s, stats, &limits[i]);
	return s->message.err;
}

void stats_selection_release(struct stats_selection *s)
{
	free(s->functions);
	buf_release(&s->message);
	*s = (struct stats_selection){0};
}
