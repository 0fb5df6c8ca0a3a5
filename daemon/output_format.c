/* SPDX-License-Identifier: Apache-2.0 */
/* Which format is meant: by -f, or by the name of what is written. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/nearest.h"
#include "daemon/output.h"
#include "exporters/writer.h"

/* The format that was meant: "flame" is one broken off, "html" and ".html" are a suffix. */
static void hint_at_format(const char *name, const char *else_hint, char *hint, size_t room)
{
	struct nearest near = {.word = name};
	const char *names = format_names();
	char words[512], suffix[32], *rest = words;
	const struct format *format;

	snprintf(suffix, sizeof(suffix), "x%s%s", name[0] == '.' ? "" : ".", name);
	format = format_by_suffix(suffix);
	if (format) {
		snprintf(hint, room, "is it %s?", format->name);
		return;
	}
	snprintf(words, sizeof(words), "%s", names);
	for (char *word; (word = strsep(&rest, " ")) != NULL;)
		nearest_offer(&near, word);
	nearest_hint(&near, "", else_hint, hint, room);
}

static int find_format(const char *name, const struct format **ret_format, struct fault *fault)
{
	const struct format *format = format_by_name(name);
	char hint[256], all[256];

	if (format && format_is_written(format)) {
		*ret_format = format;
		return 0;
	}
	snprintf(all, sizeof(all), "formats: %s", format_names());
	hint_at_format(name, all, hint, sizeof(hint));
	fault_set(fault, -EINVAL, hint, format ? "-f %s: it can only be read" : "-f %s: no such format", name);
	return -EINVAL;
}

/* A name without any suffix, and standard output, get the default format. */
static int guess_format(const char *path, const struct format **ret_format, struct fault *fault)
{
	const char *slash = strrchr(path, '/');
	char hint[256];

	*ret_format = format_by_suffix(path);
	if (*ret_format)
		return 0;
	if (writer_is_stream(path) || !strchr(slash ? slash : path, '.'))
		return find_format("flamegraph", ret_format, fault);
	snprintf(hint, sizeof(hint), "choose a format with -f: %s", format_names());
	fault_set(fault, -EINVAL, hint, "-o %s: unknown suffix %.32s", path, strrchr(path, '.'));
	return -EINVAL;
}

int output_choose_format(const char *name, const char *path, const struct format **ret_format, struct fault *fault)
{
	return name ? find_format(name, ret_format, fault) : guess_format(path ? path : "-", ret_format, fault);
}

int output_check_inputs(const char *path, char *const *inputs, int count, struct fault *fault)
{
	struct stat to, from;

	if (writer_is_stream(path) || stat(path, &to) != 0 || !S_ISREG(to.st_mode))
		return 0;
	for (int i = 0; i < count; i++)
		if (stat(inputs[i], &from) == 0 && from.st_dev == to.st_dev && from.st_ino == to.st_ino)
			return fault_set(fault, -EINVAL, "write another file, so that the input is kept",
			                 "-o %s: it is the input %s", path, inputs[i]);
	return 0;
}

const char *output_open_with(const struct format *format)
{
	static const struct {
		const char *format, *command;
	} commands[] = {
		{"flamegraph", "xdg-open "},
		{"heatmap", "xdg-open "},
		{"svg", "xdg-open "},
		{"text", "less "},
		{"collapsed", "sampled report "},
		{"pstats", "python3 -m pstats "},
		{"pprof", "go tool pprof -http=: "},
		{"speedscope", "https://www.speedscope.app with "},
		{"firefox", "https://profiler.firefox.com with "},
		{"chrome", "https://ui.perfetto.dev with "},
		{"callgrind", "kcachegrind "},
		{"dot", "dot -Tsvg -O "},
	};

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(format->name, commands[i].format) == 0)
			return commands[i].command;
	return NULL;
}
