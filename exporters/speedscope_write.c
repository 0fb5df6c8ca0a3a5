/* SPDX-License-Identifier: Apache-2.0 */
/* speedscope's own format (file-format-schema.json in its package): one "sampled" profile a thread. With runs its rows are in
 * the order of time, runs of one stack joined; without, they are the tree's nodes. Beyond the schema, which allows it, there
 * are the facts ("sampled"), who the thread is and whether its rows are in the order of time ("sampled" of a profile), and how many samples a row stands for ("counts");
 * and where there is CPU time, behind all threads, a profile of that for each ("cpu" in who it is; its rows stand for no samples):
 * speedscope passes over them, our reader (speedscope_read.c) does not. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/version.h"
#include "exporters/formats.h"
#include "exporters/intern.h"
#include "exporters/json_parts.h"

/* The rows of one thread, each pass over them the same. */
struct rows {
	const struct thread_tree *thread;
	enum value_index weight;
	bool by_runs, is_uncounted;
	size_t at;
};

struct row {
	uint32_t node;
	uint64_t weight, count;
};

static bool next_row(struct rows *rows, struct row *ret_row)
{
	const struct thread_tree *thread = rows->thread;

	if (rows->by_runs) {
		if (rows->at == thread->run_count)
			return false;
		*ret_row = (struct row){.node = thread->runs[rows->at].node};
		for (; rows->at < thread->run_count && thread->runs[rows->at].node == ret_row->node; rows->at++) {
			ret_row->count += thread->runs[rows->at].count;
			ret_row->weight += rows->weight == VALUE_SAMPLES ? thread->runs[rows->at].count
			                                                 : thread->runs[rows->at].weight_ns;
		}
		return true;
	}
	while (rows->at < thread->node_count) {
		const struct node *node = &thread->nodes[rows->at++];

		uint64_t count = rows->weight == VALUE_CPU ? 0 : node->self[VALUE_SAMPLES];

		if (count == 0 && node->self[rows->weight] == 0)
			continue;
		*ret_row = (struct row){
			.node = (uint32_t)(rows->at - 1), .weight = node->self[rows->weight], .count = count};
		return true;
	}
	return false;
}

/* The runs, if they hold all that the tree does. */
static struct rows rows_of(const struct profile *profile, const struct thread_tree *thread, uint64_t *ret_total)
{
	struct rows rows = {.thread = thread, .weight = profile_weight(profile), .is_uncounted = profile->uncounted};
	uint64_t total = 0, samples = 0;

	for (uint32_t i = 0; i < thread->node_count; i++) {
		total += thread->nodes[i].self[rows.weight];
		samples += thread->nodes[i].self[VALUE_SAMPLES];
	}
	*ret_total = total;
	if (profile->has_runs) {
		for (size_t i = 0; i < thread->run_count; i++) {
			samples -= thread->runs[i].count;
			total -= rows.weight == VALUE_SAMPLES ? thread->runs[i].count : thread->runs[i].weight_ns;
		}
		rows.by_runs = samples == 0 && total == 0;
	}
	return rows;
}

/* The text of one stack; the next one is made by changing what lies behind the frames that both begin with. */
struct stack_text {
	const struct thread_tree *thread;
	uint32_t *frames; /* of each node */
	uint32_t *depths; /* of each node: 1 below the root */
	uint32_t *path;   /* the node at each depth of the text; 0: none */
	uint32_t *above;  /* nodes that are to be added */
	struct buf text;
	size_t *ends; /* bytes of the text up to each depth */
	uint32_t depth;
};

static void stack_text_release(struct stack_text *s)
{
	free(s->frames);
	free(s->depths);
	free(s->path);
	free(s->above);
	free(s->ends);
	buf_release(&s->text);
}

static int stack_text_init(struct stack_text *s, const struct thread_tree *thread, struct pair_set *frames)
{
	uint32_t deepest = 0;

	*s = (struct stack_text){.thread = thread};
	s->frames = calloc(thread->node_count, sizeof(*s->frames));
	s->depths = calloc(thread->node_count, sizeof(*s->depths));
	if (!s->frames || !s->depths)
		return -ENOMEM;
	for (uint32_t i = 1; i < thread->node_count; i++) {
		s->frames[i] = pair_set_add(frames, thread->nodes[i].symbol, thread->nodes[i].line);
		if (s->frames[i] == INTERN_FAILED)
			return -ENOMEM;
		s->depths[i] = s->depths[thread->nodes[i].parent] + 1;
		deepest = s->depths[i] > deepest ? s->depths[i] : deepest;
	}
	s->path = calloc(deepest + (size_t)1, sizeof(*s->path));
	s->above = calloc(deepest + (size_t)1, sizeof(*s->above));
	s->ends = calloc(deepest + (size_t)1, sizeof(*s->ends));
	return s->path && s->above && s->ends ? 0 : -ENOMEM;
}

