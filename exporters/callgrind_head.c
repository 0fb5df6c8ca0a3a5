/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/callgrind_head.h"

#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"

/* What callgrind_annotate calls the profiled target. */
static void put_process(struct writer *to, const struct process *process)
{
	struct buf name = {0};

	if (process->pid > 0)
		writer_printf(to, "pid: %" PRId32 "\n", process->pid);
	if (process->name && process->name[0]) {
		utf8_add_safe(&name, process->name);
		writer_puts(to, "cmd: ");
		writer_add(to, name.data, name.bytes);
		writer_putc(to, '\n');
	}
	if (name.err)
		writer_fail(to, name.err);
	buf_release(&name);
}

bool callgrind_has_weight(const struct callgraph *graph)
{
	return !graph->has_samples || strcmp(graph->unit, "samples") != 0;
}

/* The event that the weight is: its unit, where an event can be called so. */
static const char *weight_event(const struct callgraph *graph)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_", digits[] = "0123456789";
	const char *unit = graph->unit;

	if (graph->is_time)
		return "Time_ns";
	if (!*unit || strchr(digits, *unit))
		return "Weight";
	while (*unit && (strchr(letters, *unit) || strchr(digits, *unit)))
		unit++;
	return *unit ? "Weight" : graph->unit;
}

void callgrind_write_head(const struct callgraph *graph, struct writer *to)
{
	const char *weight = weight_event(graph);
	bool has_weight = callgrind_has_weight(graph);

	writer_puts(to, "# callgrind format\nversion: 1\ncreator: sampled\n");
	if (graph->process)
		put_process(to, graph->process);
	for (size_t at = 0; at < graph->facts.bytes;) {
		const char *line = graph->facts.data + at, *newline = memchr(line, '\n', graph->facts.bytes - at);
		size_t bytes = newline ? (size_t)(newline - line) + 1 : graph->facts.bytes - at;

		writer_puts(to, "desc: ");
		writer_add(to, line, bytes);
		at += bytes;
	}
	if (has_weight && strcmp(weight, "Weight") == 0) {
		writer_puts(to, "desc: unit of Weight: ");
		writer_puts(to, graph->unit);
		writer_putc(to, '\n');
	}
	writer_puts(to, "positions: line\n");
	if (graph->has_samples)
		writer_puts(to, "event: Samples : Samples\n");
	if (has_weight)
		writer_printf(to, "event: %s : %s\n", weight, graph->is_time ? "Time in nanoseconds" : weight);
	if (graph->has_cpu)
		writer_puts(to, "event: Cpu_ns : CPU time in nanoseconds\n");
	writer_puts(to, "events:");
	if (graph->has_samples)
		writer_puts(to, " Samples");
	if (has_weight)
		writer_printf(to, " %s", weight);
	if (graph->has_cpu)
		writer_puts(to, " Cpu_ns");
	writer_putc(to, '\n');
}
