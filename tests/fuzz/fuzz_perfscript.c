/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the text of perf script: no read out of bounds, an end, and a reason where it is refused. */
#include "tests/fuzz/common.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static const struct builder_options timed = {.memory_max_bytes = FUZZ_MEMORY_MAX_BYTES, .runs = true};

	profile_free(fuzz_read("perf", data, bytes, &timed, NULL));
	return 0;
}
