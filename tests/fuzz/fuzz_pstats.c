/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a pstats file: read or refused; what was read can be written in every format of call graphs, and as pstats it can be read again,
 * with no more functions and calls. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "exporters/formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void expect(int holds)
{
	if (!holds)
		abort();
}

static int read_bytes(const void *data, size_t bytes, struct callgraph *ret_graph)
{
	static struct input in;
	struct fault fault = {0};
	int err;

	callgraph_init(ret_graph);
	expect(input_open_bytes(&in, data, bytes) == 0);
	err = pstats_read(&in, ret_graph, &fault);
	input_close(&in);
	expect(err <= 0 && (err == 0 || fault.why[0] != '\0'));
	return err;
}

/* Into memory, or nowhere. */
static char *write_graph(const struct callgraph *graph, bool keep, size_t *ret_bytes,
                         int (*format)(const struct callgraph *, const struct export_options *, struct writer *))
{
	static struct writer to;
	int fd = keep ? memfd_create("written", MFD_CLOEXEC) : open("/dev/null", O_WRONLY | O_CLOEXEC);
	char *text = NULL;

	expect(fd >= 0);
	writer_open_fd(&to, fd);
	expect(format(graph, &(struct export_options){0}, &to) == 0 && writer_close(&to, NULL) == 0);
	if (keep) {
		text = malloc((size_t)to.bytes + 1);
		expect(text && pread(fd, text, (size_t)to.bytes, 0) == (ssize_t)to.bytes);
		*ret_bytes = (size_t)to.bytes;
	}
	close(fd);
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct callgraph graph, again;
	size_t written_bytes;
	char *written;

	if (read_bytes(data, bytes, &graph) == 0) {
		write_graph(&graph, false, NULL, callgrind_write);
		write_graph(&graph, false, NULL, dot_write);
		written = write_graph(&graph, true, &written_bytes, pstats_write);
		expect(read_bytes(written, written_bytes, &again) == 0);
		/* Texts that are not valid may become alike; the file of nothing holds one function. */
		expect(again.function_count <= graph.function_count + 1 && again.edge_count <= graph.edge_count);
		callgraph_release(&again);
		free(written);
	}
	callgraph_release(&graph);
	return 0;
}
