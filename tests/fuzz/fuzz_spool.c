/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a file of the spool: what comes out is within its bounds, and can be made a request of. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/spool_read.h"
#include "exporters/push_request.h"
#include "tests/fuzz/common.h"

static void check(const struct spool_read_item *item)
{
	struct push_profile profile = {.labels = item->labels,
	                               .from_ns = item->from_ns,
	                               .until_ns = item->until_ns,
	                               .packed = item->packed,
	                               .packed_bytes = item->packed_bytes};

	expect(item->labels.count <= SPOOL_LABELS_MAX && item->packed_bytes <= SPOOL_PACKED_MAX);
	expect(item->from_ns <= item->until_ns && item->until_ns <= INT64_MAX);
	for (size_t i = 0; i < item->labels.count; i++) {
		expect(strlen(item->labels.items[i].name) <= SPOOL_LABEL_NAME_MAX);
		expect(strlen(item->labels.items[i].value) <= SPOOL_LABEL_VALUE_MAX);
	}
	for (int type = 0; type < PUSH_TYPES; type++) {
		struct push_request request;
		struct fault fault = {0};

		if (push_request_make(&request, (enum push_type)type, "http://h", &profile, &fault) == 0) {
			expect(strncmp(request.url.data, "http://h/", 9) == 0);
			expect(!strpbrk(request.url.data, " \r\n\""));
			push_request_release(&request);
		} else {
			expect(fault.why[0] != '\0');
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	int fd = memfd_create("spool", MFD_CLOEXEC), got = 1;
	struct spool_reader reader;
	struct spool_read_item item;
	struct fault fault = {0};

	expect(fd >= 0 && write(fd, data, bytes) == (ssize_t)bytes);
	if (spool_reader_open_fd(&reader, fd, &fault)) {
		expect(fault.why[0] != '\0');
		close(fd);
		return 0;
	}
	while (got > 0) {
		got = spool_reader_next(&reader, &item, &fault);
		if (got > 0)
			check(&item);
	}
	expect(got == 0 || fault.why[0] != '\0');
	spool_reader_close(&reader);
	return 0;
}
