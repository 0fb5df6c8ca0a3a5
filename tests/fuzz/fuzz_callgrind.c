/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a callgrind file: read or refused; what was read can be written in every format of call graphs, and as callgrind it can be read
 * again: no total is above the whole. */
#include <stdlib.h>

#include "tests/fuzz/common.h"

/* Into memory; the caller frees it. */
static char *write_graph(const struct callgraph *graph, const char *format, size_t *ret_bytes)
{
	static struct writer to;

	fuzz_memory(&to);
	expect(format_by_name(format)->write_callgraph(graph, &(struct export_options){0}, &to) == 0);
	return fuzz_written(&to, ret_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct callgraph graph, again;
	size_t written_bytes;
	char *written;

	if (fuzz_read_callgraph(&graph, "callgrind", data, bytes) == 0) {
		for (uint32_t i = 0; i < graph.function_count; i++)
			expect(graph.functions[i].sums.total_s <= graph.sampled_s);
		free(write_graph(&graph, "pstats", &written_bytes));
		free(write_graph(&graph, "dot", &written_bytes));
		written = write_graph(&graph, "callgrind", &written_bytes);
		expect(fuzz_read_callgraph(&again, "callgrind", written, written_bytes) == 0);
		callgraph_release(&again);
		free(written);
	}
	callgraph_release(&graph);
	return 0;
}
