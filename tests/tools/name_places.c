/* SPDX-License-Identifier: Apache-2.0 */
/* Names places of files as a profile's native frames are named, for tests and measuring.
 *
 *     name_places [--fold] [--interpreter] [--debuginfod] [--root DIR] [--perf-map FILE START] [--as PATH] [--build-id HEX] FILE < offsets
 *
 * Offsets of the file (of the memory, with a perf map) in hexadecimal, one a line; each is printed with its frames, outermost first, as
 * \tNAME|FILE|LINE. FILE is opened here and passed on, but with --build-id it is found by the child. Standard error: seconds it took, and the most
 * memory that one of the children had, in KiB. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "aggregator/builder.h"
#include "base/clock.h"
#include "exporters/names.h"

struct request {
	const char *file, *path;
	char build_id[2 * BUILD_ID_MAX + 1];
	uint8_t build_id_bytes[BUILD_ID_MAX];
	struct names_options options;
	struct names_module module;
};

static void parse(struct request *r, char **argv)
{
	for (argv++; *argv; argv++) {
		if (strcmp(*argv, "--fold") == 0)
			r->options.show = NATIVE_CALLS;
		else if (strcmp(*argv, "--interpreter") == 0)
			r->module.flags |= MAPPING_INTERPRETER;
		else if (strcmp(*argv, "--debuginfod") == 0)
			r->options.debuginfod = true;
		else if (strcmp(*argv, "--root") == 0 && argv[1])
			r->module.root_fd = open(*++argv, O_PATH | O_DIRECTORY | O_CLOEXEC);
		else if (strcmp(*argv, "--as") == 0 && argv[1])
			r->path = *++argv;
		else if (strcmp(*argv, "--build-id") == 0 && argv[1])
			snprintf(r->build_id, sizeof(r->build_id), "%s", *++argv);
		else if (strcmp(*argv, "--timeout-ms") == 0 && argv[1])
			r->options.timeout_ns = strtoull(*++argv, NULL, 10) * NS_PER_MS;
		else if (strcmp(*argv, "--perf-map") == 0 && argv[1] && argv[2]) {
			r->module.perf_map_fd = open(*++argv, O_RDONLY | O_CLOEXEC);
			r->module.start = strtoull(*++argv, NULL, 16);
			r->module.flags |= MAPPING_MEMORY;
		} else {
			r->file = *argv;
		}
	}
	if (!r->path)
		r->path = r->file;
}

static void make_known(struct request *r, struct names *names)
{
	r->module.path = r->path;
	r->module.build_id = r->build_id_bytes;
	while (r->module.build_id_bytes < BUILD_ID_MAX && sscanf(r->build_id + 2 * r->module.build_id_bytes, "%2hhx",
	                                                         &r->build_id_bytes[r->module.build_id_bytes]) == 1)
		r->module.build_id_bytes++;
	if (r->module.build_id_bytes && r->module.root_fd < 0)
		return; /* as in a profile of another time: nothing but its path and build id */
	if (!r->module.build_id_bytes && r->file[0] == '/')
		r->module.fd = open(r->file, O_RDONLY | O_CLOEXEC);
	names_add(names, &r->module);
}

/* One stack for each offset. */
static struct profile *make_profile(const struct request *r, uint32_t **ret_offsets, size_t *ret_count)
{
	struct builder_options options = {0};
	struct symbol symbol = {.name = "mapping",
	                        .file = "",
	                        .module = r->path,
	                        .build_id = r->build_id,
	                        .mapped = true,
	                        .kind = FRAME_NATIVE,
	                        .flags = (uint8_t)r->module.flags};
	uint64_t values[VALUE_COUNT] = {1};
	struct profile *profile;
	struct builder *builder;
	uint32_t thread, number;
	size_t room = 0;
	char line[64];

	if (builder_new(&builder, &options))
		exit(1);
	builder_process(builder, &(struct process){.pid = 1});
	thread = builder_thread(builder, &(struct thread_tree){.tid = 1});
	number = builder_symbol_like(builder, &symbol);
	while (fgets(line, sizeof(line), stdin)) {
		uint32_t offset = (uint32_t)strtoul(line, NULL, 16);

		if (*ret_count == room) {
			room = room ? room * 2 : 1024;
			*ret_offsets = realloc(*ret_offsets, room * sizeof(**ret_offsets));
			if (!*ret_offsets)
				exit(1);
		}
		(*ret_offsets)[(*ret_count)++] = offset;
		builder_add(builder, thread, builder_child(builder, thread, 0, number, offset), values);
	}
	if (builder_finish(builder, &profile))
		exit(1);
	builder_free(builder);
	return profile;
}

static void print(const struct request *r, struct names *names, const struct profile *profile, uint32_t offset)
{
	struct named_frame frames[NAMED_FRAMES_MAX];
	struct node node = {.line = offset};
	size_t count;

	(void)r;
	while (!profile->symbols[node.symbol].mapped)
		node.symbol++;
	count = names_frames(names, profile, &node, frames, NAMED_FRAMES_MAX);
	printf("%x%s", offset, count == FRAMES_SAME ? "\t?" : "");
	for (size_t i = 0; count != FRAMES_SAME && i < count; i++)
		printf("\t%s|%s|%u", frames[i].name, frames[i].file, frames[i].line);
	printf("\n");
}

int main(int argc, char **argv)
{
	struct request r = {.options = {.show = NATIVE_ALL, .urls = getenv("DEBUGINFOD_URLS")},
	                    .module = {.fd = -1, .root_fd = -1, .perf_map_fd = -1}};
	uint32_t *offsets = NULL;
	struct profile *profile;
	struct names *names;
	struct rusage usage;
	uint64_t start_ns;
	size_t count = 0;
	int err;

	if (argc < 2)
		return 2;
	parse(&r, argv);
	if (!r.file || names_new(&names, &r.options))
		return 1;
	make_known(&r, names);
	profile = make_profile(&r, &offsets, &count);
	start_ns = clock_now_ns();
	err = names_prepare(names, profile);
	fprintf(stderr, "%.3f s", (double)(clock_now_ns() - start_ns) / (double)NS_PER_S);
	for (size_t i = 0; i < count; i++)
		print(&r, names, profile, offsets[i]);
	names_free(names);
	getrusage(RUSAGE_CHILDREN, &usage);
	fprintf(stderr, ", %ld KiB%s%s\n", usage.ru_maxrss, err ? ": " : "", err ? strerror(-err) : "");
	profile_free(profile);
	free(offsets);
	return 0;
}
