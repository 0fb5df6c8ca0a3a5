/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as collapsed stacks: no read out of bounds, and what was read is written and read again with the same sums. */
#include "exporters/format.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void expect(int holds)
{
	if (!holds)
		abort();
}

static struct profile *read_as(struct input *in, const char *format)
{
	struct builder *builder;
	struct profile *profile = NULL;
	struct fault fault = {0};

	expect(builder_new(&builder, &(struct builder_options){.memory_max_bytes = 64 << 20}) == 0);
	if (format_by_name(format)->read(in, builder, &fault) == 0)
		expect(builder_finish(builder, &profile) == 0);
	else
		expect(fault.why[0] != '\0');
	builder_free(builder);
	return profile;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct input in;
	static struct writer to;
	struct profile *profile, *again;
	int fd;

	format_by_name("collapsed")->detect(data, bytes < 4096 ? bytes : 4096);
	expect(input_open_bytes(&in, data, bytes) == 0);
	profile = read_as(&in, "collapsed");
	input_close(&in);
	if (!profile)
		return 0;
	fd = memfd_create("written", MFD_CLOEXEC);
	writer_open_fd(&to, fd);
	expect(format_write(format_by_name("collapsed"), profile, &(struct export_options){0}, &to) == 0);
	expect(writer_close(&to, NULL) == 0);
	if (to.bytes > 0) {
		expect(lseek(fd, 0, SEEK_SET) == 0);
		dup2(fd, STDIN_FILENO);
		expect(input_open(&in, "-", NULL) == 0);
		again = read_as(&in, "collapsed");
		input_close(&in);
		expect(again && profile_sum(again, VALUE_SAMPLES) == profile_sum(profile, VALUE_SAMPLES));
		profile_free(again);
	}
	profile_free(profile);
	close(fd);
	return 0;
}
