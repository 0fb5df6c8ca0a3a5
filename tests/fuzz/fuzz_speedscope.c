/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a file of speedscope's format: no read or write out of bounds, no leak, a fault that says something, and a profile that can be
 * written again. */
#include "tests/fuzz/common.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static const struct builder_options options = {.memory_max_bytes = UINT64_C(256) << 20};
	static const struct builder_options timed = {
		.memory_max_bytes = FUZZ_MEMORY_MAX_BYTES, .runs = true, .runs_max = 1 << 20};
	int err;
	struct profile *profile = fuzz_read("speedscope", data, bytes, &options, &err);

	if (err == 0 && profile)
		fuzz_write(profile, "speedscope");
	profile_free(profile);
	profile_free(fuzz_read("speedscope", data, bytes, &timed, NULL));
	return 0;
}
