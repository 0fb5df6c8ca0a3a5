/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/json_parts.h"

#include <inttypes.h>
#include <math.h>

#include "exporters/facts.h"

static void process_name(struct buf *to, const struct process *process)
{
	buf_puts(to, process->name ? process->name : "");
	buf_printf(to, "%s(pid %" PRId32 ")", process->name && process->name[0] ? " " : "", process->pid);
}

void json_thread_name(struct buf *to, const struct profile *profile, const struct thread_tree *thread)
{
	if (profile->process_count > 1) {
		process_name(to, &profile->processes[thread->process]);
		buf_puts(to, ", ");
	}
	if (thread->name && thread->name[0]) {
		buf_puts(to, thread->name);
		if (thread->tid)
			buf_printf(to, " (tid %" PRIu64 ")", thread->tid);
	} else if (thread->tid) {
		buf_printf(to, "thread %" PRIu64, thread->tid);
	} else {
		buf_puts(to, "thread ?");
	}
	if (thread->interpreter)
		buf_printf(to, ", interpreter %" PRId64, thread->interpreter);
}

void json_title(struct buf *to, const struct profile *profile, const struct export_options *options)
{
	if (options->title)
		buf_puts(to, options->title);
	else if (profile->process_count == 1)
		process_name(to, &profile->processes[0]);
	else
		buf_printf(to, "%" PRIu32 " processes", profile->process_count);
}

void json_string_of(struct writer *to, struct buf *text)
{
	writer_json_string(to, buf_text(text));
	writer_fail(to, text->err);
	text->bytes = 0;
}

void json_facts(struct writer *to, const struct profile *profile)
{
	struct facts facts;

	facts_make(&facts, profile);
	writer_putc(to, '{');
	for (size_t i = 0; i < facts.count; i++) {
		const struct fact *fact = &facts.items[i];

		if (i > 0)
			writer_putc(to, ',');
		writer_json_string(to, fact->key);
		if (isfinite(fact->number))
			writer_printf(to, ":%.17g", fact->number);
		else
			writer_puts(to, ":null");
	}
	writer_putc(to, '}');
}

void json_decimal(struct writer *to, uint64_t ns, unsigned digits)
{
	static const uint32_t units[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000};
	uint64_t whole = ns / units[digits];
	uint32_t rest = (uint32_t)(ns - whole * units[digits]);
	char text[16];

	writer_u64(to, whole);
	if (rest == 0)
		return;
	while (rest % 10 == 0) {
		rest /= 10;
		digits--;
	}
	text[0] = '.';
	for (unsigned i = digits; i > 0; i--) {
		text[i] = (char)('0' + rest % 10);
		rest /= 10;
	}
	writer_add(to, text, digits + 1);
}

void json_item(struct writer *to, bool first, uint64_t number)
{
	if (!first)
		writer_putc(to, ',');
	writer_u64(to, number);
}
