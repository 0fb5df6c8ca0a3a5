/* SPDX-License-Identifier: Apache-2.0 */
/* The sources in a heat map's page: those of the files with the most time, within bounds. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "exporters/heatmap_sources.h"
#include "exporters/source.h"

enum {
	LINE_BYTES_MAX = 400,    /* longer ones are cut */
	LINES_MAX = 20000,       /* files with more are shown without their source */
	ALL_BYTES_MAX = 8 << 20, /* of sources in one page */
	FILES_MAX = 2000,        /* whose source is read */
};

static int compare_files(const void *left, const void *right)
{
	const struct heatmap_file *a = left, *b = right;

	if (a->total != b->total)
		return a->total < b->total ? 1 : -1;
	return (a->number > b->number) - (a->number < b->number);
}

static void write_line(struct writer *to, const char *text, size_t bytes)
{
	char line[LINE_BYTES_MAX + 4] = "";
	bool is_cut = bytes > LINE_BYTES_MAX;

	if (bytes > 0 && text[bytes - 1] == '\r')
		bytes--;
	if (is_cut) {
		bytes = LINE_BYTES_MAX;
		while (bytes > 0 && ((unsigned char)text[bytes] & 0xc0) == 0x80)
			bytes--;
	}
	memcpy(line, text, bytes);
	line[bytes] = '\0';
	if (is_cut)
		memcpy(line + bytes, "\u2026", 4);
	writer_json_string(to, line);
}

/* False: it has too many lines. */
static bool write_source(uint32_t file, const struct buf *source, bool any, struct writer *to)
{
	const char *at = source->data, *end = source->data + source->bytes;
	size_t lines = 1;

	for (const char *c = at; c < end && (c = memchr(c, '\n', (size_t)(end - c))); c++)
		lines++;
	if (lines > LINES_MAX)
		return false;
	writer_printf(to, "%s\n[%" PRIu32 ",[", any ? "," : "", file);
	while (at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));

		if (at != source->data)
			writer_putc(to, ',');
		write_line(to, at, (size_t)((stop ? stop : end) - at));
		at = stop ? stop + 1 : end;
	}
	writer_puts(to, "]]");
	return true;
}

uint32_t heatmap_write_sources(struct heatmap_file *files, size_t count, const struct source_access *access,
                               struct writer *to)
{
	uint64_t bytes_max = to->bytes + ALL_BYTES_MAX;
	uint32_t left_out = 0;
	struct buf text = {0};
	bool any = false;

	qsort(files, count, sizeof(*files), compare_files);
	for (size_t i = 0; i < count && !to->err; i++) {
		const struct process *process = files[i].process;
		const struct source_place *place;
		int err = -ENOENT;

		if (i >= FILES_MAX || to->bytes >= bytes_max) {
			left_out++;
			continue;
		}
		place = access->enter(access->context, process->pid, process->start_time);
		if (place) {
			err = source_read(&text, place, files[i].name);
			access->leave(access->context);
		}
		if (!err && text.bytes > 0 && write_source(files[i].number, &text, any, to))
			any = true;
		else
			left_out += err == -EFBIG || (!err && text.bytes > 0);
	}
	buf_release(&text);
	return left_out;
}
