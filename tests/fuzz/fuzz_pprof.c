/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a pprof file: no crash, bounded memory, and a profile whose parts hang together when there is one, which can be written again. */
#include "tests/fuzz/common.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	int err;
	struct profile *profile = fuzz_read("pprof", data, bytes, NULL, &err);

	if (!profile)
		return 0;
	for (int v = 0; v < VALUE_COUNT; v++)
		expect(profile_sum(profile, (enum value_index)v) <= INT64_MAX);
	if (err == 0) {
		fuzz_write(profile, "pprof");
		fuzz_write(profile, "otlp");
	}
	profile_free(profile);
	return 0;
}