static void add_index(struct buf *to, uint32_t index)
{
	char digits[12];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + index % 10);
		index /= 10;
	} while (index > 0);
	digits[--at] = ',';
	buf_add(to, digits + at, sizeof(digits) - at);
}

static void write_stack(struct stack_text *s, uint32_t node, struct writer *to)
{
	uint32_t added = 0, depth;

	for (; node && s->path[s->depths[node]] != node; node = s->thread->nodes[node].parent)
		s->above[added++] = node;
	depth = s->depths[node];
	s->text.bytes = s->ends[depth];
	/* What hangs below is no part of the path any more. */
	for (uint32_t i = depth + 1; i <= s->depth; i++)
		s->path[i] = 0;
	while (added > 0) {
		node = s->above[--added];
		add_index(&s->text, s->frames[node]);
		s->path[++depth] = node;
		s->ends[depth] = s->text.bytes;
	}
	s->depth = depth;
	writer_fail(to, s->text.err);
	writer_putc(to, '[');
	if (s->text.bytes > 0)
		writer_add(to, s->text.data + 1, s->text.bytes - 1);
	writer_putc(to, ']');
}

/* The unit that speedscope knows. */
static const char *unit_of(const struct profile *profile)
{
	static const char *const units[] = {"nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"};
	const char *unit = profile->values[profile_weight(profile)].unit;

	for (size_t i = 0; unit && i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(unit, units[i]) == 0)
			return units[i];
	return "none";
}

static void write_identity(const struct profile *profile, const struct thread_tree *thread, bool is_cpu,
                           bool is_ordered, struct writer *to)
{
	const struct process *process = &profile->processes[thread->process];

	writer_printf(to, "\"sampled\":{\"pid\":%" PRId32 ",\"process\":", process->pid);
	writer_json_string(to, process->name ? process->name : "");
	writer_printf(to, ",\"interpreter\":%" PRId64 ",\"tid\":%" PRIu64 ",\"main\":%s", thread->interpreter,
	              thread->tid, thread->is_main ? "true" : "false");
	if (thread->name) {
		writer_puts(to, ",\"thread\":");
		writer_json_string(to, thread->name);
	}
	writer_puts(to, is_cpu ? ",\"cpu\":true},\n" : is_ordered ? "},\n" : ",\"ordered\":false},\n");
}

static void write_rows(struct rows rows, struct stack_text *stack, struct writer *to)
{
	struct rows again = rows;
	struct row row;

	writer_puts(to, "\"samples\":[");
	for (const char *between = ""; next_row(&again, &row) && !to->err; between = ",") {
		writer_puts(to, between);
		write_stack(stack, row.node, to);
	}
	again = rows;
	writer_puts(to, "],\n\"weights\":[");
	for (const char *between = ""; next_row(&again, &row) && !to->err; between = ",") {
		writer_puts(to, between);
		writer_u64(to, row.weight);
	}
	again = rows;
	if (rows.weight != VALUE_SAMPLES && !rows.is_uncounted) { /* rows that are no samples have none */
		writer_puts(to, "],\n\"counts\":[");
		for (const char *between = ""; next_row(&again, &row) && !to->err; between = ",") {
			writer_puts(to, between);
			writer_u64(to, row.count);
		}
	}
	writer_puts(to, "]}");
}

static struct rows cpu_rows_of(const struct thread_tree *thread, uint64_t *ret_total)
{
	*ret_total = 0;
	for (uint32_t i = 0; i < thread->node_count; i++)
		*ret_total += thread->nodes[i].self[VALUE_CPU];
	return (struct rows){.thread = thread, .weight = VALUE_CPU};
}

static void write_thread(const struct profile *profile, const struct thread_tree *thread, bool is_cpu,
                         struct pair_set *frames, struct writer *to)
{
	struct stack_text stack;
	struct buf name = {0};
	uint64_t total;
	struct rows rows = is_cpu ? cpu_rows_of(thread, &total) : rows_of(profile, thread, &total);
	int err = stack_text_init(&stack, thread, frames);

