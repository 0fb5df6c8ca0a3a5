/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a recording: no read or write out of bounds, no hang, and a profile whose sums hold. So that mutations reach behind the checksums,
 * a file's blocks are given the sums that they should have. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/crc32c.h"
#include "exporters/recording.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

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
	static struct input in;
	const struct builder_options options = {.memory_max_bytes = 64 << 20, .runs = runs, .runs_max = 1 << 16};
	struct builder *builder;
	struct profile *profile;
	struct fault fault = {0};

	if (input_open_bytes(&in, file, bytes) != 0)
		abort();
	if (builder_new(&builder, &options) != 0)
		abort();
	if (recording_read(&in, builder, &fault) == 0 && builder_finish(builder, &profile) == 0) {
		for (uint32_t i = 0; i < profile->thread_count; i++)
			for (uint32_t n = 1; n < profile->threads[i].node_count; n++)
				if (profile->threads[i].nodes[n].parent >= n)
					abort();
		profile_free(profile);
	}
	builder_free(builder);
	input_close(&in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	uint8_t *file = malloc(bytes + 64);

	if (!file)
		abort();
	memcpy(file, data, bytes);
	mend_sums(file, bytes);
	read_all(file, bytes, false);
	read_all(file, bytes, true);
	free(file);
	return 0;
}
