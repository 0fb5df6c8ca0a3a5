/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/names_perfmap.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	BYTES_MAX = 64 << 20, /* what is behind is not read */
	ENTRIES_MAX = 1 << 20,
	LOOK_BACK = 16,
};

struct entry {
	uint64_t start, end;
	uint32_t order;
	const char *name;
};

struct perf_map {
	char *text;
	struct entry *entries;
	size_t count, room;
};

/* The whole file, NUL-terminated; NULL without memory. */
static char *read_all(int fd, size_t bytes)
{
	char *text = malloc(bytes + 1);
	size_t at = 0;

	while (text && at < bytes) {
		ssize_t got = pread(fd, text + at, bytes - at, (off_t)at);

		if (got <= 0)
			break;
		at += (size_t)got;
	}
	if (text)
		text[at] = '\0';
	return text;
}

static int add_line(struct perf_map *map, char *line)
{
	struct entry entry = {.order = (uint32_t)map->count};
	uint64_t bytes;
	char *end;

	entry.start = strtoull(line, &end, 16);
	if (end == line || *end != ' ')
		return 0;
	line = end + 1;
	bytes = strtoull(line, &end, 16);
	if (end == line || *end != ' ' || end[1] == '\0' || bytes == 0 || entry.start + bytes < entry.start)
		return 0;
	entry.end = entry.start + bytes;
	entry.name = end + 1;
	if (map->count == map->room) {
		size_t room = map->room ? map->room * 2 : 256;
		struct entry *entries = room <= ENTRIES_MAX ? realloc(map->entries, room * sizeof(*entries)) : NULL;

		if (!entries)
			return -ENOMEM;
		map->entries = entries;
		map->room = room;
	}
	map->entries[map->count++] = entry;
	return 0;
}

static int compare(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->order < b->order ? -1 : 1;
}

int perf_map_read(struct perf_map **ret_map, int fd)
{
	struct perf_map *map;
	struct stat st;

	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return -EINVAL;
	map = calloc(1, sizeof(*map));
	if (map)
		map->text = read_all(fd, st.st_size < BYTES_MAX ? (size_t)st.st_size : BYTES_MAX);
	if (!map || !map->text) {
		perf_map_free(map);
		return -ENOMEM;
	}
	for (char *line = map->text, *end; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		if (add_line(map, line))
			break;
	}
	if (map->count)
		qsort(map->entries, map->count, sizeof(map->entries[0]), compare);
	*ret_map = map;
	return 0;
}

void perf_map_free(struct perf_map *map)
{
	if (!map)
		return;
	free(map->text);
	free(map->entries);
	free(map);
}

const char *perf_map_find(const struct perf_map *map, uint64_t address)
{
	const struct entry *found = NULL;
	size_t low = 0, high = map->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (map->entries[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (unsigned back = 0; back < LOOK_BACK && low > 0; back++) {
		const struct entry *entry = &map->entries[--low];

		if (address < entry->end && (!found || entry->order > found->order))
			found = entry;
	}
	return found ? found->name : NULL;
}
