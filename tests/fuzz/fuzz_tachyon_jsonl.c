/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the JSON Lines of CPython's profiler: read or refused with a reason; what was read can be written. */
#include "tests/fuzz/common.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct writer to;
	struct callgraph graph;
	size_t written_bytes;

	if (fuzz_read_callgraph(&graph, "tachyon-jsonl", data, bytes) == 0) {
		fuzz_memory(&to);
		expect(format_by_name("pstats")->write_callgraph(&graph, &(struct export_options){0}, &to) == 0);
		free(fuzz_written(&to, &written_bytes));
	}
	callgraph_release(&graph);
	return 0;
}
