/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/choose.h"
#include "daemon/error.h"
#include "daemon/naming.h"
#include "daemon/thread_names.h"
#include "exporters/facts.h"
#include "exporters/foreign.h"

/* The value that is asked for becomes the weight; where none is, and the weight is nothing but zeros, another one, which is said. */
static int choose_value(struct profile *profile, const char *name, struct fault *fault)
{
	enum value_index value = name ? profile_find_value(profile, name) : profile_value_instead(profile);
	enum value_index weight = profile_weight(profile);
	char names[160] = "";

	if (value < VALUE_COUNT) {
		if (!name)
			fault_set(fault, 0, "--value NAME takes another",
			          "%.60s is zero in every sample: shares are of %.60s", profile->values[weight].name,
			          profile->values[value].name);
		profile_choose_value(profile, value);
		return 0;
	}
	for (enum value_index v = 0; name && v < VALUE_COUNT; v++)
		if (profile->values[v].name)
			snprintf(names + strlen(names), sizeof(names) - strlen(names), " %s", profile->values[v].name);
	return name ? fault_set(fault, -EINVAL, "", "it has no value %.60s; its values:%s", name, names) : 0;
}

static int read_profile(struct loaded *to, struct input *in, const struct filters *filters, enum format_needs needs,
                        struct fault *fault)
{
	struct builder_options options = {.memory_max_bytes = LOAD_TREES_MAX_BYTES,
	                                  .runs = needs != NEEDS_PROFILE,
	                                  .runs_optional = needs == WANTS_RUNS,
	                                  .runs_max = LOAD_RUNS_MAX,
	                                  .from_ns = filters->from_ns,
	                                  .to_ns = filters->to_ns,
	                                  .mode = filters->mode,
	                                  .no_idle = filters->no_idle};
	struct builder *builder;
	int err = builder_new(&builder, &options);

	if (err)
		return fault_set(fault, err, "", "out of memory");
	err = to->format->read(in, builder, fault);
	if (err == 0 || builder_error(builder)) {
		err = builder_finish(builder, &to->profile);
		if (!err && filters->mode != MODE_WALL)
			to->profile->mode = sample_mode_names[filters->mode];
		if (!err && to->profile->named)
			err = profile_name(&to->profile, named_of_profile, NULL);
		if (!err)
			naming_of_host(&to->profile);
		if (!err)
			err = choose_value(to->profile, filters->value, fault);
		if (err == -EINVAL)
			goto out;
		if (err == -E2BIG)
			fault_set(fault, err, "--from and --to take a part of it",
			          "it has more samples than fit into this format");
		else if (err)
			fault_set(fault, err, "", "%s", strerror(-err));
	}
out:
	builder_free(builder);
	return err;
}

static int refuse(struct input *in, struct fault *fault)
{
	const unsigned char *head;
	size_t bytes = input_peek(in, &head, FORMAT_HEAD_BYTES);
	const struct foreign *foreign = foreign_by_content(head, bytes);
	char hint[256];

	if (foreign)
		return fault_set(fault, -ENOTSUP, foreign->hint, "it is %s, which is not read", foreign->name);
	snprintf(hint, sizeof(hint), "supported: %s", format_read_names());
	return fault_set(fault, -ENOTSUP, hint, bytes == 0 ? "it is empty" : "unrecognised format");
}

static int load(struct loaded *to, struct input *in, const struct filters *filters, enum format_needs needs,
                struct fault *fault)
{
	to->format = format_by_content(in);
	if (in->err)
		return fault_set(fault, in->err, "", in->err == -EPROTO ? "its compressed data is damaged" : "%s",
		                 strerror(-in->err));
	if (!to->format)
		return refuse(in, fault);
	if (to->format->read_callgraph) {
		if (filters_need_profile(filters) || needs == NEEDS_RUNS)
			return fault_set(fault, -EINVAL, "only function totals are in it; --strip-dirs works",
			                 "%s files hold no stacks, so this cannot be done with them", to->format->name);
		to->graph.value = filters->value;
		return to->format->read_callgraph(in, &to->graph, fault);
	}
	if ((needs == NEEDS_RUNS || filters->from_ns || filters->to_ns) && !to->format->timed)
		return fault_set(fault, -EINVAL, "a recording (.sampled) has it",
		                 "%s files hold no time order, so this cannot be done with them", to->format->name);
	if (filters_need_states(filters) && !to->format->states)
		return fault_set(fault, -EINVAL, "a recording (.sampled) has them",
		                 "%s files hold no states of threads, so this cannot be done with them", to->format->name);
	return read_profile(to, in, filters, to->format->timed ? needs : NEEDS_PROFILE, fault);
}

int load_file(struct loaded *ret_loaded, const char *path, const struct filters *filters, enum format_needs needs,
              struct fault *fault)
{
	struct input *in = malloc(sizeof(*in));
	int err;

	*ret_loaded = (struct loaded){0};
	callgraph_init(&ret_loaded->graph);
	fault->why[0] = fault->hint[0] = '\0';
	if (!in)
		return fault_set(fault, -ENOMEM, "", "out of memory");
	err = input_open(in, path, fault);
	if (!err) {
		err = load(ret_loaded, in, filters, needs, fault);
		input_close(in);
	}
	free(in);
	if (err) {
		if (fault->why[0] == '\0')
			fault_set(fault, err, "", "%s", strerror(-err));
		loaded_release(ret_loaded);
	}
	return err;
}

void loaded_release(struct loaded *loaded)
{
	profile_free(loaded->profile);
	loaded->profile = NULL;
	callgraph_release(&loaded->graph);
}

