/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/build_profile.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *grown(void *array, size_t count, size_t bytes)
{
	/* Doubles at powers of two, so that 100,000 nodes are made in no time. */
	if ((count & (count - 1)) == 0)
		array = realloc(array, (count ? 2 * count : 1) * bytes);
	if (!array)
		abort();
	return array;
}

static char *copied(const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		abort();
	return copy;
}

struct profile *built_new(void)
{
	struct profile *profile = calloc(1, sizeof(*profile));

	if (!profile)
		abort();
	*profile = (struct profile){.t_start_ns = 1000000000,
	                            .t_end_ns = 6000000000,
	                            .wall_start_ns = 1700000000000000000,
	                            .interval_ns = 1000000,
	                            .mode = "wall"};
	memcpy(profile->values, profile_value_types, VALUE_CPU * sizeof(profile->values[0]));
	profile->has_runs = true;
	return profile;
}

void built_cpu_time(struct profile *profile)
{
	for (int v = VALUE_CPU; v <= VALUE_RUN_WAIT; v++)
		profile->values[v] = profile_value_types[v];
	for (uint32_t t = 0; t < profile->thread_count; t++)
		for (uint32_t n = 0; n < profile->threads[t].node_count; n++) {
			uint64_t *self = profile->threads[t].nodes[n].self;

			self[VALUE_CPU] = self[VALUE_RUNNABLE] / 10 * 7;
			self[VALUE_RUN_WAIT] = self[VALUE_RUNNABLE] / 10;
		}
}

void built_free(struct profile *profile)
{
	for (uint32_t i = 0; i < profile->symbol_count; i++) {
		free((char *)profile->symbols[i].name);
		free((char *)profile->symbols[i].file);
		free((char *)profile->symbols[i].module);
		free((char *)profile->symbols[i].build_id);
	}
	for (uint32_t i = 0; i < profile->thread_count; i++) {
		free(profile->threads[i].name);
		free(profile->threads[i].nodes);
		free(profile->threads[i].runs);
	}
	for (uint32_t i = 0; i < profile->process_count; i++)
		free(profile->processes[i].name);
	free(profile->symbols);
	free(profile->threads);
	free(profile->processes);
	free(profile);
}

uint32_t built_process(struct profile *profile, int32_t pid, const char *name)
{
	profile->processes = grown(profile->processes, profile->process_count, sizeof(*profile->processes));
	profile->processes[profile->process_count] = (struct process){
		.pid = pid,
		.parent_pid = 1,
		.name = copied(name),
		.version = 0x030c01,
		.facts = {.interval_ns = 1000000, .t_start_ns = 1000000000, .t_last_ns = 6000000000, .ticks = 5001}};
	return profile->process_count++;
}

uint32_t built_thread(struct profile *profile, uint32_t process, int64_t interpreter, uint64_t tid, const char *name)
{
	struct thread_tree *tree;

	profile->threads = grown(profile->threads, profile->thread_count, sizeof(*profile->threads));
	tree = &profile->threads[profile->thread_count];
	*tree = (struct thread_tree){.process = process,
	                             .interpreter = interpreter,
	                             .tid = tid,
	                             .node_count = 1,
	                             .is_main = (int64_t)tid == profile->processes[process].pid,
	                             .name = name ? copied(name) : NULL};
	tree->nodes = grown(NULL, 0, sizeof(*tree->nodes));
	tree->nodes[0] = (struct node){0};
	return profile->thread_count++;
}

uint32_t built_symbol(struct profile *profile, const char *name, const char *file, uint32_t first_line)
{
	profile->symbols = grown(profile->symbols, profile->symbol_count, sizeof(*profile->symbols));
	profile->symbols[profile->symbol_count] = (struct symbol){.name = copied(name),
	                                                          .file = copied(file),
	                                                          .module = copied(""),
	                                                          .build_id = copied(""),
	                                                          .first_line = first_line,
	                                                          .kind = file[0] ? FRAME_PYTHON : FRAME_SPECIAL};
	return profile->symbol_count++;
}

uint32_t built_native(struct profile *profile, const char *name, const char *file, uint32_t first_line,
                      const char *module, const char *build_id)
{
	uint32_t index = built_symbol(profile, name, file, first_line);
	struct symbol *symbol = &profile->symbols[index];

	free((char *)symbol->module);
	free((char *)symbol->build_id);
	symbol->module = copied(module);
	symbol->build_id = copied(build_id);
	symbol->kind = FRAME_NATIVE;
	return index;
}

uint32_t built_mapping(struct profile *profile, const char *module, const char *build_id)
{
	const char *slash = strrchr(module, '/');
	uint32_t index = built_native(profile, slash ? slash + 1 : module[0] ? module : "[memory]", "", 0, module, build_id);

	profile->symbols[index].mapped = true;
	profile->symbols[index].mapped_from = 0x1000;
	profile->symbols[index].mapped_to = 0x1001000;
	return index;
}

