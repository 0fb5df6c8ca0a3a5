/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as Dask profiles: no read out of bounds, an end, and a reason where it is refused. */
#include "exporters/format.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	const struct format *format = format_by_name("dask");
	static struct input in;
	struct builder *builder;
	struct profile *profile;
	struct fault fault = {0};

	format->detect(data, bytes < 4096 ? bytes : 4096);
	if (builder_new(&builder, &(struct builder_options){.memory_max_bytes = 64 << 20, .runs = true}) ||
	    input_open_bytes(&in, data, bytes))
		abort();
	if (format->read(&in, builder, &fault) == 0) {
		if (builder_finish(builder, &profile))
			abort();
		profile_free(profile);
	} else if (fault.why[0] == '\0') {
		abort();
	}
	input_close(&in);
	builder_free(builder);
	return 0;
}
