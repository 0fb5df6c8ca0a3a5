/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/written.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

char *written(const struct profile *profile, const char *format, const struct export_options *options)
{
	size_t bytes;

	return written_bytes(profile, format, options, &bytes);
}

char *written_bytes(const struct profile *profile, const char *format, const struct export_options *options, size_t *ret_bytes)
{
	static struct writer to;
	int fd = memfd_create("written", MFD_CLOEXEC);
	off_t bytes;
	char *text;

	writer_open_fd(&to, fd);
	if (fd < 0 || format_write(format_by_name(format), profile, options, &to) != 0 || writer_close(&to, NULL) != 0)
		abort();
	bytes = lseek(fd, 0, SEEK_END);
	text = malloc((size_t)bytes + 1);
	if (!text || (uint64_t)bytes != to.bytes || pread(fd, text, (size_t)bytes, 0) != bytes)
		abort();
	text[bytes] = '\0';
	close(fd);
	*ret_bytes = (size_t)bytes;
	return text;
}

unsigned count_of(const char *text, const char *what)
{
	unsigned count = 0;

	for (; (text = strstr(text, what)) != NULL; text += strlen(what))
		count++;
	return count;
}
