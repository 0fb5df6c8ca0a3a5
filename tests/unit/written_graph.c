/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/written_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int open_memory(struct writer *to)
{
	int fd = memfd_create("written", MFD_CLOEXEC);

	if (fd < 0)
		abort();
	writer_open_fd(to, fd);
	return fd;
}

static char *take_text(struct writer *to, int fd, size_t *ret_bytes)
{
	char *text;

	if (writer_close(to, NULL) != 0)
		abort();
	text = malloc(to->bytes + 1);
	if (!text || pread(fd, text, to->bytes, 0) != (ssize_t)to->bytes)
		abort();
	text[to->bytes] = '\0';
	if (ret_bytes)
		*ret_bytes = to->bytes;
	close(fd);
	return text;
}

char *written_graph(const struct callgraph *graph, const char *format, size_t *ret_bytes)
{
	static struct writer to;
	int fd = open_memory(&to);

	if (format_by_name(format)->write_callgraph(graph, &(struct export_options){0}, &to) != 0)
		abort();
	return take_text(&to, fd, ret_bytes);
}

char *written_graph_of(const struct profile *profile, const char *format, size_t *ret_bytes)
{
	static struct writer to;
	int fd = open_memory(&to);

	if (format_write(format_by_name(format), profile, &(struct export_options){0}, &to) != 0)
		abort();
	return take_text(&to, fd, ret_bytes);
}

int read_graph(const void *data, size_t bytes, const char *format, struct callgraph *ret_graph, struct fault *fault)
{
	static struct input in;
	int err;

	callgraph_init(ret_graph);
	if (input_open_bytes(&in, data, bytes) != 0)
		abort();
	err = format_by_name(format)->read_callgraph(&in, ret_graph, fault);
	input_close(&in);
	return err;
}

const struct callgraph_function *graph_function(const struct callgraph *graph, const char *name)
{
	const struct callgraph_function *found = NULL;

	for (uint32_t i = 0; i < graph->function_count; i++)
		if (strcmp(callgraph_name(graph, i), name) == 0) {
			if (found)
				abort();
			found = &graph->functions[i];
		}
	if (!found)
		abort();
	return found;
}

const struct callgraph_edge *graph_edge(const struct callgraph *graph, const char *caller, const char *callee)
{
	for (uint32_t i = 0; i < graph->edge_count; i++)
		if (strcmp(callgraph_name(graph, graph->edges[i].caller), caller) == 0 &&
		    strcmp(callgraph_name(graph, graph->edges[i].callee), callee) == 0)
			return &graph->edges[i];
	return NULL;
}
