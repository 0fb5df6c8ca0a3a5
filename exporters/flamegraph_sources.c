/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "exporters/flamegraph.h"
#include "exporters/source.h"

enum {
	AROUND = 2,              /* lines shown before and after */
	LINE_BYTES_MAX = 200,    /* longer ones are cut */
	ALL_BYTES_MAX = 1 << 20, /* of lines in one flame graph */
	FILES_MAX = 2000,        /* opened for one flame graph */
};

struct wanted {
	uint32_t process, file, line;
};

/* How far the reading of one flame graph's sources has come. */
struct reading {
	const struct source_access *access;
	struct buf text;    /* of the file at hand */
	uint64_t bytes_max; /* of the writer */
	uint32_t files, left_out;
	bool any;
};

static int compare(const void *left, const void *right)
{
	const struct wanted *a = left, *b = right;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	return (a->line > b->line) - (a->line < b->line);
}

/* Every frame that has a line. The caller frees the array. */
static struct wanted *collect(struct flamegraph *f, size_t *ret_count)
{
	struct wanted *wanted = calloc(f->frames.count, sizeof(*wanted));
	size_t count = 0;

	for (uint32_t i = 1; wanted && i < f->frames.count; i++) {
		struct pair frame = pair_set_get(&f->frames, i);
		const struct symbol *symbol = &f->profile->symbols[frame.a - 1];
		uint32_t file = text_set_add(&f->texts, symbol->file, strlen(symbol->file)); /* is there already */

		if (frame.b > 0 && symbol->kind == FRAME_PYTHON && file != INTERN_FAILED)
			wanted[count++] =
				(struct wanted){.process = f->process_of[frame.a - 1], .file = file, .line = frame.b};
	}
	if (wanted)
		qsort(wanted, count, sizeof(*wanted), compare);
	*ret_count = count;
	return wanted;
}

static void write_line(struct writer *to, const char *text, size_t bytes)
{
	char line[LINE_BYTES_MAX + 4];

	if (bytes > LINE_BYTES_MAX) {
		bytes = LINE_BYTES_MAX;
		while (bytes > 0 && ((unsigned char)text[bytes] & 0xc0) == 0x80)
			bytes--;
		memcpy(line, text, bytes);
		memcpy(line + bytes, "\u2026", 4);
	} else {
		memcpy(line, text, bytes);
		line[bytes] = '\0';
	}
	writer_json_string(to, line);
}

/* One file: one pass over its text. wanted[0 … count) are its lines in rising order. Returns false when bytes_max cut it short. */
static bool write_file(const struct wanted *wanted, size_t count, const struct buf *source, uint64_t bytes_max,
                       bool *any, struct writer *to)
{
	const char *at = source->data, *end = source->data + source->bytes;
	bool open = false;
	size_t next = 0;

	for (uint32_t line = 1; at < end && next < count && to->bytes < bytes_max; line++) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t bytes = (size_t)((stop ? stop : end) - at);

		while (next < count && (uint64_t)wanted[next].line + AROUND < line)
			next++;
		if (next < count && wanted[next].line <= (uint64_t)line + AROUND) {
			if (open)
				writer_putc(to, ',');
			else
				writer_printf(to, "%s\n[%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",[", *any ? "," : "",
				              wanted->process, wanted->file, line);
			open = *any = true;
			write_line(to, at, bytes > 0 && at[bytes - 1] == '\r' ? bytes - 1 : bytes);
		} else if (open) {
			writer_puts(to, "]]");
			open = false;
		}
		at = stop ? stop + 1 : end;
	}
	if (open)
		writer_puts(to, "]]");
	return to->bytes < bytes_max;
}

/* The files of one process, wanted[0 … count), within what is left of the bounds. */
static void write_process(struct flamegraph *f, struct reading *r, const struct wanted *wanted, size_t count,
                          struct writer *to)
{
	const struct process *process = &f->profile->processes[wanted->process];
	const struct source_place *place = r->access->enter(r->access->context, process->pid, process->start_time);

	for (size_t i = 0, lines; place && i < count && !to->err; i += lines) {
		const struct wanted *first = &wanted[i];

		for (lines = 1; i + lines < count && wanted[i + lines].file == first->file;)
			lines++;
		if (r->files >= FILES_MAX || to->bytes >= r->bytes_max) {
			r->left_out++;
			continue;
		}
		r->files++;
		if (source_read(&r->text, place, text_set_get(&f->texts, first->file, NULL)))
			continue;
		r->left_out += !write_file(first, lines, &r->text, r->bytes_max, &r->any, to);
	}
	if (place)
		r->access->leave(r->access->context);
}

int flamegraph_sources(struct flamegraph *f, const struct source_access *access, struct writer *to)
{
	struct reading r = {.access = access, .bytes_max = to->bytes + ALL_BYTES_MAX};
	size_t count;
	struct wanted *wanted = collect(f, &count);

	if (!wanted)
		return -ENOMEM;
	writer_puts(to, ",\n\"sources\":[");
	for (size_t i = 0, same; i < count; i += same) {
		for (same = 1; i + same < count && wanted[i + same].process == wanted[i].process;)
			same++;
		write_process(f, &r, &wanted[i], same, to);
	}
	writer_printf(to, "],\"sourcesLeftOut\":%" PRIu32, r.left_out);
	buf_release(&r.text);
	free(wanted);
	return 0;
}
