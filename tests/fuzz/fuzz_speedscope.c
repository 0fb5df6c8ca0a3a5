/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a file of speedscope's format: no read or write out of bounds, no leak, a fault that says something, and a profile that can be
 * written again. */
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "exporters/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void expect(int holds)
{
	if (!holds)
		abort();
}

static void write_again(const struct profile *profile)
{
	static struct writer to;
	int ends[2];

	expect(pipe(ends) == 0);
	close(ends[0]);
	writer_open_fd(&to, ends[1]);
	to.err = -1; /* what is written goes nowhere; what is read for it counts */
	format_write(format_by_name("speedscope"), profile, &(struct export_options){0}, &to);
	close(ends[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct input in;
	struct builder_options options = {.memory_max_bytes = UINT64_C(256) << 20};
	struct builder *builder;
	struct profile *profile;
	struct fault fault = {0};
	int err;

	expect(input_open_bytes(&in, data, bytes) == 0);
	expect(builder_new(&builder, &options) == 0);
	err = format_by_name("speedscope")->read(&in, builder, &fault);
	expect(err <= 0);
	expect(err == 0 || (fault.why[0] && fault.err == err));
	if (err == 0 && builder_finish(builder, &profile) == 0) {
		write_again(profile);
		profile_free(profile);
	}
	builder_free(builder);
	input_close(&in);
	return 0;
}
