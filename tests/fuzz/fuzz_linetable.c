/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a line table of any format: no read or write out of bounds, a sorted result, and a count that does not
 * depend on the room. Input: format and first line's byte, room, then the table. */
#include "sampler/linetable.h"

#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/common.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	enum py_lines format;
	uint32_t first_line;
	size_t room;
	uint8_t *table;
	struct line_range *ranges;
	int64_t count;

	if (bytes < 2)
		return 0;
	format = (enum py_lines)(data[0] % 3);
	first_line = data[0] < 250 ? data[0] : UINT32_MAX;
	room = data[1];
	bytes -= 2;
	/* Blocks of the exact size, so that one byte too far is seen. */
	table = malloc(bytes > 0 ? bytes : 1);
	ranges = calloc(room > 0 ? room : 1, sizeof(*ranges));
	expect(table != NULL && ranges != NULL);
	memcpy(table, data + 2, bytes);
	count = linetable_decode(format, table, bytes, first_line, ranges, room);
	expect(count >= -1000 && count <= (int64_t)bytes + 1 && count != 0);
	expect(count == linetable_decode(format, table, bytes, first_line, NULL, 0));
	if (count > 0) {
		size_t written = (uint64_t)count < room ? (size_t)count : room;

		for (size_t i = 1; i < written; i++) {
			expect(ranges[i].start > ranges[i - 1].start && ranges[i].line != ranges[i - 1].line);
			expect(linetable_find(ranges, written, ranges[i].start, 0) == ranges[i].line);
			expect(linetable_find(ranges, written, (int64_t)ranges[i].start - 1, 0) == ranges[i - 1].line);
		}
		expect(written == 0 || ranges[0].start == 0);
		linetable_find(ranges, written, INT64_MAX, 0);
	}
	free(ranges);
	free(table);
	return 0;
}