/* What the shares of a file are of, in words: "wall, in nanoseconds". */
static void describe_weight(const struct loaded *of, char *to, size_t room)
{
	const struct value_type *type = of->profile ? &of->profile->values[profile_weight(of->profile)] : NULL;

	if (!type)
		snprintf(to, room, "%s", of->graph.unit);
	else if (strcmp(type->unit, "count") == 0)
		snprintf(to, room, "%.60s", type->name);
	else
		snprintf(to, room, "%.60s, in %.30s", type->name, type->unit);
}

/* The result of all inputs so far. */
struct joining {
	struct builder *builder; /* NULL: they are call graphs */
	struct thread_names threads; /* that there are in all of them */
	char weight[100];        /* what they are counted in */
	struct loaded result;
};

static int join(struct joining *j, const struct loaded *from, const struct filters *filters, bool runs, bool first,
                struct fault *fault)
{
	struct builder_options options = {.memory_max_bytes = LOAD_TREES_MAX_BYTES, .runs = runs};
	struct transform how = filters->how;
	char weight[sizeof(j->weight)];
	int err = 0;

	for (uint32_t i = 0; from->profile && i < from->profile->thread_count; i++)
		thread_names_take(&j->threads, from->profile->threads[i].name, from->profile->threads[i].tid);
	how.min_percent = 0; /* of the whole, when the whole is there */
	describe_weight(from, weight, sizeof(weight));
	if (first && from->profile)
		err = builder_new(&j->builder, &options);
	if (!err && !first && !from->profile != !j->builder)
		return fault_set(fault, -EINVAL, "convert each by itself",
		                 "%s files hold no stacks, and others do: they cannot be merged",
		                 from->profile ? j->result.format->name : from->format->name);
	if (!err && !first && strcmp(weight, j->weight) != 0)
		return fault_set(fault, -EINVAL,
		                 from->profile ? "--value NAME takes a value that all of them have, such as samples"
		                               : "convert each by itself",
		                 "it counts %s, and those before it %s: they cannot be added", weight, j->weight);
	if (first)
		snprintf(j->weight, sizeof(j->weight), "%s", weight);
	if (!err)
		err = from->profile ? transform_add(j->builder, from->profile, &how)
		                    : callgraph_add(&j->result.graph, &from->graph);
	if (first)
		j->result.format = from->format;
	return err ? fault_set(fault, err, "", "%s", strerror(-err)) : 0;
}

static int prune(struct profile **profile, double min_percent, bool runs)
{
	struct builder_options options = {.memory_max_bytes = LOAD_TREES_MAX_BYTES, .runs = runs};
	struct builder *builder;
	struct profile *pruned;
	int err = builder_new(&builder, &options);

	if (err)
		return err;
	err = transform_add(builder, *profile, &(struct transform){.min_percent = min_percent});
	if (!err)
		err = builder_finish(builder, &pruned);
	builder_free(builder);
	if (!err) {
		profile_free(*profile);
		*profile = pruned;
	}
	return err;
}

static int finish(struct joining *j, const struct filters *filters, bool runs)
{
	int err = 0;

	if (j->builder)
		err = builder_finish(j->builder, &j->result.profile);
	if (!err && j->result.profile && filters->how.min_percent > 0)
		err = prune(&j->result.profile, filters->how.min_percent, runs);
	return err;
}

static const char *input_name(const char *path)
{
	return strcmp(path, "-") == 0 ? "standard input" : path;
}

/* Says why a profile is empty, and whether the filters may have done it. */
static bool check_empty(const struct profile *profile, const struct filters *filters, const char *what)
{
	uint64_t left_out = profile->filtered + profile->omitted;
	char number[32];

	if (profile_sum(profile, VALUE_SAMPLES) > 0 || profile_sum(profile, profile_weight(profile)) > 0)
		return false;
	if (left_out > 0) {
		facts_count_text(number, sizeof(number), left_out);
		error_note("%s: no samples are left; options leave out all %s", what, number);
	} else if (filters->from_ns || filters->to_ns) {
		error_note("%s: no samples are left; none lie between --from and --to", what);
	} else if (filters_need_profile(filters)) {
		error_note("%s: no samples are left; options leave out all", what);
	}
	return filters_need_profile(filters);
}

int load_all(struct loaded *ret_loaded, char *const *paths, int count, const struct filters *filters,
             enum format_needs needs)
{
	bool runs = needs != NEEDS_PROFILE, missing = false;
	struct joining j = {.threads = {.asked = &filters->threads}};
	struct fault fault = {0};
	int err = 0;

	callgraph_init(&j.result.graph);
	j.result.graph.strip_dirs = filters->how.strip_dirs;
	for (int i = 0; i < count && !err; i++) {
		struct loaded one;

		err = load_file(&one, paths[i], filters, needs, &fault);
		if (!err && fault.why[0])
			error_fault(&fault, "%s", input_name(paths[i]));
		if (!err && count == 1 && one.profile && !filters_fold(filters)) {
			j.result = one; /* as it is: no second tree */
		} else if (!err) {
			err = join(&j, &one, filters, runs, i == 0, &fault);
			loaded_release(&one);
		}
		if (err)
			error_fault(&fault, "cannot read %s", input_name(paths[i]));
	}
	if (!err) {
		err = finish(&j, filters, runs);
		if (err)
			error_note("cannot merge: %s", strerror(-err));
	}
	builder_free(j.builder);
	if (!err)
		missing = thread_names_check(&j.threads, true);
	thread_names_release(&j.threads);
	if (err || missing) {
		loaded_release(&j.result);
		return err == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
	}
	if (j.result.profile)
		j.result.is_empty = check_empty(j.result.profile, filters, count == 1 ? input_name(paths[0]) : "all inputs");
	*ret_loaded = j.result;
	return EXIT_DONE;
}
