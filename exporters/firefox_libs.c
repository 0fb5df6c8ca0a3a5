/* SPDX-License-Identifier: Apache-2.0 */
/* The files that native code is in, as the Firefox Profiler's format lists them: by their build ids its symbol servers know them. */
#include <string.h>

#include "base/buf.h"
#include "exporters/firefox.h"
#include "exporters/json_parts.h"
#include "exporters/native.h"

/* Breakpad's id of a file: the build id's first 16 bytes, as a GUID is written (three little-endian numbers first), and an age of 0. */
static void put_breakpad_id(struct buf *to, const char *id)
{
	static const size_t order[] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
	size_t bytes = strlen(id) / 2;

	if (bytes == 0)
		return;
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		for (size_t half = 0; half < 2; half++) {
			char c = order[i] < bytes ? id[2 * order[i] + half] : '0';

			buf_putc(to, c >= 'a' && c <= 'f' ? (char)(c - 'a' + 'A') : c);
		}
	buf_putc(to, '0');
}

static void write_member(struct writer *to, const char *name, const char *text)
{
	writer_puts(to, name);
	writer_json_string(to, text);
}

void firefox_write_libs(const struct pair_set *modules, const struct text_set *strings, struct writer *to)
{
	struct buf text = {0};

	writer_puts(to, ",\n\"libs\":[");
	for (uint32_t i = 0; i < modules->count && !to->err; i++) {
		struct pair module = pair_set_get(modules, i);
		const char *path = text_set_get(strings, module.a, NULL), *id = text_set_get(strings, module.b, NULL);

		writer_puts(to, i ? ",\n{\"arch\":\"\"" : "\n{\"arch\":\"\"");
		write_member(to, ",\"name\":", native_module_name(path));
		write_member(to, ",\"debugName\":", native_module_name(path));
		write_member(to, ",\"path\":", path);
		write_member(to, ",\"debugPath\":", path);
		writer_puts(to, ",\"breakpadId\":");
		put_breakpad_id(&text, id);
		json_string_of(to, &text);
		writer_puts(to, ",\"codeId\":");
		if (id[0])
			writer_json_string(to, id);
		else
			writer_puts(to, "null");
		writer_putc(to, '}');
	}
	writer_putc(to, ']');
	buf_release(&text);
}
