/* SPDX-License-Identifier: Apache-2.0 */
/* What the naming child parses, and what is parsed of its answers. The first byte says which: an ELF file that places of are asked for, a perf map,
 * a request, answers. Crashes within libdw would end a worker only; it is looked at without it (an even first byte) and with it. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "exporters/names_demangle.h"
#include "exporters/names_file.h"
#include "exporters/names_library.h"
#include "exporters/names_perfmap.h"
#include "exporters/names_wire.h"
#include "tests/fuzz/common.h"

enum { PLACES = 64, PARSE_FILE, PARSE_FILE_WITH_DATA, PARSE_MAP, PARSE_MESSAGE, PARSE_NAME, KINDS };

static int in_memory(const uint8_t *data, size_t bytes)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	expect(fd >= 0 && (bytes == 0 || write(fd, data, bytes) == (ssize_t)bytes));
	return fd;
}

static void parse_file(const uint8_t *data, size_t bytes)
{
	struct code_file_source source = {.path = "/nonexistent/lib.so", .root_fd = -1};
	struct code_frame frames[DEBUG_FRAMES_MAX];
	struct code_file *file;

	source.fd = in_memory(data, bytes);
	if (code_file_open(&file, &source) == 0) {
		for (size_t i = 0; i < PLACES; i++) {
			size_t count = code_file_find(file, i * bytes / PLACES, frames);

			expect(count <= DEBUG_FRAMES_MAX);
			for (size_t n = 0; n < count; n++)
				expect(strlen(frames[n].name) + strlen(frames[n].file) < SIZE_MAX);
		}
		code_file_free(file);
	}
	close(source.fd);
}

static void parse_map(const uint8_t *data, size_t bytes)
{
	int fd = in_memory(data, bytes);
	struct perf_map *map;

	expect(perf_map_read(&map, fd) == 0);
	for (uint64_t address = 0; address < 4096; address += 16) {
		const char *name = perf_map_find(map, address);

		expect(!name || *name);
	}
	perf_map_free(map);
	close(fd);
}

static int take(void *context, uint32_t index, const struct code_frame *frames, size_t count)
{
	(void)context;
	expect(index < WIRE_OFFSETS_MAX && count > 0 && count <= DEBUG_FRAMES_MAX);
	for (size_t i = 0; i < count; i++)
		expect(strlen(frames[i].name) <= REC_TEXT_MAX && strlen(frames[i].file) <= REC_TEXT_MAX);
	return 0;
}

static void parse_message(const uint8_t *data, size_t bytes)
{
	union wire_message *message = malloc(sizeof(*message));

	if (!message || bytes > sizeof(*message)) {
		free(message);
		return;
	}
	memcpy(message, data, bytes);
	if (wire_is_sound(message, bytes) && message->head.type == WIRE_ANSWERS)
		(void)wire_answers_each(message, bytes, WIRE_OFFSETS_MAX, take, NULL);
	free(message);
}

static void parse_name(const uint8_t *data, size_t bytes)
{
	char *symbol = strndup((const char *)data, bytes), to[256];

	if (symbol)
		expect(name_readable(to, sizeof(to), symbol) < sizeof(to));
	free(symbol);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static bool loaded;

	if (bytes == 0)
		return 0;
	switch (PARSE_FILE + data[0] % (KINDS - PARSE_FILE)) {
	case PARSE_FILE_WITH_DATA:
		if (!loaded)
			names_library_load();
		loaded = true;
		parse_file(data + 1, bytes - 1);
		break;
	case PARSE_FILE:
		parse_file(data + 1, bytes - 1);
		break;
	case PARSE_MAP:
		parse_map(data + 1, bytes - 1);
		break;
	case PARSE_MESSAGE:
		parse_message(data + 1, bytes - 1);
		break;
	default:
		parse_name(data + 1, bytes - 1);
	}
	return 0;
}
