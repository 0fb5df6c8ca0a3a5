/* SPDX-License-Identifier: Apache-2.0 */
/* A call graph written in a format, and read from bytes, in memory, for tests. */
#ifndef SAMPLED_TESTS_UNIT_WRITTEN_GRAPH_H
#define SAMPLED_TESTS_UNIT_WRITTEN_GRAPH_H

#include "exporters/format.h"

/* The caller frees it. NUL-terminated behind its bytes (ret_bytes may be NULL); aborts when writing fails. */
char *written_graph(const struct callgraph *graph, const char *format, size_t *ret_bytes);
/* The same of a profile's call graph. */
char *written_graph_of(const struct profile *profile, const char *format, size_t *ret_bytes);
/* Reads bytes as this format into *ret_graph, which the caller releases in any case. What the reader returned. */
int read_graph(const void *data, size_t bytes, const char *format, struct callgraph *ret_graph, struct fault *fault);

/* The function of this name, which must be there once. */
const struct callgraph_function *graph_function(const struct callgraph *graph, const char *name);
/* The edge between two; NULL: there is none. */
const struct callgraph_edge *graph_edge(const struct callgraph *graph, const char *caller, const char *callee);

#endif
