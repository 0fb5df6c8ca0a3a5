/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/common.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void expect(bool holds)
{
	if (!holds)
		abort();
}

static void open_input(struct input *in, const struct format *format, const void *data, size_t bytes)
{
	expect(format != NULL);
	format->detect(data, bytes < FORMAT_HEAD_BYTES ? bytes : FORMAT_HEAD_BYTES);
	expect(input_open_bytes(in, data, bytes) == 0);
}

struct profile *fuzz_read(const char *name, const void *data, size_t bytes, const struct builder_options *options,
                          int *ret_err)
{
	static const struct builder_options stacks = {.memory_max_bytes = FUZZ_MEMORY_MAX_BYTES};
	static struct input in;
	const struct format *format = format_by_name(name);
	struct builder *builder;
	struct profile *profile = NULL;
	struct fault fault = {0};
	int err;

	open_input(&in, format, data, bytes);
	expect(builder_new(&builder, options ? options : &stacks) == 0);
	err = format->read(&in, builder, &fault);
	expect(err <= 0);
	expect(err == 0 || (fault.err == err && fault.why[0] != '\0'));
	if (builder_finish(builder, &profile) == 0) {
		fuzz_check(profile);
		if (err == 0 && profile->has_runs)
			fuzz_check_runs(profile);
	} else {
		expect(builder_error(builder) == -E2BIG);
	}
	builder_free(builder);
	input_close(&in);
	if (ret_err)
		*ret_err = err;
	return profile;
}

int fuzz_read_callgraph(struct callgraph *ret_graph, const char *name, const void *data, size_t bytes)
{
	static struct input in;
	const struct format *format = format_by_name(name);
	struct fault fault = {0};
	int err;

	callgraph_init(ret_graph);
	open_input(&in, format, data, bytes);
	err = format->read_callgraph(&in, ret_graph, &fault);
	input_close(&in);
	expect(err <= 0 && (err == 0 || fault.why[0] != '\0'));
	return err;
}

void fuzz_check(const struct profile *profile)
{
	for (uint32_t i = 0; i < profile->thread_count; i++) {
		const struct thread_tree *tree = &profile->threads[i];

		expect(tree->process < profile->process_count && tree->node_count > 0);
		expect(tree->t_last_ns - tree->t_first_ns < UINT64_MAX / 2);
		for (uint32_t n = 0; n < tree->node_count; n++)
			expect(n == 0 || (tree->nodes[n].parent < n && tree->nodes[n].symbol < profile->symbol_count));
		for (size_t r = 0; r < tree->run_count; r++)
			expect(tree->runs[r].node < tree->node_count);
	}
}

void fuzz_check_runs(const struct profile *profile)
{
	for (uint32_t i = 0; i < profile->thread_count; i++) {
		const struct thread_tree *tree = &profile->threads[i];
		uint64_t samples = 0, in_runs = 0;

		for (uint32_t n = 0; n < tree->node_count; n++)
			samples += tree->nodes[n].self[VALUE_SAMPLES];
		for (size_t r = 0; r < tree->run_count; r++)
			in_runs += tree->runs[r].count;
		expect(samples == in_runs);
	}
}

void fuzz_write(const struct profile *profile, const char *format)
{
	static struct writer to;
	static int null_fd = -1;

	if (null_fd < 0)
		null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	expect(null_fd >= 0);
	writer_open_fd(&to, null_fd);
	expect(format_write(format_by_name(format), profile, &(struct export_options){0}, &to) == 0);
	expect(writer_close(&to, NULL) == 0);
}

void fuzz_memory(struct writer *to)
{
	int fd = memfd_create("written", MFD_CLOEXEC);

	expect(fd >= 0);
	writer_open_fd(to, fd);
}

char *fuzz_written(struct writer *to, size_t *ret_bytes)
{
	int fd = to->fd;
	char *text;

	expect(writer_close(to, NULL) == 0);
	text = malloc((size_t)to->bytes + 1);
	expect(text && pread(fd, text, (size_t)to->bytes, 0) == (ssize_t)to->bytes);
	text[to->bytes] = '\0';
	close(fd);
	*ret_bytes = (size_t)to->bytes;
	return text;
}
