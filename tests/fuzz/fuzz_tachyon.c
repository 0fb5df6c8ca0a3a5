/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a binary profile of profiling.sampling: no read or write out of bounds, an end, and trees that hold together. Half of the inputs
 * get a head and a footer that fit, so that what lies between is reached: their first byte says how long the strings and frames are. */
#include <string.h>

#include "tests/fuzz/common.h"

static void put(uint8_t *at, uint64_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		at[i] = (uint8_t)(value >> 8 * i);
}

/* Between head and footer: samples, strings, frames. data: counts and lengths (6 bytes), then these. */
static size_t make_file(const uint8_t *data, size_t bytes, uint8_t *file)
{
	size_t body = bytes - 6, strings = data[1] < body ? data[1] : body,
	       frames = data[2] < body - strings ? data[2] : 0;
	uint8_t *footer = file + 64 + body;

	memset(file, 0, 64);
	memcpy(file, "HCAT\1\0\0\0\3\017", 10);
	put(file + 12, 5000000, 8);
	put(file + 20, 1000, 8);
	put(file + 28, data[3] * UINT64_C(100), 8);
	put(file + 36, data[4], 4);
	put(file + 40, 64 + body - strings - frames, 8);
	put(file + 48, 64 + body - frames, 8);
	file[56] = data[0] >> 1 & 1;
	file[60] = data[0] >> 2 & 7;
	memcpy(file + 64, data + 6, body);
	memset(footer, 0, 32);
	footer[0] = data[5] & 15;
	footer[4] = data[5] >> 4;
	put(footer + 8, 64 + body + 32, 8);
	return 64 + body + 32;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static const struct builder_options timed = {.memory_max_bytes = FUZZ_MEMORY_MAX_BYTES, .runs = true};
	static uint8_t file[1 << 16];
	struct profile *profile;

	if (bytes < 7 || bytes > (1 << 16) - 128)
		return 0;
	if (data[0] & 1)
		profile = fuzz_read("tachyon", data + 1, bytes - 1, &timed, NULL);
	else
		profile = fuzz_read("tachyon", file, make_file(data, bytes, file), &timed, NULL);
	if (profile)
		fuzz_check_runs(profile);
	profile_free(profile);
	return 0;
}
