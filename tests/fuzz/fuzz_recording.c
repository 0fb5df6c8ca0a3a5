/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a recording: no read or write out of bounds, no hang, and a profile whose sums hold. So that mutations reach behind the checksums,
 * a file's blocks are given the sums that they should have. */
#include <stdlib.h>
#include <string.h>

#include "exporters/crc32c.h"
#include "exporters/recording.h"
#include "tests/fuzz/common.h"

static void put_le(uint8_t *to, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		to[i] = (uint8_t)(value >> 8 * i);
}

static void mend_sums(uint8_t *file, size_t bytes)
{
	size_t at = RECORDING_HEAD_BYTES;

	if (bytes < at)
		return;
	memcpy(file, RECORDING_MAGIC "\1\0\0\0", 12);
	put_le(file + 12, crc32c(0, file, 12));
	while (bytes - at >= BLOCK_HEAD_BYTES) {
		uint32_t length = (uint32_t)file[at + 4] | (uint32_t)file[at + 5] << 8;

		file[at + 6] = file[at + 7] = 0;
		if (length > bytes - at - BLOCK_HEAD_BYTES)
			return;
		put_le(file + at + 8, crc32c(crc32c(0, file + at, 8), file + at + BLOCK_HEAD_BYTES, length));
		at += BLOCK_HEAD_BYTES + length;
	}
}

static void read_all(const uint8_t *file, size_t bytes, bool runs)
{
	const struct builder_options options = {
		.memory_max_bytes = FUZZ_MEMORY_MAX_BYTES, .runs = runs, .runs_max = 1 << 16};

	profile_free(fuzz_read("recording", file, bytes, &options, NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	uint8_t *file = malloc(bytes + 64);

	expect(file != NULL);
	memcpy(file, data, bytes);
	mend_sums(file, bytes);
	read_all(file, bytes, false);
	read_all(file, bytes, true);
	free(file);
	return 0;
}
