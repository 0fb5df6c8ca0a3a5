/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/written_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

char *written_graph(const struct callgraph *graph, const char *format, size_t *ret_bytes)
{
	static struct writer to;
	int fd = memfd_create("written", MFD_CLOEXEC);
	char *text;

	writer_open_fd(&to, fd);
	if (fd < 0 || format_by_name(format)->write_callgraph(graph, &(struct export_options){0}, &to) != 0 ||
	    writer_close(&to, NULL) != 0)
		abort();
	text = malloc(to.bytes + 1);
	if (!text || pread(fd, text, to.bytes, 0) != (ssize_t)to.bytes)
		abort();
	text[to.bytes] = '\0';
	if (ret_bytes)
		*ret_bytes = to.bytes;
	close(fd);
	return text;
}

char *written_graph_of(const struct profile *profile, const char *format, size_t *ret_bytes)
{
	struct callgraph graph;
	char *text;

	callgraph_init(&graph);
	if (callgraph_add_profile(&graph, profile) != 0)
		abort();
	text = written_graph(&graph, format, ret_bytes);
	callgraph_release(&graph);
	return text;
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