	writer_fail(to, err);
	if (!to->err) {
		writer_puts(to, "\n{\"type\":\"sampled\",\"name\":");
		json_thread_name(&name, profile, thread);
		if (is_cpu)
			buf_puts(&name, ", CPU time");
		json_string_of(to, &name);
		writer_printf(to, ",\"unit\":\"%s\",\"startValue\":0,\"endValue\":%" PRIu64 ",\n",
		              is_cpu ? "nanoseconds" : unit_of(profile), total);
		write_identity(profile, thread, is_cpu, rows.by_runs, to);
		write_rows(rows, &stack, to);
	}
	stack_text_release(&stack);
	buf_release(&name);
}

static void write_frames(const struct profile *profile, struct pair_set *frames, struct writer *to)
{
	for (uint32_t i = 0; i < profile->thread_count; i++)
		for (uint32_t j = 1; j < profile->threads[i].node_count; j++) {
			const struct node *node = &profile->threads[i].nodes[j];

			if (pair_set_add(frames, node->symbol, node->line) == INTERN_FAILED)
				writer_fail(to, -ENOMEM);
		}
	writer_puts(to, "\"shared\":{\"frames\":[");
	for (uint32_t i = 0; i < frames->count && !to->err; i++) {
		struct pair frame = pair_set_get(frames, i);
		const struct symbol *symbol = &profile->symbols[frame.a];

		writer_puts(to, i ? ",\n{\"name\":" : "\n{\"name\":");
		writer_json_string(to, symbol->name);
		if (symbol->file[0]) {
			writer_puts(to, ",\"file\":");
			writer_json_string(to, symbol->file);
		}
		if (frame.b)
			writer_printf(to, ",\"line\":%" PRIu32, frame.b);
		writer_putc(to, '}');
	}
	writer_puts(to, "]}");
}

static bool has_rows(const struct thread_tree *thread, enum value_index weight)
{
	struct row row;
	struct rows rows = {.thread = thread, .weight = weight};

	return next_row(&rows, &row);
}

/* speedscope opens its view of time whatever the rows are. */
static bool is_in_order(const struct profile *profile)
{
	bool in_order = true;

	for (uint32_t i = 0; i < profile->thread_count && in_order; i++) {
		uint64_t total;
		bool by_runs = rows_of(profile, &profile->threads[i], &total).by_runs;

		in_order = by_runs || total == 0;
	}
	return in_order;
}

int speedscope_write(const struct profile *profile, const struct export_options *options, struct writer *to)
{
	struct pair_set frames = {0};
	struct buf title = {0};
	bool any = false;

	writer_puts(to, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
	                "\"exporter\":\"sampled " SAMPLED_VERSION "\",\"name\":");
	json_title(&title, profile, options);
	if (!is_in_order(profile))
		buf_puts(&title, " (no time order: see Left Heavy)");
	json_string_of(to, &title);
	writer_puts(to, ",\n\"sampled\":");
	json_facts(to, profile);
	writer_puts(to, ",\n");
	write_frames(profile, &frames, to);
	writer_puts(to, ",\n\"profiles\":[");
	for (uint32_t i = 0; i < profile->thread_count && !to->err; i++) {
		if (!has_rows(&profile->threads[i], profile_weight(profile)))
			continue;
		if (any)
			writer_putc(to, ',');
		any = true;
		write_thread(profile, &profile->threads[i], false, &frames, to);
	}
	for (uint32_t i = 0; any && profile_has(profile, VALUE_CPU) && i < profile->thread_count && !to->err; i++) {
		if (!has_rows(&profile->threads[i], VALUE_CPU))
			continue;
		writer_putc(to, ',');
		write_thread(profile, &profile->threads[i], true, &frames, to);
	}
	if (!any) /* speedscope shows the first profile, whatever there is */
		writer_printf(to,
		              "\n{\"type\":\"sampled\",\"name\":\"no samples\",\"unit\":\"%s\",\"startValue\":0,"
		              "\"endValue\":0,\"samples\":[],\"weights\":[]}",
		              unit_of(profile));
	writer_puts(to, "]}\n");
	pair_set_release(&frames);
	buf_release(&title);
	return to->err;
}
