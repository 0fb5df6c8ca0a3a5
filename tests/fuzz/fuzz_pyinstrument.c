/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a session of pyinstrument: read or refused with a reason; what was read can be written. */
#include "tests/fuzz/common.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static const struct builder_options options = {
		.memory_max_bytes = FUZZ_MEMORY_MAX_BYTES, .runs = true, .runs_max = 1 << 20};
	struct profile *profile = fuzz_read("pyinstrument", data, bytes, NULL, NULL);

	if (profile)
		fuzz_write(profile, "speedscope");
	profile_free(profile);
	profile_free(fuzz_read("pyinstrument", data, bytes, &options, NULL));
	return 0;
}
