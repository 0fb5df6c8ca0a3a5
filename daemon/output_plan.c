/* SPDX-License-Identifier: Apache-2.0 */
/* What is to be written where: of -f, -o, --record and --svg. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/graphviz.h"
#include "daemon/output.h"
#include "daemon/terminal.h"
#include "exporters/writer.h"

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Names one output. path: as given with -o, "-", or NULL for the default; is_stem: the format's suffix is added. */
static int name_output(struct output *o, const char *path, bool is_stem, const char *default_stem)
{
	const char *dot = path ? strrchr(base_name(path), '.') : NULL;

	o->suffix = o->format->suffix;
	o->svg = !is_stem && graphviz_is_meant(o->format, path);
	if (!path || writer_is_stdout(path)) {
		o->stem = strdup(default_stem);
		if (o->stem && !path && asprintf(&o->path, "%s%s", default_stem, o->suffix) < 0)
			o->path = NULL;
		return o->stem && (path || o->path) ? 0 : -ENOMEM;
	}
	if (writer_is_stream(path)) { /* there is no place for snapshots beside it */
		o->stem = strdup(default_stem);
		o->path = strdup(path);
		return o->stem && o->path ? 0 : -ENOMEM;
	}
	if (is_stem) {
		o->stem = strdup(path);
		if (asprintf(&o->path, "%s%s", path, o->suffix) < 0)
			o->path = NULL;
	} else {
		size_t bytes = strlen(path), suffix_bytes = strlen(o->suffix);

		o->path = strdup(path);
		if (!o->path)
			return -ENOMEM;
		/* A suffix of several parts is taken whole; another name's last part; a name without keeps its
		 * stem whole. */
		if (bytes > suffix_bytes && strcasecmp(path + bytes - suffix_bytes, o->suffix) == 0)
			dot = path + bytes - suffix_bytes;
		if (dot && dot > base_name(path))
			o->suffix = o->path + (dot - path);
		else
			dot = path + bytes;
		o->stem = strndup(path, (size_t)(dot - path));
	}
	return o->stem && o->path ? 0 : -ENOMEM;
}

static bool is_format(const struct output *o, const char *name)
{
	return o->format && strcmp(o->format->name, name) == 0;
}

static int check_pairs(const struct outputs *outputs, struct fault *fault)
{
	const char *record = outputs->recorder.path;

	for (size_t i = 0; i < outputs->count && record; i++)
		if (outputs->items[i].path && strcmp(outputs->items[i].path, record) == 0)
			return fault_set(fault, -EINVAL, "", "%s: named for two files", record);
	for (size_t i = 0; i < outputs->count; i++) {
		/* One that grows while sampling goes on survives whatever ends us. */
		if (is_format(&outputs->items[i], "recording"))
			return fault_set(fault, -EINVAL, "--record FILE writes one while sampling goes on",
			                 "a recording is no output of -f and -o here");
		for (size_t j = i + 1; j < outputs->count; j++) {
			const struct output *a = &outputs->items[i], *b = &outputs->items[j];

			if (!a->path || !b->path)
				return fault_set(fault, -EINVAL, "", "-o -: standard output takes one format only");
			if (strcmp(a->path, b->path) == 0)
				return fault_set(fault, -EINVAL, "give each format its own -o",
				                 "-o %s: named for two formats", a->path);
		}
	}
	return 0;
}

/* --svg: a call graph beside each pstats file, named as that is. There is room for as many again. */
static int add_svg(struct outputs *outputs, struct fault *fault)
{
	size_t count = outputs->count;

	for (size_t i = 0; i < count; i++) {
		const struct output *beside = &outputs->items[i];
		struct output *o = &outputs->items[outputs->count];

		if (!is_format(beside, "pstats"))
			continue;
		if (!beside->path)
			return fault_set(fault, -EINVAL, "name the pstats file with -o",
			                 "--svg: there is no place beside standard output");
		*o = (struct output){.format = format_by_name("dot"), .suffix = ".svg", .svg = true};
		outputs->count++;
		o->stem = strdup(beside->stem);
		if (asprintf(&o->path, "%s.svg", beside->stem) < 0)
			o->path = NULL;
		if (!o->stem || !o->path)
			return -ENOMEM;
	}
	if (outputs->count == count)
		return fault_set(fault, -EINVAL, "-f dot -o NAME.svg writes the call graph alone",
		                 "--svg: goes with -f pstats");
	return 0;
}

int outputs_plan(struct outputs *ret_outputs, const struct options *options, pid_t pid, time_t now, struct fault *fault)
{
	size_t formats = options->formats.count, paths = options->outputs.count;
	size_t count = formats > paths ? formats : paths;
	bool is_stem = paths == 1 && formats > 1;
	char stem[64], time_text[32];
	struct tm local;
	int err = 0;

	*ret_outputs =
		(struct outputs){.lock = PTHREAD_MUTEX_INITIALIZER, .recorder = {.fd = -1, .path = options->record}};
	if (formats && paths && formats != paths && !is_stem)
		return fault_set(fault, -EINVAL, "as many -o as -f, or one -o as the stem of all",
		                 "%zu -f and %zu -o do not pair", formats, paths);
	if (is_stem && writer_is_stream(options->outputs.items[0]))
		return fault_set(fault, -EINVAL, "", "-o %s: %s takes one format only", options->outputs.items[0],
		                 writer_is_stdout(options->outputs.items[0]) ? "standard output" : "a stream");
	if (count == 0 && !options->record && !options->push)
		count = 1;
	ret_outputs->items = calloc(2 * count + 1, sizeof(*ret_outputs->items));
	ret_outputs->writer = calloc(1, sizeof(*ret_outputs->writer));
	if (!ret_outputs->items || !ret_outputs->writer) {
		err = -ENOMEM;
		goto fail;
	}
	localtime_r(&now, &local);
	strftime(time_text, sizeof(time_text), "%Y%m%d-%H%M%S", &local);
	snprintf(stem, sizeof(stem), "sampled-%d-%s", (int)pid, time_text);
	for (size_t i = 0; i < count; i++) {
		struct output *o = &ret_outputs->items[ret_outputs->count++];
		const char *path = is_stem ? options->outputs.items[0] : i < paths ? options->outputs.items[i] : NULL;

		err = output_choose_format(i < formats ? options->formats.items[i] : NULL, path, &o->format, fault);
		if (!err)
			err = name_output(o, path, is_stem, stem);
		if (err)
			goto fail;
	}
	if (options->svg)
		err = add_svg(ret_outputs, fault);
	if (!err)
		err = check_pairs(ret_outputs, fault);
	if (err)
		goto fail;
	if (count > 0)
		ret_outputs->recorder.beside = ret_outputs->items[0].path;
	ret_outputs->options = (struct export_options){.collapsed_style = options->collapsed_style};
	ret_outputs->options.color = terminal_color(STDOUT_FILENO) && outputs_use_stdout(ret_outputs);
	if (outputs_use_stdout(ret_outputs) && isatty(STDOUT_FILENO))
		ret_outputs->options.columns = terminal_columns(STDOUT_FILENO);
	return 0;
fail:
	outputs_release(ret_outputs);
	return err == -ENOMEM ? fault_set(fault, err, "", "out of memory") : err;
}
