/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a binary file of Austin: read or refused with a reason; what was read can be written. */
#include "tests/fuzz/common.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct profile *profile = fuzz_read("austin-mojo", data, bytes, NULL, NULL);

	if (profile)
		fuzz_write(profile, "speedscope");
	profile_free(profile);
	return 0;
}
