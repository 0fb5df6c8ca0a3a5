/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a binary profile of profiling.sampling: no read or write out of bounds, an end, and trees that hold together. Half of the inputs
 * get a head and a footer that fit, so that what lies between is reached: their first byte says how long the strings and frames are. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void expect(int holds)
{
	if (!holds)
		abort();
}

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

static void check(const struct profile *p)
{
	for (uint32_t i = 0; i < p->thread_count; i++) {
		const struct thread_tree *t = &p->threads[i];
		uint64_t samples = 0, in_runs = 0;

		expect(t->node_count >= 1 && t->process < p->process_count);
		for (uint32_t n = 0; n < t->node_count; n++) {
			samples += t->nodes[n].self[VALUE_SAMPLES];
			expect(n == 0 || (t->nodes[n].parent < n && t->nodes[n].symbol < p->symbol_count));
		}
		for (size_t r = 0; r < t->run_count; r++) {
			in_runs += t->runs[r].count;
			expect(t->runs[r].node < t->node_count);
		}
		expect(samples == in_runs);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct input in;
	static uint8_t file[1 << 16];
	struct builder *b;
	struct profile *p;
	struct fault fault;
	int err;

	if (bytes < 7 || bytes > (1 << 16) - 128)
		return 0;
	if (data[0] & 1)
		expect(input_open_bytes(&in, data + 1, bytes - 1) == 0);
	else
		expect(input_open_bytes(&in, file, make_file(data, bytes, file)) == 0);
	expect(builder_new(&b, &(struct builder_options){.memory_max_bytes = 64 << 20, .runs = true}) == 0);
	fault.why[0] = '\0';
	err = in.err ? in.err : tachyon_read(&in, b, &fault);
	expect(err == 0 || in.err || fault.why[0] != '\0' || builder_error(b));
	if (builder_finish(b, &p) == 0) {
		check(p);
		profile_free(p);
	}
	builder_free(b);
	input_close(&in);
	return 0;
}
