/* SPDX-License-Identifier: Apache-2.0 */
/* Line tables: those of real interpreters, at every instruction, against what the interpreters said; and hostile bytes. */
#include "sampler/linetable.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/linetables_data.h"

enum { TABLE_MAX = 8192, RANGES_MAX = 2048 };

static size_t from_hex(const char *hex, uint8_t *to)
{
	size_t bytes = strlen(hex) / 2;

	cr_assert(strlen(hex) % 2 == 0 && bytes <= TABLE_MAX);
	for (size_t i = 0; i < bytes; i++) {
		char pair[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
		char *end;

		to[i] = (uint8_t)strtoul(pair, &end, 16);
		cr_assert(*end == '\0');
	}
	return bytes;
}

static size_t read_expected(const char *text, struct line_range *ranges)
{
	size_t count = 0;

	while (*text != '\0') {
		int used = 0;

		cr_assert(count < RANGES_MAX);
		cr_assert(sscanf(text, "%u:%u %n", &ranges[count].start, &ranges[count].line, &used) == 2 && used > 0);
		count++;
		text += used;
	}
	return count;
}

Test(linetable, real_tables)
{
	static struct line_range expected[RANGES_MAX], got[RANGES_MAX];
	static uint8_t table[TABLE_MAX];
	size_t cases = sizeof(linetable_cases) / sizeof(linetable_cases[0]);

	for (size_t i = 0; i < cases; i++) {
		const struct linetable_case *c = &linetable_cases[i];
		size_t bytes = from_hex(c->table, table), want = read_expected(c->expected, expected), at = 0;
		int64_t count = linetable_decode(c->format, table, bytes, c->first_line, got, RANGES_MAX);

		cr_assert(count > 0 && count <= RANGES_MAX, "%s %s: %ld entries", c->python, c->name, (long)count);
		cr_assert(want > 0 && expected[0].start == 0 && got[0].start == 0);
		for (uint32_t offset = 0; offset < c->code_bytes; offset += 2) {
			uint32_t line = linetable_find(got, (size_t)count, offset, c->first_line);

			if (at + 1 < want && expected[at + 1].start <= offset)
				at++;
			cr_assert(line == expected[at].line, "%s %s at %u: line %u, not %u", c->python, c->name, offset, line,
			          expected[at].line);
		}
		cr_assert(at == want - 1, "%s %s: all of what is expected was looked at", c->python, c->name);
		for (int64_t k = 1; k < count; k++)
			cr_assert(got[k].start > got[k - 1].start && got[k].line != got[k - 1].line);
	}
	cr_assert(cases > 200);
}

Test(linetable, fixture_has_all_formats_and_lines_missing)
{
	unsigned formats = 0, missing = 0, far = 0;

	for (size_t i = 0; i < sizeof(linetable_cases) / sizeof(linetable_cases[0]); i++) {
		formats |= 1u << linetable_cases[i].format;
		missing += strstr(linetable_cases[i].expected, ":0 ") != NULL;
		far += strcmp(linetable_cases[i].name, "far_back") == 0;
	}
	cr_assert(formats == (1u << LINES_LNOTAB | 1u << LINES_310 | 1u << LINES_311));
	cr_assert(missing > 0 && far == 8);
}

Test(linetable, more_entries_than_room)
{
	uint8_t table[200];
	struct line_range ranges[4] = {[3] = {.start = 77, .line = 88}};

	for (size_t i = 0; i < sizeof(table); i += 2) {
		table[i] = 2;
		table[i + 1] = 1;
	}
	cr_assert(linetable_decode(LINES_LNOTAB, table, sizeof(table), 10, ranges, 3) == 101);
	cr_assert(ranges[2].start == 4 && ranges[2].line == 12);
	cr_assert(ranges[3].start == 77 && ranges[3].line == 88, "nothing was written behind the room");
	cr_assert(linetable_decode(LINES_310, table, sizeof(table), 10, NULL, 0) == 100);
}

Test(linetable, find_at_the_edges)
{
	const struct line_range ranges[] = {{.start = 0, .line = 5}, {.start = 10, .line = 0}, {.start = 12, .line = 9}};

	cr_assert(linetable_find(ranges, 3, -1, 42) == 42);
	cr_assert(linetable_find(ranges, 3, -2, 42) == 42);
	cr_assert(linetable_find(ranges, 3, 0, 42) == 5);
	cr_assert(linetable_find(ranges, 3, 9, 42) == 5);
	cr_assert(linetable_find(ranges, 3, 10, 42) == 0);
	cr_assert(linetable_find(ranges, 3, 12, 42) == 9);
	cr_assert(linetable_find(ranges, 3, INT64_MAX, 42) == 9);
	cr_assert(linetable_find(ranges, 0, 0, 42) == 0);
}

Test(linetable, empty_tables)
{
	struct line_range range = {.start = 1, .line = 1};

	cr_assert(linetable_decode(LINES_LNOTAB, NULL, 0, 7, &range, 1) == 1);
	cr_assert(range.start == 0 && range.line == 7, "without entries all is on the first line");
	cr_assert(linetable_decode(LINES_310, NULL, 0, 7, &range, 1) == 1);
	cr_assert(range.start == 0 && range.line == 0);
	cr_assert(linetable_decode(LINES_311, NULL, 0, 7, &range, 1) == 1);
	cr_assert(range.start == 0 && range.line == 0);
}

static int64_t decode_311(const char *hex, struct line_range *range)
{
	uint8_t table[64];
	size_t bytes = from_hex(hex, table);

	return linetable_decode(LINES_311, table, bytes, 1, range, 1);
}

Test(linetable, hostile)
{
	static const char *const cut[] = {
		"80",               /* short form without its byte */
		"d001",             /* one line, one byte of two */
		"e8",               /* no columns, no line */
		"e84040",           /* a varint that goes on */
		"e8404040404004",   /* one of 33 bits */
		"e87f7f7f7f7f7f7f", /* longer than any number */
		"e840404040404000", /* the same, although it is 0 */
		"f00101",           /* long form, two of four */
		"0001",             /* no first byte */
		"800100",           /* rubbish behind an entry */
	};
	struct line_range range;
	uint8_t odd[] = {2, 1, 2};

	for (size_t i = 0; i < sizeof(cut) / sizeof(cut[0]); i++)
		cr_assert(decode_311(cut[i], &range) == -EPROTO, "%s", cut[i]);
	cr_assert(linetable_decode(LINES_LNOTAB, odd, sizeof(odd), 1, &range, 1) == -EPROTO);
	cr_assert(linetable_decode(LINES_310, odd, sizeof(odd), 1, &range, 1) == -EPROTO);
	cr_assert(linetable_decode((enum py_lines)77, odd, 2, 1, &range, 1) == -EPROTO);
}

Test(linetable, lines_out_of_range_are_none)
{
	struct line_range range = {.line = 1};
	uint8_t down[] = {2, 0x9c};                               /* by 100 */
	uint8_t to_first[] = {2, 0xcf};                           /* by 49 */
	uint8_t up[] = {0xe8, 0x7e, 0x7f, 0x7f, 0x7f, 0x7f, 0x03}; /* by 2^31 - 1 */

	cr_assert(linetable_decode(LINES_310, down, sizeof(down), 50, &range, 1) == 1);
	cr_assert(range.line == 0);
	cr_assert(linetable_decode(LINES_310, to_first, sizeof(to_first), 50, &range, 1) == 1);
	cr_assert(range.line == 1, "the first line is one");
	cr_assert(linetable_decode(LINES_311, up, sizeof(up), 50, &range, 1) == 1);
	cr_assert(range.line == 0);
}
