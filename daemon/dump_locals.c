/* SPDX-License-Identifier: Apache-2.0 */
/* sampled dump --locals: variables beside the frames that they are of. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "daemon/dump.h"

enum { VALUE_COLUMNS_MAX = 1 << 16 };

/* Both are outermost first, and the stack that is shown is mostly the one whose values were read; from where it is not, nothing is known. */
static int find_locals(struct dump_thread *thread, const struct thread_locals *known)
{
	uint32_t next = 0;

	thread->locals = calloc(thread->depth + (size_t)1, sizeof(const struct frame_locals *));
	if (!thread->locals)
		return -ENOMEM;
	thread->locals_whole = known->whole;
	for (uint32_t i = 0; i < thread->depth && next < known->count; i++) {
		if (thread->frames[i].kind != FRAME_PYTHON)
			continue;
		if (thread->frames[i].id != known->frames[next].symbol)
			break;
		thread->locals[i] = &known->frames[next++];
	}
	return 0;
}

int dump_find_locals(struct dump *dump)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < dump->thread_count; i++) {
		const struct thread_locals *known = values_of(&dump->values, dump->threads[i].id);

		if (known && dump->threads[i].sampled)
			err = find_locals(&dump->threads[i], known);
	}
	return err;
}

uint32_t dump_moving_values(const struct dump *dump)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < dump->thread_count; i++)
		count += dump->threads[i].locals && !dump->threads[i].locals_whole;
	return count;
}

void dump_print_locals(const struct frame_locals *locals, struct writer *to)
{
	struct buf line = {0};

	if (locals->gone)
		writer_puts(to, "            (it was left while its variables were read)\n");
	for (uint32_t i = 0; !locals->gone && i < locals->count; i++) {
		line.bytes = 0;
		buf_printf(&line, "%s = %s", locals->items[i].name, locals->items[i].value);
		writer_puts(to, "            ");
		if (!line.err) {
			struct buf safe = {0};

			utf8_fit(&safe, buf_text(&line), VALUE_COLUMNS_MAX, false);
			writer_puts(to, buf_text(&safe));
			buf_release(&safe);
		}
		writer_putc(to, '\n');
	}
	if (locals->left_out)
		writer_puts(to, "            … more variables\n");
	buf_release(&line);
}

void dump_json_locals(const struct frame_locals *locals, struct writer *to)
{
	writer_puts(to, ",\"locals\":");
	if (locals->gone) {
		writer_puts(to, "null");
		return;
	}
	for (uint32_t i = 0; i < locals->count; i++) {
		const struct local *local = &locals->items[i];

		writer_puts(to, i ? "," : "[");
		writer_puts(to, "{\"name\":");
		writer_json_string(to, local->name);
		writer_puts(to, ",\"value\":");
		writer_json_string(to, local->value);
		writer_puts(to, ",\"type\":");
		writer_json_string(to, local->type);
		writer_printf(to, ",\"argument\":%s}", local->argument ? "true" : "false");
	}
	writer_puts(to, locals->count ? "]" : "[]");
	if (locals->left_out)
		writer_puts(to, ",\"locals_left_out\":true");
}