uint32_t built_child(struct profile *profile, uint32_t thread, uint32_t parent, uint32_t symbol, uint32_t line)
{
	struct thread_tree *tree = &profile->threads[thread];
	uint32_t child = tree->nodes[parent].child, depth = 1;

	for (; child; child = tree->nodes[child].sibling)
		if (tree->nodes[child].symbol == symbol && tree->nodes[child].line == line)
			return child;
	tree->nodes = grown(tree->nodes, tree->node_count, sizeof(*tree->nodes));
	child = tree->node_count++;
	tree->nodes[child] =
		(struct node){.parent = parent, .sibling = tree->nodes[parent].child, .symbol = symbol, .line = line};
	tree->nodes[parent].child = child;
	for (uint32_t at = parent; at; at = tree->nodes[at].parent)
		depth++;
	tree->depth_max = depth > tree->depth_max ? depth : tree->depth_max;
	return child;
}

/* One sample a millisecond, from the profile's start on. */
static void add_run(struct profile *profile, struct thread_tree *tree, uint32_t node, uint64_t count, unsigned status)
{
	uint64_t t_first_ns = profile->t_start_ns;

	if (tree->run_count > 0) {
		const struct run *last = &tree->runs[tree->run_count - 1];

		t_first_ns = last->t_first_ns + last->span_ns + 1000000;
	} else {
		tree->t_first_ns = t_first_ns;
	}
	tree->runs = grown(tree->runs, tree->run_count, sizeof(*tree->runs));
	tree->runs[tree->run_count++] = (struct run){.t_first_ns = t_first_ns,
	                                             .span_ns = (uint32_t)(count - 1) * 1000000,
	                                             .weight_ns = (uint32_t)count * 1000000,
	                                             .node = node,
	                                             .status = status & 0xff,
	                                             .count = (uint32_t)count & RUN_COUNT_MAX};
	tree->t_last_ns = t_first_ns + (count - 1) * 1000000;
	if (profile->t_end_ns <= tree->t_last_ns)
		profile->t_end_ns = tree->t_last_ns + 1000000;
}

void built_sample(struct profile *profile, uint32_t thread, uint32_t node, uint64_t count, unsigned status)
{
	static const struct {
		unsigned status;
		enum value_index value;
	} bits[] = {{STATUS_RUNNABLE, VALUE_RUNNABLE},      {STATUS_GIL, VALUE_GIL},
	            {STATUS_GIL_WAIT, VALUE_GIL_WAIT},  {STATUS_IDLE, VALUE_IDLE},
	            {STATUS_UNKNOWN, VALUE_UNKNOWN},    {STATUS_GC, VALUE_GC},
	            {STATUS_EXCEPTION, VALUE_EXCEPTION}};
	struct thread_tree *tree = &profile->threads[thread];
	struct rec_facts *facts = &profile->processes[tree->process].facts;
	uint64_t *self = tree->nodes[node].self;

	self[VALUE_SAMPLES] += count;
	self[VALUE_WALL] += count * 1000000;
	for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
		if (status & bits[i].status)
			self[bits[i].value] += count * 1000000;
	add_run(profile, tree, node, count, status);
	facts->attempts += count;
	facts->samples += count;
	facts->runs++;
}

void built_short_sample(struct profile *profile, uint32_t thread, uint32_t node, uint32_t weight_ns)
{
	struct thread_tree *tree = &profile->threads[thread];

	built_sample(profile, thread, node, 1, 0);
	tree->nodes[node].self[VALUE_WALL] -= 1000000 - weight_ns;
	tree->runs[tree->run_count - 1].weight_ns = weight_ns;
}

static struct source_place own_place;

static const struct source_place *enter_own(void *context, int32_t pid, uint64_t start_time)
{
	(void)context;
	(void)pid;
	(void)start_time;
	return source_place_open(&own_place, (int32_t)getpid()) == 0 ? &own_place : NULL;
}

static void leave_own(void *context)
{
	(void)context;
	source_place_close(&own_place);
}

const struct source_access built_sources = {.enter = enter_own, .leave = leave_own};

struct profile *built_deepest(void)
{
	struct profile *p = built_new();
	uint32_t t = built_thread(p, built_process(p, 1, "x"), 0, 1, NULL), f = built_symbol(p, "f", "a.py", 1), at = 0;

	for (unsigned i = 0; i < REC_DEPTH_MAX; i++)
		at = built_child(p, t, at, f, 2);
	built_sample(p, t, at, 9, 0);
	return p;
}

struct profile *built_finish(struct builder *builder)
{
	struct profile *profile;

	if (builder_finish(builder, &profile))
		abort();
	builder_free(builder);
	return profile;
}
