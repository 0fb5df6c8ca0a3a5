/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a pprof file: no crash, bounded memory, and a profile whose parts hang together when there is one, which can be written again. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporters/format.h"
#include "exporters/formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void expect(int holds)
{
	if (!holds)
		abort();
}

static void check(const struct profile *p)
{
	for (uint32_t t = 0; t < p->thread_count; t++) {
		expect(p->threads[t].process < p->process_count && p->threads[t].node_count > 0);
		for (uint32_t n = 1; n < p->threads[t].node_count; n++)
			expect(p->threads[t].nodes[n].parent < n && p->threads[t].nodes[n].symbol < p->symbol_count);
	}
	for (int v = 0; v < VALUE_COUNT; v++)
		expect(profile_sum(p, (enum value_index)v) <= INT64_MAX);
}

static void write_away(const struct profile *p)
{
	static struct writer to;
	static int null_fd = -1;
	struct export_options options = {0};

	if (null_fd < 0)
		null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	writer_open_fd(&to, null_fd);
	expect(pprof_write(p, &options, &to) == 0);
	writer_open_fd(&to, null_fd);
	expect(otlp_write(p, &options, &to) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct input in;
	struct builder_options options = {.memory_max_bytes = 64 << 20};
	struct builder *builder;
	struct profile *profile;
	struct fault fault = {0};
	int err;

	if (input_open_bytes(&in, data, bytes) != 0)
		return 0;
	pprof_detect(data, bytes < 4096 ? bytes : 4096);
	expect(builder_new(&builder, &options) == 0);
	err = pprof_read(&in, builder, &fault);
	expect(err <= 0 && (err == 0 || (fault.err == err && fault.why[0] != '\0')));
	if (builder_finish(builder, &profile) == 0) {
		check(profile);
		if (err == 0)
			write_away(profile);
		profile_free(profile);
	}
	builder_free(builder);
	input_close(&in);
	return 0;
}
